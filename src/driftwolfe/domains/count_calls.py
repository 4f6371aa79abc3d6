"""Counting what an algorithm asks of a set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, ClassVar

from driftwolfe.domains.base import Domain
from driftwolfe.points.devices import Device
from driftwolfe.points.kinds import Array, Point

#: Held while a number is raised, which takes several steps.
_COUNTING = Lock()


@dataclass
class OracleCalls:
    """How often a set was asked.

    Parameters
    ----------
    lmo
        Linear minimisations.
    projection
        Euclidean projections.
    gauge
        Gauges, values and subgradients alike.
    membership
        Tests whether a point lies in the set.

    Examples
    --------
    >>> calls = OracleCalls(lmo=2)
    >>> calls.add(lmo=1, membership=4)
    >>> calls.numbers()
    (3, 0, 0, 4)
    """

    STATE: ClassVar = ("lmo", "projection", "gauge", "membership")

    lmo: int = 0
    projection: int = 0
    gauge: int = 0
    membership: int = 0

    def add(self, lmo: int = 0, projection: int = 0, gauge: int = 0, membership: int = 0) -> None:
        """Count so many more; experts in several threads may do so at once."""
        with _COUNTING:
            self.lmo += lmo
            self.projection += projection
            self.gauge += gauge
            self.membership += membership

    def numbers(self) -> tuple[int, int, int, int]:
        """The counts so far: lmo, projection, gauge, membership."""
        return self.lmo, self.projection, self.gauge, self.membership

    def reset(self) -> None:
        """Count from 0 again."""
        self.lmo = self.projection = self.gauge = self.membership = 0


class CountedDomain(Domain):
    """A set that counts its calls and is otherwise the set inside; see `count_calls`.

    Parameters
    ----------
    domain
        The set inside.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ball = dw.CountedDomain(dw.L1Ball(3))
    >>> ball.gauge([1.0, 2.0, 3.0]), ball.scale, ball.calls
    (6.0, 1.0, OracleCalls(lmo=0, projection=0, gauge=1, membership=0))
    """

    STATE = ("calls",)

    def __init__(self, domain: Domain) -> None:
        if not isinstance(domain, Domain):
            raise TypeError(f"domain must be a Domain, got {type(domain).__name__}")
        self.domain = domain
        self.calls = OracleCalls()

    def arguments(self) -> dict[str, Any]:
        """What it was made from."""
        return {"domain": self.domain}

    def __getattr__(self, name: str) -> Any:
        # Copying asks for attributes before `domain` is there; that must not recurse.
        if name == "domain":
            raise AttributeError(name)
        return getattr(self.domain, name)

    @property
    def unwrapped(self) -> Domain:
        """The set inside."""
        return self.domain.unwrapped

    @property
    def device(self) -> Device:  # type: ignore[override]
        """Where the set's points live."""
        return self.domain.device

    @property
    def stack_device(self) -> Device:  # type: ignore[override]
        """Where ensembles keep the set's points."""
        return self.domain.stack_device

    @property
    def stack_chosen(self) -> bool:  # type: ignore[override]
        """The set's own answer."""
        return self.domain.stack_chosen

    @property
    def center(self) -> Point | None:
        """The set's centre."""
        return self.domain.center

    @property
    def cheap_projection(self) -> bool:
        """The set's own answer."""
        return self.domain.cheap_projection

    @property
    def cheap_membership(self) -> bool:
        """The set's own answer."""
        return self.domain.cheap_membership

    def origin(self) -> Point:
        """A fresh copy of the set's centre."""
        return self.domain.origin()

    def can(self, operation: str) -> bool:
        """The set's own answer."""
        return self.domain.can(operation)

    def project_many(self, stack: Array) -> Array:
        """The set's own answers, each counted."""
        self.calls.add(projection=len(stack))
        return self.domain.project_many(stack)

    def warm_up(self) -> None:
        """The set's own, not counted."""
        self.domain.warm_up()

    def tangent(self, direction: Point) -> Point:
        """The set's own answer."""
        return self.domain.tangent(direction)

    def check_point(self, value: Any, name: str) -> Point:
        """The set's own check."""
        return self.domain.check_point(value, name)

    def lmo_with_error(
        self, direction: Point, accuracy: float | None = None
    ) -> tuple[Point, float]:
        """The set's own answer, counted."""
        self.calls.add(lmo=1)
        return self.domain.lmo_with_error(direction, accuracy)

    def lmo_many_with_error(
        self, directions: Sequence[Point], accuracies: Sequence[float | None]
    ) -> list[tuple[Point, float]]:
        """The set's own answers, each counted."""
        self.calls.add(lmo=len(directions))
        return self.domain.lmo_many_with_error(directions, accuracies)

    def _lmo(self, direction: Point) -> Point:
        self.calls.add(lmo=1)
        return self.domain._lmo(direction)

    def _contains(self, x: Point, slack: float) -> bool:
        self.calls.add(membership=1)
        return self.domain._contains(x, slack)

    def _project(self, y: Point) -> Point:
        self.calls.add(projection=1)
        return self.domain._project(y)

    def _gauge(self, y: Point) -> float:
        self.calls.add(gauge=1)
        return self.domain._gauge(y)

    def _gauge_subgradient(self, y: Point) -> Point:
        self.calls.add(gauge=1)
        return self.domain._gauge_subgradient(y)

    def __repr__(self) -> str:
        return f"count_calls({self.domain!r})"


def count_calls(domain: Domain) -> CountedDomain:
    """Wrap a set so that it counts what is asked of it.

    Parameters
    ----------
    domain
        The set; it is shared, not copied.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ball = dw.count_calls(dw.L1Ball(3))
    >>> _ = ball.lmo([1.0, 2.0, 3.0])
    >>> ball.calls
    OracleCalls(lmo=1, projection=0, gauge=0, membership=0)
    >>> ball.calls.reset()
    >>> ball.calls.lmo
    0
    """
    return CountedDomain(domain)
