"""A game that is stopped at any moment goes on where it was, and ends as if nothing had happened."""

import numpy as np
import pytest

import driftwolfe as dw
from contracts.graphs import differences
from driftwolfe.losses import SquaredDistance
from learners.families import some_entries

ROUNDS = 40


def distances(rounds=ROUNDS, n=3, seed=0):
    rng = np.random.default_rng(seed)
    return [SquaredDistance(rng.standard_normal(n)) for _ in range(rounds)]


def entries(rounds=ROUNDS, shape=(12, 10)):
    return some_entries(rounds, shape, 6)


def factored(shape=(12, 10)):
    return dw.TraceNormBall(shape, radius=6.0, representation="factored")


GAMES = {
    "OGD": (lambda: dw.OGD(dw.L1Ball(3)), distances()),
    "POLA": (lambda: dw.POLA(dw.L1Ball(3), oracle="halfspace"), distances()),
    "POLAR": (lambda: dw.POLAR(dw.L1Ball(3), oracle=dw.Oracle(lmo_budget=0.5)), distances()),
    "POLD in epochs": (lambda: dw.POLD(dw.Simplex(3), feedback="linear"), distances(80)),
    "PAMO": (lambda: dw.learners.PAMO(dw.L1Ball(3)), distances()),
    "own set": (lambda: dw.BOGDIP(dw.LMODomain(3, dw.L2Ball(3).lmo, radius=1.0)), distances()),
    "factored POLA": (lambda: dw.POLA(factored()), entries()),
    "factored POLAR": (lambda: dw.POLAR(factored()), entries(80)),
    "factored MultiOCG": (lambda: dw.learners.MultiOCG(factored(), max_inner=3), entries()),
}


class StoppedError(Exception):
    """As if the process had been killed there."""


def stop_after(rounds):
    def callback(learner, _):
        if learner.t == rounds:
            raise StoppedError

    return callback


def same(one, other):
    """Whether two histories are the same, but for their seconds."""
    names = ("losses", "lmo", "projection", "gauge", "membership")
    found = [differences(getattr(one, name), getattr(other, name)) for name in names]
    assert len(one.seconds) == len(other.seconds) == len(one)
    assert (one.seconds >= 0).all()
    return not any(found)


@pytest.mark.in_turn
@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("every", [1, 7, 16, 1000])
def test_a_game_that_was_stopped_ends_as_if_it_had_not_been(name, every, tmp_path):
    make, losses = GAMES[name]
    path, calm = tmp_path / "game.safetensors", make()
    history, stored = dw.play(calm, losses), {"every": every}
    rng = np.random.default_rng(every)
    for rounds in sorted(rng.choice(np.arange(1, len(losses)), 2, replace=False).tolist()):
        with pytest.raises(StoppedError):
            dw.play(make(), losses, [stop_after(rounds)], checkpoint=path, **stored)
        assert path.exists() == (rounds > every)
    learner = make()
    resumed = dw.play(learner, losses, checkpoint=path, **stored)
    assert same(resumed, history)
    assert resumed.functions == losses
    assert resumed.domain is learner.domain
    assert differences(learner, calm, sets=False) == []


# -- what losses may be ----------------------------------------------------------------------------

STREAM = dw.streams.synthetic.piecewise_constant(dw.L1Ball(3), rounds=ROUNDS, seed=0)
STREAMS = {
    "tuple": lambda: tuple(distances()),
    "generator": lambda: (loss for loss in distances()),
    "slice of a stream": lambda: STREAM[3:],
}


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("keep", [True, False])
def test_losses_may_be_any_iterable(kind, keep, tmp_path):
    path, options = tmp_path / "game.safetensors", {"keep_losses": keep}
    history = dw.play(dw.POLA(dw.L1Ball(3)), STREAMS[kind](), **options)
    with pytest.raises(StoppedError):
        dw.play(dw.POLA(dw.L1Ball(3)), STREAMS[kind](), [stop_after(23)], checkpoint=path, every=5)
    resumed = dw.play(dw.POLA(dw.L1Ball(3)), STREAMS[kind](), checkpoint=path, every=5, **options)
    assert same(resumed, history)
    assert [loss.target.tolist() for loss in resumed.functions] == [
        loss.target.tolist() for loss in history.functions
    ]
    assert len(resumed.functions) == (len(history) if keep else 0)


