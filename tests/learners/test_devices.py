"""Learners on a device play as they do on the host, and move between the two in files."""

import dataclasses
import json
from functools import partial

import numpy as np
import pytest

import driftwolfe as dw
from contracts.graphs import differences
from contracts.learner_cases import LARGE, LEARNER_CASES, Along
from devices import DEVICES, has_gpu, needs_torch, single_threaded_torch
from driftwolfe.ensemble import list
from driftwolfe.learners import base as learner_base
from driftwolfe.learners import polar
from driftwolfe.losses import AbsoluteEntries, HuberEntries, LinearLoss, SquaredEntries
from driftwolfe.points import FactoredMatrix, ProductPoint
from driftwolfe.points.devices import device_named
from driftwolfe.storage import VERSION, read_archive
from learners.families import project_trace_norm, turning_entries
from real_data import needs_data
from reliability.mutations import crafted

RUNS_ON = DEVICES
SHAPE, RADIUS, ROUNDS = (60, 50), 40.0, 40
#: Every kind of learner beyond its first settings: ensembles, single points, budgets, methods.
VARIANTS = [
    (dw.BOGDIP, {"oracle": dw.Oracle("block", seed=3)}),
    (dw.OnlineFrankWolfe, {}),
    (dw.POLD, {"oracle": dw.Oracle("block", seed=3)}),
    (dw.POLD, {"feedback": "linear"}),
    (dw.POLD, {"oracle": dw.Oracle(lmo_budget=1.0)}),
    (dw.POLD, {"oracle": dw.Oracle(lmo_budget=0.7, schedule="even"), "feedback": "linear"}),
    (dw.POLD, {"oracle": dw.Oracle("halfspace", lmo_budget=0.3)}),
    (dw.POLA, {"oracle": dw.Oracle("block", seed=3)}),
    (dw.POLA, {"feedback": "linear"}),
    (dw.POLA, {"oracle": dw.Oracle(lmo_budget=1.0, schedule="even")}),
    (dw.POLAR, {"oracle": dw.Oracle("block", seed=3), "experts": ("lazy", "origin", "agile")}),
    (dw.POLAR, {"feedback": "linear", "weights": "sleeping"}),
]
CASES = [
    pytest.param(cls, settings, id="-".join([cls.__name__, *map(str, settings.values())]))
    for cls, settings in [*((cls, LEARNER_CASES[cls][0]) for cls in LARGE), *VARIANTS]
]
#: Slopes that are clipped are alike, and with them singular values of gradients: few are here.
KINDS = {
    "absolute": AbsoluteEntries,
    "squared": SquaredEntries,
    "huber": partial(HuberEntries, width=6.0),
}


@pytest.fixture(autouse=True)
def short_epochs(monkeypatch):
    """Epochs of POLAR's leaders that end within these games."""
    monkeypatch.setattr(polar, "SHORTEST_FACTORED", 8)


def ball(place, shape=SHAPE):
    return dw.TraceNormBall(shape, RADIUS, representation="factored", device=place)


def stream(kind="absolute", rounds=ROUNDS, shape=SHAPE):
    return turning_entries(KINDS[kind], rounds, shape, observed=30, noise=0.1, turn=0.5)


def make(cls, settings, place, shape=SHAPE):
    return cls(ball(place, shape), **{"horizon": ROUNDS, "lipschitz": 20.0} | settings)


def suffered(learner, losses):
    return np.array([learner.update(loss) for loss in losses])


def is_there(point, place):
    return isinstance(point, FactoredMatrix) and point.device is device_named(place)


# -- playing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cls", "settings"), CASES)
def test_the_same_losses_as_on_the_host(place, cls, settings):
    losses = stream(rounds=16)
    here, there = make(cls, settings, "cpu"), make(cls, settings, place)
    expected, found = [], []
    for loss in losses:
        expected.append(here.update(loss))
        played = there.decision
        found.append(there.update(loss))
        assert is_there(played, place)
        assert found[-1] == pytest.approx(loss.value(played.to("cpu")), rel=1e-9)
        singular = np.linalg.svd(played.to("cpu").toarray(), compute_uv=False)
        assert singular.sum() <= RADIUS * (1 + 1e-9)
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    assert sum(found) == pytest.approx(sum(expected), rel=1e-3)
    assert there.oracle_calls.lmo == pytest.approx(here.oracle_calls.lmo, rel=0.1, abs=3)
    assert np.ptp(expected) > 0  # or the learner never moved


