"""Numbers behind a mask, sparse matrices whose indices point elsewhere, ids that cannot be found again."""

import numpy as np
import pytest
import scipy.sparse as sp

import driftwolfe as dw
from contracts.hostile import hidden, nested
from driftwolfe.estimators import TraceNormClassifier
from driftwolfe.estimators.core.ids import check_keys, encode_keys
from driftwolfe.points import FactoredMatrix, checks
from driftwolfe.points.checks import sound_sparse
from driftwolfe.points.lanczos import leading_triplet

#: Rows, columns; both even, for blocks.
SHAPE = (12, 6)
LABELS = np.arange(SHAPE[0]) % 2


def table(form="csr", kind=sp.csr_array, dtype=np.float64):
    """A sparse matrix with an entry in every row and column."""
    dense = np.where(np.random.default_rng(0).random(SHAPE) < 0.6, 1.0, 0.0) + np.eye(*SHAPE)
    matrix = kind(dense.astype(dtype))
    return matrix.tobsr((3, 2)) if form == "bsr" else matrix.asformat(form)


def put(name, place, value):
    """Write a wrong number into one of its arrays."""

    def spoil(matrix):
        getattr(matrix, name)[place] = value

    return spoil


def cut(name, by=-1):
    """Make one of its arrays shorter."""

    def spoil(matrix):
        setattr(matrix, name, getattr(matrix, name)[:by])

    return spoil


def turned(matrix):
    matrix.indptr[1], matrix.indptr[2] = matrix.indptr[2], matrix.indptr[1]


def as_floats(matrix):
    matrix.indices = matrix.indices.astype(float)


def as_complex(matrix):
    matrix.data = matrix.data * 1j


def with_mask(matrix):
    matrix.data = np.ma.masked_array(matrix.data, mask=matrix.data == matrix.data[0])


BY_LINES = {
    "index too large": put("indices", 0, SHAPE[0]),
    "index negative": put("indices", -1, -1),
    "indptr falls": turned,
    "indptr starts late": put("indptr", 0, 1),
    "indptr ends too late": put("indptr", -1, 10_000),
    "indptr negative": put("indptr", 1, -3),
    "indptr too short": cut("indptr"),
    "fewer indices than numbers": cut("indices"),
    "fewer numbers than indices": cut("data"),
    "indices that are no whole numbers": as_floats,
    "complex numbers": as_complex,
    "masked numbers": with_mask,
}
BY_ENTRIES = {
    "row too large": put("row", 0, SHAPE[0]),
    "column too large": put("col", 0, SHAPE[1]),
    "row negative": put("row", 1, -1),
    "complex numbers": as_complex,
    "masked numbers": with_mask,
}
OTHERS = {
    "lil column too large": ("lil", lambda matrix: matrix.rows[0].__setitem__(0, SHAPE[1])),
    "lil rows and numbers differ": ("lil", lambda matrix: matrix.rows[0].extend([1] * 1000)),
    "dia offsets and numbers differ": ("dia", lambda matrix: cut("offsets")(matrix)),
    "dok column too large": ("dok", lambda matrix: matrix._dict.update({(0, SHAPE[1]): 1.0})),
}
BROKEN = [
    *(
        pytest.param(kind, form, spoil, id=f"{kind.__name__}-{form}-{name}")
        for kind in (sp.csr_array, sp.csr_matrix)
        for form, spoils in (
            ("csr", BY_LINES),
            ("csc", BY_LINES),
            ("bsr", BY_LINES),
            ("coo", BY_ENTRIES),
        )
        for name, spoil in spoils.items()
    ),
    *(pytest.param(sp.csr_array, form, spoil, id=name) for name, (form, spoil) in OTHERS.items()),
]


def broken(kind, form, spoil):
    matrix = table(form, kind)
    spoil(matrix)
    return matrix


CLASSIFIER = TraceNormClassifier().fit(table(), LABELS)
LOW_RANK = FactoredMatrix(np.ones((3, 1)), np.ones(1), np.ones((SHAPE[0], 1)))
#: Every place of the library that a sparse matrix may be given to.
BOUNDARIES = {
    "FactoredMatrix": lambda S: FactoredMatrix(
        np.ones((SHAPE[0], 1)), np.ones(1), np.ones((SHAPE[1], 1)), S
    ),
    "product with a FactoredMatrix": lambda S: LOW_RANK @ S,
    "MulticlassLogistic": lambda S: dw.losses.MulticlassLogistic(S, LABELS, 2),
    "LogisticLoss": lambda S: dw.losses.LogisticLoss(S, 2.0 * LABELS - 1.0),
    "HingeLoss": lambda S: dw.losses.HingeLoss(S, 2.0 * LABELS - 1.0),
    "SquaredRows": lambda S: dw.losses.SquaredRows(S, LABELS),
    "PinballRows": lambda S: dw.losses.PinballRows(S, LABELS),
    "streams.multiclass": lambda S: dw.streams.multiclass(S, LABELS, 2),
    "fit": lambda S: TraceNormClassifier().fit(S, LABELS),
    "first partial_fit": lambda S: TraceNormClassifier().partial_fit(S, LABELS, classes=[0, 1]),
    "partial_fit": lambda S: CLASSIFIER.partial_fit(S, LABELS),
    "predict": lambda S: CLASSIFIER.predict(S),
    "predict_proba": lambda S: CLASSIFIER.predict_proba(S),
    "decision_function": lambda S: CLASSIFIER.decision_function(S),
}


