"""`RiverMatrixCompleter`: the face of river's rankers."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from river.reco.base import Ranker

from driftwolfe.estimators.matrix_completer import MatrixCompleter


class RiverMatrixCompleter(Ranker):
    """`MatrixCompleter` for river: one rating at a time, or several.

    Parameters
    ----------
    loss, learner, radii, weighting, memory, keep_seen
        As for `MatrixCompleter`.
    n_factors
        `rank` of `MatrixCompleter`; here that is the method that ranks.
    seed
        As for `MatrixCompleter`; None is 0.

    Attributes
    ----------
    completer
        The `MatrixCompleter` behind it.

    Examples
    --------
    >>> model = RiverMatrixCompleter()
    >>> for user, item, y in [("ann", "up", 5), ("bob", "up", 4), ("ann", "heat", 2)]:
    ...     model.learn_one(user, item, y)
    >>> model.rank("bob", {"up", "heat"})
    ['up', 'heat']
    """

    def __init__(
        self,
        loss: str = "huber",
        learner: str = "both",
        radii: Sequence[float] = (0.3, 1.0),
        n_factors: int = 4,
        weighting: float = 0.75,
        memory: int = 131_072,
        seed: int | None = None,
        keep_seen: bool = True,
    ) -> None:
        super().__init__(seed=seed)
        self.loss = loss
        self.learner = learner
        self.radii = radii
        self.n_factors = n_factors
        self.weighting = weighting
        self.memory = memory
        self.keep_seen = keep_seen
        self.completer = MatrixCompleter(
            loss=loss,
            learner=learner,
            radii=radii,
            rank=n_factors,
            weighting=weighting,
            memory=memory,
            seed=seed or 0,
            keep_seen=keep_seen,
        )

    def learn_one(self, user: Hashable, item: Hashable, y: Any, x: Any = None) -> None:
        """Learn a rating; x is not used."""
        if isinstance(y, str | bytes):  # float would read it
            raise TypeError(f"a rating must be a number, got {y!r}")
        self.completer.partial_fit([(user, item)], [float(y)])

    def predict_one(self, user: Hashable, item: Hashable, x: Any = None) -> Any:
        """Predict a rating; x is not used."""
        return float(self.completer.predict([(user, item)])[0])

    def learn_many(self, pairs: Any, y: Any) -> None:
        """Learn ratings of (user, item) pairs, in order: the same as one after the other."""
        self.completer.partial_fit(pairs, y)

    def predict_many(self, pairs: Any) -> Any:
        """Predict ratings of (user, item) pairs."""
        return self.completer.predict(pairs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, as `MatrixCompleter.save` does."""
        self.completer.write(path, type(self).__name__, {"seed": self.seed})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RiverMatrixCompleter:
        """Read what `save` wrote."""
        completer, face = MatrixCompleter.read(path, cls.__name__)
        made, seed = completer.settings, face.get("seed")
        if set(face) != {"seed"} or (seed or 0) != made["seed"] or isinstance(seed, bool | float):
            raise ValueError(f"{path} does not hold a complete state: no seed")
        made["n_factors"] = made.pop("rank")
        model = cls(**{**made, "seed": seed})
        model.completer = completer
        return model

    def rank(self, user: Hashable, items: Iterable[Hashable], x: Any = None) -> list[Any]:
        """Return the items by falling prediction for a user."""
        given = list(items)
        scores = self.completer.predict([(user, item) for item in given])
        order = (-scores).argsort(kind="stable")
        return [given[place] for place in order.tolist()]