@pytest.mark.in_turn("cls", "kind shape given")
@pytest.mark.parametrize(
    ("kind", "shape", "given"),
    [
        ("squared", SHAPE, {}),
        ("huber", SHAPE, {}),
        ("absolute", SHAPE, {"horizon": None, "lipschitz": "auto"}),  # guesses double
        # Too large for projections: the block oracle takes their place.
        ("absolute", (90, 130), {}),
    ],
)
@pytest.mark.parametrize("cls", [dw.POLD, dw.POLA, dw.POLAR, dw.BOGDIP, dw.learners.LineSearchOFW])
def test_the_same_losses_in_other_games(place, cls, kind, shape, given, monkeypatch):
    monkeypatch.setattr(learner_base, "FIRST_EPOCH", 16)
    settings, losses = LEARNER_CASES[cls][0] | given, stream(kind, rounds=25, shape=shape)
    expected, found = (suffered(make(cls, settings, w, shape), losses) for w in ("cpu", place))
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.parametrize(
    ("threads", "narrow"),
    [
        (2, 0),
        (1, 1 << 40),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((1, 0), (2, 1 << 40))),
    ],
)
def test_many_rounds_at_once_are_as_one_by_one(place, threads, narrow, monkeypatch):
    """Experts that keep a device busy run beside each other, and ahead; others are taken together."""
    monkeypatch.setattr(list, "_NARROW", narrow)
    losses = stream(rounds=24)
    exact = {"rtol": 1e-9 if place == "torch" else 1e-6}
    for cls in (dw.POLD, dw.POLA, dw.POLAR)[: 1 + threads]:
        dw.set_threads(1)
        try:
            expected = suffered(make(cls, {}, place), losses)
            dw.set_threads(threads)
            together = make(cls, {}, place)
            rounds = [*together.update_many(losses[:15]), *together.update_many(losses[15:])]
            np.testing.assert_allclose([each.value for each in rounds], expected, **exact)
            history = dw.play(make(cls, {}, place), losses)
            np.testing.assert_allclose(history.losses, expected, **exact)
        finally:
            dw.set_threads(None)


def test_a_product_of_sets_on_and_off_the_device(place):
    def run(where):
        inside = dw.TraceNormBall((7, 6), 3.0, representation="factored", device=where)
        domain, rng = dw.ProductDomain([dw.L2Ball(2), inside]), np.random.default_rng(0)
        learner, losses = dw.POLA(domain, horizon=30, lipschitz=10.0), []
        for t in range(30):
            matrix = FactoredMatrix.from_dense(rng.standard_normal((7, 6)))
            vertex = domain.lmo(ProductPoint([rng.standard_normal(2), matrix]))
            losses.append(Along(vertex, 2.0 if t % 3 else -1.0))
        return suffered(learner, losses), learner

    expected, _ = run("cpu")
    found, learner = run(place)
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    assert is_there(learner.decision.parts[1], place)


# -- files --------------------------------------------------------------------------------------

WAYS = [("cpu", 0), (0, "cpu"), (0, 0)]


@pytest.mark.parametrize(
    ("cls", "settings", "start", "end"),
    [  # quick: one of the two ways in turn
        pytest.param(
            *case.values,
            *way,
            id=f"{case.id}-{'-'.join(map(str, way))}",
            marks=pytest.mark.slow if number % 2 == other else (),
        )
        for number, case in enumerate(CASES)
        for other, way in enumerate(WAYS[:2])
    ],
)
def test_a_saved_learner_goes_on_elsewhere(place, cls, settings, start, end, tmp_path, monkeypatch):
    monkeypatch.setattr(learner_base, "FIRST_EPOCH", 16)
    start, end = start or place, end or place
    path, losses = tmp_path / "learner.safetensors", stream()
    learner = make(cls, settings, start)
    suffered(learner, losses[:21])
    learner.save(path)
    assert read_archive(path).settings["device"] == start
    moved = dw.load(path, device=end)
    assert is_there(moved.decision, end) and moved.domain.device is device_named(end)
    assert (moved.t, moved.oracle_calls) == (21, learner.oracle_calls)
    if start == end:  # experts in one buffer, a point and what it came from are shared again
        assert differences(learner, moved) == []
    assert moved.update(losses[21]) == pytest.approx(learner.update(losses[21]), rel=1e-9)
    expected, found = suffered(learner, losses[22:31]), suffered(moved, losses[22:31])
    # Within a budget points are as near as the calls allow, which random starts are part of.
    np.testing.assert_allclose(
        found, expected, rtol=1e-3 if learner.options.oracle.budget else 1e-6
    )
    moved.save(path)
    back = dw.load(path)
    assert back.domain.device is device_named(end)
    assert back.update(losses[31]) == pytest.approx(moved.update(losses[31]), rel=1e-9)


