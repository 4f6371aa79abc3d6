"""Ensembles on sets of arrays keep their experts on a device, and play as they do on the host."""

import numpy as np
import pytest

import driftwolfe as dw
from contracts.graphs import differences
from contracts.learner_cases import LEARNER_CASES, STACKED, suits
from devices import DEVICES
from driftwolfe.domains import base
from driftwolfe.learners import base as learner_base
from driftwolfe.points.devices import HOST, device_named, device_of, is_array, to_host
from driftwolfe.storage import read_archive
from losses.loss_cases import CASES as LOSSES
from losses.loss_cases import POSITIVE

RUNS_ON = DEVICES
ROUNDS = 30
SETS = {
    "L1Ball": lambda device: dw.L1Ball(12, radius=2.0, device=device),
    "L2Ball": lambda device: dw.L2Ball(12, radius=1.5, device=device),
    "L2Ball, matrices": lambda device: dw.L2Ball((4, 3), radius=2.5, device=device),
    "LinfBall": lambda device: dw.LinfBall((3, 4), radius=0.5, device=device),
    "Box": lambda device: dw.Box(-np.arange(12.0), np.ones(12), device=device),
    "Simplex": lambda device: dw.Simplex(12, radius=3.0, device=device),
}
OTHERS = "OneOracleAder", "OneProjectionAder", "OneProjectionSAOL", "PAMO"
#: Quick: first settings on every set, each of the others on one set in turn.
CASES = [
    pytest.param(
        *(name, cls, settings),
        id="-".join([name, cls.__name__, *map(str, settings.values())]),
        marks=() if number == 0 or place == number % len(SETS) else pytest.mark.slow,
    )
    for place, (name, make) in enumerate(SETS.items())
    for cls in (*STACKED, *(getattr(dw.learners, other) for other in OTHERS))
    for number, settings in enumerate(LEARNER_CASES[cls])
    if suits(cls, make("cpu"))
]
#: Losses that look at experts where those are.
SEEN_THERE = [
    name for name, (make, _) in LOSSES.items() if make(np.random.default_rng(0)).on_devices
]


