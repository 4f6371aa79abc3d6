"""`AdaptiveSets`: sets of labels around any classifier, whose coverage holds under drift."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from driftwolfe.estimators.core.ids import plain_keys, several
from driftwolfe.estimators.threshold import FIRST, AdaptiveThreshold, as_groups
from driftwolfe.points import checks
from driftwolfe.points.access import reads
from driftwolfe.points.kinds import Array

#: Smaller probabilities count as this.
LEAST = 1e-12


class AdaptiveSets(AdaptiveThreshold):
    r"""Sets of labels, from a classifier's probabilities p, that hold the true one in a fraction of rows.

    A set holds the labels with :math:`-\ln p \le \rho\, e^{\theta + g m}`, most probable first, and the most
    probable one in any case. The right side is that of `AdaptiveIntervals`, learned from :math:`-\ln p` of
    the true labels; a label that the classifier does not know is missed. The fraction inside is exactly that
    of `AdaptiveIntervals`, on every window and in every group, with ``allow_empty=True``, where the most
    probable label is as all others; else it is at least that. docs/howto/sets.md has proofs and measurements.

    Parameters
    ----------
    model
        A classifier with ``predict_proba`` and ``partial_fit`` (scikit-learn), or with
        ``predict_proba_one`` and ``learn_one`` (river). It learns what the sets learn. None: give
        probabilities to `observe` and `around`.
    coverage, gain, group
        As of `AdaptiveIntervals`; its attributes, too.

    Examples
    --------
    >>> import numpy as np
    >>> rng, sets, inside = np.random.default_rng(0), AdaptiveSets(coverage=0.8), []
    >>> for t in range(600):
    ...     p, y = rng.dirichlet(np.ones(5)), int(rng.integers(5))  # which say nothing of y
    ...     inside.append(y in sets.around([p])[0])
    ...     sets = sets.observe([p], [y])
    >>> bool(0.78 < np.mean(inside) < 0.85), sets.around([{"a": 0.7, "b": 0.3, "c": 0.0}])[0]
    (True, ['a', 'b'])
    """

    _VERBS = ("predict_proba", "predict_proba_one")

    @reads
    def predict_set(self, X: Any, allow_empty: bool = False) -> list[Any]:
        """Return the labels of a row, a dict of features, or a list of them for each of many rows."""
        found = self.around(*self._ask(X), allow_empty)
        return found[0] if isinstance(X, Mapping) else found

    @reads
    def around(
        self, predictions: Any, groups: Any = None, allow_empty: bool = False
    ) -> list[list[Any]]:
        """Return the next row's set of labels for each row of probabilities: all, in the first ten rows.

        Probabilities are a list of dicts by label, or rows of numbers for the model's classes, or 0, 1, ...
        """
        scored, found = self._told(predictions), []
        limits = self._by_group(as_groups(groups, len(scored)), self._limit)
        for (labels, scores), limit in zip(scored, limits, strict=True):
            inside = int((scores <= limit).sum()) if self.n_rows_ >= FIRST else len(labels)
            order = np.argsort(scores, kind="stable")[: max(inside, not allow_empty)]
            found.append([labels[k] for k in order.tolist()])
        return found

    def _targets(self, y: Any) -> list[Any]:
        return plain_keys(several(y, "y"), "a label")

    def _observe(self, told: list[Any], targets: list[Any], groups: list[Any]) -> None:
        for (labels, scores), label, group in zip(told, targets, groups, strict=True):
            known, scales = label in labels, self._scales(group)
            score = float(scores[labels.index(label)] if known else -np.log(LEAST))
            self._learn_all(scales, [score] * len(scales), miss=not known)

    def _told(self, given: Any, count: int | None = None) -> list[tuple[list[Any], Array]]:
        """Return the labels of each row, and their scores."""
        if isinstance(given, list | tuple) and all(isinstance(row, Mapping) for row in given):
            pairs = [(plain_keys([*row], "a label"), [*row.values()]) for row in given]
        else:
            table = checks.finite_array(given, "probabilities")
            if table.ndim != 2:
                raise ValueError(
                    "probabilities must be a list of dicts by label, or rows of numbers"
                )
            classes = getattr(self.model, "classes_", range(table.shape[1]))
            names = plain_keys([*classes], "a label")
            pairs = [(names, row) for row in table]
        found = []
        for labels, row in pairs:
            values = checks.finite_array(row, "probabilities", (len(labels),))
            if values.min(initial=0.0) < 0.0 or values.sum() > 1.0 + 1e-6:
                raise ValueError("probabilities must be at least 0, with a sum of at most 1")
            found.append((labels, -np.log(np.clip(values, LEAST, 1.0))))
        if count not in (None, len(found)):
            raise ValueError(f"y must hold a label for each of {len(found)} rows, got {count}")
        return found
