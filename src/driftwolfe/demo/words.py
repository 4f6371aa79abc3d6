"""What the demo says, all of it worked out from what was measured."""

from __future__ import annotations

import numpy as np

from driftwolfe.demo.hunt import STAY, Hunt
from driftwolfe.demo.runs import Run
from driftwolfe.terminal import table


def problem(hunt: Hunt) -> str:
    """What is played."""
    return (
        f"A target hides in one of {hunt.domain.shape[0]} places and jumps {len(hunt.jumps)} times in "
        f"{len(hunt.losses):,} rounds. Each round a learner spreads its weight over the places and "
        "then sees a noisy sighting; its loss is 1 less what it caught."
    )


def knowledge() -> str:
    """What each learner is told, and what it may do."""
    return (
        "OGD is told the number of rounds and the steepest loss, takes the step that its theory "
        "gives for them, and projects. POLA is told neither, and only minimises linear functions."
    )


def measures(runs: tuple[Run, Run]) -> list[str]:
    """The table: a row for each measure, a column for each learner."""
    rows = {
        "mean loss": [f"{run.history.losses.mean():.3f}" for run in runs],
        "weight on the target": [f"{100 * run.on_target.mean():.0f} %" for run in runs],
        "regret against the target": [f"{run.regret:.1f}" for run in runs],
        f"regret, worst {STAY} rounds": [f"{run.worst_window:.1f}" for run in runs],
        "linear minimisations": [f"{run.history.lmo.sum():,}" for run in runs],
        "projections": [f"{run.history.projection.sum():,}" for run in runs],
        "seconds": [f"{run.history.seconds.sum():.2f}" for run in runs],
    }
    return table(["", *(run.name for run in runs)], [[name, *row] for name, row in rows.items()])


def findings(runs: tuple[Run, Run]) -> str:
    """Two sentences: how soon each learner found the target again, and what that came to."""
    one, two = runs
    return (
        f"After a jump {one.name} {_wait(one)} until half its weight is on the target, "
        f"{two.name} {_wait(two)} (median of {len(one.hunt.jumps)} jumps). "
        f"{two.name}'s regret is {_against(two.regret, one.regret)} {one.name}'s, with "
        f"{_calls(two)} in place of {_calls(one)}."
    )


def hindsight(name: str, times: float, regret: float) -> str:
    """What a step that nobody knows before would have done."""
    if times == 1:
        return f"No other step that was tried would have given {name} a lower regret."
    return (
        f"A step {times:g} times as large would have given {name} a regret of {regret:.1f}; "
        "which step is best is known only afterwards."
    )


def _wait(run: Run) -> str:
    """How long a learner took, and how often it was too long."""
    never = int((run.catches < 0).sum())
    waits = np.where(run.catches < 0, np.inf, run.catches)
    median = float(np.median(waits))
    if not np.isfinite(median):
        return f"mostly takes longer than the target stays ({never} times)"
    missed = f" ({never} times it came too late)" if never else ""
    return f"takes {median:.0f} rounds{missed}"


def _against(value: float, other: float) -> str:
    """One number against another, in words.

    >>> _against(30.0, 100.0), _against(150.0, 100.0), _against(100.2, 100.0)
    ('70 % below', '50 % above', 'the same as')
    """
    if not other > 0:
        return "above" if value > other else "below" if value < other else "the same as"
    share = round(100 * (value / other - 1))
    return "the same as" if not share else f"{abs(share)} % {'above' if share > 0 else 'below'}"


def _calls(run: Run) -> str:
    """The oracle calls of a game."""
    counts = {"linear minimisations": run.history.lmo, "projections": run.history.projection}
    made = [f"{calls.sum():,} {name}" for name, calls in counts.items() if calls.any()]
    return " and ".join(made) or "no oracle calls"
