"""A trial (a learner, a stream, a seed), running it, and its result as it is stored."""

from __future__ import annotations

import hashlib
import inspect
import math
import re
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, replace
from functools import lru_cache, partial
from importlib import import_module
from itertools import chain, islice, pairwise, takewhile
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
from threadpoolctl import threadpool_limits

from driftwolfe import __version__, contrib, learners, regret, storage, streams
from driftwolfe.domains import L1Ball
from driftwolfe.ensemble import threads
from driftwolfe.experiments import rates
from driftwolfe.experiments.machine import facts
from driftwolfe.game import CALLS, play
from driftwolfe.learners.base import Learner
from driftwolfe.losses import Loss
from driftwolfe.oracles import Oracle
from driftwolfe.points import checks, devices
from driftwolfe.points.devices import HOST
from driftwolfe.streams import Stream
from driftwolfe.streams.data_files import DataFile
from driftwolfe.streams.datasets import RATINGS, ROWS
from driftwolfe.terminal import show

#: Rounds between readings of the curves, and readings of the curves per reading of the weights.
_EVERY, _WEIGHTS_EVERY = 10, 2
#: Seconds between checkpoints.
SAVE_EVERY = 60.0


class Source(NamedTuple):
    """Where a stream comes from."""

    make: Callable[..., Stream]  # of seed and rounds, and of a folder where there is a file
    file: DataFile | None = None  # what it is read from; None where it is made up
    order_within_stretches: bool = False  # whether the seed moves no round across a drift
    rates: bool = False  # whether trials measure other rates of the weights too


#: The name of something of the user's own: a module and what it holds.
_OWN = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def is_own(name: Any) -> bool:
    """Whether a name is of the form package.module:name. Nothing is imported."""
    return isinstance(name, str) and len(name) < 200 and _OWN.fullmatch(name) is not None


def own(name: str) -> Any:
    """Import what a name of the user's own stands for; only for names that the user gave."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as missing:
        raise ValueError(
            f"{name}: there is no module {missing.name}; it must lie beside the file of the sweep, or be "
            "installed"
        ) from missing
    except AttributeError as missing:
        raise ValueError(f"{name}: {missing}") from missing


def _unknown(what: str, given: Any, known: Collection[str], form: str) -> ValueError:
    own = f"package.module:{form} for your own{checks.meant(given, known)}"
    return ValueError(f"unknown {what} {given[:40]!r}; there are {', '.join(known)}, and {own}")


class DataSet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stream by its name, one of `DATA_SETS` or ``package.module:function`` of seed and rounds."""

    name: str
    rounds: int | None = None  # of a shorter version with the same shape of drift; None: all of it

    def __post_init__(self) -> None:
        if self.name not in DATA_SETS and not is_own(self.name):
            raise _unknown("data", self.name, DATA_SETS, "function")
        if self.rounds is not None:
            # A stream is made whole before it is played.
            checks.count(self.rounds, "rounds", most=10_000_000)

    @lru_cache(maxsize=2)  # noqa: B019 (two data sets at most are kept)
    def load(self, seed: int, folder: str | Path | None = None) -> Stream:
        """Return the stream, its order decided by the seed; `folder` holds the real data."""
        options = {"data": folder} if self.source.file else {}
        stream = self.source.make(seed=seed, rounds=self.rounds, **options)
        if not (isinstance(stream, Stream) and stream.domain is not None):
            raise TypeError(f"{self.name} must return a Stream with its domain, got {stream!r}")
        return stream

    @property
    def source(self) -> Source:
        """Where it comes from; a function of the user's own is imported when it is called."""
        if is_own(self.name):
            return Source(lambda **options: own(self.name)(**options))
        return DATA_SETS[self.name]


def _jumping_target(seed: int, rounds: int | None) -> Stream:
    """Squared distance to a point of the L1 ball in 20 dimensions that jumps three times."""
    ball = L1Ball(20)
    return streams.synthetic.piecewise_constant(ball, rounds=rounds or 400, pieces=4, seed=seed)


