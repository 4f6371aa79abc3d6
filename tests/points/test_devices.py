"""Matrices on a device agree with dense arithmetic, and stay where they are."""

import copy
import pickle
import sys
import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

import driftwolfe as dw
from devices import DEVICES, has_gpu, needs_torch, single_threaded_torch
from driftwolfe.points import FactoredMatrix, devices
from driftwolfe.points.devices import (
    HOST,
    Device,
    best_device,
    device_named,
    device_of,
    eigh,
    is_array,
    singular_values,
    svd,
    thin_svd_of_product,
    to_host,
)
from driftwolfe.points.lanczos import leading_triplet_of_each, orthonormal, ritz_space
from points.factored_cases import close, lives_on, parts

RUNS_ON = DEVICES


@pytest.fixture
def torch():
    single_threaded_torch()
    return pytest.importorskip("torch")


def test_entries_are_gathered_in_pieces(place, monkeypatch):
    module = sys.modules[type(device_named(place)).__module__]
    monkeypatch.setattr(module, "_CHUNK", 7)
    H, dense = parts((9, 7), rank=3)
    rows, cols = np.indices((9, 7)).reshape(2, -1)
    close(H.to(place).entries(rows, cols), dense.ravel(), 10)


def test_tensors_that_autograd_follows_and_of_other_precision(device, torch):
    U = torch.ones((3, 1), device=device.place, requires_grad=True)
    A = FactoredMatrix(U, [2.0], torch.nn.Parameter(torch.ones((2, 1))))
    assert not A.U.requires_grad and A.U.dtype == torch.float64
    close(A, np.full((3, 2), 2.0))
    whole = FactoredMatrix(torch.ones((3, 1), dtype=torch.int32), [2.0], [[1.0], [1.0]])
    close(whole, np.full((3, 2), 2.0))
    half = torch.ones(1, dtype=torch.float16, device=device.place)
    close(FactoredMatrix.from_entries((1, 1), [0], [0], half), [[1.0]])


@needs_torch
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t: FactoredMatrix(t([[True]]), [1.0], [[1.0]]), "U must be a dense tensor of real"),
        (
            lambda t: FactoredMatrix(t([[1.0]]).to_sparse(), [1.0], [[1.0]]),
            "U must be a dense tensor",
        ),
        (lambda t: FactoredMatrix(t([[1.0]], device="meta"), [1.0], [[1.0]]), "'meta'"),
    ],
)
def test_bad_tensors_are_refused(torch, make, message):
    with pytest.raises(ValueError, match=message):
        make(torch.tensor)


# -- sparse matrices of tensors -----------------------------------------------------------------


def stored_pair(device, shape=(8, 6), count=20, seed=0):
    """Entries with twins, as a `TorchStored` and as scipy has them."""
    rng = np.random.default_rng(seed)
    rows, cols = rng.integers(0, shape[0], count), rng.integers(0, shape[1], count)
    values = rng.standard_normal(count)
    expected = sp.csr_array(sp.coo_array((values, (rows, cols)), shape=shape))
    expected.sum_duplicates()
    return device.stored(device.put(rows), device.put(cols), device.put(values), shape), expected


def same_stored(actual, expected):
    """The same places, in the same order, with the same values."""
    found = actual.on_host()
    found.check_format()
    assert found.has_canonical_format and found.shape == expected.shape
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.data, expected.data, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(to_host(actual.toarray()), expected.toarray(), atol=1e-13)


def test_columns_are_of_unit_length_each_by_itself(device):
    """Also where they differ by 10^8, and a column of zeros stays."""
    block = np.random.default_rng(0).standard_normal((9, 4)) * [1.0, 1e-8, 1e8, 0.0]
    unit = to_host(device.unit_columns(device.put(block)))
    np.testing.assert_allclose(np.linalg.norm(unit, axis=0), [1.0, 1.0, 1.0, 0.0], atol=1e-13)


SIZES = [((8, 6), 20), ((8, 6), 0), ((1, 1), 3), ((3, 40), 5), ((40, 3), 90)]


