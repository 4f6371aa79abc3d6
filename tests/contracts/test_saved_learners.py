"""Every learner, saved at any moment and loaded, goes on to the last bit."""

import dataclasses
import hashlib
from pathlib import Path

import numpy as np
import pytest

import driftwolfe as dw
from contracts.domain_cases import DOMAIN_CASES
from contracts.graphs import differences
from contracts.learner_cases import LEARNER_CASES, more_domains, product_losses, suits
from contracts.test_domain_contract import random_like
from contracts.test_learner_contract import stream
from driftwolfe import state
from driftwolfe.domains import Domain
from driftwolfe.learners import base as learner_base
from driftwolfe.learners import polar
from driftwolfe.points import FactoredMatrix
from driftwolfe.state import State
from learners.families import play_all
from reliability.children import python, same_copy

#: More settings: what is drawn at random, and projections that are cut off.
MORE = {
    "factored": {
        dw.BOGDIP: [{"oracle": dw.Oracle("block", seed=7)}],
        dw.learners.LOOBOGD: [{"oracle": dw.Oracle(seed=7)}],
        dw.POLD: [{"oracle": dw.Oracle("block", seed=7)}],
        dw.POLA: [{"oracle": dw.Oracle("block", seed=7)}],
        dw.POLAR: [{"oracle": dw.Oracle("block", seed=7)}],
    },
    # Matrices that share indices.
    "cached-factored": {dw.POLD: [{"oracle": dw.Oracle("halfspace", lmo_budget=0.3)}]},
    "l1": {
        dw.BOGDIP: [{"oracle": dw.Oracle("paper", accuracy=1e-7, tolerance_scale=1e-9)}],
        dw.contrib.Bandit: [{"seed": 4, "points": 2}],
        dw.contrib.SemiBandit: [{"seed": 7}],
    },
}
#: With doubling guesses of the horizon and of G, and with both known.
UNKNOWN, KNOWN = {}, {"horizon": 26, "lipschitz": 10.0}
#: Sets on which all settings of a learner are tried, not only the first.
THOROUGH = ("l1", "simplex", "factored")
#: Sets on which a learner is told nothing, for long games: a vector, a set with a centre, matrices, a
#: product.
UNTOLD = ("l1", "birkhoff", "trace-norm", "factored", "product-factored")
#: Those of both that are quick: a vector and a factored matrix.
QUICK = ("l1", "factored")


SETS_BY_NAME = more_domains()


def cases():
    """Quick: each learner on vectors and factored matrices, and on half of the other sets in turn."""
    for place, (name, domain) in enumerate(SETS_BY_NAME.items()):
        for turn, (cls, settings) in enumerate(LEARNER_CASES.items(), start=place):
            if not suits(cls, domain):
                continue
            tried = settings if name in THOROUGH else settings[:1]
            for number, each in enumerate([*tried, *MORE.get(name, {}).get(cls, [])]):
                often = name == "l1" or (name in QUICK and number % 2 == 0)
                often = often or (number == 0 and turn % 2 == 0)
                given = UNKNOWN if number % 2 else KNOWN
                certified = {"lipschitz": 10.0} if "tuning" in each else {}
                yield pytest.param(
                    *(cls, given | certified | each, name),
                    id=f"{cls.__name__}-{number}-{name}",
                    marks=() if often else pytest.mark.slow,
                )
            if name in UNTOLD:
                yield pytest.param(
                    *(cls, settings[0], name),
                    id=f"{cls.__name__}-{name}-unknown",
                    marks=() if name in QUICK else pytest.mark.slow,
                )


def losses_for(domain, rounds):
    if isinstance(domain, dw.ProductDomain):
        return product_losses(domain, rounds)
    return stream(domain, rounds)


def loaded(learner, path):
    """Save and load, in a file or as bytes; the set that holds functions is given again."""
    given = {"domain": learner.domain} if isinstance(learner.domain, dw.LMODomain) else {}
    if learner.t % 2:
        return dw.from_bytes(learner.to_bytes(), **given)
    learner.save(path)
    return dw.load(path, **given)


