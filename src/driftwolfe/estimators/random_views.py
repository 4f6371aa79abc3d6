"""Random features for `TraceNormClassifier`: waves and ferns."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from driftwolfe.estimators.core.rows import COUNT, LARGEST_SCALE, FeatureMap
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.state import Field, Part
from driftwolfe.storage import require

#: Rows before random features are drawn, from the features and scales known by then.
START = 32
#: Number of waves, how many features each uses, if there are as many, and the deviation of slopes.
WAVES, LEAST_INPUTS, MOST_INPUTS, SLOPE = 96, 2, 3, 2.0
#: Number of ferns, and how many tests each has.
FERNS, TESTS = 128, 5
#: The map of the waves is recomputed after so many rounds, as a fraction of those played.
RENEWAL = 0.2
_REAL, _SCALE = np.float64, (-LARGEST_SCALE, LARGEST_SCALE)


class RandomViews(Part):
    r"""Two ways to see a row through random features.

    Waves are cosines of two or three features of z, with normal slopes of deviation 2 where features
    have deviation 1, decorrelated online by a `FeatureMap` of their own; z follows them. A fern puts a row
    into one of 32 leaves by five tests, each whether a feature x is above a cut: its mean plus a normal
    number of deviations, as of row 32. A leaf with frequency q is the entry :math:`q^{-1/4}`, and all
    entries are divided by their root mean square norm.
    """

    inputs: Annotated[Indices, Field(np.int64, ("waves", MOST_INPUTS), 0)]  # places in z
    slopes: Annotated[Array, Field(_REAL, ("waves", MOST_INPUTS), *_SCALE)]
    offsets: Annotated[Array, Field(_REAL, ("waves",), *_SCALE)]
    waves: Annotated[FeatureMap, {"features": "waves", "full": "waves", "others": 0}]
    tests: Annotated[Indices, Field(np.int64, ("ferns", TESTS), 0, below="features")]
    cuts: Annotated[Array, Field(_REAL, ("ferns", TESTS))]
    counts: Annotated[Array, Field(_REAL, ("leaves",), 0.0)]  # weights of rows, by leaf
    totals: Annotated[Array, Field(_REAL, (2,), 0.0, LARGEST_SCALE)]  # as those of a map
    renewal: Annotated[int, COUNT]  # the round after which the map of the waves is recomputed

    def __init__(self) -> None:
        self.inputs, self.slopes = np.zeros((0, MOST_INPUTS), np.int64), np.zeros((0, MOST_INPUTS))
        self.offsets, self.waves = np.zeros(0), FeatureMap(0, intercept=True)
        self.tests, self.cuts = np.zeros((0, TESTS), np.int64), np.zeros((0, TESTS))
        self.counts, self.totals, self.renewal = np.zeros(0), np.zeros(2), 0

    def check(self) -> None:
        sizes = self.offsets.size, len(self.tests), self.counts.size
        require(sizes in ((0, 0, 0), (WAVES, FERNS, FERNS << TESTS)), "random features")

    def start(self, features: FeatureMap, seed: int) -> None:
        """Draw waves and ferns for the features known by now."""
        rng, number = np.random.default_rng(seed), features.features
        self.tests = rng.integers(0, number, (FERNS, TESTS))
        scales = features.trusted_scales()[self.tests]
        self.cuts = features.mean[self.tests] + rng.normal(size=self.tests.shape) * scales
        # Nothing is to be learned from a constant.
        self.cuts[scales == 0.0] = np.finfo(np.float64).max
        self.inputs = np.zeros((WAVES, MOST_INPUTS), np.int64)
        self.slopes = np.zeros((WAVES, MOST_INPUTS))
        for used, slope in zip(self.inputs, self.slopes, strict=True):
            chosen = 1 + rng.permutation(number)[: rng.integers(LEAST_INPUTS, MOST_INPUTS + 1)]
            used[: chosen.size] = chosen
            slope[: chosen.size] = rng.normal(scale=SLOPE, size=chosen.size)
        self.slopes *= np.sqrt(number + 1.0)  # z has norm 1
        self.offsets = rng.uniform(0.0, 2.0 * np.pi, WAVES)
        self.waves = FeatureMap(WAVES, intercept=True)
        self.counts = np.zeros(FERNS << TESTS)

    def stop(self) -> None:
        """Forget waves and ferns."""
        self.__init__()  # type: ignore[misc]

    @property
    def held(self) -> tuple[Any, ...]:
        """The arrays of waves and ferns, those of their map first."""
        waves: tuple[Any, ...] = *self.waves.held, self.inputs, self.slopes, self.offsets
        return (*waves, self.tests, self.cuts, self.counts, self.totals)

    def renew(self, t: int) -> None:
        """Recompute the map of the waves, if it is time."""
        if t >= self.renewal:
            self.waves.renew()
            self.renewal = t + max(16, int(RENEWAL * t))