@pytest.mark.parametrize(("shape", "count"), SIZES)
def test_stored_entries_are_as_scipy_has_them(device, shape, count):
    stored, expected = stored_pair(device, shape, count)
    same_stored(stored, expected)
    assert stored.nnz == expected.nnz
    same_stored(stored.T, expected.T.tocsr())
    same_stored(stored.T.T, expected)
    same_stored(stored.copy(), expected)
    places = np.repeat(np.arange(shape[0]), np.diff(expected.indptr)) * shape[1] + expected.indices
    np.testing.assert_array_equal(to_host(device.keys(stored)), places)
    np.testing.assert_array_equal(to_host(device.keys(stored.copy())), places)
    block = np.random.default_rng(1).standard_normal((shape[1], 2))
    close(stored @ device.put(block), expected @ block, 10)
    close(stored.T @ (stored @ device.put(block)), expected.T @ (expected @ block), 100)
    largest, length = stored.measures
    assert np.abs(expected.data).max(initial=0.0) <= largest * (1 + 1e-12)
    assert largest <= length * (1 + 1e-12)
    assert length == pytest.approx(np.linalg.norm(expected.data))


@pytest.mark.parametrize(("shape", "count"), SIZES)
def test_stored_matrices_are_added_and_multiplied(device, shape, count):
    (one, dense_one), (two, dense_two) = (stored_pair(device, shape, count, k) for k in (0, 1))
    total = one.plus(two)
    close(total.toarray(), (dense_one + dense_two).toarray())
    places = set(zip(*dense_one.nonzero(), strict=True)) | set(
        zip(*dense_two.nonzero(), strict=True)
    )
    assert total.nnz == len(places)
    product = device.stored_product
    assert product(one, two) == pytest.approx(dense_one.multiply(dense_two).sum())
    assert product(one, one) == pytest.approx(np.vdot(dense_one.data, dense_one.data))
    found = device.stored_at(one, device.put(np.arange(shape[0] * shape[1])))
    np.testing.assert_allclose(to_host(found), dense_one.toarray().ravel())


def test_other_values_at_the_same_places_keep_no_old_answers(device):
    """Whether what follows from the places was asked for before, or what follows from the values."""
    for asked in (False, True):
        stored, expected = stored_pair(device)
        if asked:
            _ = stored._keys, stored.T, stored._product, stored.measures, stored.T.T
        data = np.random.default_rng(4).standard_normal(expected.nnz)
        other = expected.copy()
        other.data = data
        for made, wanted in (
            (stored.with_data(device.put(data)), other),
            (stored.scaled(-2.5), -2.5 * expected),
            (stored.scaled(-2.5).with_data(device.put(data)).scaled(2.0), 2.0 * other),
            (stored.T.with_data(stored.T.data).T, expected),
            (stored.scaled(0.0), 0.0 * expected),
        ):
            same_stored(made, wanted)
            same_stored(made.T, wanted.T.tocsr())
            block = np.random.default_rng(5).standard_normal((6, 2))
            close(made @ device.put(block), wanted @ block, 10)
            close(made.T @ (made @ device.put(block)), wanted.T @ (wanted @ block), 100)
            assert np.abs(wanted.data).max() <= made.measures[0] * (1 + 1e-12)
            assert made.measures[1] == pytest.approx(np.linalg.norm(wanted.data))
        same_stored(stored, expected)
        same_stored(copy.deepcopy(stored), expected)


def test_matrices_along_a_diagonal(device):
    """As several are multiplied in one call; one may have no entries."""
    pairs = [stored_pair(device, seed=seed) for seed in range(3)]
    one, two, empty = pairs[0], pairs[1], sp.csr_array((8, 6))
    block = np.random.default_rng(1).standard_normal
    for held, expected in (
        ([one[0]], [one[1]]),
        ([one[0], None, two[0]], [one[1], empty, two[1]]),
        ([None, one[0], one[0].scaled(2.0)], [empty, one[1], 2.0 * one[1]]),
    ):
        found = type(one[0]).diagonal(held, (8, 6))
        whole = sp.block_diag(expected, format="csr")
        right, left = block(whole.shape[1]), block(whole.shape[0])
        close(found @ device.put(right), whole @ right, 10)
        close(found.T @ device.put(left), whole.T @ left, 10)
    assert type(one[0]).diagonal([None, None], (8, 6)) is None