def told(learner):
    """All that a learner says of itself."""
    bounds = []
    for arguments in ({}, {"path_length": 2.5}, {"tau": 10}, {"tau": 10, "path_length": 1.0}):
        try:
            bounds.append(learner.bound(**arguments))
        except (NotImplementedError, ValueError) as problem:
            bounds.append(str(problem))
    return [
        learner.t,
        learner.decision,
        learner.expert_weights,
        learner.expert_names,
        learner.oracle_calls,
        learner.lmo_calls,
        repr(learner),
        *bounds,
    ]


@pytest.mark.in_turn("cls settings", "name")
@pytest.mark.parametrize(("cls", "settings", "name"), list(cases()))
def test_a_loaded_learner_is_the_saved_one(cls, settings, name, tmp_path, monkeypatch):
    """Before the first round, within an epoch, at the start of one, in the middle of the second."""
    monkeypatch.setattr(learner_base, "FIRST_EPOCH", 8)
    monkeypatch.setattr(polar, "SHORTEST_FACTORED", 4)
    domain, path = more_domains()[name], tmp_path / "learner.safetensors"
    learner, losses = cls(domain, **settings), losses_for(domain, 26)
    for t, loss in enumerate(losses[:17]):
        if t in (0, 5, 8, 13):
            before = learner.clone()
            other = loaded(learner, path)
            snapshot = learner.snapshot()
            with pytest.raises(RuntimeError, match="is a snapshot, which can only be read"):
                snapshot.update(loss)
            assert snapshot.domain is learner.domain
            assert differences(before, learner) == []  # saving changes nothing
            assert differences(before, snapshot) == []
            assert differences(learner, other) == []
            assert differences(told(learner), told(other)) == []
        learner.update(loss)
    other = loaded(learner, path)
    assert differences(other, loaded(other, path)) == []
    for loss in losses[17:]:
        assert other.update(loss) == learner.update(loss)
    assert differences(learner, other) == []


#: Products may come out otherwise with more.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
ELSEWHERE = """
import sys
import driftwolfe as dw
from contracts.test_saved_learners import played_on
print(dw.__file__)
for path in sys.argv[1:]:
    print(played_on(dw.load(path)))
"""


def played_on(learner):
    """What comes of some more rounds, as one number."""
    digest = hashlib.sha256()
    for loss in losses_for(learner.domain, 12):
        digest.update(repr((learner.update(loss), learner.oracle_calls)).encode())
        point = learner.decision
        for part in getattr(point, "parts", [point]):
            digest.update(part.toarray() if isinstance(part, FactoredMatrix) else part)
    return digest.hexdigest()


def test_another_process_goes_on_in_the_same_way(tmp_path):
    """Texts hash otherwise there, so that an order of vertices or options would show."""
    paths, expected = [], []
    for number, (cls, settings) in enumerate(LEARNER_CASES.items()):
        names = [("factored", "flow", "product-factored")[(number + k) % 3] for k in range(3)]
        name = next((name for name in names if suits(cls, more_domains()[name])), "l1")
        learner = cls(more_domains()[name], **settings[0])
        play_all(learner, losses_for(learner.domain, 8))
        paths.append(str(tmp_path / f"{cls.__name__}-{name}.safetensors"))
        learner.save(paths[-1])
        expected.append(played_on(learner))
    tests = Path(__file__).parents[1]
    there = same_copy(tests, PYTHONHASHSEED="12345", **ONE_THREAD)
    copy, *played = python("-c", ELSEWHERE, *paths, env=there).stdout.splitlines()
    assert copy == dw.__file__
    assert dict(zip(paths, played, strict=True)) == dict(zip(paths, expected, strict=True))


