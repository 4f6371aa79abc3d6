"""Streams from data, laid out as in the paper: your own, published files, and synthetic twins."""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import os
import time
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import shorten
from typing import Any, Literal

import numpy as np

from driftwolfe.domains import TraceNormBall
from driftwolfe.losses import AbsoluteEntries, MulticlassLogistic
from driftwolfe.losses.base import batch_of_features, batch_of_indices, batch_of_numbers
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.streams.drift import Seed, Stream, change_points, steepest
from driftwolfe.terminal import Output

#: Environment variables: the data folder, the cache folder, and whether downloads are forbidden.
DATA_VARIABLE = "DRIFTWOLFE_DATA"
CACHE_VARIABLE = "DRIFTWOLFE_CACHE"
OFFLINE_VARIABLE = "DRIFTWOLFE_OFFLINE"

#: Seconds to wait for a connection and for each next part; seconds for the whole download.
CONNECT_SECONDS, TOTAL_SECONDS = 10.0, 120.0
MAX_ARCHIVE_BYTES = 16 * 2**20  # of a zip archive, at most

Folder = str | os.PathLike[str]


class DataUnavailable(FileNotFoundError):  # noqa: N818 - named like FileNotFoundError
    """A published file is not on this machine and could not be downloaded.

    Examples
    --------
    >>> issubclass(DataUnavailable, FileNotFoundError)
    True
    """


def named_folder(folder: Folder | None = None) -> Path | None:
    """Return the data folder given as an argument or by DRIFTWOLFE_DATA, or None."""
    given = folder if folder is not None else os.environ.get(DATA_VARIABLE)
    return Path(given) if given else None


def cache_folder() -> Path | None:
    """Return $DRIFTWOLFE_CACHE, else ``driftwolfe`` in the system's cache; None without a home."""
    if given := os.environ.get(CACHE_VARIABLE):
        return Path(given).expanduser()
    import pooch  # here and below: slow to import, and seldom needed

    try:
        folder: Path = pooch.os_cache("driftwolfe")
    except RuntimeError:  # no home; older versions of platformdirs return "~/..." instead
        return None
    return folder if folder.is_absolute() else None


def offline() -> bool:
    """Return whether DRIFTWOLFE_OFFLINE forbids downloads."""
    return os.environ.get(OFFLINE_VARIABLE, "") not in ("", "0")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A published file, read from the named data folder, or else from the cache or its publisher."""

    path: str  # in the folder, as it is or compressed with .gz after its name
    size: int  # of its content, in bytes
    sha256: str  # of its content
    source: str  # the page where people get it
    url: str  # where programs get it
    member: str | None = None  # its name in the zip archive at `url`, if that is one

    @property
    def _remedy(self) -> str:
        way = "set --data" if Output.command_line else "pass data=..."
        return (
            f"{way}, or set {DATA_VARIABLE}, to the folder of {self.path}[.gz] from {self.source}"
        )

    def read(self, folder: Folder | None = None) -> bytes:
        """Return the content, checked by its checksum; never unpacks more than the known size."""
        named, found = named_folder(folder), self.find(folder)
        if found is None and named is not None:
            place, holds = named.resolve(), f"neither {self.path} nor {self.path}.gz is in"
            fault = f"{holds} {place}" if place.is_dir() else f"there is no folder {place}"
            raise FileNotFoundError(f"{fault}; {self._remedy}")
        path = found or self._download()
        try:
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
                content = file.read(self.size + 1)
            actual = hashlib.sha256(content).hexdigest()
            if actual == self.sha256:
                return content
            size = f"more than {self.size}" if len(content) > self.size else str(len(content))
            fault = (
                f"is not the published file: {size} bytes of content with SHA-256 {actual}, "
                f"expected {self.size} bytes with {self.sha256}"
            )
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            fault = f"cannot be unpacked ({error})"
        again = f"get it again from {self.source}"
        remedy = again if named else f"delete {path}, and it is downloaded again"
        raise ValueError(f"{path} {fault}; it is truncated or altered: {remedy}")

    def find(self, folder: Folder | None = None) -> Path | None:
        """Return the file's place on this machine, or None; reads and downloads nothing."""
        place = named_folder(folder) or cache_folder()
        if place is None:
            return None
        names = (self.path, f"{self.path}.gz")
        return next((place / name for name in names if (place / name).is_file()), None)

    def _download(self) -> Path:
        """Download the file into the cache; return its place there."""
        folder = cache_folder()
        try:
            if offline():
                raise OSError(f"{OFFLINE_VARIABLE} forbids it")
            if folder is None:
                raise OSError("this user has no home folder")
            import pooch

            pooch.get_logger().setLevel("WARNING")  # by default it prints every download
            target = folder / self.path
            place = {"fname": target.name, "path": target.parent}
            # pooch writes a temporary file, checks it and renames it: no kill leaves half a file.
            pooch.retrieve(self.url, self.sha256, **place, downloader=self._write_download)
            return target
        except Exception as error:  # no connection, a broken archive, a read-only cache, ...
            message, end = f"download of {self.path} failed: ", f"; set {DATA_VARIABLE}"
            why = str(error).removeprefix("<urlopen error ").removesuffix(">")
            message += shorten(why, 100 - len(message) - len(end), placeholder="...") + end
            unavailable = DataUnavailable(message)
            unavailable.add_note(
                f"{self.path} is not in the cache folder {folder} (which {CACHE_VARIABLE} sets), and "
                f"downloading {self.url} failed: {type(error).__name__}: {error}; {self._remedy}, or "
                "use the synthetic twin"
            )
        raise unavailable

    def _write_download(self, url: str, target: str, _pooch: object) -> None:
        """Download the content into a file; pooch calls this."""
        content = downloaded(url, MAX_ARCHIVE_BYTES if self.member else self.size + 1)
        if self.member:  # unpacked in memory: no name leads elsewhere
            with zipfile.ZipFile(io.BytesIO(content)).open(self.member) as packed:
                content = packed.read(self.size + 1)
        Path(target).write_bytes(content)


