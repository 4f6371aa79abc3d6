"""MovieLens 100K and Shuttle: found, downloaded, or replaced by a synthetic twin."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftwolfe.domains import TraceNormBall
from driftwolfe.losses import AbsoluteEntries
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.losses.inputs import Indices, batch_of_numbers
from driftwolfe.points.kinds import Array
from driftwolfe.streams.data_files import DataFile, Folder
from driftwolfe.streams.experiment import matrix_completion, multiclass
from driftwolfe.streams.stream import Stream, rounds_of, rows_played, steepest

RATINGS = DataFile(
    path="ml-100k/u.data",
    size=1_979_173,
    sha256="06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
    source="https://grouplens.org/datasets/movielens/100k/",
    url="https://files.grouplens.org/datasets/movielens/ml-100k.zip",
    member="ml-100k/u.data",
)
#: Users and films.
USERS_AND_FILMS = (943, 1682)

#: Users and films, from 0, and their ratings.
Ratings: TypeAlias = tuple[Indices, Indices, Array]


def movielens_100k(
    data: Folder | None = None,
    per_round: int = 100,
    copies: Sequence[float] = (1, -1, 1),
    loss: Callable[..., EntryLoss] = AbsoluteEntries,
    seed: int | np.random.Generator | None = None,
    radius: float = 1e4,
    rounds: int | None = None,
) -> Stream:
    """Return MovieLens 100K as the paper plays it: 3,000 rounds of 100 ratings, the middle third negated.

    943 users by 1,682 films, ratings 1 to 5, in the publisher's order unless shuffled.

    Parameters
    ----------
    data
        The folder that holds ``ml-100k/u.data`` or ``ml-100k/u.data.gz``; if not given, the one that
        the environment variable DRIFTWOLFE_DATA names; if that is not set either, the user's cache
        (see `driftwolfe.streams.data_files`), into which the file is downloaded from its publisher where it
        is missing. DRIFTWOLFE_OFFLINE=1 forbids that.
    per_round, copies, loss, seed
        As in `matrix_completion`.
    radius
        Of the trace-norm ball that becomes the stream's `domain`.
    rounds
        Length of a shorter stream with the same drift, a multiple of the number of copies: each copy
        then holds only the first ratings of the file. None for all of them.

    Raises
    ------
    FileNotFoundError
        Where a folder is named that does not hold the file.
    DataUnavailable
        Where the file is neither on this machine nor to be downloaded; `movielens_twin` makes up
        ratings of the same shape.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> dw.streams.movielens_100k("/nowhere")
    Traceback (most recent call last):
        ...
    FileNotFoundError: neither ml-100k/u.data nor ml-100k/u.data.gz is in /nowhere; ...

    References
    ----------
    Harper, Konstan (2015), The MovieLens datasets: history and context, ACM TiiS 5(4).
    """
    ratings = _parse_ratings(RATINGS.read(data))
    return ratings_stream(ratings, "MovieLens 100K", rounds, per_round, copies, loss, seed, radius)


def _parse_ratings(content: bytes) -> Ratings:
    """Rows of ``user film stars time``, whole numbers, users and films counted from 1."""
    limits = np.array([[1, USERS_AND_FILMS[0]], [1, USERS_AND_FILMS[1]], [1, 5], [0, 2**62]])
    try:
        if not content.strip():
            raise ValueError("it is empty")
        table = np.loadtxt(io.BytesIO(content), dtype=np.int64, ndmin=2)
        if table.shape[1] != len(limits):
            raise ValueError(f"it has {table.shape[1]} columns")
        if not ((table >= limits[:, 0]) & (table <= limits[:, 1])).all():
            raise ValueError("a number is out of range")
    except (ValueError, OverflowError) as error:
        told = " ".join(str(error).split())[:100]
        raise ValueError(
            f"the MovieLens file does not hold rows of user, film, stars and time: {told}"
        ) from error
    users, films, stars, _ = table.T
    return users - 1, films - 1, stars.astype(np.float64)


def ratings_stream(
    ratings: Ratings,
    name: str,
    rounds: int | None,
    per_round: int,
    copies: Sequence[float],
    loss: Callable[..., EntryLoss],
    seed: int | np.random.Generator | None,
    radius: float,
) -> Stream:
    """Return ratings of that many users and films, real or made up, as `movielens_100k` plays them."""
    ball = TraceNormBall(USERS_AND_FILMS, radius)
    number = batch_of_numbers(copies, "copies").size
    kept = rows_played(len(ratings[0]), per_round, rounds, number)
    rows, cols, values = (column[:kept] for column in ratings)
    stream = matrix_completion(rows, cols, values, USERS_AND_FILMS, per_round, copies, loss, seed)
    bound = steepest(stream.losses, ball)
    return replace(stream, name=name, lipschitz=bound, domain=ball)


ROWS = DataFile(
    path="shuttle/shuttle.scale",
    size=4_646_206,
    sha256="f9f8ba4159949a451d11f625085c92065e72cce657e7df0633de3aa45ecbc9ba",
    source="https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass.html#shuttle",
    url="https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/shuttle.scale",
)
#: Classes and features.
CLASSES_AND_FEATURES = (7, 9)
#: Rounds between flips in the paper's stream.
FLIP_EVERY = 1000

#: A number of rounds, None for no flips, or "auto".
Flips: TypeAlias = int | Literal["auto"] | None
#: Rows of features, and their classes from 0.
Table: TypeAlias = tuple[Array, NDArray[np.intp]]


def shuttle(
    data: Folder | None = None,
    per_round: int = 10,
    flip_every: Flips = "auto",
    seed: int | np.random.Generator | None = None,
    radius: float = 100.0,
    rounds: int | None = None,
) -> Stream:
    """Return Shuttle as the paper plays it: 4,350 rounds of 10 rows, signs flipped every 1,000.

    43,500 rows of 9 features in [-1, 1], 7 classes, four fifths of them in the first; in the order
    of the LIBSVM file ``shuttle.scale`` unless shuffled. No constant feature is added.

    Parameters
    ----------
    data
        The folder that holds ``shuttle/shuttle.scale`` or ``shuttle/shuttle.scale.gz``; if not given,
        the one that the environment variable DRIFTWOLFE_DATA names; if that is not set either, the
        user's cache (see `driftwolfe.streams.data_files`), into which the file is downloaded from its
        publisher where it is missing. DRIFTWOLFE_OFFLINE=1 forbids that.
    per_round, seed
        As in `multiclass`.
    flip_every
        Rounds between flips; None for none; ``"auto"`` for 1,000, or, in a shorter stream, for so
        many fewer as the stream is shorter: ``max(1, round(1000 * rounds / 4350))``.
    radius
        Of the trace-norm ball that becomes the stream's `domain`.
    rounds
        Length of a shorter stream with the same drift, from the first rows of the file; None for all.

    Raises
    ------
    FileNotFoundError
        Where a folder is named that does not hold the file.
    DataUnavailable
        Where the file is neither on this machine nor to be downloaded; `shuttle_twin` makes up rows of
        the same shape.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> dw.streams.shuttle("/nowhere")
    Traceback (most recent call last):
        ...
    FileNotFoundError: neither shuttle/shuttle.scale nor shuttle/shuttle.scale.gz is in /nowhere; ...

    References
    ----------
    Statlog (Shuttle), UCI Machine Learning Repository, doi:10.24432/C5WS31; scaled by Chang, Lin
    (2011), LIBSVM: a library for support vector machines, ACM TIST 2(27).
    """
    table = _parse_rows(ROWS.read(data))
    return table_stream(table, "Shuttle", rounds, per_round, flip_every, seed, radius)


def table_stream(
    table: Table,
    name: str,
    rounds: int | None,
    per_round: int,
    flip_every: Flips,
    seed: int | np.random.Generator | None,
    radius: float,
) -> Stream:
    """Return rows of that many features and classes, real or made up, as `shuttle` plays them."""
    features, labels = table
    kept = rows_played(labels.size, per_round, rounds)
    if flip_every == "auto":
        share = rounds_of(kept, per_round) / rounds_of(labels.size, per_round)
        flip_every = max(1, round(FLIP_EVERY * share))
    stream = multiclass(
        features[:kept], labels[:kept], CLASSES_AND_FEATURES[0], per_round, flip_every, seed
    )
    return replace(stream, name=name, domain=TraceNormBall(CLASSES_AND_FEATURES, radius))


def _parse_rows(content: bytes) -> Table:
    """Rows of LIBSVM text, ``class index:value ...``: features, zeros filled in, and classes from 0."""
    lines = content.decode("ascii", errors="replace").splitlines()
    features = np.zeros((len(lines), CLASSES_AND_FEATURES[1]))
    labels = np.empty(len(lines), dtype=np.intp)
    for row, line in enumerate(lines):
        try:
            label, *pairs = line.split()
            labels[row] = _place(label, CLASSES_AND_FEATURES[0])
            for pair in pairs:
                index, _, value = pair.partition(":")
                features[row, _place(index, CLASSES_AND_FEATURES[1])] = _feature(value)
        except ValueError as error:
            raise ValueError(
                f"line {row + 1} of the Shuttle file is no class with numbered features in [-1, 1]: "
                f"{line[:60]!r}"
            ) from error
    return features, labels


def _place(text: str, size: int) -> int:
    """A number that counts from 1, counted from 0."""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= size):
        raise ValueError(f"{text!r} is not in 1..{size}")
    return int(text) - 1


def _feature(text: str) -> float:
    value = float(text)
    if not -1.0 <= value <= 1.0:
        raise ValueError(f"{text!r} is not in [-1, 1]")
    return value


def movielens_twin(
    rounds: int | None = None,
    per_round: int = 100,
    copies: Sequence[float] = (1, -1, 1),
    loss: Callable[..., EntryLoss] = AbsoluteEntries,
    seed: int | np.random.Generator | None = None,
    radius: float = 1e4,
) -> Stream:
    """Return made-up ratings, played like `movielens_100k`.

    100,000 different entries of a 943 x 1,682 matrix, at least 20 of every user. A rating is a mean,
    a bias of the user, a bias of the film, a product of low rank and noise, rounded to 1, ..., 5. Few
    users and few films hold most of the ratings, and each rating is about as frequent as in
    MovieLens 100K.

    Parameters
    ----------
    rounds, per_round, copies, loss, seed, radius
        As in `movielens_100k`.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> dw.streams.movielens_twin(rounds=300)
    Stream('MovieLens 100K (synthetic twin)', 300 rounds, lipschitz=10)
    """
    name = "MovieLens 100K (synthetic twin)"
    return ratings_stream(_ratings(), name, rounds, per_round, copies, loss, seed, radius)


def shuttle_twin(
    rounds: int | None = None,
    per_round: int = 10,
    flip_every: Flips = "auto",
    seed: int | np.random.Generator | None = None,
    radius: float = 100.0,
) -> Stream:
    """Return made-up labelled rows, played like `shuttle`.

    43,500 rows of 9 features in [-1, 1] and 7 classes, as frequent as those of Shuttle. Features 1,
    3 and 5 are Gaussian around a centre for each class, 7, 8 and 9 their differences, as in Shuttle;
    2, 4 and 6 are noise with a few large values. All are whole numbers before they are scaled.

    Parameters
    ----------
    rounds, per_round, flip_every, seed, radius
        As in `shuttle`.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = dw.streams.shuttle_twin(rounds=435)
    >>> len(stream), stream.drifts
    (435, (100, 200, 300, 400))
    """
    name = "Shuttle (synthetic twin)"
    return table_stream(_table(), name, rounds, per_round, flip_every, seed, radius)


def _ratings() -> Ratings:
    rng = np.random.Generator(np.random.PCG64(100_000))
    m, n = USERS_AND_FILMS
    popularity = 1.15 * np.log(rng.gamma(0.5, size=n) + 0.005)
    tastes = rng.standard_normal((m, 5)) @ rng.standard_normal((5, n))
    # Users see what is popular and what is to their taste.
    users, films = _pairs(_activity(m, 100_000, rng), popularity + 0.4 * tastes, rng)
    liking = 0.1 * popularity + rng.normal(0.0, 0.5, n)
    scores = rng.normal(0.0, 0.45, m)[users] + liking[films] + 0.28 * tastes[users, films]
    # Skewed to the left, like the ratings: more are far below the mean than far above it.
    scores -= rng.gamma(1.0, 0.86, users.size)
    scores += 3.55 - scores.mean()
    return users, films, np.clip(np.round(scores), 1.0, 5.0)


def _activity(users: int, total: int, rng: np.random.Generator) -> Indices:
    """How many ratings each user gives: at least 20, a few give hundreds."""
    shares = np.cumsum(rng.gamma(0.75, size=users))
    marks = np.round(shares / shares[-1] * (total - 20 * users)).astype(np.intp)
    return 20 + np.diff(marks, prepend=0)


def _pairs(activity: Indices, weights: Array, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Different films for each user, by the logarithms of their weights; users come one by one."""
    # The largest of logarithms plus Gumbel noise are draws without replacement.
    ranking = np.argsort(-(weights + rng.gumbel(size=weights.shape)), axis=1)
    chosen = np.arange(weights.shape[1]) < activity[:, None]
    users, films = np.nonzero(chosen)[0], ranking[chosen]
    # As in the real file, a third of the users are there at the start; the others join later.
    joined = 1.3 * np.maximum(0.0, users / activity.size - 0.3)
    order = np.argsort(joined + (1.0 - joined) * rng.random(users.size))
    return users[order], films[order]