def test_what_is_forgotten_would_be_seen(tmp_path, monkeypatch):
    """The comparison above finds an attribute that no file has."""
    monkeypatch.delitem(state.declared(dw.OGD), "_steps")
    learner = dw.OGD(dw.L1Ball(4))
    play_all(learner, stream(learner.domain, 3))
    found = differences(learner, loaded(learner, tmp_path / "learner.safetensors"))
    assert len(found) == 1 and found[0].startswith("OGD._steps: ")


@pytest.mark.parametrize("cls", LEARNER_CASES)
def test_a_file_does_not_hold_what_it_need_not(cls, tmp_path):
    """No code, and nothing that grows with the rounds: weeks of play fit in the same file."""
    learner = cls(dw.L1Ball(4), **LEARNER_CASES[cls][0])
    path, sizes = tmp_path / "learner.safetensors", []
    for loss in stream(learner.domain, 120):
        learner.update(loss)
        if learner.t >= 70 and learner.t % 5 == 0:
            learner.save(path)
            sizes.append(path.stat().st_size)
    assert differences(learner, dw.load(path)) == []
    assert b"pickle" not in path.read_bytes()
    assert max(sizes) < 20_000
    assert max(sizes) - min(sizes) < 3_000


# -- sets ------------------------------------------------------------------------------------------

SETS = [
    pytest.param(make, id=f"{cls.__name__}-{number}")
    for cls, makes in DOMAIN_CASES.items()
    for number, make in enumerate(makes)
]


@pytest.mark.parametrize("make", SETS)
def test_every_set_comes_back_as_it_was(make, tmp_path):
    domain = make()
    path = tmp_path / "learner.safetensors"
    learner = dw.OnlineFrankWolfe(domain)
    learner.save(path)
    if isinstance(domain, dw.LMODomain):
        with pytest.raises(ValueError, match=r"is not in the file: make it anew, and load with"):
            dw.load(path)
        assert dw.load(path, domain=domain).domain is domain
        return
    other = dw.load(path).domain
    assert type(other) is type(domain)
    assert differences(domain, other) == []
    for name in ("shape", "radius", "diameter", "inner_radius", "center"):
        assert differences(getattr(domain, name), getattr(other, name)) == []
    rng = np.random.default_rng(0)
    for _ in range(5):
        direction = random_like(domain.origin(), rng)
        assert differences(domain.lmo(direction), other.lmo(direction)) == []
        if domain.can("project"):
            assert differences(domain.project(direction), other.project(direction)) == []
        if domain.can("gauge"):
            assert domain.gauge(direction) == other.gauge(direction)


class Mine(dw.L2Ball):
    """A user's own set, under a name of its own."""


class L1Ball(dw.L1Ball):
    """A user's own set, under a name that is taken."""

    def _lmo(self, direction):
        return 0.5 * super()._lmo(direction)


def _odd_vertices():
    a, b = frozenset("a"), frozenset("b")
    return dw.FlowPolytope([("s", a), ("s", b), (a, "t"), (b, "t")], "s", "t")


OWN = {
    "functions": lambda: dw.LMODomain(3, dw.L2Ball(3).lmo, radius=1.0),
    "own class": lambda: Mine(3),
    "own class of a known name": lambda: L1Ball(3),
    "in a product": lambda: dw.ProductDomain([dw.L1Ball(3), Mine(2)]),
    "counted": lambda: dw.count_calls(Mine(3)),
    "vertices that are no plain data": _odd_vertices,
}


@pytest.mark.parametrize("name", OWN)
def test_sets_that_cannot_be_written_are_given_again(name, tmp_path):
    domain = OWN[name]()
    path, learner = tmp_path / "learner.safetensors", dw.POLA(domain)
    losses = losses_for(domain, 30)
    play_all(learner, losses[:20])
    learner.save(path)
    with pytest.raises(ValueError) as refused:
        dw.load(path)
    assert str(refused.value) == (
        f"the set of {path} is one of your own and is not in the file: make it anew, and load with "
        "driftwolfe.load(path, domain=...)"
    )
    other = dw.load(path, domain=domain)
    assert other.domain is domain
    for loss in losses[20:]:
        assert learner.update(loss) == other.update(loss)
    assert differences(learner, other, sets=False) == []