def _random_drifts(make: Callable[..., Stream], name: str, seed: int, **options: Any) -> Stream:
    """Ratings whose sign changes in two random rounds, drawn by the seed, and not with the copies."""
    stream = make(copies=(1, 1, 1), seed=seed, **options)
    return replace(streams.drift.random_flips(stream, 2, seed), name=name)


#: Small enough that projections matter: in the ball of radius 100 the decisions of POLA, tuned on order
#: 1000, have trace norms of up to 36.
SMALL_RADIUS = 20.0


def _small_ball(make: Callable[..., Stream], seed: int, **options: Any) -> Stream:
    """Labelled rows, and a ball that cuts decisions off."""
    stream = make(seed=seed, radius=SMALL_RADIUS, **options)
    name, bracket, twin = stream.name.partition(" (")
    return replace(stream, name=f"{name}, radius {SMALL_RADIUS:g}{bracket}{twin}")


DATA_SETS: dict[str, Source] = {
    "movielens-100k": Source(streams.movielens_100k, RATINGS, True, rates=True),
    "movielens-100k-twin": Source(streams.movielens_twin, None, True, rates=True),
    "movielens-100k-random-drifts": Source(
        partial(_random_drifts, streams.movielens_100k, "MovieLens 100K, random drifts"),
        RATINGS,
        rates=True,
    ),
    "movielens-100k-random-drifts-twin": Source(
        partial(
            _random_drifts, streams.movielens_twin, "MovieLens 100K, random drifts (synthetic twin)"
        ),
        rates=True,
    ),
    "shuttle": Source(streams.shuttle, ROWS),
    "shuttle-twin": Source(streams.shuttle_twin),
    "shuttle-small-radius": Source(partial(_small_ball, streams.shuttle), ROWS),
    "shuttle-small-radius-twin": Source(partial(_small_ball, streams.shuttle_twin)),
    "jumping-target": Source(_jumping_target),
}


def keywords_of(learner: type[Learner]) -> frozenset[str]:
    """The keywords of a learner, and those of its oracle, which a trial names like any other."""
    own = frozenset(learner.__signature__.parameters)
    return own | {each.name for each in fields(Oracle)} if "oracle" in own else own


#: The learners that a trial can name.
METHODS: dict[str, type[Learner]] = {
    name: getattr(contrib if name in contrib.__all__ else learners, name)
    for name in sorted({*learners.__all__, *contrib.__all__} - {"Learner"})
}
FORMAT = "driftwolfe result 1"  # of result files

Option = float | int | str | bool | None
T = TypeVar("T")


