"""`ClassExperts`: linear classifiers in trace-norm balls, one for every radius and interval length."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwolfe.domains import TraceNormBall
from driftwolfe.ensemble import GeometricCover
from driftwolfe.estimators.classes.labelled import Labelled
from driftwolfe.estimators.classes.rows import Rows
from driftwolfe.points.compiled import compiled
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.points.rounding import near_largest

kernels = compiled("driftwolfe.estimators.classes.kernels")

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

    with D = 2 rho and :math:`G = 2\sqrt2`, a bound on the gradients for rows of norm at most 2. P is
    an infeasible projection onto the trace-norm ball of radius rho: it leaves Y where it is while a
    running bound on its trace norm is at most 1.5 rho, and projects it otherwise. Either brings no
    point of the ball farther away, which is all that the regret needs; and as only the
    probabilities are played, Y itself may be outside.

    When an interval ends, the expert of the next one of that length starts at the heaviest of the
    experts of its radius, with the weight of the one before.

    What is played are the experts' probabilities, averaged. The weights are multiplied by the
    probability that an expert gave to the label; then a share 1/(t+1) of them is spread evenly.

    Notes
    -----
    The logarithmic loss is 1-mixable, so this mixture has, over the rows s to e, at most the loss of
    any expert plus :math:`\ln(N e)` (rounded up by less than 0.01 for experts that join later), N
    experts. An expert has, on each of its intervals, at most the loss of any fixed matrix in its ball plus
    :math:`1.3\, G D \sqrt L`: the usual sum :math:`\lVert Y_s - Z\rVert^2/(2\eta) + \eta G^2 L/2`
    with :math:`\lVert Y_s - Z\rVert \le 2.5 \rho`. Together, on every interval of the cover,

    .. math:: \sum_{t \in I} f_t - \min_{\lVert Z\rVert_* \le \rho} \sum_{t \in I} f_t(Z)
              \le 1.3\, G D \sqrt{|I|} + \ln(N e)

    conditional on nothing but what z is: matrices and losses are in terms of the rescaled rows.

    Parameters
    ----------
    radii
        The radii, in units of scores for a row of norm 1.
    classes, features
        Numbers of classes and of entries of z; both can grow.
    adaptive
        False: experts never restart and shares are :math:`1/(t+1)^2`, which is POLD: lengths are
        then only names of step sizes.

    Examples
    --------
    >>> from driftwolfe.estimators.classes.rows import as_rows
    >>> experts = ClassExperts((10.0,), classes=2, features=1, adaptive=True)
    >>> row = as_rows(np.ones((1, 1)))
    >>> for _ in range(20):
    ...     experts.learn(Labelled(row, np.zeros(1, np.int64), np.ones(1)))
    >>> experts.probabilities(row).round(2)
    array([[0.96, 0.04]])
    >>> experts.names[:2]
    ['radius 10, 16 rows', 'radius 10, 64 rows']

    References
    ----------
    Wang et al. (2024), Non-stationary projection-free online learning with dynamic and adaptive
    regret guarantees, AAAI; for mixing experts on intervals under such losses Hazan and Seshadhri
    (2009), Efficient learning algorithms for changing environments, ICML; for the share Herbster
    and Warmuth (1998), Tracking the best expert, Machine Learning.
    """

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

    @property
    def rows_to_end(self) -> int:
        """Rows until the present round of the cover ends."""
        return BLOCK - self.t % BLOCK

    def probabilities(self, rows: Rows) -> Array:
        """Return the class probabilities of every row."""
        out = np.zeros((rows.number, self.classes))
        kernels().probabilities(*rows, self.points, self.weights, out)
        return out

    def mean(self) -> Array:
        """The weighted mean of the experts' matrices, one column per class."""
        stacked = self.points[: self.width].reshape(self.width, -1, self.classes)
        mean: Array = np.einsum("jic,i->jc", stacked, self.weights)
        return mean

    def learn(self, given: Labelled) -> None:
        """Learn rows of one round of the cover, and turn over at its end."""
        rows, labels, parts = given
        if not self.points.flags.writeable:  # as they may be where they were mapped from a file
            self.points, self.norms = self.points.copy(), self.norms.copy()
            self.weights = self.weights.copy()
        clock = self.t + 2.0 + np.arange(labels.size)
        shares = 1.0 / clock if self.adaptive else clock**-2.0
        done = 0
        while done < labels.size:
            done = kernels().learn_rows(
                done,
                self.width,
                *rows,
                labels,
                parts,
                shares,
                self._steps,
                self._radii,
                SLACK,
                self.points,
                self.weights,
                self.norms,
            )
            self._project((self.norms[0] > (1.0 + SLACK) * self._radii).nonzero()[0])
        self.t += labels.size
        if self.t % BLOCK == 0:
            self._turn_over()

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

    def replace(self, points: Array) -> None:
        """Put all experts elsewhere, into their balls."""
        self.points = np.ascontiguousarray(points)
        self._project(np.arange(self.weights.size))

    def state(self) -> dict[str, Array]:
        """All that is to be kept, besides the numbers."""
        points = self.points[: self.width]
        return {"points": points, "norms": self.norms, "weights": self.weights}

    @classmethod
    def restored(
        cls,
        radii: tuple[float, ...],
        classes: int,
        adaptive: bool,
        t: int,
        state: dict[str, Any],
    ) -> ClassExperts:
        """Return the experts of that state."""
        restored = cls(radii, classes, 0, adaptive)
        restored.width, restored.t = len(state["points"]), t
        for name, array in state.items():
            setattr(restored, name, array)
        restored._set_steps()
        return restored

    def _turn_over(self) -> None:
        """Restart the experts whose interval has ended, and let longer ones join."""
        lengths = GeometricCover().starting(self.t // BLOCK) if self.adaptive else []
        # Of those that are as heavy but for rounding, the one of the longest interval.
        levels = self.weights.reshape(-1, self.radii.size)
        heaviest = np.array([near_largest(column)[-1] for column in levels.T])
        sources = heaviest * self.radii.size + np.arange(self.radii.size)
        stacked = self.points.reshape(len(self.points), -1, self.classes)
        starts, norms = stacked[:, sources], self.norms[:, sources]
        for length in lengths[::LEVEL_BITS]:
            first = (length.bit_length() - 1) // LEVEL_BITS * self.radii.size
            if first < self.weights.size:
                stacked[:, first : first + self.radii.size] = starts
                self.norms[:, first : first + self.radii.size] = norms
        if self.lengths[-1] <= self.t:
            self._add_level(starts, norms)

    def _add_level(self, starts: Array, norms: Array) -> None:
        """Let experts for longer intervals join, at those points."""
        number = self.radii.size
        self.points = np.hstack((self.points, starts.reshape(len(self.points), -1)))
        self.norms = np.hstack((self.norms, norms))
        share = number / (self.weights.size + number) / (self.t + 1.0)
        new = np.full(number, share / number)
        self.weights = np.concatenate(((1.0 - share) * self.weights, new))
        self._set_steps()

    def _project(self, experts: Indices) -> None:
        """Project experts onto their balls, and take stock of their trace norms."""
        for i in experts.tolist():
            own = slice(i * self.classes, (i + 1) * self.classes)
            ball = TraceNormBall((self.width, self.classes), self._radii[i], representation="dense")
            point, radius = self.points[: self.width, own], self._radii[i]
            norm = ball.gauge(point) * radius
            if norm > radius:
                self.points[: self.width, own] = ball.project(point)
            self.norms[:, i] = min(norm, radius), (self.points[: self.width, own] ** 2).sum()

    def _set_steps(self) -> None:
        """Note the radius and the step size of every expert."""
        self._radii: Array = np.resize(self.radii, self.weights.size)
        self._steps: Array = self._radii / np.sqrt(2.0 * self.lengths)