@pytest.mark.parametrize(
    "wrong", [dw.L1Ball(5), dw.TraceNormBall((2, 3)), dw.ProductDomain([dw.L1Ball(4)])]
)
@pytest.mark.parametrize(
    "cls", [dw.OGD, dw.OnlineFrankWolfe, dw.POLA, dw.POLAR, dw.learners.MultiOCG]
)
def test_a_set_that_the_learner_was_not_on_is_refused(cls, wrong, tmp_path):
    learner = cls(dw.L1Ball(4))
    play_all(learner, stream(learner.domain, 20))
    learner.save(tmp_path / "learner.safetensors")
    with pytest.raises(ValueError, match=r"this archive (holds|does not hold)"):
        dw.load(tmp_path / "learner.safetensors", domain=wrong)


def test_a_counted_set_counts_anew(tmp_path):
    """What the user counts is the user's; what the learner asked is kept."""
    learner = dw.OnlineFrankWolfe(dw.count_calls(dw.L1Ball(4)))
    play_all(learner, stream(learner.domain, 20))
    other = loaded(learner, tmp_path / "learner.safetensors")
    assert (learner.domain.calls.lmo, other.domain.calls.lmo) == (20, 0)
    assert dataclasses.astuple(other.oracle_calls) == dataclasses.astuple(learner.oracle_calls)


# -- learners that are no part of the library --------------------------------------------------------


class Still(dw.Learner):
    """Keeps a sum, and says so or not."""

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        self.total = 0.0

    @property
    def decision(self):
        return self.domain.origin()

    def update(self, loss):
        value = loss.value(self.decision)
        self.total += value
        self.t += 1
        return value


class Declared(Still):
    total: State[float]


class POLA(dw.POLA):
    """A known name, and nothing of its own that could change."""


class Tuned(dw.POLD):
    """Passes options on, and keeps something of its own."""

    steps: State[np.ndarray]

    def __init__(self, ball, *, factor=1.0, **options):
        super().__init__(ball, **options)
        self.factor, self.steps = factor, np.zeros(2)

    def update(self, loss):
        self.steps[0] += self.factor
        return super().update(loss)


OWN_LEARNERS = {
    "plain": lambda domain: Declared(domain),
    "options": lambda domain: Tuned(
        domain, factor=2.0, horizon=40, oracle=dw.Oracle(lmo_budget=2.0)
    ),
    "a known name": lambda domain: POLA(domain, step_scale=0.5),
}


@pytest.mark.parametrize("name", OWN_LEARNERS)
@pytest.mark.parametrize("own_set", [False, True])
def test_a_learner_of_ones_own_is_loaded_with_its_class(name, own_set, tmp_path):
    domain = Mine(4) if own_set else dw.L1Ball(4)
    learner, path = OWN_LEARNERS[name](domain), tmp_path / "learner.safetensors"
    cls, losses = type(learner), stream(dw.L1Ball(4), 40)
    play_all(learner, losses[:15])
    learner.save(path)
    if own_set:
        with pytest.raises(ValueError, match="is one of your own and is not in the file"):
            cls.load(path)
    given = {"domain": domain} if own_set else {}
    assert type(dw.load(path, **given)) is cls  # it is imported
    other = cls.load(path, **given)
    assert type(other) is cls
    assert differences(learner, other, sets=not own_set) == []
    for loss in losses[15:]:
        assert other.update(loss) == learner.update(loss)
    assert differences(learner, other, sets=not own_set) == []


class Octahedron(dw.L1Ball):
    """A user's own set that says how it is made."""

    def __init__(self, sides, size=1.0):
        super().__init__(sides, size)
        self.sides, self.size = sides, size

    def arguments(self):
        return {"sides": self.sides, "size": self.size}