class Trial(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run: checked, and the same on every machine, under any label."""

    method: str  # name of a learner's class; package.module:Class for one of the user's own
    data: DataSet
    c: float | None = None  # scale of the steps, see `step_options`; None: the learner's default
    options: dict[str, Option] = {}  # further keywords of the learner, and of its `Oracle`
    seed: int = 0  # of the order of the data
    first: int | None = None  # play only so many rounds; the horizon stays that of the stream
    limit: float | None = None  # processor seconds after which the run ends
    taus: tuple[int, ...] = ()  # lengths of windows whose adaptive regret is measured
    label: str = ""  # name in tables and figures; by default the method's

    def __post_init__(self) -> None:
        if self.method not in list(METHODS) and not is_own(self.method):  # it may not be a text
            raise _unknown("method", self.method, METHODS, "Class")
        if not isinstance(self.data, DataSet):
            raise TypeError(f"data must be a DataSet, got {self.data!r}")
        if not isinstance(self.taus, tuple | list):
            raise TypeError(f"taus must be a list of whole numbers, got {self.taus!r}")
        # Numbers as they are read back from a file, so that 1 and 1.0 make one trial.
        numbers = {
            "c": None if self.c is None else checks.positive(self.c, "c"),
            "limit": None if self.limit is None else checks.positive(self.limit, "limit"),
            "seed": checks.count(self.seed, "seed", least=0, most=2**63 - 1),
            "first": None if self.first is None else checks.count(self.first, "first"),
            "taus": tuple(checks.count(tau, "every one of taus") for tau in self.taus),
        }
        for name, value in numbers.items():
            msgspec.structs.force_setattr(self, name, value)
        for option, chosen in self.options.items():
            if not isinstance(chosen, Option):
                raise TypeError(f"option {option} must be a number, a text, true or false")
            if isinstance(chosen, float) and not math.isfinite(chosen):
                raise ValueError(f"option {option} must be finite, got {chosen!r}")
        if self.method in METHODS:
            self.check_options(keywords_of(METHODS[self.method]))

    def check_options(self, known: Collection[str]) -> None:
        """Refuse options that a learner with these keywords does not take."""
        if self.c is not None and "step_scale" not in known:
            raise ValueError(f"{self.method} has no steps that c could scale; leave c out")
        allowed = sorted(set(known) - {"domain", "horizon", "lipschitz", "step_scale"})
        for option in self.options:
            if option not in allowed:
                there = ", ".join(allowed) or "none"
                hint = checks.meant(option, allowed) or f"; there are {there}"
                raise ValueError(f"{self.method} has no option {option!r}{hint}")

    @property
    def title(self) -> str:
        return self.label or self.method.rpartition(":")[2]

    @property
    def runs_own_code(self) -> bool:
        return is_own(self.method) or is_own(self.data.name)

    @property
    def identity(self) -> str:
        """A digest of all that decides the outcome."""
        return hashlib.sha256(canonical(msgspec.structs.replace(self, label=""))).hexdigest()[:16]

    @property
    def name(self) -> str:
        """A readable name that no other trial has."""
        scale = "" if self.c is None else f"-c{short(self.c)}"
        method = self.method.rpartition(":")[2][:60]
        return f"{method}{scale}-seed{self.seed}-{self.identity}"


def canonical(record: Any) -> bytes:
    """The one JSON text of a record."""
    return msgspec.json.encode(record, order="sorted")


def short(number: float) -> str:
    """A number in as few characters as possible, such as 1e4 or 0.0625."""
    text = f"{number:g}"
    exponent = f"{number:.0e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    return exponent if float(exponent) == number and len(exponent) < len(text) else text


class StoredWeights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Expert weights before the first round (round 0) and after some others."""

    rounds: list[int]
    experts: list[str]  # see `Learner.expert_names`
    values: list[list[float | None]]  # by round, then by expert; None where it was not active


class AdaptiveRegret(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The largest regret over windows of `tau` rounds; it lies between value and value + gap."""

    tau: int
    value: float
    gap: float
    window: tuple[int, int]  # start of the worst one, counted from 0, and the round after its end


class Result(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The curves of a trial, read after some numbers of rounds, and the machine it ran on."""

    trial: Trial
    rounds: list[int]  # when curves were read, rising; the last is all that were played
    loss: list[float]  # cumulative
    seconds: list[
        float
    ]  # of one thread, spent on updates: processor time, on a device by the clock
    lmo: list[int]  # oracle calls so far
    projection: list[int]
    gauge: list[int]
    drifts: list[int]  # rounds at which the truth changed abruptly
    stream: str  # name of the data
    cut: bool = False  # whether the trial's time limit ended it
    adaptive: list[AdaptiveRegret] = []
    weights: StoredWeights | None = None  # where the learner has experts
    membership: list[int] = []  # membership tests so far; empty for none
    products: list[int] = []  # matrix-vector products so far; empty for none, or not counted
    rates: list[list[float]] = []  # cumulative losses with other rates, see `rates.RATES`; or empty
    wall: float  # seconds by the clock, everything included
    environment: dict[str, Any]  # the machine and the versions, see `machine.facts`
    format: str = FORMAT

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise ValueError(f"format must be {FORMAT!r}, got {self.format[:40]!r}")
        optional = (self.membership or self.gauge, self.products or self.gauge)
        calls = (self.lmo, self.projection, self.gauge, *optional)
        lengths = {len(curve) for curve in (self.rounds, self.loss, self.seconds, *calls)}
        if len(lengths) > 1 or not self.rounds:
            raise ValueError("rounds and curves must be of one length, and not empty")
        if not all(a < b for a, b in pairwise((0, *self.rounds))):
            raise ValueError("rounds must rise, and start at 1 or later")
        if any(len(curve) != len(self.rounds) for curve in self.rates):
            raise ValueError("rates must have a curve as long as the others for each rate")
        numbers = [*self.loss, *self.seconds, self.wall, *chain(*self.rates)]
        for found in self.adaptive:
            numbers += [found.value, found.gap]
        if self.weights is not None:
            rows, width = self.weights.values, len(self.weights.experts)
            if len(rows) != len(self.weights.rounds) or any(len(row) != width for row in rows):
                raise ValueError("weights must have one row per round and one entry per expert")
            numbers += [entry for row in rows for entry in row if entry is not None]
        if not all(map(math.isfinite, numbers)):
            raise ValueError("losses, seconds, weights and adaptive regret must be finite")

    @property
    def mean_loss(self) -> float:  # per round
        return self.loss[-1] / self.rounds[-1]

    def encode(self) -> bytes:
        """The content of its file."""
        return msgspec.json.format(msgspec.json.encode(self), indent=0) + b"\n"


def decode(content: bytes, kind: type[T], read: Callable[..., T] = msgspec.json.decode) -> T:
    """Read a record of that kind; `ValueError` where the content is not one."""
    try:
        return read(content, type=kind)
    except RecursionError as problem:
        raise ValueError("it is nested too deeply") from problem
    except (msgspec.MsgspecError, ValueError) as problem:
        # Cut, as a file may repeat what it likes.
        raise ValueError(str(problem)[:500]) from problem


def read_file(path: Path, kind: type[T], what: str, remedy: str = "", largest: int = 16 << 20) -> T:
    """Read a record from a JSON file; the error says that the file is not `what`, and the `remedy`."""
    try:
        if path.stat().st_size > largest:
            raise ValueError(f"more than {largest >> 20} MiB")
        return decode(path.read_bytes(), kind)
    except ValueError as problem:
        raise ValueError(f"{path} is not {what} ({problem}){remedy}") from problem


def run_trial(
    trial: Trial,
    folder: str | Path | None = None,
    device: str = "cpu",
    checkpoint: Path | None = None,
) -> Result:
    """Play the trial's learner on one thread, and measure.

    `folder` holds the real data. `device` is where factored points live; it decides how quick a run is,
    not what comes out but for rounding. From the file `checkpoint` a run that was killed resumes.
    """
    started = time.perf_counter()
    stream = on_device(trial.data.load(trial.seed, folder), device)
    with threadpool_limits(1):
        before = threads.chosen()
        threads.set_threads(1)
        try:
            return _measured(trial, stream, started, checkpoint)
        finally:
            threads.set_threads(before)


def on_device(stream: Stream, device: str) -> Stream:
    """The stream with a set whose points live on a device."""
    if device == "cpu":
        return stream
    domain: Any = stream.domain
    if "device" not in inspect.signature(type(domain)).parameters:
        raise ValueError(f"{type(domain).__name__} is for the cpu only; leave the device out")
    return replace(stream, domain=type(domain)(**domain.arguments() | {"device": device}))


def make_learner(trial: Trial, stream: Stream) -> Learner:
    """The trial's learner, for that stream."""
    known = {"horizon": len(stream), "lipschitz": stream.lipschitz}
    if is_own(trial.method):
        made: Any
        made, keywords = own_learner(trial)
        known = {name: value for name, value in known.items() if name in keywords}
    else:
        made = METHODS[trial.method]
    options = {**step_options(trial.method, trial.c), **trial.options}
    learner: Learner = made(stream.domain, **known, **with_oracle(made, options))
    return learner


def own_learner(trial: Trial) -> tuple[type[Learner], Collection[str]]:
    """Import the class of a learner of the user's own; return it and the keywords that it takes."""
    found = own(trial.method)
    if not (isinstance(found, type) and issubclass(found, Learner)):
        raise ValueError(f"{trial.method} is no learner: it must derive from driftwolfe.Learner")
    keywords = keywords_of(found)
    trial.check_options(keywords)
    return found, keywords


def with_oracle(learner: type[Learner], options: Mapping[str, Any]) -> dict[str, Any]:
    """Options with those of the learner's oracle in one `Oracle`, beside what it has by default."""
    taken = learner.__signature__.parameters
    own = {name: value for name, value in options.items() if name in taken}
    if len(own) < len(options):
        oracle = Oracle.of(own.get("oracle", taken["oracle"].default))
        others = {name: value for name, value in options.items() if name not in taken}
        own["oracle"] = replace(oracle, **others)
    return own


def step_options(method: str, c: float | None) -> dict[str, Any]:
    """The options that give a learner the steps of the paper's experiments."""
    # Those are c 2^(i-1) T^(-3/4) in POLD, c T^(-3/4) in BOGD_IP, c 2^(i-1) T^(-1/2) in Ader,
    # c |I|^(-3/4) in POLA, c |I|^(-1/2) in PAMO, and c gamma^(-1/2) in Multi-OCG.
    if c is None:
        return {}
    if method in ("Ader", "OneProjectionAder"):  # their own steps are c 2^(i-1) sqrt(7/(2T))
        return {"step_scale": c / math.sqrt(3.5)}
    return {"step_scale": c, **({"grid": "experiment"} if method == "POLD" else {})}


class Reading(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The curves of a trial so far, as a `Result` has them; with a saved learner, a checkpoint."""

    trial: Trial
    rounds: list[int] = []
    loss: list[float] = []
    seconds: list[float] = []
    calls: dict[str, list[int]] = msgspec.field(default_factory=lambda: {n: [] for n in CALLS})
    products: list[int] = []
    weights: dict[int, dict[str, float]] = {}
    wall: float = 0.0
    total: float = 0.0  # loss so far
    rates: list[list[float]] = []
    rate_totals: list[float] = []
    version: str = __version__


class Recorder:
    """Reads the curves of a trial while it is played, and keeps a checkpoint."""

    def __init__(self, learner: Learner, last: int, started: float, at: Reading) -> None:
        self.learner, self.last, self.at = learner, last, at
        self.limit = at.trial.limit or math.inf
        # A thread waits for a device, which its own time need not show.
        self.clock = time.thread_time if learner.domain.device is HOST else time.perf_counter
        self.started = started - at.wall  # of the whole run, without the time between its parts
        self.saved = time.perf_counter()
        self.over = False
        self.rated = at.trial.data.source.rates and rates.independent(learner)
        if self.rated and not at.rates:
            at.rates, at.rate_totals = [[] for _ in rates.RATES], [0.0 for _ in rates.RATES]
        self.made = devices.counted_products() - (at.products[-1] if at.products else 0)
        if not at.rounds:
            self._read_weights()
        self.since = self.clock()

    @property
    def spent(self) -> float:
        return self.at.seconds[-1] if self.at.seconds else 0.0

    @property
    def wall(self) -> float:
        return round(time.perf_counter() - self.started, 3)

    def before(self, loss: Loss) -> bool:
        """Look at the loss of the coming round, on no one's time; return whether it is played."""
        if self.rated and not self.over:
            started = self.clock()
            found = zip(self.at.rate_totals, rates.losses_by_rate(self.learner, loss), strict=True)
            self.at.rate_totals = [total + float(value) for total, value in found]
            self.since += self.clock() - started
        return not self.over

    def __call__(self, learner: Learner, value: float, checkpoint: Path | None = None) -> None:
        """Take note of a round; a callback of `play`."""
        spent, at = self.spent + self.clock() - self.since, self.at
        at.total += value
        self.over = spent > self.limit
        ends = self.over or learner.t == self.last
        if learner.t % _EVERY and not ends:
            return
        at.rounds.append(learner.t)
        at.loss.append(at.total)
        at.seconds.append(round(spent, 6))
        for name, number in zip(CALLS, learner.oracle_calls.numbers(), strict=True):
            at.calls[name].append(number)
        at.products.append(devices.counted_products() - self.made)
        for curve, total in zip(at.rates, at.rate_totals, strict=True):
            curve.append(total)
        if ends or len(at.rounds) % _WEIGHTS_EVERY == 0:
            self._read_weights()
        if checkpoint and not ends and time.perf_counter() - self.saved > SAVE_EVERY:
            self._save(checkpoint)
        self.since = self.clock()

    def _read_weights(self) -> None:
        values, names = self.learner.expert_weights, self.learner.expert_names
        if values is not None and names is not None:
            rounded = (round(weight, 5) for weight in values.tolist())
            self.at.weights[self.learner.t] = dict(zip(names, rounded, strict=True))

    def _save(self, path: Path) -> None:
        """Write the learner, then the curves, which name it: a kill leaves the last whole pair."""
        self.learner.save(_learner_beside(path, self.learner.t))
        self.at.wall = self.wall
        storage.write_bytes(path, msgspec.json.encode(self.at))
        remove_checkpoint(path, keep=self.learner.t)
        self.saved = time.perf_counter()


def _learner_beside(path: Path, t: int) -> Path:
    return path.with_name(f"{path.stem}-{t}.safetensors")


def remove_checkpoint(path: Path, keep: int | None = None) -> None:
    """Remove what a trial keeps in case it is killed, all or all but the learner of a round."""
    for learner in path.parent.glob(f"{path.stem}-*.safetensors"):
        if keep is None or learner != _learner_beside(path, keep):
            learner.unlink(missing_ok=True)
    if keep is None:
        path.unlink(missing_ok=True)


def _resumed(path: Path | None, trial: Trial, learner: Learner) -> tuple[Learner, Reading]:
    """The learner and the curves of a checkpoint; new ones where there is none to resume from."""
    new = Reading(trial=trial)
    if path is None or not path.exists():
        return learner, new
    try:
        at = read_file(path, Reading, "a checkpoint")
        if at.trial.identity != trial.identity or at.version != __version__:
            raise ValueError("it is of another trial or another version")
        reached = type(learner).load(_learner_beside(path, at.rounds[-1]), domain=learner.domain)
        if reached.t != at.rounds[-1]:
            raise ValueError("its learner is at another round")
    except (ValueError, OSError, IndexError) as problem:
        show(f"{trial.name} starts anew, not from {path}: {problem}", sys.stderr)
        return learner, new
    return reached, at


def _measured(trial: Trial, stream: Stream, started: float, checkpoint: Path | None) -> Result:
    played = stream if trial.first is None else stream[: trial.first]
    if too_long := [tau for tau in trial.taus if tau > len(played)]:
        raise ValueError(f"taus must be at most the {len(played)} rounds, got {too_long[0]}")
    path = None if trial.taus else checkpoint  # windows need all losses; such runs are short
    learner, at = _resumed(path, trial, make_learner(trial, stream))
    recorder = Recorder(learner, len(played), started, at)
    losses = takewhile(recorder.before, islice(played, learner.t, None))
    callbacks = [partial(recorder, checkpoint=path)]
    history = play(learner, losses, callbacks, keep_losses=bool(trial.taus), progress=False)
    adaptive = []
    for tau in trial.taus:
        if tau <= len(history):  # where time ran out there may be no such window
            found = regret.adaptive_regret(history, tau, tolerance=1e-3)
            adaptive.append(AdaptiveRegret(tau, float(found), found.gap, found.window))
    # One column per expert, in the order in which they came.
    experts = list(dict.fromkeys(name for read in at.weights.values() for name in read))
    table = [[read.get(name) for name in experts] for read in at.weights.values()]
    return Result(
        trial=trial,
        rounds=at.rounds,
        loss=at.loss,
        seconds=at.seconds,
        lmo=at.calls["lmo"],
        projection=at.calls["projection"],
        gauge=at.calls["gauge"],
        membership=at.calls["membership"],
        products=at.products,
        rates=at.rates,
        drifts=[t for t in stream.drifts if t < at.rounds[-1]],
        stream=stream.name,
        cut=at.rounds[-1] < len(played),
        adaptive=adaptive,
        weights=StoredWeights(list(at.weights), experts, table) if at.weights else None,
        wall=recorder.wall,
        environment=facts(device=learner.domain.device),
    )
