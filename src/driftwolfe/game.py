"""Playing a learner against a sequence of losses."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol, runtime_checkable

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.learners.base import Learner
from driftwolfe.losses import Loss
from driftwolfe.points.kinds import Array, Indices, Point

Callback = Callable[[Learner, float], None]
#: Rounds in which experts run ahead of their combination.
_AHEAD = 512


@runtime_checkable
class _Known(Protocol):
    """Losses that are there before the game: no answer to the learner's moves."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> Any: ...


@dataclass(eq=False)
class History:
    """What happened in a game, one entry a round.

    Attributes
    ----------
    domain
        The learner's set.
    losses
        What the decisions suffered, :math:`f_t(x_t)`.
    seconds
        Time spent in updates; the mean of some rounds where experts ran ahead in threads.
    lmo, projection, gauge, membership
        Oracle calls made.
    functions
        The losses themselves, for the regret measures; empty if not kept.
    decisions
        The points played, if recorded.
    weights
        The expert weights in use, if recorded and the learner is an ensemble.
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
        return {
            "lmo": self.lmo,
            "projection": self.projection,
            "gauge": self.gauge,
            "membership": self.membership,
        }

    def __len__(self) -> int:
        return len(self.losses)


def play(
    learner: Learner,
    losses: Iterable[Loss],
    callbacks: Sequence[Callback] = (),
    *,
    record_decisions: bool = False,
    record_weights: bool = False,
    keep_losses: bool = True,
    progress: bool | None = None,
) -> History:
    """Play a learner through a sequence of losses and record what happens.

    Parameters
    ----------
    learner
        Moved forward by the game.
    losses
        One loss a round; any iterable, also one that reacts to the learner.
    callbacks
        Called after every round with the learner and what it suffered.
    record_decisions, record_weights
        Keep the points played and the expert weights.
    keep_losses
        Keep the losses, which the regret measures need; turn off for endless streams.
    progress
        Show a progress bar; by default only on a terminal.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> stream = [dw.losses.SquaredDistance(np.array([0.5, 0.0]))] * 50
    >>> history = dw.play(dw.OGD(dw.L1Ball(2), horizon=50, lipschitz=2.0), stream)
    >>> len(history), bool(history.losses[-1] < history.losses[0])
    (50, True)
    """
    watched = bool(callbacks) or record_decisions or record_weights
    ahead = learner.runs_ahead and not watched and isinstance(losses, _Known)
    rows: list[tuple[float, ...]] = []
    functions: list[Loss] = []
    decisions: list[Point] = []
    weights: list[Array] = []
    for some in _chunks(_with_progress(losses, progress), _AHEAD if ahead else 1):
        if record_decisions:
            decisions.append(learner.decision)
        if record_weights and (current := learner.expert_weights) is not None:
            weights.append(current)
        started = time.perf_counter()
        rounds = learner.update_many(some)
        elapsed = time.perf_counter() - started
        rows += [(elapsed / len(some), *done) for done in rounds]
        if keep_losses:
            functions += some
        for callback in callbacks:
            callback(learner, rounds[0].value)
    seconds, values, *calls = np.array(rows, dtype=float).reshape(-1, 6).T
    lmo, projection, gauge, membership = (count.astype(np.int64) for count in calls)
    return History(
        learner.domain,
        values,
        seconds,
        lmo,
        projection,
        gauge,
        functions,
        decisions,
        weights,
        membership,
    )


def _chunks(losses: Iterable[Loss], size: int) -> Iterator[list[Loss]]:
    """Losses in lists; one at a time where the next may depend on the last round."""
    rest = iter(losses)
    while some := list(islice(rest, size)):
        yield some


def _with_progress(losses: Iterable[Loss], progress: bool | None) -> Iterable[Loss]:
    if not (sys.stderr.isatty() if progress is None else progress):
        return losses
    from tqdm import tqdm  # where there is a bar to show, and not at every start

    return tqdm(losses, unit="round", leave=False)