def test_own_classes_are_found_once_they_are_imported_and_never_imported_by_a_file(tmp_path):
    """In a program that does not define them, a file that names them is refused, and imports nothing."""
    path, losses = tmp_path / "learner.safetensors", stream(dw.L1Ball(4), 20)
    learner = play_all(Declared(Octahedron(4, size=2.0)), losses)
    learner.save(path)
    other = dw.load(path)
    assert (type(other), type(other.domain)) == (Declared, Octahedron)
    assert (other.domain.size, other.total) == (2.0, learner.total)
    program = (
        "import sys, driftwolfe as dw\n"
        "before = set(sys.modules)\n"
        "try:\n    dw.load(sys.argv[1])\n"
        "except ValueError as problem:\n    print(problem)\n"
        f"assert {__name__!r} not in sys.modules\n"
    )
    told = python("-c", program, path).stdout
    assert "a learner of your own: import the module that defines it first" in told


def test_a_class_loads_only_what_was_saved_by_it(tmp_path):
    ours, theirs, declared = (tmp_path / name for name in ("ours", "theirs", "declared"))
    POLA(dw.L1Ball(3)).save(ours)
    dw.POLA(dw.L1Ball(3)).save(theirs)
    Declared(dw.L1Ball(3)).save(declared)
    assert type(dw.POLA.load(theirs)) is dw.POLA
    for cls, path, held in (
        (dw.POLA, ours, "POLA"),
        (POLA, theirs, "POLA"),
        (dw.OGD, theirs, "POLA"),
        (POLA, declared, "Declared"),
        (dw.Learner, declared, "Declared"),
    ):
        with pytest.raises(ValueError, match=f"holds a {held}, not this {cls.__name__}"):
            cls.load(path)


def test_a_file_with_an_argument_that_is_gone_says_what_to_do(tmp_path):
    learner = dw.OnlineFrankWolfe(dw.L1Ball(3))
    learner._arguments["variant"] = "classic"  # as an earlier version had it
    learner.save(tmp_path / "old")
    with pytest.raises(
        ValueError, match=r"argument 'variant'.*; load it with the version that wrote"
    ):
        dw.load(tmp_path / "old")


def test_a_learner_of_ones_own_that_could_not_be_made_again_is_not_saved(tmp_path):
    """It does not say what changes, or was made from what no file holds."""

    class Callable(Declared):
        t: State[int]

        def __init__(self, domain, link=abs):
            super().__init__(domain)

    path = tmp_path / "learner.safetensors"
    with pytest.raises(TypeError, match="Still does not say what its state is: annotate"):
        Still(dw.L1Ball(3)).save(path)
    told = "Callable was made with link=<built-in function abs>, and a builtin_function_or_method cannot"
    with pytest.raises(TypeError, match=told):
        Callable(dw.L1Ball(3)).save(path)
    assert list(tmp_path.iterdir()) == []


def test_a_learner_of_ones_own_plays_with_checkpoints_if_it_names_its_state(tmp_path):
    losses = stream(dw.L1Ball(4), 12)
    first, second = Declared(dw.L1Ball(4)), Declared(dw.L1Ball(4))
    dw.play(first, losses[:9], checkpoint=tmp_path / "game", every=4)
    dw.play(second, losses, checkpoint=tmp_path / "game", every=4)
    assert second.total == pytest.approx(sum(loss.value(np.zeros(4)) for loss in losses))
    with pytest.raises(TypeError, match=r"State\[Array\]"):
        dw.play(Still(dw.L1Ball(4)), losses, checkpoint=tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("part", ["x", "y"])
def test_a_state_with_points_of_another_kind_is_refused(part, tmp_path):
    ball = dw.TraceNormBall((60, 50), 1.0, representation="factored")
    learner = dw.POLD(ball, horizon=20)
    learner.update(dw.losses.SquaredEntries([0, 3], [1, 2], [0.5, -0.5]))
    points = getattr(learner._experts, part)
    points[-1] = points[-1].toarray()
    learner.save(tmp_path / "learner")
    with pytest.raises(ValueError, match=f"holds a ListDescent whose {part} does not fit"):
        dw.load(tmp_path / "learner")
