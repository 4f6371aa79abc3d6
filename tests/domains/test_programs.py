"""Linear programs, models of cvxpy, plans, orders and matchings, against solvers and lists of all vertices."""

import copy
import itertools
import sys

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.optimize import linprog

import driftwolfe as dw
from domains.set_checks import check_set
from driftwolfe.domains.programs import LinearMinimiser


@pytest.fixture(params=["highspy", "scipy"])
def solver(request, monkeypatch):
    """With highspy, and as if it were not installed."""
    if request.param == "scipy":
        monkeypatch.setitem(sys.modules, "highspy", None)
    else:
        pytest.importorskip("highspy")
    return request.param


def program(kind, rng, n=6):
    """Arguments of a bounded program, as linprog takes them."""
    inside = rng.uniform(0.2, 0.8, n)
    A = rng.normal(size=(2 * n, n))
    if kind == "inequalities":
        return {"A_ub": A, "b_ub": A @ inside + rng.random(2 * n), "bounds": (-2, 3)}
    if kind == "sparse, free, a ray that rows stop":
        A = sparse.vstack((sparse.eye_array(n), -sparse.eye_array(n), A * (abs(A) > 1)))
        return {"A_ub": A, "b_ub": A @ inside + rng.random(4 * n), "bounds": (None, None)}
    if kind == "equalities":
        inside[-1] = 0.5
        A = np.vstack((np.ones(n), A[0], 1 - A[0]))  # the last follows from the others
        return {"A_eq": A, "b_eq": A @ inside, "bounds": [(0, None)] * (n - 1) + [(0.5, 0.5)]}
    if kind == "equalities in disguise":  # the sums say that x[0] and x[1] are 0
        A = np.vstack((np.eye(n)[0] + np.eye(n)[1], np.ones(n), A[:3]))
        inside[:2] = 0.0
        return {"A_ub": A, "b_ub": A @ inside + np.array([0.0, 1.0, 1.0, 1.0, 0.1])}
    whole = rng.integers(-1, 2, (n, n)).astype(
        float
    )  # degenerate: ties, and vertices of many facets
    return {"A_ub": np.vstack((whole, -whole)), "b_ub": np.ones(2 * n), "bounds": (-1, 1)}


KINDS = (
    *("inequalities", "sparse, free, a ray that rows stop", "equalities", "equalities in disguise"),
    "degenerate",
)


def optimum(costs, given):
    return linprog(costs, **given).fun


def largest_ball(domain, A_ub=None, b_ub=(), A_eq=None, b_eq=None, bounds=(0, None)):
    """The radius of a largest ball in the set, within its affine hull, by cvxpy."""
    n = domain.shape[0]
    low, high = np.broadcast_to(np.array(bounds, dtype=float), (n, 2)).T
    rows = np.vstack(
        (sparse.csr_array((0, n) if A_ub is None else A_ub).toarray(), np.eye(n), -np.eye(n))
    )
    above = np.concatenate((b_ub, high, -low))
    P = np.stack([domain.tangent(unit) for unit in np.eye(n)])
    lengths = np.linalg.norm(rows @ P, axis=1)
    held = np.isfinite(above) & (lengths > 1e-6)
    step, radius = cp.Variable(n), cp.Variable()
    room = above - rows @ domain.origin()
    constraints = [rows[held] @ step + lengths[held] * radius <= room[held], P @ step == step]
    return cp.Problem(cp.Maximize(radius), constraints).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("kind", KINDS)
def test_programs_against_linprog(kind, rng, solver):
    given = program(kind, rng)
    domain = dw.LinearProgram(**given)
    n = domain.shape[0]
    for costs in [*rng.normal(size=(20, n)), *rng.integers(-1, 2, (10, n)).astype(float)]:
        answer, least = domain.lmo(costs), optimum(costs, given)
        assert np.isclose(costs @ answer, least, rtol=1e-9, atol=1e-9)
        assert domain.contains(answer, atol=1e-9)
        center = domain.origin()
        assert np.linalg.norm(answer - center) <= domain.radius * (1 + 1e-9)
        if least < costs @ center - 1e-6:
            beyond = answer + 1e-4 * (answer - center)
            assert not domain.contains(beyond)
            assert domain.gauge(beyond) == pytest.approx(1.0001, abs=1e-7)
    steps = np.stack([domain.lmo(costs) for costs in rng.normal(size=(60, n))])
    assert np.linalg.matrix_rank(steps - steps[0], tol=1e-6) == domain.dimension


