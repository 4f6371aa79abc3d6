"""The lower bound for learners with few linear minimisations."""

import itertools
import math

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.ensemble.threads import set_threads
from driftwolfe.points import norm
from driftwolfe.streams import ResistingOracle

#: Learners, with the budget a round that they keep to.
CONTENDERS = {
    "ofw": (1.0, dw.OnlineFrankWolfe, {}),
    "bogd-certified": (1.0, dw.BOGDIP, {"tuning": "certified", "oracle": "halfspace"}),
    "bogd-fine": (1.0, dw.BOGDIP, {"oracle": dw.Oracle("halfspace", tolerance_scale=0.5)}),
    "bogd-finer": (3.0, dw.BOGDIP, {"oracle": dw.Oracle(lmo_budget=3.0, tolerance_scale=0.2)}),
    "bogd": (1.0, dw.BOGDIP, {"oracle": dw.Oracle(lmo_budget=1.0)}),
    "loo-bogd": (1.0, dw.learners.LOOBOGD, {"oracle": dw.Oracle(lmo_budget=1.0)}),
    "pold": (1.0, dw.POLD, {"oracle": dw.Oracle(lmo_budget=1.0)}),
    "pola-even": (1.0, dw.POLA, {"oracle": dw.Oracle(lmo_budget=1.0, schedule="even")}),
    "one-oracle": (0.7, dw.learners.OneOracleAder, {"oracle": dw.Oracle(lmo_budget=0.7)}),
    "loo-bogd-certified": (0.01, dw.learners.LOOBOGD, {"tuning": "certified"}),
}


def make(name, domain, rounds):
    _, cls, settings = CONTENDERS[name]
    return cls(domain, horizon=rounds, lipschitz=1.0, **settings)


def recorded(game):
    """The game's set, with a list of the queries and answers that it has seen."""
    seen = []

    def ask(query):
        seen.append((query, game.domain.lmo(query)))
        return seen[-1][1]

    return dw.LMODomain(game.domain.shape, ask, 1.0), seen


def newest(game):
    """Ask for a new answer: old ones lose, as they have coordinates of their own."""
    query = np.zeros(game.domain.shape)
    directions = game._most
    query[game._first : game._revealed] = 1.0
    query[directions : directions + game.answers] = 1.0
    return game.domain.lmo(query)


@pytest.mark.in_turn
@pytest.mark.parametrize("budget_kept", [True, False])
@pytest.mark.parametrize("name", CONTENDERS)
def test_every_answer_is_a_minimiser_over_the_set_as_it_ends_up(name, budget_kept):
    game = ResistingOracle(40, CONTENDERS[name][0] if budget_kept else 0.2)
    domain, seen = recorded(game)
    learner = make(name, domain, 40)
    for _ in range(40):
        learner.update(game.answer(learner.decision))
    assert len(seen) == learner.lmo_calls
    points = [np.zeros(domain.shape), game._target(shown=True), *(answer for _, answer in seen)]
    vertices = np.unique(points, axis=0)
    assert len(vertices) <= game.answers + 2
    assert np.linalg.norm(vertices, axis=1).max() <= 1 + 1e-12
    assert np.linalg.norm(game._target(shown=True)) == pytest.approx(1.0)
    for query, answer in seen:
        assert query @ answer <= (vertices @ query).min() + 1e-12 * np.linalg.norm(query)


@pytest.mark.in_turn
@pytest.mark.parametrize("rounds", [7, 64, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CONTENDERS)
def test_nobody_who_keeps_the_budget_beats_the_guarantee(name, rounds):
    game = ResistingOracle(rounds, CONTENDERS[name][0])
    learner = make(name, game.domain, rounds)
    history = dw.play(learner, game.losses(learner), record_decisions=True)
    assert len(history) == game.played == rounds
    assert game.answers <= game.allowed
    of_u = [loss.value(game._target(shown=True)) for loss in history.functions]
    np.testing.assert_allclose(of_u, 0.0, atol=1e-12)
    assert history.losses.sum() - sum(of_u) == pytest.approx(game.lower_bound, rel=1e-12)
    assert history.losses.min() >= game.guarantee / rounds * (1 - 1e-12)
    assert game.lower_bound >= game.guarantee * (1 - 1e-12)
    for x, loss in zip(history.decisions, history.functions, strict=True):
        assert np.linalg.norm(loss.gradient(x)) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["ofw", "bogd-certified"])