@pytest.mark.parametrize(("kind", "form", "spoil"), BROKEN)
def test_what_is_broken_is_refused(kind, form, spoil):
    with pytest.raises(ValueError, match=r"^X (is a broken|must hold real|has masked)"):
        sound_sparse(broken(kind, form, spoil), "X")


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize(
    ("form", "spoil"),
    [
        ("csr", BY_LINES["index negative"]),
        ("csr", BY_LINES["indptr falls"]),
        ("csc", BY_LINES["index too large"]),
        ("bsr", BY_LINES["index too large"]),
        ("coo", BY_ENTRIES["row too large"]),
        ("csr", as_complex),
        ("csr", with_mask),
    ],
)
def test_every_boundary_looks(boundary, form, spoil):
    with pytest.raises(ValueError, match=r"broken sparse|real numbers|masked"):
        BOUNDARIES[boundary](broken(sp.csr_array, form, spoil))


def test_what_cannot_take_sparse_matrices_says_so():
    for give in (
        dw.losses.LinearLoss,
        dw.losses.SquaredDistance,
        dw.L1Ball(SHAPE).lmo,
        dw.TraceNormBall(SHAPE).contains,
        dw.losses.LinearLoss(np.ones(SHAPE)).value,
        dw.losses.LinearLoss(np.ones(SHAPE)).gradient,
    ):
        with pytest.raises(ValueError, match=r"must be an array of real numbers, got csr_array"):
            give(table())


@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo", "lil", "dia", "dok"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, bool])
def test_sound_matrices_of_every_format_are_taken_as_their_dense_twins(form, dtype):
    matrix = table(form, dtype=dtype)
    dense = matrix.toarray().astype(float)
    zero = np.zeros((2, SHAPE[1]))
    given = dw.losses.MulticlassLogistic(matrix, LABELS, 2)
    expected = dw.losses.MulticlassLogistic(dense, LABELS, 2)
    np.testing.assert_allclose(given.gradient(zero), expected.gradient(zero), rtol=1e-12)
    both = FactoredMatrix(np.zeros((SHAPE[0], 0)), np.zeros(0), np.zeros((SHAPE[1], 0)), matrix)
    np.testing.assert_array_equal(both.toarray(), dense)
    np.testing.assert_allclose(LOW_RANK @ matrix, LOW_RANK.toarray() @ dense, rtol=1e-12)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_unsorted_repeated_and_stored_zero_entries_are_as_in_scipy(index):
    """And flags that say otherwise are not believed."""
    columns, starts = np.array([3, 0, 0, 5, 2, 4], dtype=index), np.array([0, 3, 6], dtype=index)
    numbers = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 0.0])
    matrix = sp.csr_array((numbers, columns, starts), shape=(2, 6))
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    expected = np.array([[6.0, 0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 16.0, 0.0, 0.0, 8.0]])
    held = FactoredMatrix(np.zeros((2, 0)), np.zeros(0), np.zeros((6, 0)), matrix)
    np.testing.assert_array_equal(held.toarray(), expected)
    # The one that was given is left alone.
    np.testing.assert_array_equal(matrix.toarray(), expected)
    np.testing.assert_array_equal(matrix.indices, [3, 0, 0, 5, 2, 4])
    rows, cols = np.repeat([0, 1], 6), np.tile(np.arange(6), 2)
    np.testing.assert_array_equal(held.entries(rows, cols).reshape(2, 6), expected)
    weights = np.arange(12.0).reshape(2, 6)
    scores = dw.losses.MulticlassLogistic(matrix, [0, 1], 2).scores(weights)
    np.testing.assert_array_equal(scores, weights @ expected.T)
    X, y = np.vstack((expected, -expected)), [0, 1, 1, 0]
    sparse = sp.vstack((matrix, -matrix), format="csr")
    sparse.has_canonical_format = True
    dense_model = TraceNormClassifier().fit(X, y)
    sparse_model = TraceNormClassifier().fit(sparse, y)
    np.testing.assert_array_equal(sparse_model.predict_proba(X), dense_model.predict_proba(X))


def test_a_matrix_that_changes_later_changes_no_point():
    """Whatever is written into its arrays, the point was checked and keeps its own."""
    matrix = table()
    expected = matrix.toarray()
    held = BOUNDARIES["FactoredMatrix"](matrix).toarray() - 1.0
    point, loss = BOUNDARIES["FactoredMatrix"](matrix), BOUNDARIES["MulticlassLogistic"](matrix)
    before = loss.gradient(np.zeros((2, SHAPE[1])))
    matrix.data[:], matrix.indices[:] = 9.0, 3
    np.testing.assert_array_equal(held, expected)
    np.testing.assert_array_equal(point.toarray() - 1.0, expected)
    np.testing.assert_array_equal(loss.gradient(np.zeros((2, SHAPE[1]))), before)


