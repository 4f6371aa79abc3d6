"""The learners that are compared, each with what it is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import driftwolfe as dw

#: Linear minimisations a round.
BUDGETS = (0.05, 0.1, 0.3, 1.0, 3.0, 8.0)
EVEN_BUDGETS = (0.3, 1.0, 3.0)
CERTIFIED_BUDGETS = (0.3, 1.0, 8.0)
LAZY = (0, 16, 64)

TITLES: dict[str, Callable[..., dw.Learner]] = {
    "POLD": dw.POLD,
    "POLA": dw.POLA,
    "BOGD_IP": dw.BOGDIP,
    "OneOracleAder": dw.OneOracleAder,
    "OnlineFrankWolfe": dw.OnlineFrankWolfe,
}
#: What one plays who learns nothing.
ZERO = "the zero matrix"
#: Those that can do with a budget and without.
PAPER = ("POLD", "POLA", "BOGD_IP")


@dataclass(frozen=True)
class Setting:
    """A learner and its options; `kind` says what is special about them, in a word."""

    title: str
    kind: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def budget(self) -> float | None:
        """Linear minimisations a round, where there is a limit."""
        given = self.options.get("lmo_budget")
        return 1.0 if self.title == "OnlineFrankWolfe" else given

    @property
    def key(self) -> str:
        """A name for files."""
        parts = [self.title, self.kind, *(f"{name}={v}" for name, v in self.options.items())]
        return "-".join(parts).replace(" ", "_")

    def make(self, domain: dw.Domain, rounds: int, lipschitz: float) -> dw.Learner:
        """A new learner; the certified tuning is told G, the practical one learns it."""
        given: dict[str, Any] = {"horizon": rounds, **self.options}
        if given.get("tuning") == "certified":
            given["lipschitz"] = lipschitz
        return TITLES[self.title](domain, **given)

    def record(self) -> dict[str, Any]:
        """What a record says of it."""
        return {
            "learner": self.title,
            "kind": self.kind,
            "budget": self.budget,
            "options": self.options,
        }


def on_sets(name: str, domain: dw.Domain, short: bool) -> list[Setting]:
    """All settings that play on a set; fewer on the stream with slow drift."""
    fewer, slow = (0.3, 2.0), name == "slow vectors"
    budgets = fewer if short else (0.1, 1.0, 8.0) if slow else BUDGETS
    even = fewer[:1] if short else (1.0,) if slow else EVEN_BUDGETS
    certified = () if slow else fewer[1:] if short else CERTIFIED_BUDGETS
    found = [Setting("OnlineFrankWolfe", "one a round")]
    for title in PAPER:
        found += _budgeted(title, budgets, "budget", method="corrective")
        found += _budgeted(title, even, "even", schedule="even")
        found += _budgeted(title, certified, "certified", tuning="certified")
        if not slow:
            found.append(Setting(title, "unlimited", {"method": "corrective"}))
        if domain.cheap_projection:
            found.append(Setting(title, "exact", {"method": "exact"}))
    found += _budgeted("OneOracleAder", budgets, "budget", method="corrective")
    found += _budgeted("OneOracleAder", certified, "certified", tuning="certified")
    return found


def lazy(name: str, short: bool) -> list[Setting]:
    """Known vertices tried first, and not; on matrices only what takes less than a minute."""
    titles = ("BOGD_IP",) if short or name == "matrices" else PAPER
    sizes = LAZY[:2] if short else LAZY
    return [
        Setting(title, "lazy", {"method": "halfspace", "lazy": size})
        for title in titles
        for size in sizes
    ]


def on_ratings(short: bool) -> list[Setting]:
    """Settings on MovieLens, with the c that the paper's methods were given there.

    That c was never chosen for the other two, which are played with c = D/G as well.
    """
    budgets = (0.2, 8.0) if short else (0.05, 0.2, 1.0, 8.0)
    scale = {"step_scale": 1e4}
    found = [Setting("OnlineFrankWolfe", "one a round", scale)]
    found.append(Setting("OnlineFrankWolfe", "own c"))
    # Its experts are matrices of growing rank: with more calls a round it takes minutes.
    few = [budget for budget in budgets if budget <= 1.0]
    found += _budgeted("OneOracleAder", few, "corrective", **scale, method="corrective")
    found += _budgeted("OneOracleAder", few[:2], "own c", method="corrective")
    for title in ("BOGD_IP", "POLD", *(() if short else ("POLA",))):
        own = {**scale, "grid": "experiment"} if title == "POLD" else scale
        found += _budgeted(title, budgets, "corrective", **own, method="corrective")
        if title != "POLA":  # minutes each
            found += _budgeted(title, budgets, "block", **own, method="block")
        found.append(Setting(title, "block", {**own, "method": "block"}))
    return found


def against_the_oracle(budget: float) -> dict[str, Setting]:
    """Those whose bound is known, against `ResistingOracle`."""
    certified = {"tuning": "certified", "lmo_budget": budget}
    found = {
        "BOGD_IP": Setting("BOGD_IP", "certified", certified),
        "BOGD_IP, even": Setting("BOGD_IP", "even", {**certified, "schedule": "even"}),
        "POLD": Setting("POLD", "certified", certified),
        "OneOracleAder": Setting("OneOracleAder", "certified", certified),
    }
    if budget == 1.0:
        found["OnlineFrankWolfe"] = Setting("OnlineFrankWolfe", "one a round", {"lipschitz": 1.0})
    return found


def _budgeted(title: str, budgets: Sequence[float], kind: str, **options: Any) -> list[Setting]:
    return [Setting(title, kind, {**options, "lmo_budget": budget}) for budget in budgets]
