"""Weights and windows of bounds.md, and the lower bound of lower_bound.md."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np
from check import Case, check
from plans import level


def _potential(R: np.ndarray, C: np.ndarray) -> np.ndarray:
    """AdaNormalHedge's Phi; 1 where C = 0, as R is 0 there too."""
    return np.exp(np.maximum(R, 0.0) ** 2 / (3 * np.where(C > 0, C, 1.0)))


@check("AdaNormalHedge: Phi(R+r, C+|r|) <= Phi + w r + 3|r|/(2(C+1))")
def normal_hedge() -> Iterator[Case]:
    """On a grid of states with |R| <= C <= 60 and differences |r| <= 1."""
    for C in (0.0, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0):
        R = np.linspace(-C, C, 401)[:, None] if C else np.zeros((1, 1))
        r = np.concatenate((np.linspace(-1, -0.02, 50), np.linspace(0.02, 1, 50)))[None, :]
        C1 = np.full_like(R, C)
        weight = (_potential(R + 1, C1 + 1) - _potential(R - 1, C1 + 1)) / 2
        left = _potential(R + r, C1 + np.abs(r)) - _potential(R, C1) - weight * r
        right = 1.5 * np.abs(r) / (C + 1)
        i, j = np.unravel_index((left / right).argmax(), left.shape)
        where = f"C = {C}, R = {R[i, 0]:.3g}, r = {r[0, j]:.3g}"
        yield float(left[i, j]), float(right[0, j]), where


@check("AdaNormalHedge on a cover: N_j + (3/2) A_j j <= N_j (5 + 3 ln(1 + j))/2")
def potential_on_a_cover() -> Iterator[Case]:
    """For all rounds j up to 2^14, and at powers of two and before them beyond."""
    far = (2**k - less for k in range(15, 60) for less in (0, 1))
    for j in (*range(1, 2**14), *far):
        started = sum(j >> k for k in range(j.bit_length()))
        left = started + 1.5 * j.bit_length() * j
        yield left, started * (2.5 + 1.5 * math.log1p(j)), f"j = {j}"