# -- the file --------------------------------------------------------------------------------------


def test_it_is_written_every_so_many_rounds_and_at_the_end(tmp_path, monkeypatch):
    written = []
    save = dw.game.Checkpoint.save

    def note(self, learner, record):
        written.append(learner.t)
        save(self, learner, record)

    monkeypatch.setattr(dw.game.Checkpoint, "save", note)
    path = tmp_path / "new" / "folder" / "game.safetensors"
    dw.play(dw.OGD(dw.L1Ball(3)), distances(), checkpoint=path, every=15)
    assert written == [15, 30, 40]
    assert [each.name for each in path.parent.iterdir()] == ["game.safetensors"]
    dw.play(dw.OGD(dw.L1Ball(3)), distances(), checkpoint=path, every=15)
    assert written == [15, 30, 40]  # nothing new to write
    dw.play(dw.OGD(dw.L1Ball(3)), distances(60), checkpoint=path, every=15)
    assert written == [15, 30, 40, 55, 60]
    dw.play(dw.OGD(dw.L1Ball(3)), [], checkpoint=path.with_name("none"), every=15)
    assert not path.with_name("none").exists()


def test_a_game_that_is_over_is_read_and_not_played(tmp_path):
    losses, seen, learner = distances(), [], dw.POLA(dw.L1Ball(3))
    path = tmp_path / "game.safetensors"
    history = dw.play(dw.POLA(dw.L1Ball(3)), losses, checkpoint=path)
    content, note = path.read_bytes(), lambda learner, loss: seen.append(loss)
    again = dw.play(learner, losses, [note], checkpoint=path)
    assert same(again, history)
    np.testing.assert_array_equal(again.seconds, history.seconds)
    assert learner.t == ROUNDS
    assert seen == []
    assert path.read_bytes() == content


def test_callbacks_are_called_for_new_rounds_only_and_a_bar_shows_all(tmp_path, capsys):
    losses, path, seen = distances(), tmp_path / "game.safetensors", []
    with pytest.raises(StoppedError):
        dw.play(dw.OGD(dw.L1Ball(3)), losses, [stop_after(25)], checkpoint=path, every=10)
    learner = dw.OGD(dw.L1Ball(3))
    note = [lambda given, loss: seen.append((given, given.t, loss))]
    history = dw.play(learner, losses, note, checkpoint=path, every=10, progress=True)
    assert f"/{ROUNDS}" in capsys.readouterr().err
    assert [t for _, t, _ in seen] == list(range(21, 41))
    assert all(given is learner for given, _, _ in seen)
    assert [loss for _, _, loss in seen] == history.losses[20:].tolist()


# -- files of other games --------------------------------------------------------------------------


def _box(upper):
    return dw.Box(np.zeros(3), np.array([1.0, 1.0, upper]))


def _moved_on():
    learner = dw.POLD(_box(2.0), horizon=50)
    learner.update(distances()[0])
    return learner


def _pold(domain, **options):
    return lambda: dw.POLD(domain, **({"horizon": 50} | options))


