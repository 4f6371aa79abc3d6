"""`play`: a learner against losses, with a record and checkpoints."""

from __future__ import annotations

import copy
import inspect
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from driftwolfe import storage
from driftwolfe.domains import Domain, OracleCalls
from driftwolfe.ensemble.experts import require_finite
from driftwolfe.learners import archive
from driftwolfe.learners.base import Learner, as_loss
from driftwolfe.losses import Loss
from driftwolfe.points import checks
from driftwolfe.points.access import reads_whole, writes
from driftwolfe.points.kinds import Array, Indices, Point
from driftwolfe.state import Field, Reader, check_fields
from driftwolfe.storage import Archive, refused, require

Callback = Callable[[Any, float], None]
#: Rounds per batch where experts run ahead of their combination.
_BATCH = 512
#: The oracles whose calls are counted.
CALLS = ("lmo", "projection", "gauge", "membership")


@dataclass(eq=False, repr=False)
class History:
    """What happened in a game, one entry per round.

    Attributes
    ----------
    domain, functions
        The learner's set, None where neither it nor the stream names one; and the losses, if kept.
    losses, seconds
        What the decisions suffered, :math:`f_t(x_t)`, in units of the loss; and time spent in updates, a
        mean over some rounds where experts ran ahead in threads.
    lmo, projection, gauge, membership
        Oracle calls made; empty where a learner of your own does not count them.
    decisions, weights, experts
        The points played and, of an ensemble, the expert weights in use and whose they are, if recorded.
    constraint_values
        :math:`g_t(x_t)`, of a game with constraints: above 0 it is violated.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = [dw.losses.LinearLoss([1.0, 0.0])] * 3
    >>> history = dw.play(dw.OnlineFrankWolfe(dw.L1Ball(2), lipschitz=1.0), stream)
    >>> history.losses, history.cumulative_loss, history.oracle_calls["lmo"]
    (array([ 0., -1., -1.]), array([ 0., -1., -2.]), array([1, 1, 1]))
    >>> history
    History(rounds=3, total loss=-2, calls: lmo=3, seconds=...)
    """

    domain: Domain
    losses: Array
    seconds: Array
    lmo: Indices
    projection: Indices
    gauge: Indices
    functions: list[Loss] = field(default_factory=list)
    decisions: list[Point] = field(default_factory=list)
    weights: list[Array] = field(default_factory=list)
    membership: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    experts: list[tuple[str, ...]] = field(default_factory=list)
    constraint_values: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def cumulative_loss(self) -> Array:
        """Sum of the losses up to each round."""
        return np.cumsum(self.losses)

    @property
    def average_loss(self) -> Array:
        """Mean of the losses up to each round."""
        return self.cumulative_loss / np.arange(1, len(self) + 1)

    @property
    def oracle_calls(self) -> dict[str, Indices]:
        """Calls made in each round, by the name of the oracle."""
        return {name: getattr(self, name) for name in CALLS}

    def __len__(self) -> int:
        return len(self.losses)

    def __repr__(self) -> str:
        totals = {name: int(made.sum()) for name, made in self.oracle_calls.items()}
        calls = ", ".join(f"{name}={total:,}" for name, total in totals.items() if total)
        return (
            f"History(rounds={len(self):,}, total loss={float(self.losses.sum()):.6g}, "
            f"calls: {calls or 'none'}, seconds={float(self.seconds.sum()):.3g})"
        )


class Guest(Learner):
    """Anything with `decision` and `update`, as a learner."""

    domain: Any

    def __init__(self, learner: Any, domain: Any) -> None:
        found = getattr(learner, "domain", domain)
        self.learner, self.t, self.domain = learner, 0, getattr(found, "unwrapped", None)

    @property
    def decision(self) -> Point:
        found = self.learner.decision
        return copy.copy(checks.as_point(found() if callable(found) else found, "decision"))

    @property
    def oracle_calls(self) -> OracleCalls:
        return getattr(self.learner, "oracle_calls", OracleCalls())

    def update(self, loss: Any, ticket: Any = None) -> float:
        value = as_loss(loss).value(self.decision)  # whatever the learner's own update returns
        require_finite(value)
        self.learner.update(loss)
        return value