def downloaded(url: str, limit: int) -> bytes:
    """Return the first `limit` bytes of a file; pooch's own downloader limits neither size nor time."""
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    end, content = time.monotonic() + TOTAL_SECONDS, bytearray()
    request = Request(url, headers={"User-Agent": "driftwolfe"})
    try:
        opened = urlopen(request, timeout=CONNECT_SECONDS)
    except HTTPError as error:
        error.close()  # it holds the connection
        raise
    with opened as answer:
        if (answer.length or 0) > limit:
            raise OSError(f"the server announces {answer.length} bytes, more than {limit}")
        while part := answer.read1(min(2**16, limit - len(content))):
            content += part
            if time.monotonic() > end:
                raise OSError(f"it took longer than {TOTAL_SECONDS:g} seconds")
    return bytes(content)


RATINGS = DataFile(
    path="ml-100k/u.data",
    size=1_979_173,
    sha256="06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
    source="https://grouplens.org/datasets/movielens/100k/",
    url="https://files.grouplens.org/datasets/movielens/ml-100k.zip",
    member="ml-100k/u.data",
)
ROWS = DataFile(
    path="shuttle/shuttle.scale",
    size=4_646_206,
    sha256="f9f8ba4159949a451d11f625085c92065e72cce657e7df0633de3aa45ecbc9ba",
    source="https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass.html#shuttle",
    url="https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/shuttle.scale",
)
USERS_AND_FILMS = (943, 1682)
CLASSES_AND_FEATURES = (7, 9)


def matrix_completion(
    rows: Any,
    cols: Any,
    ratings: Any,
    shape: tuple[int, int],
    per_round: int = 100,
    copies: Sequence[float] = (1, -1, 1),
    loss: Callable[..., EntryLoss] = AbsoluteEntries,
    seed: Seed = None,
) -> Stream:
    r"""Return rounds of known entries of a matrix, from copies of the data with changing signs.

    Every copy holds all entries once, times its number from `copies`; its last round holds the rest.
    With ``(1, -1, 1)`` the truth is negated for the middle third, as in the experiments of Wang et
    al. (2024), Non-stationary projection-free online learning, AAAI.

    Parameters
    ----------
    rows, cols, ratings, shape
        Indices of the known entries, from 0, their values, and ``(m, n)`` of the matrix.
    per_round, copies, loss
        Entries per round, the factor of each copy, and `AbsoluteEntries` or another loss on entries.
    seed
        Shuffles every copy on its own; None keeps the order given.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = dw.streams.matrix_completion([0, 1, 2], [0, 1, 0], [5, 3, 1], (3, 2), per_round=2)
    >>> [loss.targets.tolist() for loss in stream[:4]], stream.drifts
    ([[5.0, 3.0], [1.0], [-5.0, -3.0], [-1.0]], (2, 4))
    """
    rows, cols = batch_of_indices(rows, "rows"), batch_of_indices(cols, "cols")
    ratings = batch_of_numbers(ratings, "ratings", rows.size)
    if cols.size != rows.size:
        raise ValueError(f"rows and cols must be of one length, got {rows.size} and {cols.size}")
    step = checks.count(per_round, "per_round")
    factors, losses = batch_of_numbers(copies, "copies"), []
    rng, order = np.random.default_rng(seed), np.arange(rows.size)
    for factor in factors:
        if seed is not None:
            order = rng.permutation(rows.size)
        for start in range(0, rows.size, step):
            batch = order[start : start + step]
            losses.append(loss(rows[batch], cols[batch], factor * ratings[batch], shape=shape))
    drifts = tuple(copy * math.ceil(rows.size / step) for copy in change_points(factors))
    return Stream(losses, "matrix completion", steepest(losses), drifts=drifts)