@pytest.mark.parametrize("kind", KINDS)
def test_the_center_is_that_of_a_largest_ball(kind, rng):
    given = program(kind, rng)
    domain = dw.LinearProgram(**given)
    assert domain.inner_radius == pytest.approx(largest_ball(domain, **given), rel=1e-6)
    for step in rng.normal(size=(20, domain.shape[0])):
        along = domain.tangent(step)
        edge = domain.origin() + domain.inner_radius / np.linalg.norm(along) * along
        assert domain.contains(edge, atol=1e-9)


def test_a_long_box_has_its_center_in_the_middle_and_exact_sizes():
    bounds = [(0.0, 1.0), (-1e3, 1e3), (2.0, 2.0)]
    domain, box = dw.LinearProgram(bounds=bounds), dw.Box(*np.array(bounds).T)
    np.testing.assert_allclose(domain.center, box.center, atol=1e-9)
    assert domain.radius == pytest.approx(box.radius, rel=1e-8)
    assert domain.diameter == pytest.approx(box.diameter, rel=1e-8)
    assert domain.inner_radius == pytest.approx(0.5) and domain.dimension == 2


def test_answers_depend_on_the_costs_alone(rng):
    """Whatever was asked before, with ties and without, and in a copy that knows nothing."""
    A = np.vstack((np.kron(np.eye(8), np.ones(8)), np.kron(np.ones(8), np.eye(8))))
    for given in ({"A_eq": A, "b_eq": np.ones(16)}, program("inequalities", rng, 20)):
        domain = dw.LinearProgram(**given)
        n = domain.shape[0]
        asked = [*rng.normal(size=(20, n)), *rng.integers(-1, 2, (20, n)).astype(float)]
        answers = [domain.lmo(costs) for costs in asked]
        for costs, answer in reversed([*zip(asked, answers, strict=True)]):
            assert np.array_equal(domain.lmo(costs), answer)
            assert np.array_equal(copy.deepcopy(domain).lmo(costs), answer)


def test_a_row_that_only_crosses_the_hull_takes_nothing_of_the_ball():
    rows = np.array([[-2.0, -2.0], [2.0, 0.0], [-2.0, -2.0]])
    segment = dw.LinearProgram(rows, [-5.0, 3.0, -6.0], [[2.0, 2.0]], [6.0], bounds=(-3, 3))
    assert segment.center == pytest.approx([0.75, 2.25])
    assert segment.inner_radius == pytest.approx(segment.radius) == pytest.approx(0.75 * 2**0.5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"A_ub": [[1, 1], [-1, -1], [1, 0]], "b_ub": [1, -2, 3]}, "empty: .* row 0 of A_ub"),
        ({"A_ub": [[1, 1]], "b_ub": [3], "A_eq": [[1, 1]], "b_eq": [-2]}, "row 0 of A_eq"),
        ({"A_ub": [[0, 0]], "b_ub": [-1], "bounds": (0, 1)}, "row 0 of A_ub"),
        ({"A_ub": [[1, -1]], "b_ub": [1]}, r"unbounded along the ray \+1 x\[1\]"),
        (
            {"A_eq": [[1, -2]], "b_eq": [2], "bounds": (None, None)},
            r"ray [+-]1 x\[0\] [+-]0.5 x\[1\]",
        ),
        ({"bounds": [(0, 1), (None, 3)]}, r"ray -1 x\[1\]"),
        ({"A_eq": [[1, 1], [1, -1]], "b_eq": [2, 0]}, "a single point"),
        ({"bounds": [(0, 1), (2, 1)]}, r"empty: x\[1\] has bounds \(2, 1\)"),
        ({"bounds": (0, 1)}, "bounds must be"),
        ({"A_ub": [[1, 1]], "b_ub": [1], "bounds": [(0, 1)] * 3}, "bounds must be"),
        ({"A_ub": [[1, 1]], "b_ub": [1], "A_eq": [[1, 1, 1]], "b_eq": [1]}, "bounds must be"),
        ({"A_ub": [[1, 1]], "b_ub": [1], "bounds": "wide"}, "bounds must be"),
        ({"A_ub": [[1, 1]]}, "A_ub must be a matrix with a row for each"),
        ({"A_ub": [[1, 1]], "b_ub": [1, 2]}, "A_ub must be a matrix with a row for each"),
        ({"A_eq": [[1, np.nan]], "b_eq": [1]}, "not finite"),
        ({"A_eq": sparse.csr_array([[1, np.inf]]), "b_eq": [1]}, "not finite"),
    ],
)
def test_sets_that_are_none_are_refused(given, message, solver):
    with pytest.raises(ValueError, match=message):
        dw.LinearProgram(**given)