def player(given: Any, domain: Domain | None) -> Learner:
    """Return a learner, made for the set where a class or a function is given."""
    learner = given
    if isinstance(given, type) or (callable(given) and not hasattr(given, "update")):
        taken = inspect.signature(given).parameters.values()
        needed = [p for p in taken if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
        if needed and domain is None:
            message = "these losses name no set; give a learner, or Stream(losses, domain=...)"
            raise ValueError(message)
        names = [p.name for p in taken if domain and (p in needed[:1] or p.name == "domain")]
        learner = given(**dict.fromkeys(names[:1], domain))
    if isinstance(learner, Learner):
        return learner
    if not (hasattr(learner, "decision") and hasattr(learner, "update")):
        raise TypeError(
            "a learner must have decision and update, or be a class or a function that makes one; got "
            f"{type(learner).__name__}"
        )
    return Guest(learner, domain)


def play(
    learner: Any,
    losses: Iterable[Any],
    callbacks: Sequence[Callback] = (),
    *,
    record_decisions: bool = False,
    record_weights: bool = False,
    keep_losses: bool = True,
    progress: bool | None = None,
    delay: int = 0,
    constraints: Iterable[Any] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: int = 1000,
) -> History:
    r"""Play a learner through a sequence of losses and record what happens.

    Parameters
    ----------
    learner
        A `Learner`, or anything with ``decision`` and ``update(loss)``, which the game moves forward; or a
        class, or a function, that makes one, of a set (that of a `Stream`) or of nothing. Decisions of
        your own learners are not checked to lie in the set.
    losses, callbacks
        One loss per round, any iterable, also one that reacts to the learner; and functions called
        after every round with the learner and what it suffered.
    record_decisions, record_weights, keep_losses
        Keep the points played, the expert weights, and the losses, which the regret measures need. The
        first two not with `checkpoint`.
    progress
        Show a progress bar; by default only on a terminal.
    delay
        How many rounds later losses come: that of round t just before the decision of round t + delay,
        the last ones at the end. 0 and 1 are the same. Seconds and calls of a round are those of its
        loss. Not with `checkpoint`.
    constraints
        One convex function g per round, of which :math:`g(x) \le 0` is wanted, or None. They are revealed
        to learners that take them (`LongTerm`, `CutBOGDIP`), and their values at the decisions are kept
        for `regret.violation`. Not with `checkpoint`.
    checkpoint, every
        A file that the learner and its losses are written to, every so many rounds and at the end. If it
        exists, the game resumes: call again with a learner made the same way and the same losses from
        their start. But for its seconds the history is that of an uninterrupted game. Losses that react
        to the learner cannot be resumed.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> stream = [dw.losses.SquaredDistance(np.array([0.5, 0.0]))] * 50
    >>> history = dw.play(dw.OGD(dw.L1Ball(2), horizon=50, lipschitz=2.0), stream)
    >>> len(history), bool(history.losses[-1] < history.losses[0])
    (50, True)
    """
    learner = player(learner, getattr(losses, "domain", None))
    guest = learner if isinstance(learner, Guest) else None
    late, period = checks.count(delay, "delay", least=0), checks.count(every, "every")
    saved, rows = None, list[tuple[float, ...]]()  # seconds, loss, `CALLS` of rounds
    decisions, weights, experts = list[Point](), list[Array](), list[tuple[str, ...]]()
    if checkpoint is not None:
        if guest:
            raise ValueError("only a driftwolfe.Learner has checkpoints: derive yours from it")
        others = {"delay": late > 1, "constraints": constraints is not None}
        others |= {"record_decisions": record_decisions, "record_weights": record_weights}
        for name, given in others.items():
            if given:
                raise ValueError(
                    f"a game with {name} has no checkpoints: give {name} or checkpoint, not both"
                )
        saved = Checkpoint(checkpoint, learner)
        rows = saved.resume(learner)
    stream = iter(losses)
    if sys.stderr.isatty() if progress is None else progress:
        from tqdm import tqdm  # slow to import

        stream = iter(tqdm(losses, unit="round", leave=False))
    # The losses before the checkpoint.
    functions: list[Any] = [loss if keep_losses else None for loss in islice(stream, len(rows))]
    if len(functions) < len(rows):
        raise ValueError(
            f"the checkpoint has {len(rows):,} rounds, but there are only {len(functions):,} "
            "losses; give the whole stream again, from its start"
        )
    if not keep_losses:
        functions.clear()

    limits, values = None if constraints is None else iter(constraints), list[float]()
    # Losses known beforehand go in batches, in which experts run ahead, unless each round is watched.
    known: Any = losses if hasattr(losses, "__len__") and hasattr(losses, "__getitem__") else ()
    quicker = learner.runs_ahead or (len(known) > 0 and getattr(known[0], "remote", False))
    single, waiting = late > 1 or limits is not None, deque[Any]()
    watched = callbacks or record_decisions or record_weights
    ahead = len(known) > 0 and quicker and not (single or watched)
    size, unsaved = min(_BATCH, period) if ahead else 1, 0
    while (batch := list(islice(stream, size))) or waiting:
        if batch and record_decisions:
            decisions.append(learner.decision)  # x_t
        if batch and record_weights and (now := learner.expert_weights) is not None:
            weights.append(now)
            experts.append(tuple(learner.expert_names or map(str, range(len(now)))))
        if single:
            for loss in batch:
                told = {} if limits is None else _constraint(learner, limits, values)
                waiting.append((loss, learner.ask() if late > 1 else None, told))
            if batch and len(waiting) < late:
                continue
            batch = [waiting[0][0]]
        started = time.perf_counter()
        # Sees f_t, suffers f_t(x_t), moves to x_{t+1}.
        if single:
            loss, ticket, told = waiting.popleft()
            rounds = [learner.counted_update(loss, ticket, **told)]
        else:
            rounds = learner.update_many(batch)
        seconds = (time.perf_counter() - started) / len(batch)
        rows.extend((seconds, *outcome) for outcome in rounds)
        if keep_losses:
            functions += batch
        for callback in callbacks:
            callback(guest.learner if guest else learner, rounds[0].value)
        unsaved += len(batch)
        if saved is not None and unsaved >= period:
            saved.save(learner, rows)
            unsaved = 0
    if saved is not None and unsaved:
        saved.save(learner, rows)

    spent, suffered, *counts = _table(rows).T
    kept = 0 if guest and not hasattr(guest.learner, "oracle_calls") else None
    lmo, projection, gauge, membership = (each.astype(np.int64)[:kept] for each in counts)
    made = (learner.domain, suffered, spent, lmo, projection, gauge)
    recorded = (functions, decisions, weights, membership, experts)
    return History(*made, *recorded, np.array(values))


def _constraint(learner: Learner, limits: Iterator[Any], values: list[float]) -> dict[str, Any]:
    """Record a round's constraint at the decision; return what the learner is told of it."""
    try:
        given = next(limits)
    except StopIteration:
        raise ValueError(f"there are fewer constraints than losses, only {len(values)}") from None
    values.append(-np.inf if given is None else as_loss(given).value(learner.decision))
    return {"constraint": given} if given is not None and learner.takes_constraints else {}


# -- checkpoints -----------------------------------------------------------------------------------

#: What a checkpoint says, besides what every file of a learner says.
GAME = archive.LEARNER | {
    "learner": Field(str),
    "first": Field(int, least=0),
    "rows": Field(dict),
}
#: Its record: seconds, loss and four counts of calls of each round.
RECORD = {"rows": Field(np.float64, ("rounds", 6))}


class Checkpoint:
    """A file that holds a learner and the record of its game; a kill leaves the last whole one."""

    def __init__(self, path: storage.PathLike, learner: Learner) -> None:
        self.path, self.first = Path(path), learner.t
        self._refused = partial(
            refused, f"{path} is no checkpoint of this game", advice="; remove it to start anew"
        )
        archive.require_declared_state(learner)  # now, not after the first thousand rounds
        with storage.explained(self.path):
            storage.destination(self.path)

    def resume(self, learner: Learner) -> list[tuple[float, ...]]:
        """Bring the learner to where the file left it, and return the record; empty without a file."""
        if not self.path.exists():
            return []
        saved = storage.read_archive(self.path, self._check)
        with storage.enough_memory(self.path), self._refused():
            reached = archive.restored(learner, saved)
            rows = Reader(archive.ensemble_kinds(), saved).read(saved.settings["rows"])
            rounds = check_fields(RECORD, {"rows": rows}, "game")["rounds"]
            require((rows[:, 2:] >= 0).all(), "calls")
            if reached.t != self.first + rounds:
                raise ValueError("its rounds do not add up")
        writes(lambda learner: learner.__dict__.update(reached.__dict__))(learner)
        return [tuple(row) for row in rows.tolist()]

    def save(self, learner: Learner, rows: list[tuple[float, ...]]) -> None:
        """Write where the game is; refuse if something else moved the learner meanwhile."""
        reads_whole(self._write)(learner, rows)

    def _write(self, learner: Learner, rows: list[tuple[float, ...]]) -> None:
        if learner.t != self.first + len(rows):
            raise RuntimeError(
                f"the game has played {len(rows):,} rounds from round {self.first:,} on, but its "
                f"learner is at round {learner.t:,}: a callback or another thread has moved it; "
                f"{self.path} stays as it was"
            )
        writer = archive.learner_writer()
        settings = {
            **archive.learner_settings(learner, writer),
            "learner": type(learner).__name__,
            "first": self.first,
            "rows": writer.write(_table(rows), "game/rows"),
        }
        storage.write_archive(self.path, "Game", settings, writer.arrays)

    def _check(self, saved: Archive) -> None:
        """Require a file of this game."""
        with self._refused():
            if saved.kind != "Game":
                raise ValueError(f"it holds a {saved.kind[:40]}")
            first = saved.settings.get("first")
            if first != self.first:
                raise ValueError(
                    f"it began with round {str(first)[:40]}, and this learner has played {self.first} "
                    "rounds already; give one made anew"
                )
            archive.check_settings(saved, GAME, "game")


def _table(rows: list[tuple[float, ...]]) -> Array:
    return np.array(rows, dtype=np.float64).reshape(-1, 6)