@pytest.mark.parametrize(
    ("cls", "start", "end"),
    [  # quick: a way for each
        pytest.param(cls, *way, marks=() if number == other else pytest.mark.slow)
        for number, cls in enumerate([dw.POLA, dw.POLAR, dw.BOGDIP])
        for other, way in enumerate(WAYS)
    ],
)
def test_a_game_is_resumed_elsewhere(place, cls, start, end, tmp_path):
    start, end = start or place, end or place
    losses, path = stream(), tmp_path / "game"
    expected = dw.play(make(cls, {}, start), losses).losses
    dw.play(make(cls, {}, start), losses[:35], checkpoint=path, every=10)
    resumed = make(cls, {}, end)
    history = dw.play(resumed, losses, checkpoint=path, every=10)
    np.testing.assert_allclose(history.losses[:35], expected[:35], rtol=1e-9)
    np.testing.assert_allclose(history.losses, expected, rtol=1e-3)
    assert resumed.t == ROUNDS and is_there(resumed.decision, end)


def rewritten(path, change):
    """Change the settings in an archive; its checksum is right."""
    archive = read_archive(path)
    change(archive.settings)
    header = {"version": VERSION, "kind": archive.kind, "settings": archive.settings}
    path.write_bytes(crafted(json.dumps(header), archive.arrays))


@pytest.fixture
def saved(place, tmp_path):
    """A learner on the device, and the file it was saved to."""
    learner = make(dw.POLA, {}, place)
    suffered(learner, stream()[:12])
    learner.save(tmp_path / "learner.safetensors")
    return learner, tmp_path / "learner.safetensors"


@pytest.mark.parametrize("name", ["cuda:99", "cuda", "meta", "mps", "tpu", "", "cuda:x", "torch\0"])
def test_a_device_that_is_not_here_falls_back_to_the_host(saved, name):
    if name == "cuda" and has_gpu():
        pytest.skip("it is here")
    learner, path = saved
    rewritten(path, lambda held: held.update(device=name))
    with pytest.warns(UserWarning, match="loaded on the cpu: device") as heard:
        other = dw.load(path)
    assert len(heard) == 1
    assert is_there(other.decision, "cpu")
    loss = stream()[12]
    assert other.update(loss) == pytest.approx(learner.update(loss), rel=1e-9)


@pytest.mark.parametrize("name", [None, 5, True, 1.5, ["cuda"], {"device": "cpu"}, {}])
def test_a_device_that_is_no_name_is_refused(saved, name):
    _, path = saved
    rewritten(path, lambda held: held.update(device=name))
    with pytest.raises(ValueError, match="whose device does not fit"):
        dw.load(path)
    assert is_there(dw.load(path, device="cpu").decision, "cpu")


def test_a_file_cannot_name_a_device_as_an_argument(saved):
    _, path = saved
    rewritten(
        path, lambda held: held["domain"]["made"]["arguments"]["dict"].update(device="cuda:99")
    )
    assert is_there(dw.load(path, device="cpu").decision, "cpu")
    assert is_there(dw.load(path).decision, dw.load(path).domain.device.name)


def test_where_to_load_is_said_once_and_rightly(saved, place):
    _, path = saved
    with pytest.raises(ValueError, match="give domain or device, not both"):
        dw.load(path, domain=ball(place), device="cpu")
    for name in ("gpu", "meta", 3, ["cpu"], "cuda:99"):
        with pytest.raises(ValueError, match="device"):
            dw.load(path, device=name)
    given = dw.load(path, domain=ball("cpu"))
    assert is_there(given.decision, "cpu")
    assert is_there(dw.load(path, domain=ball(place)).decision, place)
    assert is_there(dw.load(path, device="auto").decision, "cpu")  # too small for a GPU


