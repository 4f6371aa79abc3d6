"""What a result claims about its gap is true, also where the set's oracle is sloppy and says so.

The oracles here return an answer as bad as they please and report by how much: the error that every
method has to add to the gap it measures. True gaps come from brute force or numpy's singular values.
"""

import itertools
import math

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.oracles.frank_wolfe import approach, run_together
from driftwolfe.points import FactoredMatrix

SHAPE, RADIUS = (70, 66), 3.0
#: A run gives up after a step of length e without gain: e^2 is within the rounding of ||x - y||^2, so
#: that e is up to 1.5e-8 ||x - y||, and the gap of what is returned up to e (D + ||x - y||) larger
#: than that of the point before. In units of R^2, as ||x - y|| <= D = 2 R.
ROUNDING = 1.5e-8 * 2 * 4


def dense(point):
    return point.toarray() if isinstance(point, FactoredMatrix) else point


class SloppyBall(dw.TraceNormBall):
    """Turns the leading pair towards the second one, and reports what that costs."""

    def __init__(self, turn, representation):
        super().__init__(SHAPE, RADIUS, representation=representation)
        self.turn = turn

    def lmo_with_error(self, direction, accuracy=None, enough=None):
        U, s, Vt = np.linalg.svd(dense(direction), full_matrices=False)
        c, d = math.cos(self.turn), math.sin(self.turn)
        u, v = c * U[:, :1] + d * U[:, 1:2], c * Vt[:1].T + d * Vt[1:2].T
        error = RADIUS * d**2 * (s[0] - s[1])  # <direction, u v^T> = c^2 s_0 + d^2 s_1
        if isinstance(direction, FactoredMatrix):
            return FactoredMatrix.from_orthonormal(u, np.array([-RADIUS]), v), error
        return -RADIUS * u @ v.T, error


def matrix_gap(x, y):
    """max over the ball of <x - y, x - v>."""
    away = dense(x) - dense(y)
    return np.vdot(away, dense(x)) + RADIUS * np.linalg.norm(away, 2)


def check_matrices(result, y):
    """The gap is true, and y' is to no matrix of the ball farther than y."""
    assert matrix_gap(result.feasible, y) <= result.gap + ROUNDING * RADIUS**2
    old, new = dense(y), dense(result.infeasible)
    worst = np.vdot(new - old, new + old) + 2 * RADIUS * np.linalg.norm(new - old, 2)
    assert worst <= 1e-9 * (RADIUS**2 + np.vdot(old, old))


def matrix_problem(seed, representation):
    """A few singular values that matter, one far above the others, and a start that knows none."""
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.standard_normal((size, 14)))[0] for size in SHAPE)
    sizes = np.concatenate(([2.0, 1.2, 1.0], np.linspace(0.9, 0.3, 11)))
    y = FactoredMatrix(left, sizes, right)
    x = FactoredMatrix(left[:, 13:], np.array([0.1]), right[:, 12:13])
    return (x, y) if representation == "factored" else (x.toarray(), y.toarray())


