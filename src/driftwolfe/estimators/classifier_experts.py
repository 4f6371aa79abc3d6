"""The experts behind `TraceNormClassifier`."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwolfe.domains import TraceNormBall
from driftwolfe.ensemble import GeometricCover
from driftwolfe.estimators.classifier_features import (
    FULL_FEATURES,
    FeatureMap,
    Labelled,
    Rows,
    renewal_gap,
)
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Indices, compiled
from driftwolfe.points.rounding import near_largest

kernels = compiled("driftwolfe.estimators.classifier_kernels")

#: Rows in a round of the cover: no expert lives shorter.
BLOCK = 16
#: Of the cover's lengths 1, 2, 4, ... rounds, every second is used: 1, 4, 16, ...
LEVEL_BITS = 2
#: Interval lengths that are there from the first row on: 16, 64, 256, 1,024 and 4,096 rows.
FIRST_LEVELS = 5
#: By which share the trace norm may pass the radius before an expert is projected. Measured losses
#: are the same for 0 and for 1; projections are over twenty times fewer than with 0.
SLACK = 0.5


class ClassExperts:
    r"""POLA's experts for the multiclass logistic loss, weighted by their likelihood.

    There is an expert for each radius :math:`\rho` and each length L = 16, 64, 256, ... of intervals
    of the geometric cover. It holds a matrix Y, predicts class probabilities softmax(Y z), and
    after each row takes a step

    .. math:: Y \leftarrow P(Y - \eta \nabla f(Y)), \qquad \eta = \frac{D}{G \sqrt L}
              = \frac{\rho}{\sqrt{2 L}}

    with D = 2 rho and :math:`G = 2\sqrt2`, a bound on the gradients for rows of norm at most 2. P
    leaves Y where it is while a running bound on its trace norm is at most 1.5 rho, and projects it
    onto the ball otherwise. Either brings no point of the ball farther away, which is all that the
    regret needs: only probabilities are played, so Y itself may be outside.

    When an interval ends, the expert of the next one of that length starts at the heaviest expert of
    its radius, with the weight of the one before. Weights are multiplied by the probability that an
    expert gave to the label; then a share 1/(t+1) of them is spread evenly. With `adaptive` False
    experts never restart and shares are :math:`1/(t+1)^2`, as in POLD.

    The guarantee of `TraceNormClassifier` has two parts. The logarithmic loss is 1-mixable, so the
    mixture has, over the rows s to e, at most the loss of any of N experts plus :math:`\ln(N e)`
    (rounded up by less than 0.01 for experts that join later). An expert has, on each of its intervals,
    at most the loss of any fixed matrix Z in its ball plus :math:`1.3\, G D \sqrt L`: the usual sum
    :math:`\lVert Y_s - Z\rVert^2/(2\eta) + \eta G^2 L/2`, with :math:`\lVert Y_s - Z\rVert \le 2.5 \rho`.

    Examples
    --------
    >>> from driftwolfe.estimators.classifier_features import as_rows
    >>> experts = ClassExperts((10.0,), classes=2, features=1, adaptive=True)
    >>> row = as_rows(np.ones((1, 1)))
    >>> for _ in range(20):
    ...     experts.learn(Labelled(row, np.zeros(1, np.int64), np.ones(1)))
    >>> experts.probabilities(row).round(2)
    array([[0.96, 0.04]])
    >>> experts.names[:2]
    ['radius 10, 16 rows', 'radius 10, 64 rows']
    """

    STATE = ("points", "norms", "weights")

    def __init__(
        self, radii: tuple[float, ...], classes: int, features: int, adaptive: bool
    ) -> None:
        kernels()  # compiled now, not in a round
        self.adaptive = adaptive
        self.radii: Array = np.array(radii)
        self.classes, self.width, self.t = classes, features, 0
        number = FIRST_LEVELS * len(radii)
        self.points: Array = np.zeros((features, number * classes))
        self.norms: Array = np.zeros((2, number))  # bounds on trace norms; squared Frobenius norms
        self.weights: Array = np.full(number, 1.0 / number)
        self._set_steps()

    @property
    def lengths(self) -> Indices:
        """The interval length of every expert, in rows."""
        levels = np.arange(self.weights.size) // self.radii.size
        return BLOCK << (LEVEL_BITS * levels)

    @property
    def names(self) -> list[str]:
        """The radius and the interval length of every expert."""
        pairs = zip(self._radii.tolist(), self.lengths.tolist(), strict=True)
        return [f"radius {radius:g}, {length:,} rows" for radius, length in pairs]

    def probabilities(self, rows: Rows) -> Array:
        """Return the class probabilities of every row."""
        out = np.zeros((rows.number, self.classes))
        kernels().probabilities(*rows, self.points, self.weights, out)
        return out

    def learn(self, given: Labelled) -> None:
        """Learn rows of one round of the cover; at its end, restart experts."""
        rows, labels, parts = given
        if not self.points.flags.writeable:  # unpickled from read-only memory
            for name in self.STATE:
                setattr(self, name, getattr(self, name).copy())
        clock = self.t + 2.0 + np.arange(labels.size)
        shares = 1.0 / clock if self.adaptive else clock**-2.0
        done = 0
        while done < labels.size:
            done = kernels().learn_rows(
                *(done, *rows, labels, parts, shares, self._steps, self._radii, SLACK),
                *(self.points[: self.width], self.weights, self.norms),
            )
            self.project((self.norms[0] > (1.0 + SLACK) * self._radii).nonzero()[0])
        self.t += labels.size
        if self.t % BLOCK == 0:
            self._end_round()

    def grow(self, classes: int, features: int) -> None:
        """Make room for more classes and for more entries of z, with weights 0."""
        if classes > self.classes:
            stacked = self.points.reshape(len(self.points), -1, self.classes)
            wider = np.pad(stacked, ((0, 0), (0, 0), (0, classes - self.classes)))
            self.points, self.classes = wider.reshape(len(wider), -1), classes
        if features > len(self.points):
            room = max(features, 2 * len(self.points))
            self.points = np.pad(self.points, ((0, room - len(self.points)), (0, 0)))
        self.width = max(self.width, features)

    def _end_round(self) -> None:
        """Restart the experts whose interval has ended, and add those for longer intervals."""
        lengths = GeometricCover().starting(self.t // BLOCK) if self.adaptive else []
        # Among equally heavy ones, rounding apart, the one of the longest interval.
        number = self.radii.size
        levels = self.weights.reshape(-1, number)
        heaviest = np.array([near_largest(column)[-1] for column in levels.T])
        sources = heaviest * number + np.arange(number)
        stacked = self.points.reshape(len(self.points), -1, self.classes)
        starts, norms = stacked[:, sources], self.norms[:, sources]
        for length in lengths[::LEVEL_BITS]:
            first = (length.bit_length() - 1) // LEVEL_BITS * number
            if first < self.weights.size:
                stacked[:, first : first + number] = starts
                self.norms[:, first : first + number] = norms
        if self.lengths[-1] <= self.t:
            self.points = np.hstack((self.points, starts.reshape(len(self.points), -1)))
            self.norms = np.hstack((self.norms, norms))
            share = number / (self.weights.size + number) / (self.t + 1.0)
            new = np.full(number, share / number)
            self.weights = np.concatenate(((1.0 - share) * self.weights, new))
            self._set_steps()

    def project(self, experts: Indices) -> None:
        """Project experts onto their balls, and compute their norms."""
        for i in experts.tolist():
            own = slice(i * self.classes, (i + 1) * self.classes)
            point, radius = self.points[: self.width, own], self._radii[i]
            ball = TraceNormBall(point.shape, radius, representation="dense")
            norm = ball.gauge(point) * radius
            if norm > radius:
                point[:] = ball.project(point)
            self.norms[:, i] = min(norm, radius), (point**2).sum()

    def _set_steps(self) -> None:
        """Set the radius and the step size of every expert."""
        self._radii: Array = np.resize(self.radii, self.weights.size)
        self._steps: Array = self._radii / np.sqrt(2.0 * self.lengths)


#: Rows that are mapped together where nothing is learned, which bounds the memory for it.
CHUNK = 4096


class ClassLearner:
    """A feature map and the experts on top of it; classes and features are numbers.

    Rows are learned one by one: how they are split into calls makes no difference, bit-identically.
    The weight of a row multiplies its loss and its part in the statistics of features.
    """

    def __init__(
        self, radii: tuple[float, ...], intercept: bool, adaptive: bool, classes: int, features: int
    ) -> None:
        self.map = FeatureMap(features, intercept)
        self.experts = ClassExperts(radii, classes, features + 1, adaptive)
        self.renewal = 1  # the round after which the map is recomputed

    @property
    def t(self) -> int:
        """Rows learned, copies counted."""
        return self.experts.t

    def learn(self, given: Labelled) -> None:
        """Learn rows, up to the next renewal of the map or end of a round at a time."""
        done = 0
        while done < given.number:
            end = done + min(BLOCK - self.t % BLOCK, self.renewal - self.t)
            rows, labels, parts = given.stretch(done, end)
            self.experts.learn(Labelled(self.map.rows(rows, parts), labels, parts))
            if self.t >= self.renewal or (self.t % BLOCK == 0 and self.map.is_behind):
                self.map.renew()
                self.renewal = self.t + renewal_gap(self.map.features, self.t)
            done = end

    def probabilities(self, rows: Rows) -> Array:
        """Return the class probabilities of every row; nothing changes."""
        if rows.number <= CHUNK:
            return self.experts.probabilities(self.map.rows(rows))
        parts = [rows.stretch(k, k + CHUNK) for k in range(0, rows.number, CHUNK)]
        return np.concatenate([self.probabilities(part) for part in parts])

    def coefficients(self) -> tuple[Array, Array]:
        """Return the experts' mean in units of the features: a row of weights per class, intercepts."""
        experts = self.experts
        stacked = experts.points[: experts.width].reshape(experts.width, -1, experts.classes)
        mean = np.einsum("jic,i->jc", stacked, experts.weights)
        weights, intercepts = self.map.to_features(mean)
        return np.ascontiguousarray(weights.T), intercepts

    def grow(self, classes: int, features: int) -> None:
        """Make room for more classes and features, up to these numbers."""
        if self.map.full and features > FULL_FEATURES:
            # The map for many features, with the same classifiers in terms of features.
            weights, intercepts = self.map.to_features(self.experts.points[: self.experts.width])
            self.map = self.map.diagonal()
            if self.t:
                points = self.map.from_features(weights, intercepts)
                self.experts.points = np.ascontiguousarray(points)
                self.experts.project(np.arange(self.experts.weights.size))
        if features > self.map.features:
            self.map.grow(features)
        self.experts.grow(classes, features + 1)

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Numbers and arrays from which `restored` makes the same learner."""
        experts = self.experts
        numbers = {
            "radii": experts.radii.tolist(),
            "intercept": self.map.constant > 0.0,
            "adaptive": experts.adaptive,
            "classes": experts.classes,
            "t": experts.t,
            "renewal": self.renewal,
        }
        arrays = {f"map.{name}": getattr(self.map, name) for name in FeatureMap.STATE}
        arrays |= {f"experts.{name}": getattr(experts, name) for name in ClassExperts.STATE}
        arrays["experts.points"] = experts.points[: experts.width]
        return numbers, arrays

    @classmethod
    def restored(cls, numbers: dict[str, Any], arrays: dict[str, Array]) -> ClassLearner:
        """Return the learner of that state."""
        radii, intercept, adaptive = (numbers[name] for name in ("radii", "intercept", "adaptive"))
        learner = cls(tuple(radii), intercept, adaptive, numbers["classes"], features=0)
        for name, array in arrays.items():
            part, _, own = name.partition(".")
            setattr(getattr(learner, part), own, array)
        learner.map.full = learner.map.mean.size == learner.map.seen.size
        experts, learner.renewal = learner.experts, numbers["renewal"]
        experts.t, experts.width = numbers["t"], len(experts.points)
        experts._set_steps()
        return learner


#: Default radii: scores of rows of usual length range from soft to certain.
RADII = (10.0, 40.0, 160.0)
LEARNERS = ("pola", "pold")
#: Squares of scores do not overflow.
SMALLEST_RADIUS, LARGEST_RADIUS = 1e-100, 1e100


def make_learner(
    radii: Any, learner: Any, fit_intercept: Any, classes: int, features: int
) -> ClassLearner:
    """Return a new learner; ValueError for options that are not allowed."""
    if learner not in LEARNERS:
        raise ValueError(f'learner must be "pola" or "pold", got {learner!r}')
    adaptive = learner == "pola"
    return ClassLearner(checked_radii(radii), bool(fit_intercept), adaptive, classes, features)


def checked_radii(radii: Any) -> tuple[float, ...]:
    """Return the radii as numbers.

    >>> checked_radii("auto"), checked_radii(3)
    ((10.0, 40.0, 160.0), (3.0,))
    """
    if isinstance(radii, str):
        if radii != "auto":
            raise ValueError(f'radii must be "auto", a number or several, got {radii!r:.60}')
        return RADII
    given = np.atleast_1d(radii).tolist()
    if not given:
        raise ValueError('radii must be "auto", a number or several, got none')
    found = tuple(checks.positive(radius, "each of radii") for radius in given)
    if not SMALLEST_RADIUS <= min(found) <= max(found) <= LARGEST_RADIUS:
        raise ValueError(
            f"each of radii must lie between {SMALLEST_RADIUS:g} and {LARGEST_RADIUS:g}, got {radii!r}"
        )
    return found


def plain_radii(radii: Any) -> Any:
    """Return the radii as an archive can hold them."""
    return radii if isinstance(radii, str) else np.asarray(radii).tolist()