@pytest.mark.parametrize("repeated", [False, True])
def test_matrices_of_entries_that_share_calls(device, repeated):
    """As each by itself, whether or not an entry is given twice; their diagonal is at hand."""
    rng, shape = np.random.default_rng(2), (8, 6)
    entries, expected, factors = [], [], (-0.5, 2.0, 3.0)
    for parts_of, factor in zip((2, 1, 3), factors, strict=True):
        keys = [
            rng.choice(16, 5, replace=False) + 16 * (0 if repeated else k) for k in range(parts_of)
        ]
        values = [rng.standard_normal(5) for _ in keys]
        places = [key // 6 for key in keys], [key % 6 for key in keys]
        entries.append(tuple([device.put(part) for part in each] for each in (*places, values)))
        joined = np.concatenate(values), tuple(map(np.concatenate, places))
        expected.append(sp.csr_array(sp.coo_array(joined, shape=shape)) * factor)
    found = device.stored_of_each(entries, factors, shape)
    for made, wanted in zip(found, expected, strict=True):
        same_stored(made, wanted)
        same_stored(made.T, wanted.T.tocsr())
        same_stored(made.scaled(2.0).T, 2.0 * wanted.T.tocsr())
    whole = type(found[0]).diagonal(found, shape)
    assert whole is type(found[0]).diagonal(found, shape)
    np.testing.assert_allclose(
        to_host(whole.toarray()), sp.block_diag(expected).toarray(), atol=1e-12
    )
    fewer = type(found[0]).diagonal(found[:2], shape)
    np.testing.assert_allclose(
        to_host(fewer.toarray()), sp.block_diag(expected[:2]).toarray(), atol=1e-12
    )


def test_places_beyond_32_bits_are_told_apart(device):
    """Row * columns + column, which is what places are sorted by, has 40 bits here."""
    shape = (1 << 20, 1 << 20)
    rows, cols = np.array([0, 4096, 4096, shape[0] - 1]), np.array([5, 5, 6, shape[1] - 1])
    stored = device.stored(*map(device.put, (rows, cols, np.arange(1.0, 5.0))), shape)
    assert stored.nnz == 4
    for made, places in ((stored, rows * shape[1] + cols), (stored.T, cols * shape[0] + rows)):
        assert to_host(device.stored_at(made, device.put(places))).tolist() == [1, 2, 3, 4]


def test_no_warning_is_heard(place):
    """PyTorch warns of its sparse matrices once; filters do not matter, nor when that is."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        A = parts()[0].to(place)
        _ = A.T @ (A @ np.ones(7))


# -- singular vectors ---------------------------------------------------------------------------


def test_bases_of_blocks_that_are_nearly_dependent(device):
    rng = np.random.default_rng(6)
    for gap in (1.0, 1e-4, 1e-7, 1e-12, 0.0):
        block = rng.standard_normal((40, 5))
        block[:, 4] = block[:, :4].sum(axis=1) + gap * block[:, 4]
        basis = to_host(orthonormal(device.put(block)))
        np.testing.assert_allclose(basis.T @ basis, np.eye(5), atol=1e-10)
        np.testing.assert_allclose(basis @ (basis.T @ block), block, atol=1e-9)
    for zero in (np.zeros((40, 3)), block * [1.0, 0.0, 1.0, 1.0, 1e-200]):
        basis = to_host(orthonormal(device.put(zero)))
        np.testing.assert_allclose(basis.T @ basis, np.eye(zero.shape[1]), atol=1e-10)


@pytest.mark.parametrize("powers", [0, 2])
def test_ritz_spaces(place, device, powers):
    H, dense = parts((50, 40), rank=4, stored=30)
    right = np.random.default_rng(7).standard_normal((40, 12))
    for operator in (H.to(place), device.put(dense)):
        space = ritz_space(operator, device.put(right), powers)
        basis = to_host(space.basis)
        np.testing.assert_allclose(basis.T @ basis, np.eye(12), atol=1e-10)
        close(space.image, dense.T @ basis, 100)
        expected = np.linalg.svd(dense.T @ basis, compute_uv=False)
        np.testing.assert_allclose(space.s, expected, rtol=1e-7, atol=1e-6)
        for count in (0, 3, 12):
            U, V = map(to_host, space.leading(count))
            np.testing.assert_allclose(V.T @ V, np.eye(count), atol=1e-6)
            np.testing.assert_allclose(U.T @ dense, space.s[:count, None] * V.T, atol=1e-6)
    if not powers:
        image = dense @ right
        np.testing.assert_allclose(basis @ (basis.T @ image), image, atol=1e-9)


def test_random_numbers_repeat_and_are_the_hosts_where_few(device):
    def drawn(seed, shape):
        return to_host(device.normal(np.random.default_rng(seed), shape))

    few = np.random.default_rng(8).standard_normal((100, 3))
    np.testing.assert_array_equal(drawn(8, (100, 3)), few)
    many = drawn(8, (1 << 15, 2))
    np.testing.assert_array_equal(drawn(8, (1 << 15, 2)), many)
    assert many.shape == (1 << 15, 2) and not np.array_equal(drawn(9, (1 << 15, 2)), many)
    assert abs(many.mean()) < 0.03 and abs(many.std() - 1.0) < 0.03
    rng = np.random.default_rng(8)
    first, second = (to_host(device.normal(rng, (1 << 15, 2))) for _ in range(2))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("size", [1, 20, 160, 161, 200])
def test_eigenvalues_on_both_sides_of_the_way_to_the_host(device, size):
    half = np.random.default_rng(10).standard_normal((size, size))
    symmetric = half + half.T
    values, vectors = device.eigh(device.put(symmetric))
    assert isinstance(values, np.ndarray) and device_of(vectors) is device
    np.testing.assert_allclose(values, np.linalg.eigvalsh(symmetric)[::-1], atol=1e-10 * size)
    close(vectors.T @ vectors, np.eye(size), 100)
    np.testing.assert_allclose(
        symmetric @ to_host(vectors), to_host(vectors) * values, atol=1e-10 * size
    )


def test_small_decompositions(device):
    tall = np.random.default_rng(11).standard_normal((30, 6)) * [1e6, 1e3, 1, 1e-3, 1e-6, 0]
    U, s, V = thin_svd_of_product(device.put(tall), np.ones(6), device.unit(6))
    np.testing.assert_allclose(s, np.linalg.svd(tall, compute_uv=False), rtol=1e-12, atol=1e-9)
    close(U.T @ U, np.eye(6), 100)
    np.testing.assert_allclose((to_host(U) * s) @ to_host(V).T, tall, atol=1e-8)
    gram = tall.T @ tall + np.eye(6)
    inverse = to_host(device.inverse_cholesky(device.put(gram)))
    np.testing.assert_allclose(inverse.T @ gram @ inverse, np.eye(6), atol=1e-8)


# -- names --------------------------------------------------------------------------------------


def balls(device, **options):
    return dw.TraceNormBall((4, 3), device=device, **options)


@pytest.mark.parametrize(
    "name",
    ["gpu", "cuda:x", "cuda:", "cuda:-1", "CUDA", "meta", "mps", "", 3, True, ["cuda"], b"cpu"],
)
def test_names_of_no_device_are_refused(name):
    for use in (device_named, balls, FactoredMatrix.zeros((2, 2)).to):
        with pytest.raises(ValueError, match='device must be "cpu", "cuda", "cuda:1" or the like'):
            use(name)


@needs_torch
@pytest.mark.parametrize("name", ["cuda", "cuda:0", "cuda:1", "cuda:99"])
def test_a_gpu_that_is_not_here_is_refused_with_what_is(name):
    if has_gpu() and name != "cuda:99":
        pytest.skip("it may be here")
    for use in (device_named, balls):
        with pytest.raises(ValueError, match=r'cannot be used here \(.*\); use "cpu", or "cuda"'):
            use(name)


@pytest.mark.parametrize("name", ["torch", "cuda"])
def test_without_pytorch_the_extra_is_named(name, monkeypatch):
    for module in [
        each for each in sys.modules if each.startswith(f"{devices.__package__}.torch_")
    ]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "torch", None)
    devices._torch_device.cache_clear()
    try:
        for use in (device_named, balls):
            with pytest.raises(ValueError, match=r'pip install "driftwolfe\[gpu\]".*device="cpu"'):
                use(name)
        assert best_device() is HOST
        assert dw.TraceNormBall((6000, 6000), device="auto").device is HOST
    finally:
        devices._torch_device.cache_clear()


def test_a_device_is_chosen_where_it_pays(monkeypatch):
    large, small = (6000, 6000), (50, 40)
    expected = "cuda" if has_gpu() else "cpu"
    assert best_device().name == expected
    assert dw.TraceNormBall(large, device="auto").device.name == expected
    assert dw.TraceNormBall(small, device="auto").device is HOST
    assert dw.TraceNormBall(large, representation="dense", device="auto").device is HOST
    monkeypatch.setattr(devices, "best_device", lambda: "the best")
    assert dw.TraceNormBall(large, device="auto").device == "the best"
    assert dw.TraceNormBall(small, representation="factored", device="auto").device is HOST


def test_points_on_a_device_are_factored(place):
    with pytest.raises(
        ValueError, match=r'is for factored points; leave representation="dense" out'
    ):
        balls(place, representation="dense")
    for representation in ("auto", "factored"):
        origin = balls(place, representation=representation).origin()
        assert lives_on(origin, place) and origin.shape == (4, 3)
    assert isinstance(balls("cpu").origin(), np.ndarray)
    assert balls(place).device is device_named(place)
    assert dw.count_calls(balls(place)).device is device_named(place)
    product = dw.ProductDomain([dw.L1Ball(3), balls(place)])
    assert product.device is device_named(place)


def test_a_set_brings_points_to_its_device(place, device):
    ball, (H, dense) = balls(place, radius=2.0), parts((4, 3))
    for point in (H, H.to(place)):
        for answer in (ball.lmo(point), ball.project(point), ball.gauge_subgradient(point)):
            assert lives_on(answer, place)
        assert ball.gauge(point) == pytest.approx(np.linalg.svd(dense)[1].sum() / 2.0)
    U, _, Vt = np.linalg.svd(dense)
    expected = -2.0 * np.outer(U[:, 0], Vt[0])
    np.testing.assert_allclose(to_host(ball.lmo(H).toarray()), expected, atol=1e-7)
    for there in (np.asarray, device.put):
        np.testing.assert_allclose(to_host(ball.lmo(there(dense))), expected, atol=1e-7)


@needs_torch
def test_one_object_for_each_device():
    place = device_named("torch")
    assert device_named("torch") is copy.deepcopy(place) is pickle.loads(pickle.dumps(place))
    assert device_named("cpu") is device_named(None) is copy.deepcopy(HOST) is HOST
    assert device_of(place.put(np.ones(2))) is place and device_of([1.0]) is HOST
    assert is_array(place.put(np.ones(2))) and not is_array([1.0])
    assert to_host("text") == "text"


def test_inner_products_of_many_columns_are_taken_in_pieces(device, monkeypatch):
    rng = np.random.default_rng(0)
    U, V, s = rng.standard_normal((20, 7)), rng.standard_normal((30, 7)), rng.random(7)
    rows, cols, values = rng.integers(20, size=90), rng.integers(30, size=90), rng.random(90)
    stored = device.stored(device.put(rows), device.put(cols), device.put(values), (20, 30))
    expected = ((U * s) @ V.T)[rows, cols] @ values
    for numbers in (1, 60, 1000):  # one column at a time, three, all
        monkeypatch.setattr(devices, "_LARGEST_PRODUCT", numbers)
        found = Device.stored_inner(device, stored, *map(device.put, (U, s, V)))
        assert found == pytest.approx(expected)


def on_torch(ranks, shape=(90, 70)):
    """Matrices of these ranks and 900 entries."""
    return [parts(shape, rank, 900, seed)[0].to("torch") for seed, rank in enumerate(ranks)]


@needs_torch
def test_krylov_bases_that_grow_find_the_same(monkeypatch):
    from driftwolfe.points import torch_device

    matrices, found = on_torch((2, 2)), {}
    for room in (2, 1000):
        monkeypatch.setattr(torch_device, "_FIRST_STEPS", room)
        found[room] = leading_triplet_of_each(matrices, [1e-9, 1e-3])
    for few, many, matrix in zip(found[2], found[1000], matrices, strict=True):
        top = np.linalg.svd(to_host(matrix.toarray()), compute_uv=False)[0]
        assert few.s == pytest.approx(many.s, rel=1e-12)
        assert abs(few.s - top) <= few.error + 1e-9 * top
        assert few.products == many.products


@needs_torch
@pytest.mark.parametrize("tolerance", [1e-9, 0.1])  # one start, and several
def test_matrices_of_many_columns_share_calls_as_arrays(monkeypatch, tolerance):
    from driftwolfe.points import torch_device

    directions, shape = on_torch((3, 12, 5)), (90, 70)
    ball, tolerances = dw.TraceNormBall(shape, device="torch"), [tolerance] * 3
    apart = [ball.lmo_with_error(each, tolerance) for each in directions]
    side_by_side = leading_triplet_of_each(directions, tolerances)
    for name in ("_TOGETHER", "_FEW_TOGETHER"):
        monkeypatch.setattr(torch_device, name, 20)  # of 36 columns
    made = []
    monkeypatch.setattr(torch_device, "_FactoredStack", made.append)
    assert ball.device.shares_calls([3, 12, 5], shape)
    assert not ball.device.shares_calls([3, 8, 5], shape)  # factors are far smaller
    for one, other in zip(
        side_by_side, leading_triplet_of_each(directions, tolerances), strict=True
    ):
        assert abs(other.s - one.s) <= one.error + other.error + 1e-12 * one.s
    for (_, error), direction, (vertex, found) in zip(
        apart, directions, ball.lmo_many_with_error(directions, tolerances), strict=True
    ):
        dense = to_host(direction.toarray())
        top, value = np.linalg.norm(dense, 2), -(to_host(vertex.toarray()) * dense).sum()
        assert top - max(found, 1e-7 * top) <= value <= top * (1 + 1e-12)
        assert found <= max(3 * error, tolerance * top)
    assert made == []  # none of them had its factors laid side by side
    monkeypatch.setattr(torch_device, "_DENSE_TOGETHER", 100)
    assert not ball.device.shares_calls([3, 12, 5], shape)  # too large to be made dense


@needs_torch
def test_a_decomposition_that_fails_on_a_device_is_made_on_the_host(monkeypatch):
    """As cuSOLVER's did on a Gram matrix of MovieLens."""
    import torch

    def fails(matrix):
        raise torch.linalg.LinAlgError("did not converge")

    stack = np.array([np.diag([1.0, 3.0]), [[0.0, 1.0], [1.0, 0.0]]])
    device = device_named("torch")
    monkeypatch.setattr(torch.linalg, "eigh", fails)
    values, vectors = device.decomposed(device.put(stack))
    np.testing.assert_allclose(to_host(values), [[1.0, 3.0], [-1.0, 1.0]])
    rebuilt = (vectors * values[:, None, :]) @ vectors.mT
    np.testing.assert_allclose(to_host(rebuilt), stack, atol=1e-12)


# -- where LAPACK's quickest routine gives up ----------------------------------------------------


@pytest.fixture
def failing(monkeypatch):
    """LAPACK as it sometimes is."""

    def fail(*args, **options):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "svd", fail)
    monkeypatch.setattr(np.linalg, "eigh", fail)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (3, 5, 4)])