def test_regret_lies_between_the_bounds_from_below_and_from_above(name):
    game = ResistingOracle(1024)
    learner = make(name, game.domain, 1024)
    dw.play(learner, game.losses(learner), keep_losses=False)
    assert game.guarantee <= game.lower_bound <= learner.bound()
    assert game.lower_bound <= 1.15 * game.guarantee  # nor is the guarantee far from what happens


@pytest.mark.parametrize("calls", [[1] * 30, [0, 0, 5] * 10, [3, 0, 7, 1, 0] * 6, [0] * 9 + [40]])
def test_the_best_mixture_there_is_suffers_just_what_is_guaranteed(calls):
    """The analysis gives nothing away: with all there is to know, a round costs eps, no less."""
    game = ResistingOracle(len(calls), sum(calls) / len(calls))
    known = np.zeros((1, *game.domain.shape))
    for number in calls:
        target = game._target(shown=True)
        target[-1] = 0.0
        weights = np.linalg.lstsq(known.T, target, rcond=None)[0]
        assert weights.min() >= -1e-12 and weights.sum() <= 1 + 1e-12
        x = weights @ known
        assert game.answer(x).value(x) == pytest.approx(game.guarantee / game.rounds, rel=1e-9)
        known = np.vstack([known, *(newest(game)[None] for _ in range(number))])
    assert game.answers == game.allowed
    assert np.linalg.matrix_rank(known) == game.answers


def test_the_oracle_knows_only_0_at_first_and_old_answers_are_free():
    game = ResistingOracle(3, 2.0)
    zero = np.zeros(game.domain.shape)
    assert not game.domain.lmo(zero).any() and not newest(game).any()
    assert game.answers == 0
    assert game.answer(zero).value(zero) == pytest.approx(game.guarantee / 3)
    game = ResistingOracle(5)
    game.answer(np.zeros(game.domain.shape))
    first = newest(game)
    along_the_direction = np.eye(first.size)[0]  # a new answer would be as good, but not better
    for query in (-first, along_the_direction):
        np.testing.assert_array_equal(game.domain.lmo(query), first)
    assert not game.domain.lmo(first).any()
    assert game.answers == 1


def test_the_set_is_known_by_its_weights_and_guesses_are_refused():
    game = ResistingOracle(5)
    x = np.zeros(game.domain.shape)
    game.answer(x)
    first = newest(game)
    game.answer(first)
    second = newest(game)
    assert not np.array_equal(first, second)
    for inside in (x, first, second, 0.25 * first + 0.75 * second):
        assert game.domain.contains(inside)
    for outside in (1.1 * first, -0.1 * second, second - 0.2 * first, 0.7 * (first + second)):
        assert not game.domain.contains(outside)
        with pytest.raises(ValueError, match="decision must lie in the set"):
            game.answer(outside)
    assert game.domain.diameter >= np.linalg.norm(first - second)
    game = ResistingOracle(5)
    game.answer(x)
    newest(game)
    for hidden in (1, -1):
        guess = np.zeros(game.domain.shape)
        guess[hidden] = 1e-9
        for ask in (game.domain.lmo, game.domain.contains, game.answer):
            with pytest.raises(ValueError, match="no loss and no answer has shown"):
                ask(guess)


def test_beyond_the_budget_the_game_goes_on_and_says_the_truth():
    game = ResistingOracle(50, 0.1)
    learner = dw.OnlineFrankWolfe(game.domain, horizon=50, lipschitz=1.0)
    history = dw.play(learner, game.losses(learner))
    assert game.answers == game.allowed + 1 == 6
    regret = history.losses.sum() - sum(
        f.value(game._target(shown=True)) for f in history.functions
    )
    assert regret == pytest.approx(game.lower_bound)
    assert game.domain.contains(game._target(shown=True))
    # Whoever was given the comparator may play it for nothing.
    game = ResistingOracle(5, 0.2)
    game.answer(np.zeros(game.domain.shape))
    newest(game)
    u, before = newest(game), game.lower_bound
    np.testing.assert_array_equal(u, game._target(shown=True))
    assert (game.answer(u).value(u), game.lower_bound) == (0.0, before)
    newest(game)
    assert game.answers == 2


