"""PyNOL's models and ours on the same streams: `python -m benchmarks.pynol`.

PyNOL is on the package index as pynol-xzp, which also needs autograd and multiprocess:
`pip install pynol-xzp autograd multiprocess`. Both sides get the same losses with the same gradients, T and
G, and start at the centre: PyNOL as plain functions of NumPy, ours as losses of this library. PyNOL's simplex
rescales instead of projecting, so its models get a simplex of theirs with our projection. Time is that of the
processor. Ours is "no worse" where the mean of the differences of regret is at most its standard error over
seeds, or 2 % of PyNOL's regret.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import driftwolfe as dw
from driftwolfe.losses import AbsoluteRows, LinearLoss, Loss, PortfolioLoss, SquaredRows
from driftwolfe.terminal import table

N, FEW = 5, 40  # numbers in a point; rounds for PyNOL's FTPL, whose rounds take longer and longer
Ours = Callable[[dw.Domain, int, float], dw.Learner]


class Stream(NamedTuple):
    """Losses on a set, comparators, and what both sides are told."""

    name: str
    domain: dw.Domain
    losses: list[Loss]
    comparators: NDArray[np.float64]
    lipschitz: float


def streams(rounds: int, seed: int) -> Iterator[Stream]:
    """Ball and simplex; abrupt and gradual; linear, absolute, squared and logarithmic losses."""
    rng = np.random.default_rng(seed)
    for domain in (dw.L2Ball(N), dw.Simplex(N)):
        place = "ball" if isinstance(domain, dw.L2Ball) else "simplex"
        for drift in ("abrupt", "gradual"):
            truth = path(domain, rounds, drift, rng)
            rows = rng.standard_normal((rounds, N))
            rows *= rng.random((rounds, 1)) / np.linalg.norm(rows, axis=1)[:, None]
            told = (rows * truth).sum(axis=1)
            noise = 0.05 * rng.standard_normal(rounds)
            name = f"{place}, {drift}"
            halved = np.sqrt(0.5) * rows, np.sqrt(0.5) * (told + noise)  # f is half a square
            square = [SquaredRows(r[None], [b]) for r, b in zip(*halved, strict=True)]
            yield Stream(f"squares, {name}", domain, square, truth, 2.0)
            absolute = [AbsoluteRows(r[None], [b]) for r, b in zip(rows, told, strict=True)]
            yield Stream(f"absolute, {name}", domain, absolute, truth, 1.0)
            slopes = -truth + 0.5 * rng.standard_normal((rounds, N)) / np.sqrt(N)
            slopes /= np.maximum(1.0, np.linalg.norm(slopes, axis=1))[:, None]
            best = np.array([domain.lmo(-u) for u in truth])
            linear: list[Loss] = [LinearLoss(g) for g in slopes]
            yield Stream(f"linear, {name}", domain, linear, best, 1.0)
            if place == "simplex":
                returns = 1.0 + 0.5 * truth + 0.2 * rng.uniform(-1.0, 1.0, (rounds, N))
                funds: list[Loss] = [PortfolioLoss(r) for r in returns]
                G = float((np.linalg.norm(returns, axis=1) / returns.min(axis=1)).max())
                yield Stream(f"portfolio, {name}", domain, funds, best, G)


def path(domain: dw.Domain, rounds: int, drift: str, rng: Any) -> NDArray[np.float64]:
    """Comparators: five points in turn, or a way between them and back."""
    points = np.array([0.7 * domain.lmo(rng.standard_normal(N)) for _ in range(5)])
    points += 0.3 * domain.origin()
    t = np.arange(rounds) * 5 / rounds
    if drift == "abrupt":
        return points[t.astype(int)]
    here, share = t.astype(int), (t % 1.0)[:, None]
    return (1.0 - share) * points[here] + share * points[(here + 1) % 5]


def functions(loss: Any) -> tuple[Any, Any]:
    """Return the value and gradient of a loss as a user of PyNOL would write them."""
    if isinstance(loss, LinearLoss):
        g = loss.g
        return lambda x: g @ x, lambda x: g
    if isinstance(loss, PortfolioLoss):
        r = loss.returns[0]
        return lambda x: -np.log(r @ x), lambda x: -r / (r @ x)
    row, wanted = loss.features[0], float(loss.targets[0])
    if isinstance(loss, SquaredRows):
        return lambda x: (x @ row - wanted) ** 2, lambda x: 2.0 * (x @ row - wanted) * row
    return lambda x: abs(x @ row - wanted), lambda x: np.sign(x @ row - wanted) * row


#: PyNOL's models, and what takes their place.
PAIRS: dict[str, Ours] = {
    "Ader": lambda K, T, G: dw.Ader(K, T, G, tuning="certified"),
    "Ader, surrogate": lambda K, T, G: dw.Ader(K, T, G, feedback="linear"),
    "Ader_1p": lambda K, T, G: dw.learners.OneProjectionAder(K, T, G),
    "SwordVariation": lambda K, T, G: dw.contrib.Sword(K, T, G, gradients="own"),
    "SwordSmallLoss": lambda K, T, G: dw.contrib.Sword(K, T, G, gradients="own"),
    "SwordBest": lambda K, T, G: dw.contrib.Sword(K, T, G, gradients="own"),
    "SwordPP": lambda K, T, G: dw.contrib.Sword(K, T, G),
    "Scream": lambda K, T, G: dw.contrib.Scream(K, T, G, switching=0.1),
    "SAOL": lambda K, T, G: dw.learners.SAOL(K, T, G),
    "SACS": lambda K, T, G: dw.contrib.SACS(K, T, G),
    "PSACS": lambda K, T, G: dw.contrib.SACS(K, T, G),
    "AFLH": lambda K, T, G: dw.contrib.SACS(
        K, T, G
    ),  # PyNOL's is for convex losses, ours for exp-concave ones
    "EAPAR": lambda K, T, G: dw.contrib.SACS(K, T, G, projections="one"),
    "FTPLD": lambda K, T, G: dw.POLD(K, T, G),
    "FTPLA": lambda K, T, G: dw.POLA(K, T, G),
}


def theirs(name: str, stream: Stream) -> Any:
    """Return PyNOL's model."""
    from pynol.learner.models import adaptive, dynamic

    K, T, G = pynol_set(stream.domain), len(stream.losses), stream.lipschitz
    given: dict[str, Any] = {"domain": K, "T": T, "prior": stream.domain.origin(), "seed": 0}
    cls = name.partition(",")[0]
    if cls in ("Ader", "Ader_1p", "EAPAR", "FTPLD", "Scream") or cls.startswith("Sword"):
        given["G"] = G
    if cls == "Ader":
        given["surrogate"] = name == "Ader, surrogate"
    if cls.startswith("Sword"):
        given["L_smooth"] = 1.0
    if cls == "Scream":
        given["penalty"] = 0.1
    return getattr(dynamic if hasattr(dynamic, cls) else adaptive, cls)(**given)