@pytest.mark.in_turn("method turn", "method representation")
@pytest.mark.parametrize("representation", ["dense", "factored"])
@pytest.mark.parametrize("turn", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("method", ["block", "corrective", "halfspace", "paper"])
def test_gaps_of_matrices_are_certified(method, turn, representation):
    ball = SloppyBall(turn, representation)
    for seed in range(2):
        x, y = matrix_problem(seed, representation)
        if method in ("halfspace", "paper"):  # which move y to the ball before anything else
            y = y * (RADIUS / np.linalg.norm(dense(y)))
        for accuracy in (None,) if method == "paper" else (0.1, 0.5, 0.9):
            result = dw.infeasible_projection(ball, x, y, 0.4, method, accuracy=accuracy)
            assert np.linalg.norm(dense(result.feasible), "nuc") <= RADIUS * (1 + 1e-9)
            check_matrices(result, y)


def frank_wolfe(domain, x, y, gap, limit=None):
    return run_together(domain, [approach(domain.radius, x, y, gap, limit)])[0]


def test_block_adds_the_error_of_its_certificate():
    """An oracle that sees nothing at all certifies nothing: the gap is its error, and no less."""

    class Blind(SloppyBall):
        def lmo_with_error(self, direction, accuracy=None, enough=None):
            U, s, Vt = np.linalg.svd(dense(direction))
            u, v = U[:, -1:], Vt[-1:].T  # both in the null space
            vertex = FactoredMatrix.from_orthonormal(u, np.array([-RADIUS]), v)
            return vertex, RADIUS * s[0]

    x, y = matrix_problem(0, "factored")
    result = dw.infeasible_projection(
        Blind(0.0, "factored"), x, y, 1e-3, "block", accuracy=0.1, max_lmo_calls=1
    )
    assert result.lmo_calls == 1
    assert result.gap == pytest.approx(matrix_gap(result.feasible, y), rel=1e-9)


@pytest.mark.parametrize("representation", ["dense", "factored"])
@pytest.mark.parametrize("turn", [0.0, 0.3, 0.8])
def test_frank_wolfe_stops_at_a_gap_that_is_true(turn, representation):
    ball = SloppyBall(turn, representation)
    for seed in range(2):
        x, y = matrix_problem(seed, representation)
        for asked in (1.0, 4.0):
            end = frank_wolfe(ball, x, y, asked)
            assert matrix_gap(end.point, y) <= end.gap + ROUNDING * RADIUS**2
            assert end.gap <= asked + 1e-9


class Watched(dw.TraceNormBall):
    """The library's own oracle; counts the answers that it did not certify."""

    rough = 0

    def lmo_with_error(self, direction, accuracy=None, enough=None):
        vertex, error = super().lmo_with_error(direction, accuracy, enough)
        if error == math.inf:
            self.rough += 1
            assert vertex.inner(direction) <= enough * (1 - 1e-12)
        return vertex, error


@pytest.mark.parametrize("limit", [None, 4])
@pytest.mark.parametrize("method", ["corrective", "halfspace", "paper", "frank_wolfe"])
def test_only_calls_that_do_not_end_a_run_are_rough(method, limit):
    """What a run claims of its gap is certified; where calls are limited, all are."""
    ball = Watched(SHAPE, RADIUS, representation="factored")
    for seed in range(2):
        x, y = matrix_problem(seed, "factored")
        if method == "frank_wolfe":
            end = frank_wolfe(ball, x, y, 0.3, limit)
            assert limit is not None or end.gap <= 0.3
            if limit is None:
                assert matrix_gap(end.point, y) <= end.gap + ROUNDING * RADIUS**2
            continue
        if method in ("halfspace", "paper"):
            y = y * (RADIUS / np.linalg.norm(dense(y)))
        accuracy = None if method == "paper" else 0.1
        result = dw.infeasible_projection(ball, x, y, 0.2, method, accuracy, limit)
        assert limit is not None or result.converged
        check_matrices(result, y)
    assert (ball.rough > 0) == (limit is None)


class SloppyHull(dw.Domain):
    """A hull of vertices whose oracle returns the vertex of that rank, and reports what it lacks."""

    def __init__(self, vertices, rank):
        super().__init__(vertices.shape[1], np.linalg.norm(vertices, axis=1).max())
        self.vertices, self.rank = vertices, rank

    def lmo_with_error(self, direction, accuracy=None):
        values = self.vertices @ direction
        order = values.argsort()
        return self.vertices[order[self.rank]].copy(), values[order[self.rank]] - values[order[0]]

    def _lmo(self, direction):
        return self.lmo_with_error(direction)[0]

    def _contains(self, x, slack):
        raise NotImplementedError

    @property
    def cheap_membership(self):
        return False


@pytest.mark.parametrize("rank", [0, 1, 3])
@pytest.mark.parametrize("method", ["corrective", "halfspace", "paper"])
def test_gaps_of_vectors_are_certified(method, rank):
    rng = np.random.default_rng(9)
    for _ in range(15):
        vertices = rng.standard_normal((30, 4))
        vertices = np.concatenate((vertices, -vertices))
        domain = SloppyHull(vertices, rank)
        x = vertices[0] * 0.9
        out = rng.standard_normal(4)
        y = out * (domain.radius * 0.99 / np.linalg.norm(out))
        for accuracy in (None, 0.1, 0.5, 0.9):
            result = dw.infeasible_projection(
                domain, x, y, 0.3, method, accuracy, max_lmo_calls=200
            )
            away = result.feasible - y
            true_gap = (away @ (result.feasible - vertices).T).max()
            assert true_gap <= result.gap + ROUNDING * domain.radius**2
            before, after = (
                np.linalg.norm(vertices - point, axis=1) for point in (y, result.infeasible)
            )
            assert (after - before).max() <= ROUNDING * domain.radius


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_frank_wolfe_on_vectors_stops_at_a_gap_that_is_true(rank):
    rng, reached = np.random.default_rng(10), 0
    for _ in range(15):
        vertices = rng.standard_normal((300, 3))
        vertices = np.concatenate((vertices, -vertices))
        domain = SloppyHull(vertices, rank)
        y = 1.5 * rng.standard_normal(3)
        for asked in (0.5, 1.0, 2.0):
            end = frank_wolfe(domain, np.zeros(3), y, asked, 100)
            if end.lmo_calls == 100:
                continue
            reached += 1
            away = end.point - y
            true_gap = (away @ (end.point - vertices).T).max()
            assert true_gap <= end.gap + ROUNDING * domain.radius**2
    assert reached > 10


@pytest.mark.parametrize("share", [0.2, 0.45, 0.55, 0.75, 0.85, 0.95, 0.999])
@pytest.mark.parametrize("method", ["corrective", "halfspace", "paper"])
def test_an_oracle_that_sees_nothing_never_lengthens_a_distance(method, share):
    """On the segment from (-1, 0) to (1, 0), it answers 0 and reports |g_1|: all that it lacks."""

    class Blind(dw.Domain):
        def lmo_with_error(self, direction, accuracy=None):
            return np.zeros(2), abs(direction[0])

        def _lmo(self, direction):
            return np.zeros(2)

        def _contains(self, x, slack):
            return abs(x[0]) <= 1 + slack and abs(x[1]) <= slack

    squared, ends = 0.09, np.array([[-1.0, 0.0], [1.0, 0.0]])
    y = np.array([share * squared, math.sqrt(squared - (share * squared) ** 2)])
    for tolerance in (0.3 * squared, 0.7 * squared, 0.99 * squared):
        result = dw.infeasible_projection(Blind(2, 1.0), np.zeros(2), y, tolerance, method)
        before, after = (np.linalg.norm(ends - point, axis=1) for point in (y, result.infeasible))
        assert (after - before).max() <= 1e-14
        assert result.gap >= share * squared * (1 - 1e-12)


def test_frank_wolfe_asks_for_no_more_accuracy_than_three_per_cent_of_its_gap():
    """Nor for much less: each error asked for follows from the vertex before it."""

    seen = []

    class Recorder(SloppyBall):
        def lmo_with_error(self, direction, accuracy=None, enough=None):
            vertex, error = super().lmo_with_error(direction, accuracy)
            seen.append((dense(direction), dense(vertex), error, accuracy))
            return vertex, error

    x, y = matrix_problem(0, "factored")
    asked = 1.0
    frank_wolfe(Recorder(0.01, "factored"), x, y, asked)
    careful, target = asked / (8 * RADIUS**2), dense(y)
    assert len(seen) > 3
    assert seen[0][3] == pytest.approx(careful)
    for (away, vertex, error, _), (*_, accuracy) in itertools.pairwise(seen):
        gap = np.vdot(away, away + target - vertex) + error
        wanted = 0.03 * max(gap, asked)
        allowed = min(0.03, wanted / abs(np.vdot(away, vertex)))
        if error > wanted:
            assert accuracy < allowed
        elif gap > 2.0 * asked:
            assert accuracy == pytest.approx(allowed, rel=1e-6)
        else:  # a claim is near
            assert accuracy == pytest.approx(min(allowed, careful), rel=1e-6)