def slopes(shape, rounds=ROUNDS):
    """Noise that turns its sign halfway."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape) + (0.8 if t < rounds / 2 else -0.8) for t in range(rounds)]


def linear(domain, rounds=ROUNDS):
    return [dw.losses.LinearLoss(g) for g in slopes(domain.shape, rounds)]


def played(learner, losses):
    """What a learner suffers and decides."""
    suffered, points = [], []
    for loss in losses:
        suffered.append(learner.update(loss))
        points.append(learner.decision)
        assert type(points[-1]) is np.ndarray
        assert learner.domain.contains(points[-1], atol=1e-8)
    return np.array(suffered), np.array(points)


def assert_alike(found, expected, rtol=1e-9):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


@pytest.mark.parametrize(("name", "cls", "settings"), CASES)
def test_the_same_game_as_on_the_host(name, cls, settings, place):
    here, there = SETS[name]("cpu"), SETS[name](place)
    assert there.stack_device is device_named(place) and here.stack_device is HOST
    assert there.device is HOST  # single points stay where they were
    expected, found = (
        played(cls(ball, lipschitz=10.0, **settings), linear(here)) for ball in (here, there)
    )
    if name in ("Box", "LinfBall") and "corrective" in str(settings.get("oracle")):
        # Once x is nearest to y along a coordinate, rounding chooses between its two ends there, and
        # rough projections (accuracy 0.05 and 0.1) end elsewhere; both ends are right.
        assert found[0].sum() == pytest.approx(expected[0].sum(), rel=2e-2)
    else:
        assert_alike(found, expected, 1e-7)


@pytest.mark.parametrize("cls", STACKED)
def test_experts_are_there(cls, place):
    learner = cls(SETS["L1Ball"](place))
    played(learner, linear(learner.domain, 3))
    table = learner._experts.x
    assert is_array(table) and device_of(table) is device_named(place)


@pytest.mark.parametrize("settings", [{}, {"feedback": "linear"}], ids=["full", "linear"])
@pytest.mark.parametrize("name", [name for name in LOSSES if name not in POSITIVE])
def test_every_loss(name, settings, place):
    make, shape = LOSSES[name]
    rounds = 6 if name.startswith("from_") else ROUNDS  # each is compiled
    losses = [make(np.random.default_rng(t)) for t in range(rounds)]
    expected, found = (
        played(dw.POLD(dw.L2Ball(shape, device=device), horizon=ROUNDS, **settings), losses)
        for device in ("cpu", place)
    )
    assert_alike(found, expected)


@pytest.mark.parametrize("name", SEEN_THERE)
def test_a_round_is_that_of_the_host(name, place):
    make, shape = LOSSES[name]
    loss, rng = make(np.random.default_rng(1)), np.random.default_rng(2)
    stack, weights = rng.standard_normal((3, *shape)), np.array([0.2, 0.5, 0.3])
    there = device_named(place).put(stack)
    expected, found = loss.stacked_round(stack, weights), loss.stacked_round(there, weights)
    assert device_of(found[1]) is device_named(place) and type(found[2]) is float
    assert_alike(map(to_host, found), expected, 1e-12)
    with pytest.raises(ValueError, match="shape"):
        loss.stacked_round(device_named(place).put(stack[..., None]), weights)
    assert np.array_equal(to_host(there), stack)


def test_our_losses_need_no_copy_of_the_experts():
    """Else an ensemble on a GPU would copy all of its points each way, in every round."""
    copied = {name.split(",")[0] for name in set(LOSSES) - set(SEEN_THERE)}
    copied -= {"from_jax", "from_torch"}  # which make a FunctionLoss
    assert copied == {"FunctionLoss", "Penalised", *POSITIVE}  # of a loss that may be any


@pytest.fixture
def chosen(place, monkeypatch):
    """As if this were the best device, and small points large enough for it."""
    monkeypatch.setattr(base, "best_device", lambda: device_named(place))
    monkeypatch.setattr(base, "DEVICE_SIZE", 12)
    return device_named(place)


def place_of(learner):
    return device_of(learner._experts.x)


def function(target):
    """A loss that sees points on the host."""
    return dw.losses.FunctionLoss(
        lambda x: float((x - target) @ (x - target)) / 2, lambda x: x - target
    )


@pytest.mark.parametrize("cls", STACKED)
def test_chosen_for_speed_experts_come_home_for_a_loss_that_looks_there(cls, chosen):
    here, there = SETS["Simplex"]("cpu"), SETS["Simplex"]("auto")
    losses = [*linear(here)[:9], function(np.ones(12)), *linear(here)[9:20]]
    learner = cls(there)
    assert place_of(learner) is chosen
    first = played(learner, losses[:9])
    assert place_of(learner) is chosen
    clone = learner.clone()
    rest = played(learner, losses[9:])
    assert place_of(learner) is HOST and place_of(clone) is chosen
    expected = played(cls(here), losses)
    assert_alike((np.concatenate(pair) for pair in zip(first, rest, strict=True)), expected)


def test_told_where_to_be_experts_stay_there(place):
    learner = dw.POLD(SETS["Simplex"](place))
    played(learner, [function(np.ones(12))] * 5)
    assert place_of(learner) is device_named(place)


def test_only_exact_projections_are_chosen_to_be_elsewhere(chosen):
    assert place_of(dw.POLD(SETS["Simplex"]("auto"))) is chosen
    assert place_of(dw.POLD(SETS["Simplex"]("auto"), oracle=dw.Oracle(lmo_budget=1.0))) is HOST
    assert place_of(dw.POLD(dw.Simplex(11, device="auto"))) is HOST  # small
    counted = dw.count_calls(SETS["Simplex"]("auto"))
    assert counted.stack_chosen and place_of(dw.POLD(counted)) is chosen


def test_what_was_chosen_is_chosen_again(chosen, tmp_path, monkeypatch):
    path = tmp_path / "learner.safetensors"
    learner = dw.POLD(SETS["Simplex"]("auto"))
    played(learner, linear(learner.domain, 5))
    learner.save(path)
    assert read_archive(path).settings["device"] == "auto"
    assert place_of(dw.load(path)) is chosen
    monkeypatch.setattr(base, "best_device", lambda: HOST)
    assert place_of(dw.load(path)) is HOST
    assert_alike([dw.load(path).decision], [learner.decision])


@pytest.mark.parametrize("cls", STACKED)
def test_a_saved_learner_goes_on_elsewhere(cls, place, tmp_path, monkeypatch):
    monkeypatch.setattr(learner_base, "FIRST_EPOCH", 8)
    path, losses = tmp_path / "learner.safetensors", linear(SETS["Simplex"]("cpu"))
    learner = cls(SETS["Simplex"](place))
    played(learner, losses[:13])
    learner.save(path)
    assert read_archive(path).settings["device"] == place
    again, moved = dw.load(path), dw.load(path, device="cpu")
    assert differences(again, learner) == []
    assert (again.domain.stack_device, moved.domain.stack_device) == (device_named(place), HOST)
    expected = played(learner, losses[13:])
    assert_alike(played(moved, losses[13:]), expected)
    moved.save(path)
    back = dw.load(path, device=place)
    assert back.domain.stack_device is device_named(place)
    assert_alike([back.decision], [learner.decision])