def pynol_set(domain: dw.Domain) -> Any:
    """Return the set as PyNOL has it."""
    from pynol.environment.domain import Ball, Simplex

    if isinstance(domain, dw.L2Ball):
        return Ball(dimension=N, radius=domain.radius)

    class Projected(Simplex):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(dimension=N)
            self.R = self.r = domain.radius

        def project(self, x: Any) -> Any:
            return domain.project(x)

    return Projected()


class Result(NamedTuple):
    """Dynamic regret, with what moving cost where it costs, and microseconds per round."""

    regret: float
    micros: float


def measured(name: str, stream: Stream, side: str) -> Result:
    """Play one side of a pair."""
    losses = stream.losses[: FEW if name.startswith("FTPL") else None]
    stream = stream._replace(losses=losses)
    play = _play_ours if side == "ours" else _play_theirs
    started = time.process_time()
    points = play(name, stream)
    seconds = time.process_time() - started
    pairs = zip(losses, points, stream.comparators, strict=False)
    regret = sum(float(f.value(x)) - float(f.value(u)) for f, x, u in pairs)
    if name == "Scream":
        moves = np.linalg.norm(np.diff(points, axis=0), axis=1)
        regret += 0.1 * float(moves.sum())
    return Result(regret, 1e6 * seconds / len(losses))


