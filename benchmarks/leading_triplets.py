"""The leading singular pair of sparse-plus-low-rank matrices, against numpy and ARPACK.

Each ratio is measured in one run: the contestants take turns, medians are compared, BLAS has one
thread. Ends with status 1 where ours is not the fastest.
"""

import statistics
import sys
import time

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from threadpoolctl import threadpool_limits

from driftwolfe.points import FactoredMatrix, leading_triplets

REPEATS = 7


def matrix(m, n, stored, rank):
    rng = np.random.default_rng(0)
    S = sp.random(m, n, density=stored / (m * n), format="csr", random_state=rng)
    S.data -= 0.5
    U, V = (np.linalg.qr(rng.standard_normal((size, rank)))[0] for size in (m, n))
    return FactoredMatrix(U, np.linspace(1.0, 30.0, rank), V, S)


def seconds(job):
    started = time.perf_counter()
    job()
    return time.perf_counter() - started


def main():
    won = True
    print("| matrix | tolerance | ours, ms | svds / ours | full SVD / ours |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for sizes in ((943, 1682, 100_000, 100), (2000, 3000, 300_000, 50)):
        A = matrix(*sizes)
        operator = spla.LinearOperator(
            A.shape,
            matvec=lambda q, A=A: A @ q.ravel(),
            rmatvec=lambda q, A=A: A.transpose_times(q.ravel()),
        )
        dense = A.toarray()
        full = seconds(lambda dense=dense: np.linalg.svd(dense, full_matrices=False))
        exact = np.linalg.norm(dense, 2)
        for tolerance in (1e-2, 1e-4):
            ours, arpack = [], []
            for repeat in range(REPEATS + 1):
                found = []
                ours.append(
                    seconds(
                        lambda A=A, t=tolerance, f=found: f.append(
                            leading_triplets(A, tolerance=t).s[0]
                        )
                    )
                )
                start = np.random.default_rng(repeat).standard_normal(min(A.shape))
                arpack.append(
                    seconds(lambda op=operator, t=tolerance, s=start: spla.svds(op, 1, tol=t, v0=s))
                )
                assert found[0] <= exact * (1 + 1e-9)
                assert found[0] >= exact * (1 - tolerance)
            mine, theirs = (statistics.median(times[1:]) for times in (ours, arpack))
            name = f"{sizes[0]} x {sizes[1]}, {sizes[2]:,} stored, rank {sizes[3]}"
            print(
                f"| {name} | {tolerance:g} | {1e3 * mine:.1f} | "
                f"{theirs / mine:.2f} | {full / mine:.0f} |"
            )
            won = won and mine < theirs and mine < full
    return 0 if won else 1


if __name__ == "__main__":
    with threadpool_limits(1):
        sys.exit(main())