ARGUMENTS, SET = "made with other arguments", "made with another set"
OTHERS = {
    "another learner": (lambda: dw.Ader(_box(2.0), horizon=50), "holds a POLD, not a Ader"),
    "another horizon": (_pold(_box(2.0), horizon=51), ARGUMENTS),
    "no horizon": (_pold(_box(2.0), horizon=None), ARGUMENTS),
    "another grid": (_pold(_box(2.0), grid="paper"), ARGUMENTS),
    "another set": (_pold(dw.L1Ball(3)), SET),
    "another size": (_pold(dw.L1Ball(4)), SET),
    "other numbers": (_pold(_box(2.5)), SET),
    "set of one's own": (_pold(dw.LMODomain(3, _box(2.0).lmo, radius=3.0)), SET),
    "moved on": (_moved_on, "began with round 0, and this learner has played 1 rounds already"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_file_of_another_game_is_refused_and_nothing_changes(name, tmp_path):
    path = tmp_path / "game.safetensors"
    dw.play(dw.POLD(_box(2.0), horizon=50), distances(20), checkpoint=path)
    content = path.read_bytes()
    make, why = OTHERS[name]
    learner = make()
    before = learner.clone()
    with pytest.raises(ValueError, match=why) as refused:
        dw.play(learner, distances(), checkpoint=path)
    assert str(refused.value).startswith(f"{path} is no checkpoint of this game: it")
    assert str(refused.value).endswith("; remove it to start anew")
    assert differences(learner, before, sets=False) == []
    assert path.read_bytes() == content


def test_arguments_may_be_told_in_another_way(tmp_path):
    """Defaults in words, numbers of NumPy's: the learner is the same."""
    path = tmp_path / "game.safetensors"
    dw.play(dw.POLD(_box(2.0), 50), distances(20), checkpoint=path)
    told = dw.POLD(
        _box(2.0), horizon=np.int64(50), lipschitz="auto", oracle=dw.Oracle(seed=0), step_scale=None
    )
    assert len(dw.play(told, distances(), checkpoint=path)) == ROUNDS


def test_what_is_refused(tmp_path):
    path = tmp_path / "game.safetensors"
    dw.play(dw.OGD(dw.L1Ball(3)), distances(), checkpoint=path)
    with pytest.raises(ValueError, match="has 40 rounds, but there are only 39 losses; give the"):
        dw.play(dw.OGD(dw.L1Ball(3)), distances()[1:], checkpoint=path)
    with pytest.raises(ValueError, match="holds a 'Game', which is no learner"):
        dw.load(path)
    for every in (0, -1, 2.5):
        with pytest.raises(ValueError, match="every must be a whole number >= 1"):
            dw.play(dw.OGD(dw.L1Ball(3)), distances(), checkpoint=path, every=every)


@pytest.mark.parametrize("learner", [dw.OGD(dw.L1Ball(3)), dw.POLA(dw.L1Ball(3))])
def test_other_files_are_refused(learner, tmp_path):
    path, before = tmp_path / "game.safetensors", learner.clone()
    dw.OGD(dw.L1Ball(3)).save(path)
    with pytest.raises(ValueError, match="is no checkpoint of this game: it holds a OGD"):
        dw.play(learner, distances(), checkpoint=path)
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="is not an archive of driftwolfe"):
        dw.play(learner, distances(), checkpoint=path)
    assert path.read_bytes() == b"something else"
    assert differences(learner, before) == []


# -- experts that run ahead --------------------------------------------------------------------------


@pytest.fixture
def two_threads():
    dw.set_threads(2)
    yield
    dw.set_threads(None)


class KilledError(BaseException):
    pass


@pytest.mark.in_turn
@pytest.mark.parametrize("every", [1, 7, 20])
@pytest.mark.parametrize("horizon", [90, None])
def test_experts_that_run_ahead(every, horizon, tmp_path, two_threads, monkeypatch):
    def make():
        ball = dw.TraceNormBall((40, 30), radius=10.0, representation="factored")
        learner = dw.POLD(ball, horizon=horizon, lipschitz=4.0)
        assert learner.runs_ahead
        return learner

    losses, path = entries(70, (40, 30)), tmp_path / "game.safetensors"
    history = dw.play(make(), losses)
    save, left = dw.game.Checkpoint.save, [70 // every // 2 + 1]

    def killed_in_between(self, *given):
        left[0] -= 1
        if left[0] == 0:
            raise KilledError
        save(self, *given)

    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(dw.game.Checkpoint, "save", killed_in_between)
        dw.play(make(), losses, checkpoint=path, every=every)
    learner = make()
    resumed = dw.play(learner, losses, checkpoint=path, every=every)
    assert same(resumed, history)
    assert learner.t == 70
    assert resumed.functions == losses


def test_a_checkpoint_of_many_threads_goes_on_with_one(tmp_path, two_threads):
    ball = dw.TraceNormBall((40, 30), radius=10.0, representation="factored")
    losses, path = entries(40, (40, 30)), tmp_path / "game.safetensors"
    dw.play(dw.POLD(ball, 50, 4.0), losses[:20], checkpoint=path)
    dw.set_threads(1)
    resumed = dw.play(dw.POLD(ball, 50, 4.0), losses, checkpoint=path)
    assert same(resumed, dw.play(dw.POLD(ball, 50, 4.0), losses))