def test_a_second_way_to_singular_values(failing, shape, scale):
    A = scale * np.random.default_rng(0).standard_normal(shape)
    U, s, Vt = svd(A)
    np.testing.assert_allclose((U * s[..., None, :]) @ Vt, A, rtol=0, atol=1e-13 * scale)
    gram = np.swapaxes(U, -1, -2) @ U
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(4), gram.shape)[..., :, :], atol=1e-13)
    assert (np.diff(s) <= 0).all()


def test_a_second_way_to_values_alone_and_to_eigenvectors(failing):
    A = np.random.default_rng(1).standard_normal((6, 6))
    squares = scipy.linalg.eigvalsh(A.T @ A)[::-1]
    np.testing.assert_allclose(singular_values(A), np.sqrt(squares), rtol=1e-9)
    values, vectors = eigh(A + A.T)
    np.testing.assert_allclose((A + A.T) @ vectors, vectors * values, atol=1e-12)
    assert (np.diff(values) >= 0).all()


def test_points_and_sets_take_it(failing):
    rng = np.random.default_rng(2)
    A = FactoredMatrix(rng.standard_normal((9, 3)), np.ones(3), rng.standard_normal((8, 3)))
    np.testing.assert_allclose(A.recompress().toarray(), A.toarray(), atol=1e-13)
    ball = dw.TraceNormBall((9, 8), 2.0)
    projected = ball.project(A.toarray())
    assert scipy.linalg.svdvals(projected).sum() == pytest.approx(2.0, rel=1e-12)
    np.testing.assert_allclose(ball.project_many(A.toarray()[None])[0], projected, atol=1e-13)
    np.testing.assert_allclose(ball.project(A).toarray(), projected, atol=1e-12)