def multiclass(
    features: Any,
    labels: Any,
    n_classes: int,
    per_round: int = 10,
    flip_every: int | None = 1000,
    seed: Seed = None,
) -> Stream:
    r"""Return rounds of labelled rows, with the signs of the features flipped from time to time.

    Each round is a `MulticlassLogistic` loss, the mean over its rows; the last holds the rest.
    Features are negated in every second block of `flip_every` rounds (Wang et al. 2024,
    Non-stationary projection-free online learning).

    Parameters
    ----------
    features, labels, n_classes
        The rows, shape (rows, n_features), dense or scipy sparse; their classes, from 0, and how many.
    per_round, flip_every, seed
        Rows per round; rounds between flips, or None; and a seed to shuffle the rows, or None.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = dw.streams.multiclass([[1.0], [2.0], [3.0]], [0, 1, 1], 2, per_round=1, flip_every=2)
    >>> [float(loss.features[0, 0]) for loss in stream], stream.drifts
    ([1.0, 2.0, -3.0], (2,))
    """
    table, classes = batch_of_features(features), batch_of_indices(labels, "labels", n_classes)
    if classes.size != (size := table.shape[0]):
        raise ValueError(f"labels must hold one class for each of {size} rows, got {classes.size}")
    step = checks.count(per_round, "per_round")
    rounds = math.ceil(classes.size / step)
    block = rounds if flip_every is None else checks.count(flip_every, "flip_every")
    if seed is not None:
        order = np.random.default_rng(seed).permutation(classes.size)
        table, classes = table[order], classes[order]
    losses = []
    for t in range(rounds):
        batch = slice(t * step, (t + 1) * step)
        rows = table[batch] if t // block % 2 == 0 else -table[batch]
        losses.append(MulticlassLogistic(rows, classes[batch], n_classes))
    drifts = tuple(range(block, rounds, block))
    return Stream(losses, "multiclass", steepest(losses), drifts=drifts)


def movielens_100k(
    data: Folder | None = None,
    per_round: int = 100,
    copies: Sequence[float] = (1, -1, 1),
    loss: Callable[..., EntryLoss] = AbsoluteEntries,
    seed: Seed = None,
    rounds: int | None = None,
) -> Stream:
    """Return MovieLens 100K as the paper plays it: 3,000 rounds of 100 ratings, the middle third negated.

    943 users by 1,682 films, ratings 1 to 5, in the publisher's order unless shuffled (Harper, Konstan
    2015, The MovieLens datasets: history and context, ACM TiiS 5(4)).

    Parameters
    ----------
    data
        The folder that holds ``ml-100k/u.data[.gz]``; by default $DRIFTWOLFE_DATA, else the user's
        cache, into which it is downloaded unless DRIFTWOLFE_OFFLINE=1. If that fails, `DataUnavailable`
        is raised: use `movielens_twin`.
    per_round, copies, loss, seed
        As in `matrix_completion`. The stream's `domain` is a trace-norm ball of radius 10,000.
    rounds
        Length of a shorter stream with the same drift, from the first ratings of the file, a multiple
        of the number of copies; None for all.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> dw.streams.movielens_100k("/nowhere")
    Traceback (most recent call last):
        ...
    FileNotFoundError: there is no folder /nowhere; ...
    """
    ratings = _parsed(RATINGS, data, _parse_ratings)
    return _ratings_stream("MovieLens 100K", ratings, rounds, per_round, copies, loss, seed)


def movielens_twin(
    rounds: int | None = None,
    copies: Sequence[float] = (1, -1, 1),
    seed: Seed = None,
) -> Stream:
    """Return made-up ratings, played like `movielens_100k`, and as frequent.

    100,000 entries, at least 20 of every user; few users and films hold most. A rating is the sum of a
    mean, biases of the user and the film, a product of low rank and noise, rounded to 1, ..., 5.

    Parameters
    ----------
    rounds, copies, seed
        As in `movielens_100k`.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> dw.streams.movielens_twin(rounds=300)
    Stream('MovieLens 100K (synthetic twin)', 300 rounds, lipschitz=10)
    """
    name, ratings = "MovieLens 100K (synthetic twin)", _made_up_ratings()
    return _ratings_stream(name, ratings, rounds, 100, copies, AbsoluteEntries, seed)