def test_a_minimiser_says_why_there_is_no_answer(solver):
    for low, word in ((-np.inf, "unbounded"), (5.0, "infeasible")):
        with pytest.raises(ValueError, match=word):
            LinearMinimiser([[1.0, 0.0]], low, 3.0, -np.inf, 4.0 if low < 0 else 1.0)(np.ones(2))


def test_answers_keep_the_rows(solver):
    """To 1e-9, and to 1e-7 by SciPy, where 0 is nearly feasible and cheaper."""
    allowed = 1e-7 if solver == "scipy" else 1e-9
    for least in (1e-8, 5e-8, 5e-7):
        answer = LinearMinimiser([[1.0, 1.0]], least, 1.0, 0.0, 1.0)(np.array([1.0, 2.0]))
        np.testing.assert_allclose(answer, [least, 0.0], rtol=0, atol=allowed)


# -- models -------------------------------------------------------------------------------------


def models():
    x, X = cp.Variable(4), cp.Variable((3, 3), PSD=True)
    Y, z = cp.Variable((2, 3), nonneg=True), cp.Variable(2)
    return [
        (x, [cp.sum(x) == 1, x >= 0, x[0] <= 0.4]),
        (x, [cp.norm(x - 1) <= 2, cp.norm1(x) <= 3]),
        (X, [cp.trace(X) == 1, X[0, 1] >= 0.1]),
        (Y, [cp.sum(Y, axis=1) <= z, cp.sum_squares(z) <= 1]),  # z is not of the set
    ]


@pytest.mark.parametrize("number", range(4))
def test_models_against_cvxpy(number, rng):
    x, constraints = models()[number]
    domain = dw.from_cvxpy(x, constraints)
    assert domain.shape == x.shape
    for costs in rng.normal(size=(4, *x.shape)):
        answer = domain.lmo(costs)
        least = cp.Problem(cp.Minimize(cp.sum(cp.multiply(costs, x))), constraints).solve()
        assert np.vdot(costs, answer) == pytest.approx(least, abs=1e-5)
        away = cp.Problem(cp.Minimize(cp.norm(cp.vec(x - answer, order="C"))), constraints).solve()
        assert away <= 1e-4
        assert domain.contains(domain.origin(), atol=1e-5)
        assert np.linalg.norm(answer - domain.origin()) <= domain.radius
    learner = dw.POLAR(domain)
    for _ in range(5):
        learner.update(dw.losses.SquaredDistance(rng.normal(size=x.shape)))
    assert domain.contains(learner.decision, atol=1e-4)


def test_choices_of_a_model_are_its_convex_hull(rng):
    x = cp.Variable(5, boolean=True)
    domain = dw.from_cvxpy(x, [cp.sum(x) == 2], solver=cp.SCIPY)
    twin = dw.UniformMatroidPolytope(5, 2)
    for costs in rng.normal(size=(5, 5)):
        np.testing.assert_allclose(domain.lmo(costs), twin.lmo(costs), atol=1e-9)


def test_models_that_are_no_set_are_refused(monkeypatch):
    x = cp.Variable(2, name="flow")
    with pytest.raises(ValueError, match="the model is infeasible"):
        dw.from_cvxpy(x, [x >= 1, x <= 0])
    with pytest.raises(ValueError, match="the model is unbounded: constraints must bound flow"):
        dw.from_cvxpy(x, [x >= 0])
    for wrong in (cp.Variable(), cp.Variable(2, complex=True), 2 * x, 3.0):
        with pytest.raises(TypeError, match="a real cvxpy Variable"):
            dw.from_cvxpy(wrong, [])
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(ImportError, match=r"pip install .driftwolfe\[sets\]"):
        dw.from_cvxpy(x, [])