def test_a_counted_set_and_a_product_come_back_on_the_device(place, tmp_path):
    path = tmp_path / "learner.safetensors"
    inside = dw.ProductDomain([dw.L2Ball(2), dw.count_calls(ball(place))])
    dw.OnlineFrankWolfe(inside).save(path)
    for device in (None, place):
        assert is_there(dw.load(path, device=device).decision.parts[1], place)
    moved = dw.load(path, device="cpu")
    assert is_there(moved.decision.parts[1], "cpu")
    counts = dataclasses.astuple(dw.load(path).oracle_calls)
    assert dataclasses.astuple(moved.oracle_calls) == counts


# -- the paper's game ---------------------------------------------------------------------------


def paper_loss(place, rounds):
    """What POLD suffers on MovieLens 100K with the paper's steps, as the benchmarks play it."""
    game = dw.streams.movielens_100k()
    domain = dw.TraceNormBall(
        game.domain.shape, game.domain.scale, representation="factored", device=place
    )
    learner = dw.POLD(domain, horizon=3000, step_scale=1e4, grid="experiment")
    return dw.play(learner, game[:rounds]).losses.sum()


@needs_torch
@needs_data
@pytest.mark.slow
def test_the_papers_game_on_pytorch_without_a_gpu():
    """Other seeds of the block oracle differ by 2e-3 after 500 rounds; so may another library."""
    single_threaded_torch()
    assert paper_loss("torch", 300) == pytest.approx(paper_loss("cpu", 300), rel=3e-3)


@needs_data
@pytest.mark.gpu
@pytest.mark.slow
def test_the_papers_game_on_a_gpu():
    assert paper_loss("cuda", 3000) == pytest.approx(paper_loss("cpu", 3000), rel=1e-3)


def test_losses_and_sets_take_tensors(place):
    put = device_named(place).put
    rows, cols, targets = np.array([1, 4, 4]), np.array([0, 2, 3]), np.array([1.0, -2.0, 0.5])
    there = AbsoluteEntries(put(rows), put(cols), put(targets))
    np.testing.assert_array_equal(there.rows, rows)
    matrix = FactoredMatrix.from_entries((6, 5), [1], [0], put(np.array([3.0])))
    assert there.value(matrix) == AbsoluteEntries(rows, cols, targets).value(matrix) == 4.5
    slope = np.array([3.0, -1.0])
    assert LinearLoss(put(slope)).value([1.0, 1.0]) == 2.0
    np.testing.assert_array_equal(dw.L1Ball(2).lmo(put(slope)), dw.L1Ball(2).lmo(slope))


# -- exact projections ------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(210, 240), (240, 210)])
@pytest.mark.parametrize("cls", [dw.Ader, dw.learners.OneProjectionAder])
def test_exact_projections_of_several_matrices_are_those_of_the_host(place, cls, shape, tmp_path):
    losses = stream(rounds=6, shape=shape)
    here, there = (make(cls, {"step_scale": 30.0}, where, shape) for where in ("cpu", place))
    np.testing.assert_allclose(suffered(there, losses[:4]), suffered(here, losses[:4]), rtol=1e-9)
    assert there.oracle_calls == here.oracle_calls
    there.save(tmp_path / "there")
    for reached in (there, cls.load(tmp_path / "there", domain=ball(place, shape))):
        assert is_there(reached.decision, place)
        np.testing.assert_allclose(
            suffered(reached, losses[4:]), suffered(here.clone(), losses[4:]), rtol=1e-9
        )


def test_narrow_and_wide_matrices_are_projected_together(place):
    rng = np.random.default_rng(0)
    points = [
        FactoredMatrix(rng.normal(size=(210, k)), np.ones(k), rng.normal(size=(240, k)))
        for k in (120, 2, 90, 5)
    ]
    points.append(FactoredMatrix(np.eye(210, 3), np.ones(3), np.eye(240, 3)))  # inside the ball
    projected = ball(place, (210, 240)).project_each([each.to(place) for each in points])
    for each, found in zip(points, projected, strict=True):
        assert is_there(found, place)
        expected = project_trace_norm(each.toarray(), RADIUS)
        np.testing.assert_allclose(found.to("cpu").toarray(), expected, atol=1e-8)
