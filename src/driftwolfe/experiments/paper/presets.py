"""The experiments at their sizes: all that the paper leaves unsaid is decided here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from driftwolfe.experiments.paper.experiment import Contender, Experiment
from driftwolfe.points import checks

#: Every one is a trial of hours.
MOST_SEEDS = 1000

#: {10^-1, ..., 10^6} and {2^-4, ..., 2^4}, the grids of the paper.
TENS = tuple(10.0**k for k in range(-1, 7))
TWOS = tuple(2.0**k for k in range(-4, 5))


def matrix_completion_paper() -> Experiment:
    """MovieLens 100K, three copies, the middle one negated: 3,000 rounds of 100 ratings.

    On large matrices small steps keep the decision at full rank, and each projection then costs a
    decomposition: while c is chosen, a run ends after five minutes of processor time, one of
    Multi-OCG after ten. Ader projects every expert in every round: its c is chosen on 50 rounds, and
    it then runs for twenty minutes on each order of the data.
    """
    return Experiment(
        name="matrix-completion",
        title="Online matrix completion: dynamic regret",
        real="movielens-100k",
        twin="movielens-100k-twin",
        contenders=(
            Contender("BOGDIP", "BOGD_IP", TENS, tuning_limit=300.0),
            Contender("POLD", "POLD", TENS, tuning_limit=300.0),
            Contender("POLA", "POLA", TENS, tuning_limit=300.0),
            Contender("MultiOCG", "Multi-OCG", TENS, {"max_inner": 1}, tuning_limit=600.0),
            Contender("Ader", "Ader", TENS, tuning_first=50, tuning_limit=300.0, limit=1200.0),
        ),
    )


def matrix_completion_short() -> Experiment:
    """The same on the first 10,000 ratings, 300 rounds, where Ader can play all of them.

    Values of c around the best of the full setting; those of Ader are held against each other on 50
    rounds.
    """
    whole = matrix_completion_paper()
    contenders = tuple(
        replace(
            contender,
            scales=tuple(c for c in TENS if 1e2 <= c <= 1e5),
            tuning_first=50 if contender.method == "Ader" else None,
            tuning_limit=90.0,
            limit=None,
            seeds=None,
        )
        for contender in whole.contenders
    )
    return replace(whole, rounds=300, contenders=contenders, widest=1)


def matrix_completion_quick() -> Experiment:
    """The same in minutes: 900 rounds, two orders, and what is slow as far as it comes.

    c = 1e4, the best of the full setting for all but Ader, which would be slower still with its own.
    """
    whole = matrix_completion_paper()
    contenders = tuple(
        replace(
            contender,
            scales=(1e4,),
            tuning_first=None,
            tuning_limit=20.0,
            limit=20.0,
            seeds=None,
        )
        for contender in whole.contenders
    )
    return replace(whole, rounds=900, contenders=contenders, seeds=2, widest=0)


def classification_paper() -> Experiment:
    """Shuttle, the features negated every 1,000 rounds: 4,350 rounds of 10 rows."""
    return Experiment(
        name="classification",
        title="Online multiclass classification: adaptive regret",
        real="shuttle",
        twin="shuttle-twin",
        contenders=(
            Contender("POLA", "POLA", TWOS),
            Contender("POLA", "POLA, paper's oracle", TWOS, {"method": "paper"}),
            Contender("PAMO", "PAMO", TWOS),
            Contender("PAMO", "PAMO, exact gauge", TWOS, {"gauge": "exact"}),
        ),
        taus=(100, 1000),
    )


def classification_quick() -> Experiment:
    """The same on a tenth of the rows, with two orders."""
    return replace(classification_paper(), rounds=435, seeds=2, taus=(10, 100))


#: By experiment and preset.
EXPERIMENTS: dict[str, dict[str, Callable[[], Experiment]]] = {
    "matrix-completion": {
        "quick": matrix_completion_quick,
        "short": matrix_completion_short,
        "paper": matrix_completion_paper,
    },
    "classification": {"quick": classification_quick, "paper": classification_paper},
}


def experiment(name: str, preset: str = "quick", seeds: int | None = None) -> Experiment:
    """The experiment of that name at that size.

    >>> experiment("classification", "paper").contenders[2].label
    'PAMO'
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"unknown experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    if preset not in EXPERIMENTS[name]:
        raise ValueError(
            f"{name} has no preset {preset!r}; there are {', '.join(EXPERIMENTS[name])}"
        )
    made = EXPERIMENTS[name][preset]()
    if seeds is None:
        return made
    return replace(made, seeds=checks.count(seeds, "seeds", most=MOST_SEEDS))