def _learned_range(grow: float, foe: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Ten experts that never sleep, with a range that is learned: rounds, potentials, powers of weights."""
    rng, (R, C, V), B = np.random.default_rng(foe), np.zeros((3, 10)), 0.0
    rates = 0.5 ** np.arange(1, 11)
    for t in range(1, 301):
        normal = _potential(R + 1, C + 1) - _potential(R - 1, C + 1)
        for kind, weight in enumerate((normal, rates * np.exp(V))):
            weight = weight / weight.sum() if weight.sum() > 0 else np.full(10, 0.1)
            heavy = weight >= (weight.max() if foe == 0 else np.median(weight))
            losses = grow ** (t % 100) * (heavy if foe < 2 else rng.random(10) < 0.5)
            r = weight @ losses - losses
            if kind == 0:  # one range for both: the larger of the two
                first = r
        before, B = B, max(B, np.abs(first).max(), np.abs(r).max())
        s = before / B if before > 0 else 1.0
        R, C = s * (R + first / B), s * (C + np.abs(first) / B)
        V = s * (V + np.log1p(rates * r / B))
        yield t, _potential(R, C), np.exp(V)


@check("learned range: sum Phi <= N + (3/2) N j, sum w/rate <= N, whatever the range does")
def learned_range() -> Iterator[Case]:
    """Losses of one size, that grow by a tenth, double, or fall, against foes and coins."""
    for grow, foe in product((1.0, 1.1, 2.0, 0.5), range(3)):
        for t, potentials, powers in _learned_range(grow, foe):
            where = f"grow = {grow}, foe {foe}, t = {t}"
            yield float(potentials.sum()), 10.0 + 15.0 * t, where
            yield float(powers.sum()), 10.0, where


@check("erratum 26: T/2^(s-i) <= 4 P/D, and more than 2 P/D at T = 7")
def path_bins() -> Iterator[Case]:
    """With P/D just above 2^(i-1), s = floor(log2 T)."""
    for T in range(2, 5000):
        s = T.bit_length() - 1
        for i in range(1, s + 1):
            path = 2.0 ** (i - 1)
            yield T / 2 ** (s - i), 4 * path, f"T = {T}, i = {i}"
    yield 2 * 1.01, 7 / 2 ** (2 - 1), "the paper's, the other way round: T = 7, i = 1, P = 1.01 D"


@check("erratum 27: sum of 2^(j/2), j < k, <= (17.5/3 (2^k - 1))^(1/2), not (4 2^k)^(1/2)")
def first_intervals() -> Iterator[Case]:
    """Up to k = 50; the paper's holds up to k = 5 and fails from there; and the repaired constant."""
    for k in range(1, 51):
        total = sum(2 ** (j / 2) for j in range(k))
        yield total, math.sqrt(17.5 / 3 * (2**k - 1)), f"k = {k}"
        paper = 2 * 2 ** (k / 2)
        yield *((total, paper) if k <= 5 else (paper, total)), f"k = {k}, the paper's"
    for T in (*range(3, 200), 1000, 4095, 4096):
        s = T.bit_length() - 1
        for i in range(1, s + 1):
            cuts = [2**j for j in range(s - i + 1)]
            cuts += [*range(2 * cuts[-1], T + 1, cuts[-1]), T + 1]
            left = sum(math.sqrt(3 * (b - a)) for a, b in pairwise(cuts))
            yield left, 4.2 * math.sqrt(T * (1 + 2.0 ** (i - 1))), f"T = {T}, i = {i}"


@check("Hedge: loss of the mean <= expert's + B (T/8)^(1/2) (1 + 2 ln(k + 1))")
def hedge() -> Iterator[Case]:
    """Weights written anew, against losses in {0, 1} that follow the weights or lots; B = 1."""
    for N, T, foe in product((2, 5, 12), (50, 1000), range(3)):
        rng = np.random.default_rng(foe)
        prior = np.array([1 / (i * (i + 1)) for i in range(1, N + 1)])
        totals, suffered = np.zeros(N), 0.0
        for _ in range(T):
            weights = prior * np.exp(-math.sqrt(8 / T) * (totals - totals.min()))
            weights /= weights.sum()
            heavy = np.arange(N) == weights.argmax() if foe == 0 else rng.random(N) < 0.5
            losses = np.where(np.arange(N) == N - 1, heavy * (foe < 2), heavy)
            suffered += float(weights @ losses)
            totals += losses
        for k in range(1, N + 1):
            price = math.sqrt(T / 8) * (1 + 2 * math.log(k + 1))
            yield suffered - totals[k - 1], price, f"N = {N}, T = {T}, foe {foe}, expert {k}"


def _digit_sums(q: float, top: int) -> np.ndarray:
    """S_q(A), the sum of 2^(qj) over the binary digits of A, for A below top."""
    A = np.arange(top)
    return sum(2.0 ** (q * j) * (A >> j & 1) for j in range(top.bit_length()))


@check("digits: S_q(A) <= A^q/(2^q - 1), all A up to 2^16")
def digits() -> Iterator[Case]:
    """For the powers of the three terms of a bound."""
    A = np.arange(1.0, 2**16 + 1)
    for q in (0.75, 0.5, 0.25):
        ratio = _digit_sums(q, 2**16 + 1)[1:] / (A**q / (2**q - 1))
        yield float(ratio.max()), 1.0, f"q = {q}, A = {int(ratio.argmax()) + 1}"


@check("two runs: S_q(A) + S_q(tau - A) <= 2^(1-q)/(2^q - 1) tau^q")
def two_runs() -> Iterator[Case]:
    """For all tau up to 1024 and all A, with the constants 1.745, 3.415 and 8.89."""
    for q, constant in ((0.75, 1.745), (0.5, 3.415), (0.25, 8.89)):
        sums = _digit_sums(q, 1025)
        for tau in range(1, 1025):
            left = float((sums[: tau + 1] + sums[tau::-1]).max())
            yield left, constant * tau**q, f"q = {q}, tau = {tau}"


def runs_of(first: int, last: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Cover intervals that make up a window, as two runs: lengths rise, then fall."""
    rising: list[tuple[int, int]] = []
    falling: list[tuple[int, int]] = []
    while first <= last:
        aligned, left = first & -first, last - first + 1
        length = min(aligned, 1 << (left.bit_length() - 1))
        (rising if length == aligned else falling).append((first, first + length - 1))
        first += length
    return rising, falling


@check("windows: two runs of the cover, each of distinct powers of two")
def windows() -> Iterator[Case]:
    """All windows in the first 130 rounds: pieces that fit together, no length twice in a run."""
    for first, last in ((a, b) for a in range(1, 131) for b in range(a, 131)):
        runs = runs_of(first, last)
        pieces = [piece for run in runs for piece in run]
        ends = [first - 1, *(end for _, end in pieces)]
        joined = all(start == end + 1 for (start, _), end in zip(pieces, ends, strict=False))
        aligned = all(start % (end - start + 1) == 0 for start, end in pieces)
        twice = sum(len(run) - len({end - start for start, end in run}) for run in runs)
        faults = twice + (not joined) + (not aligned) + (ends[-1] != last)
        yield float(faults), 0.0, f"rounds {first} to {last}"


def _split(first: int, last: int, longest: int) -> list[int]:
    """Lengths of cover intervals that make up a window: the longest that fits, from the left."""
    lengths = []
    while first <= last:
        length = longest
        while first % length or first + length - 1 > last:
            length //= 2
        lengths.append(length)
        first += length
    return lengths


def _longest(n: int, k: int, q: float) -> float:
    """The worst head, long intervals and tail of a window, with B_j = 2^(qj)."""
    L = 1 << k
    sums = _digit_sums(q, L) if k else np.zeros(1)
    pairs = ((a, c) for a in range(L) for c in range((n - a) % L, n - a + 1, L) if c < L)
    return max(sums[a] + sums[c] + (n - a - c) / L * L**q for a, c in pairs)


@check("windows: head, intervals of length 2^k and tail are all there is")
def long_pieces() -> Iterator[Case]:
    """All windows of up to 40 rounds in the first 100, for all k: cost at most the worst split's."""
    for q, k, n in product((0.75, 0.5), range(6), range(1, 41)):
        right = _longest(n, k, q)
        for first in range(1, 101 - n):
            left = sum(length**q for length in _split(first, first + n - 1, 1 << k))
            yield left, right, f"q = {q}, k = {k}, rounds {first} to {first + n - 1}"


@check(
    "windows with a path: 1.19 n^(3/4) p^(1/4) + 2.94 (n/p)^(3/4), (2np)^(1/2) + 4.83 (n/p)^(1/2)"
)
def window_constants() -> Iterator[Case]:
    """The closed forms for n/(2p) < 2^k <= n/p against the exact worst split."""
    for n in (*range(1, 40), 100, 127, 128, 200):
        for p in sorted({1.0, 1.3, 2.0, 5.0, n / 3, float(n)}):
            if not 1 <= p <= n:
                continue
            k = math.floor(math.log2(n / p) + 1e-12)
            where = f"n = {n}, p = {p:.3g}"
            right = 1.19 * n**0.75 * p**0.25 + 2.94 * (n / p) ** 0.75
            yield _longest(n, k, 0.75), right, where
            yield _longest(n, k, 0.5), math.sqrt(2 * n * p) + 4.83 * math.sqrt(n / p), where


@check("POLA: windows <= 4.434 (r(k+1)(k+2)/b)^(1/4) tau^(3/4) + 2.95 r^(3/4) (b tau)^(1/4)")
def budget_windows() -> Iterator[Case]:
    """The worst split of every window of up to 4096 rounds into intervals with the library's plans."""
    for b, r in product((0.3, 1.0, 10.0), (1.0, 3.0)):
        A = np.arange(4097)
        sums = sum(level(j, b, r)[0] * (A >> j & 1) for j in range(13))
        for tau in (*range(1, 200), 255, 256, 1000, 1023, 1024, 4095, 4096):
            left, k = float((sums[: tau + 1] + sums[tau::-1]).max()), tau.bit_length() - 1
            main = 4.434 * (r * (k + 1) * (k + 2) / b) ** 0.25 * tau**0.75
            right = main + 2.95 * r**0.75 * (b * tau) ** 0.25
            yield left, right, f"b = {b}, r = {r}, tau = {tau}"


def _answers(N: int, rng: np.random.Generator) -> tuple[list[int], list[float], list[float]]:
    """n_m, a_m^2 and rho_m of a game in which N calls come in random portions; R = 1."""
    e2 = 1 / (1 + math.sqrt(2 * N))
    n, squares, rho = [], [e2], [1 - e2]
    while (left := N - sum(n)) > 0:
        new = int(rng.integers(1, min(left, 1 + int(rng.integers(1, 8))) + 1))
        n.append(new)
        squares.append(new * e2**2 / (rho[-1] + new * e2))
        rho.append(rho[-1] - squares[-1])
    return n, squares, rho


def _nearest(n: list[int], squares: list[float], rho: list[float]) -> float:
    """The least of sum a_i^2 (1 - Q_i)^2 + sum (rho_i/n_i)(Q_i - Q_{i+1})^2 with the last Q = 0."""
    m = len(squares)
    matrix, right = np.diag(squares[: m - 1]), np.array(squares[: m - 1])
    for i, (new, left) in enumerate(zip(n, rho, strict=False)):
        step = np.zeros(m)
        step[i], step[i + 1] = 1.0, -1.0
        matrix = matrix + left / new * np.outer(step, step)[: m - 1, : m - 1]
    Q = np.append(np.linalg.solve(matrix, right), 0.0)
    moves = [
        left / new * (Q[i] - Q[i + 1]) ** 2
        for i, (new, left) in enumerate(zip(n, rho, strict=False))
    ]
    return float((np.array(squares) * (1 - Q) ** 2).sum() + sum(moves))


@check("lower bound: eps^2 <= F_m, solved as a linear system")
def resisting() -> Iterator[Case]:
    """The least distance to p_m of mixtures of old answers, without the recursion of the proof."""
    rng = np.random.default_rng(5)
    for N in (1, 2, 3, 5, 10, 40, 150):
        for _ in range(6):
            n, squares, rho = _answers(N, rng)
            e2 = 1 / (1 + math.sqrt(2 * N))
            yield e2, _nearest(n, squares, rho), f"N = {N}, portions {n[:8]}"


@check("lower bound: 2 N_m eps^4 <= rho_m^2")
def something_left() -> Iterator[Case]:
    """What is left of the radius, for calls in random portions and one at a time."""
    rng = np.random.default_rng(6)
    for N in (1, 2, 5, 40, 1000):
        for _ in range(6):
            n, _, rho = _answers(N, rng)
            calls_left = N - np.concatenate(([0], np.cumsum(n)))
            for m, (left, more) in enumerate(zip(rho, calls_left, strict=True), start=1):
                e4 = 1 / (1 + math.sqrt(2 * N)) ** 2
                yield 2 * more * e4, left**2 if left > 0 else 0.0, f"N = {N}, m = {m}"