def _play_ours(name: str, stream: Stream) -> NDArray[np.float64]:
    learner = PAIRS[name](stream.domain, len(stream.losses), stream.lipschitz)
    points = []
    for loss in stream.losses:
        points.append(learner.decision)
        learner.update(loss)
    return np.array(points)


def _play_theirs(name: str, stream: Stream) -> NDArray[np.float64]:
    from pynol.environment.environment import Environment

    model, points = theirs(name, stream), []
    for loss in stream.losses:
        value, gradient = functions(loss)
        given = (
            {"func": value} if name.startswith("FTPL") else {"func": value, "grad_func": gradient}
        )
        points.append(np.array(model.opt(Environment(**given))[0]))
    return np.array(points)


def main() -> None:
    """Print a table for each stream."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(PAIRS), help="PyNOL's names")
    told = parser.parse_args()
    if find_spec("pynol") is None or find_spec("autograd") is None:
        print("PyNOL is not installed: pip install pynol-xzp autograd multiprocess")
        return
    played: dict[tuple[str, str], list[tuple[Result, Result]]] = {}
    for seed in range(told.seeds):
        for stream in streams(told.rounds, seed):
            for name in told.only:
                if name.startswith("FTPL") and not stream.name.startswith("squares, ball"):
                    continue
                pair = measured(name, stream, "theirs"), measured(name, stream, "ours")
                played.setdefault((name, stream.name), []).append(pair)
    games = [compared(*key, np.array(pairs)) for key, pairs in played.items()]
    rows = [game.row() for name in told.only for game in games if game.name == name]
    print(*table(HEADS, rows), sep="\n")
    print()
    totals = [summary(name, [game for game in games if game.name == name]) for name in told.only]
    print(*table(TOTALS, totals), sep="\n")


HEADS = [
    "PyNOL's model: stream",
    "regret",
    "ours",
    "more",
    "+-",
    "no worse",
    "us per round",
    "ours",
]
TOTALS = ["PyNOL's model", "no worse", "regret, ratio", "time, ratio", "least", "most"]


class Game(NamedTuple):
    """A model of PyNOL's and ours on a stream: means over seeds, of PyNOL's first."""

    name: str
    stream: str
    regret: NDArray[np.float64]
    micros: NDArray[np.float64]
    more: float  # regret of ours than PyNOL's
    error: float  # standard error of that

    @property
    def no_worse(self) -> bool:
        return self.more <= max(self.error, 0.02 * abs(float(self.regret[0])))

    def row(self) -> list[str]:
        regret = (f"{each:.2f}" for each in (*self.regret, self.more, self.error))
        times = (f"{each:.0f}" for each in self.micros)
        return [f"{self.name}: {self.stream}", *regret, "yes" if self.no_worse else "no", *times]


def compared(name: str, stream: str, pairs: NDArray[np.float64]) -> Game:
    """Return the means of a pair's games, given as seeds x sides x (regret, microseconds)."""
    regret, micros = pairs[:, :, 0], pairs[:, :, 1]
    more = regret[:, 1] - regret[:, 0]
    error = float(more.std(ddof=1) / np.sqrt(more.size)) if more.size > 1 else 0.0
    medians = np.median(micros, axis=0)  # a busy machine has outliers
    return Game(name, stream, regret.mean(axis=0), medians, float(more.mean()), error)


def summary(name: str, games: list[Game]) -> list[str]:
    """Return how often ours was no worse, and geometric means of ours over theirs."""
    regret = np.array([game.regret[1] / game.regret[0] for game in games])
    times = np.array([game.micros[1] / game.micros[0] for game in games])
    means = (float(np.exp(np.log(each).mean())) for each in (regret, times))
    numbers = (f"{each:.2f}" for each in (*means, times.min(), times.max()))
    return [name, f"{sum(game.no_worse for game in games)} of {len(games)}", *numbers]


if __name__ == "__main__":
    main()