#: For each class: rows; centres of features 1, 3 and 5; their deviations; how they go together.
_CLASSES = (
    (34_108, (44, 85, 39), (5.5, 8.7, 14.0), 0.6),
    (37, (55, 79, -12), (11.5, 2.4, 31.0), 0.0),
    (132, (54, 90, 26), (18.0, 12.6, 23.0), 0.5),
    (6_748, (55, 87, 22), (0.5, 8.9, 26.0), 0.3),
    (2_458, (87, 90, 5), (10.9, 9.7, 46.0), 0.9),
    (6, (65, 83, 30), (11.0, 10.7, 8.5), 0.5),
    (11, (37, 92, 31), (0.1, 15.0, 5.6), 0.3),
)
#: The values of each feature that are scaled to -1 and to 1.
_LEAST = np.array([27, -4821, 21, -3939, -188, -13839, -48, -353, -356])
_LARGEST = np.array([126, 5075, 149, 3830, 436, 13148, 105, 270, 266])


def _table() -> Table:
    rng = np.random.Generator(np.random.PCG64(43_500))
    counts, centres, deviations, together = zip(*_CLASSES, strict=True)
    labels = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    share = np.array(together)[labels, None]
    noise = np.sqrt(share) * rng.standard_normal((labels.size, 1))
    noise = noise + np.sqrt(1.0 - share) * rng.standard_normal((labels.size, 3))
    gauges = np.array(centres)[labels] + np.array(deviations)[labels] * noise
    raw = np.empty((labels.size, _LEAST.size))
    raw[:, :6:2] = gauges
    raw[:, 1:6:2] = rng.normal(0.0, (2.0, 2.0, 13.0), (labels.size, 3))
    raw[:, 1:6:2] += 0.2 * rng.standard_cauchy((labels.size, 3))
    first, third, fifth = gauges.T
    raw[:, 6:] = np.stack([third - first, third - fifth, first - fifth], axis=1)
    features = -1.0 + 2.0 * (np.round(raw) - _LEAST) / (_LARGEST - _LEAST)
    return np.clip(features, -1.0, 1.0), labels