# -- plans, orders, matchings -------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 2), (3, 5), (12, 7)])
def test_plans_against_linprog(shape, rng):
    m, n = shape
    rows, columns = rng.dirichlet(np.ones(m)), rng.dirichlet(np.ones(n))
    domain = dw.TransportPolytope(7 * rows, 7 * columns)
    A, reached = np.vstack((np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n)))), []
    for costs in [*rng.normal(size=(10, m, n)), *rng.integers(-1, 2, (10, m, n)).astype(float)]:
        plan = domain.lmo(costs)
        least = linprog(costs.ravel(), A_eq=A, b_eq=7 * np.append(rows, columns)).fun
        assert np.vdot(costs, plan) == pytest.approx(least, abs=1e-9)
        assert domain.contains(plan, atol=1e-12)
        reached.append(np.linalg.norm(plan - domain.center) / domain.radius)
    assert 0.6 <= max(reached) <= 1.0 + 1e-12
    twin = dw.LinearProgram(A_eq=A, b_eq=7 * np.append(rows, columns))
    assert domain.dimension == twin.dimension
    step = rng.normal(size=shape)
    np.testing.assert_allclose(domain.tangent(step).ravel(), twin.tangent(step.ravel()), atol=1e-12)


@pytest.mark.parametrize(
    "values", [4, [3.0, -1.0, 0.5, 0.5], [0.0, 0.0, 1.0], [5.0, -3.0, -1.0, 2.0]]
)
def test_orders_against_all_permutations(values, rng):
    domain = dw.Permutahedron(values)
    orders = [np.array(order) for order in itertools.permutations(domain.values)]
    domain_sums = [(k, domain.values[:k].sum()) for k in range(1, domain.values.size)]

    def constraints(x):
        limits = [cp.sum_largest(x, k) <= most for k, most in domain_sums]
        return [*limits, cp.sum(x) == domain.values.sum()]

    check_set(domain, rng, orders, constraints)


@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("n", [4, 7, 12])
def test_matchings_against_networkx(n, k, rng):
    graph = nx.gnp_random_graph(n, 0.6, seed=3)
    domain = dw.MatchingPolytope(graph, k)
    edges = list(graph.edges())
    for costs in rng.normal(size=(8, len(edges))):
        found = domain.lmo(costs)
        chosen = [edges[i] for i in np.flatnonzero(found)]
        assert set(found) <= {0.0, 1.0} and nx.is_matching(graph, chosen)
        assert len(chosen) <= (k or n) and domain.contains(found)
        if k is None:
            priced = nx.Graph()
            priced.add_weighted_edges_from((*e, -c) for e, c in zip(edges, costs, strict=True))
            best = nx.max_weight_matching(priced)
            least = -sum(max(priced.edges[edge]["weight"], 0.0) for edge in best)
        else:
            pairs = itertools.combinations(range(len(edges)), 2)
            two = [costs[i] + costs[j] for i, j in pairs if not {*edges[i]} & {*edges[j]}]
            least = min(0.0, costs.min(), *two)
        assert costs @ found == pytest.approx(least, abs=1e-9)


def test_an_odd_cycle_holds_no_more_than_its_matchings():
    """A half on each edge of a triangle keeps every vertex's row, and is no mixture of matchings."""
    triangle = dw.MatchingPolytope(nx.complete_graph(3))
    assert triangle.contains([1 / 3] * 3) and not triangle.contains([0.34] * 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dw.TransportPolytope([1.0, 2.0], [1.0, 1.0]), "one total, got 3 and 2"),
        (lambda: dw.TransportPolytope([1.0, 2.0], [3.0]), "two or more positive sums"),
        (lambda: dw.TransportPolytope([1.0, -1.0], [1.0, -1.0]), "two or more positive sums"),
        (lambda: dw.Permutahedron([2.0, 2.0]), "not all equal"),
        (lambda: dw.Permutahedron(1), "not all equal"),
        (lambda: dw.MatchingPolytope([]), "must have edges"),
        (lambda: dw.MatchingPolytope([(0, 0)]), "each between two vertices"),
        (lambda: dw.MatchingPolytope([(0, 1)], k=0), "k must be"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