@pytest.mark.in_turn
@pytest.mark.parametrize("segments", [1, 3, 8, 30])
@pytest.mark.parametrize("name", ["ofw", "bogd-certified", "bogd", "pold", "one-oracle"])
def test_comparators_that_move_force_more_regret_on_everybody_who_keeps_the_budget(name, segments):
    budget, rounds = CONTENDERS[name][0], 64
    game = ResistingOracle(rounds, budget, segments)
    domain, seen = recorded(game)
    learner = make(name, domain, rounds)
    losses, decisions = [], []
    for _ in range(rounds):
        decisions.append(learner.decision)
        losses.append(game.answer(decisions[-1]))
        learner.update(losses[-1])
    # The theorem, its set and its comparators, from the points alone.
    calls = int(budget * rounds) // segments
    guarantee = rounds / math.sqrt(1 + math.sqrt(2 * calls))
    assert game.guarantee == pytest.approx(guarantee)
    moves = [norm(b - a) for a, b in itertools.pairwise(game.comparators) if (a != b).any()]
    assert len(game.comparators) == rounds and len(moves) < segments
    np.testing.assert_allclose(moves, math.sqrt(2.0))
    assert game.path_length == pytest.approx(sum(moves))
    triples = zip(losses, decisions, game.comparators, strict=True)
    each = [loss.value(x) - loss.value(u) for loss, x, u in triples]
    assert sum(each) == pytest.approx(game.lower_bound)
    assert min(each) >= guarantee / rounds * (1 - 1e-12)
    vertices = np.unique([0.0 * decisions[0], *game.comparators, *(v for _, v in seen)], axis=0)
    np.testing.assert_array_less(np.linalg.norm(vertices, axis=1), 1 + 1e-12)
    for query, answer in seen:
        assert query @ answer <= (vertices @ query).min() + 1e-12 * np.linalg.norm(query)


@pytest.mark.parametrize("cls", [dw.BOGDIP, dw.POLD])
def test_dynamic_regret_lies_between_its_bounds(cls):
    for segments in (4, 32):
        game = ResistingOracle(256, segments=segments)
        certified = {"tuning": "certified", "oracle": dw.Oracle(lmo_budget=1.0)}
        learner = cls(game.domain, horizon=256, lipschitz=1.0, **certified)
        history = dw.play(learner, game.losses(learner))
        regret = dw.regret.dynamic_regret(history, game.comparators)
        assert regret == pytest.approx(game.lower_bound)
        assert game.guarantee <= regret <= learner.bound(path_length=game.path_length)


def test_a_segment_ends_with_the_answer_that_shows_its_comparator():
    game = ResistingOracle(10, 0.6, segments=3)  # 6 calls, 2 for each segment
    x = np.zeros(game.domain.shape)
    assert game.comparators == [] and game.path_length == 0.0
    for segment in range(3):
        game.answer(x)
        first, second = newest(game), newest(game)
        assert not np.array_equal(first, second)
        losses = [game.answer(old) for old in (first, second)]
        third = newest(game)
        assert max(abs(loss.value(third)) for loss in losses) < 1e-12
        np.testing.assert_array_equal(third, game._target(shown=True))
        np.testing.assert_array_equal(newest(game), newest(game))  # there is nothing new to show
        assert game.answers == 3 * (segment + 1) and game.played == 3 * (segment + 1)
        for known in (first, second, third, 0.5 * (first + third)):
            assert game.domain.contains(known)
        assert not game.domain.contains(third - 0.1 * first)
    assert game.answer(third).value(third) == 0.0  # one call more than allowed: it has found u
    assert game.path_length == pytest.approx(2.0 * math.sqrt(2.0))
    np.testing.assert_array_equal(game.comparators[-1], third)


def test_experts_in_threads_share_the_oracle():
    set_threads(3)
    try:
        game = ResistingOracle(12, 20.0)
        learner = dw.POLA(game.domain, horizon=12, lipschitz=1.0, oracle=dw.Oracle(lmo_budget=20.0))
        dw.play(learner, game.losses(learner))
    finally:
        set_threads(None)
    assert game.answers <= game.allowed
    assert game.lower_bound >= game.guarantee


def test_a_game_ends_and_has_one_set():
    game = ResistingOracle(2)
    learner = dw.OnlineFrankWolfe(game.domain, horizon=2, lipschitz=1.0)
    dw.play(learner, game.losses(learner))
    assert list(game.losses(learner)) == []
    with pytest.raises(ValueError, match="2 rounds, and all of them are played"):
        game.answer(learner.decision)
    stranger = dw.OnlineFrankWolfe(dw.L2Ball(3), horizon=2, lipschitz=1.0)
    with pytest.raises(ValueError, match="domain of this game"):
        next(game.losses(stranger))


def test_bad_settings_are_refused():
    bad = {"rounds": (0, 2.5, "ten"), "lmo_budget": (0.0, math.inf), "segments": (0, 6)}
    for name, value in ((name, value) for name, values in bad.items() for value in values):
        with pytest.raises(TypeError if value == "ten" else ValueError, match=name):
            ResistingOracle(**{"rounds": 5, name: value})