def test_an_index_far_out_of_range_is_told():
    matrix = table()
    matrix.indices[0] = 10**9
    told = r"^X is a broken sparse matrix: column indices must lie in 0\.\.5, got 1000000000$"
    with pytest.raises(ValueError, match=told):
        TraceNormClassifier().fit(matrix, LABELS)


# -- masks and ids ----------------------------------------------------------------------------------

POINT = hidden([1.0, 9e9])
#: Every place outside the estimators that numbers come in, each with a mask over some of them.
MASKED = {
    "LinearLoss": lambda: dw.losses.LinearLoss(POINT),
    "a list of masked arrays": lambda: dw.losses.LinearLoss([POINT, POINT]),
    "SquaredDistance": lambda: dw.losses.SquaredDistance(POINT),
    "value": lambda: dw.losses.LinearLoss([1.0, 1.0]).value(POINT),
    "gradient": lambda: dw.losses.SquaredDistance([1.0, 1.0]).gradient(POINT),
    "value_and_gradient": lambda: dw.losses.SquaredDistance([1.0, 1.0]).value_and_gradient(POINT),
    "FunctionLoss": lambda: dw.losses.FunctionLoss(lambda x: 0.0, lambda x: POINT).gradient(
        np.zeros(2)
    ),
    "rows of entries": lambda: dw.losses.AbsoluteEntries(hidden([0, 1]), [0, 1], [1.0, 2.0]),
    "targets": lambda: dw.losses.SquaredEntries([0, 1], [0, 1], hidden([1.0, 2.0])),
    "features": lambda: dw.losses.HingeLoss(hidden(np.ones((2, 2))), [1, -1]),
    "labels": lambda: dw.losses.MulticlassLogistic(np.ones((2, 2)), hidden([0, 1]), 2),
    "streams": lambda: dw.streams.matrix_completion(
        [0, 1], [0, 1], hidden([1.0, 2.0]), shape=(2, 2)
    ),
    "Box": lambda: dw.Box([0.0, 0.0], hidden([1.0, 1.0])),
    "ConvexHull": lambda: dw.ConvexHull(hidden(np.eye(3))),
    "edges": lambda: dw.SpanningTreePolytope(3, hidden([[0, 1], [1, 2], [0, 2]])),
    "edges of a flow": lambda: dw.FlowPolytope(hidden([[0, 1], [0, 1], [0, 1]]), 0, 1),
    "right-hand sides": lambda: dw.LinearProgram(np.eye(2), hidden([1.0, 1.0])),
    "bounds": lambda: dw.LinearProgram(bounds=hidden([[0.0, 1.0], [0.0, 1.0]])),
    "sums": lambda: dw.TransportPolytope([1.0, 1.0], hidden([1.0, 1.0])),
    "groups": lambda: dw.GroupLassoBall(3, hidden([0, 1, 1])),
    "lmo": lambda: dw.L1Ball(2).lmo(POINT),
    "project": lambda: dw.L1Ball(2).project(POINT),
    "contains": lambda: dw.L1Ball(2).contains(POINT),
    "answer of an lmo": lambda: dw.LMODomain(2, lambda g: -POINT, radius=1e10).lmo([1.0, 1.0]),
    "infeasible_projection": lambda: dw.infeasible_projection(
        dw.L1Ball(2), np.zeros(2), POINT, 0.1
    ),
    "comparators": lambda: dw.regret.path_length([np.zeros(2), POINT]),
    "FactoredMatrix": lambda: FactoredMatrix(hidden(np.ones((2, 1))), [1.0], np.ones((3, 1))),
    "from_entries": lambda: FactoredMatrix.from_entries((2, 2), hidden([0, 1]), [0, 1], [1.0, 2.0]),
    "product": lambda: FactoredMatrix.zeros((2, 2)) @ POINT,
    "leading_triplet": lambda: leading_triplet(hidden(np.eye(3))),
    "Hedge": lambda: dw.ensemble.Hedge(2, 5).update(POINT),
}


@pytest.mark.parametrize("place", MASKED)
def test_masked_entries_are_refused(place):
    with pytest.raises(ValueError, match="has masked entries; fill them in"):
        MASKED[place]()


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: encode_keys([nested(100_000)]), "tuples more than 8 deep"),
        (
            lambda: check_keys([nested(9)], "a label"),
            "a label must not hold tuples more than 8 deep",
        ),
        (lambda: check_keys([(1,) * 10_001], "a label"), "a label must hold at most 10,000 parts"),
    ],
)
def test_what_is_wrong_with_a_key_is_said(call, why):
    with pytest.raises(ValueError, match=why):
        call()


def test_masks_that_hide_nothing_and_booleans_are_numbers():
    plain = np.ma.masked_array([1.0, 2.0], mask=False)
    assert type(checks.finite_array(plain, "x")) is np.ndarray
    assert dw.losses.LinearLoss(plain).value([1.0, 1.0]) == 3.0
    assert dw.losses.LinearLoss([True, False]).value([2.0, 5.0]) == 2.0