def _ratings_stream(name: str, ratings: Any, rounds: Any, *batches: Any) -> Stream:
    """Return ratings, real or made up, in `batches` as `matrix_completion` takes them."""
    per_round, copies, *_ = batches
    kept = rows_played(ratings[0].size, per_round, rounds, batch_of_numbers(copies, "copies").size)
    rows, cols, values = (column[:kept] for column in ratings)
    stream = matrix_completion(rows, cols, values, USERS_AND_FILMS, *batches)
    ball = TraceNormBall(USERS_AND_FILMS, 1e4)
    return replace(stream, name=name, lipschitz=steepest(stream.losses, ball), domain=ball)


def shuttle(
    data: Folder | None = None,
    per_round: int = 10,
    flip_every: int | Literal["auto"] | None = "auto",
    seed: Seed = None,
    radius: float = 100.0,
    rounds: int | None = None,
) -> Stream:
    """Return Shuttle as the paper plays it: 4,350 rounds of 10 rows, signs flipped every 1,000.

    43,500 rows of 9 features in [-1, 1], 7 classes, four fifths of them in the first; in the order
    of the file unless shuffled (Statlog (Shuttle), UCI, doi:10.24432/C5WS31; scaled by Chang, Lin 2011,
    LIBSVM, ACM TIST 2(27)).

    Parameters
    ----------
    data
        The folder that holds ``shuttle/shuttle.scale[.gz]``; by default found or downloaded as in
        `movielens_100k`. If that fails, `DataUnavailable` is raised: use `shuttle_twin`.
    per_round, seed, radius
        As in `multiclass`, and the radius of the stream's `domain`, a trace-norm ball.
    flip_every, rounds
        Rounds between flips, or None; ``"auto"`` for 1,000. And the length of a shorter stream, from the
        first rows of the file, with flips as many times sooner; None for all.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> dw.streams.shuttle("/nowhere")
    Traceback (most recent call last):
        ...
    FileNotFoundError: there is no folder /nowhere; ...
    """
    table = _parsed(ROWS, data, _parse_rows)
    return _table_stream("Shuttle", table, rounds, radius, per_round, flip_every, seed)


def shuttle_twin(
    rounds: int | None = None,
    flip_every: int | Literal["auto"] | None = "auto",
    seed: Seed = None,
    radius: float = 100.0,
) -> Stream:
    """Return made-up labelled rows, played like `shuttle`.

    43,500 rows of 9 features, with classes as frequent as in Shuttle. Features 1, 3 and 5 are Gaussian
    around a centre for each class, 7, 8 and 9 their differences; 2, 4 and 6 are noise.

    Parameters
    ----------
    rounds, flip_every, seed, radius
        As in `shuttle`.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = dw.streams.shuttle_twin(rounds=435)
    >>> len(stream), stream.drifts
    (435, (100, 200, 300, 400))
    """
    name, table = "Shuttle (synthetic twin)", _made_up_table()
    return _table_stream(name, table, rounds, radius, 10, flip_every, seed)


def _table_stream(name: str, table: Any, rounds: Any, radius: float, *batches: Any) -> Stream:
    """Return labelled rows, real or made up, in `batches` as `multiclass` takes them."""
    per_round, flip_every, seed = batches
    features, labels = table
    kept = rows_played(labels.size, per_round, rounds)
    if flip_every == "auto":
        fraction = math.ceil(kept / per_round) / math.ceil(labels.size / per_round)
        flip_every = max(1, round(1000 * fraction))
    n_classes, _ = CLASSES_AND_FEATURES
    stream = multiclass(features[:kept], labels[:kept], n_classes, per_round, flip_every, seed)
    return replace(stream, name=name, domain=TraceNormBall(CLASSES_AND_FEATURES, radius))


def rows_played(rows: int, per_round: int, rounds: int | None, copies: int = 1) -> int:
    """Return how many rows every copy holds, so that all copies together make `rounds` rounds."""
    most = copies * math.ceil(rows / checks.count(per_round, "per_round"))
    wanted = most if rounds is None else checks.count(rounds, "rounds")
    if wanted > most or wanted % copies:
        kind = "" if copies == 1 else f"a multiple of the {copies} copies, "
        raise ValueError(f"rounds must be {kind}at most {most}, got {rounds}")
    return min(rows, wanted // copies * per_round)


def _parsed(file: DataFile, folder: Folder | None, parse: Callable[[bytes], Any]) -> Any:
    """The content of a file as numbers; or say that it holds something else."""
    content = file.read(folder)
    try:
        if not content.strip():
            raise ValueError("it is empty")
        return parse(content)
    except (ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())[:100]
        raise ValueError(f"{file.path} does not hold the published rows: {reason}") from error


def _parse_ratings(content: bytes) -> tuple[Indices, Indices, Array]:
    """Lines of ``user film stars time``, whole numbers, users and films counted from 1."""
    users, films, stars, _ = np.loadtxt(io.BytesIO(content), dtype=np.int64, ndmin=2).T
    for column, most in zip((users, films, stars), (*USERS_AND_FILMS, 5), strict=True):
        if column.min() < 1 or column.max() > most:
            raise ValueError(f"a number is not in 1, ..., {most}")
    return users - 1, films - 1, stars.astype(np.float64)


def _parse_rows(content: bytes) -> tuple[Array, Indices]:
    """Lines of LIBSVM's format, ``class index:value ...``, both numbers counted from 1."""
    classes, columns = (range(1, size + 1) for size in CLASSES_AND_FEATURES)
    lines = [line.split() or [""] for line in content.decode("ascii", "replace").splitlines()]
    features = np.zeros((len(lines), len(columns)))
    for row, (_, *pairs) in enumerate(lines):
        for index, value in (pair.split(":") for pair in pairs):
            features[row, columns.index(int(index))] = float(value)
    if not (np.abs(features) <= 1.0).all():
        raise ValueError("a feature is not in [-1, 1]")
    return features, np.array([classes.index(int(label)) for label, *_ in lines])


def _made_up_ratings() -> tuple[Indices, Indices, Array]:
    rng = np.random.Generator(np.random.PCG64(100_000))
    m, n = USERS_AND_FILMS
    popularity = 1.15 * np.log(rng.gamma(0.5, size=n) + 0.005)
    tastes = rng.standard_normal((m, 5)) @ rng.standard_normal((5, n))
    # At least 20 ratings of every user; a few users give hundreds.
    sums = np.cumsum(rng.gamma(0.75, size=m))
    marks = np.round(sums / sums[-1] * (100_000 - 20 * m)).astype(np.intp)
    counts = 20 + np.diff(marks, prepend=0)
    # Users watch what is popular and what is to their taste. The largest of logarithms of weights
    # plus Gumbel noise are draws without replacement.
    ranking = np.argsort(-(popularity + 0.4 * tastes + rng.gumbel(size=(m, n))), axis=1)
    chosen = np.arange(n) < counts[:, None]
    users, films = np.nonzero(chosen)[0], ranking[chosen]
    # As in the real file, a third of the users are there at the start; the others join later.
    joined = 1.3 * np.maximum(0.0, users / m - 0.3)
    order = np.argsort(joined + (1.0 - joined) * rng.random(users.size))
    users, films = users[order], films[order]
    liking = 0.1 * popularity + rng.normal(0.0, 0.5, n)
    scores = rng.normal(0.0, 0.45, m)[users] + liking[films] + 0.28 * tastes[users, films]
    # Skewed to the left, like the ratings: more are far below the mean than far above it.
    scores -= rng.gamma(1.0, 0.86, users.size)
    scores += 3.55 - scores.mean()
    return users, films, np.clip(np.round(scores), 1.0, 5.0)


#: For each class of Shuttle: rows; means of features 1, 3 and 5; their deviations; their correlation.
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


def _made_up_table() -> tuple[Array, Indices]:
    rng = np.random.Generator(np.random.PCG64(43_500))
    counts, means, deviations, correlations = zip(*_CLASSES, strict=True)
    labels = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    common = np.array(correlations)[labels, None]
    noise = np.sqrt(common) * rng.standard_normal((labels.size, 1))
    noise = noise + np.sqrt(1.0 - common) * rng.standard_normal((labels.size, 3))
    gaussian = np.array(means)[labels] + np.array(deviations)[labels] * noise
    raw = np.empty((labels.size, CLASSES_AND_FEATURES[1]))
    raw[:, :6:2] = gaussian
    raw[:, 1:6:2] = rng.normal(0.0, (2.0, 2.0, 13.0), (labels.size, 3))
    raw[:, 1:6:2] += 0.2 * rng.standard_cauchy((labels.size, 3))
    first, third, fifth = gaussian.T
    raw[:, 6:] = np.stack([third - first, third - fifth, first - fifth], axis=1)
    features = -1.0 + 2.0 * (np.round(raw) - _LEAST) / (_LARGEST - _LEAST)
    return np.clip(features, -1.0, 1.0), labels
