"""Check the sdist and the wheel in a folder as a user meets them: `make dist` builds and checks them.

python -m reliability.distribution dist
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: What an sdist holds: what building needs, and what a reader of it looks for.
KEPT = {
    *("src", "CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "pyproject.toml"),
    *("PKG-INFO", ".gitignore"),  # added by hatchling
}
#: Pages whose code and commands need their install line and no more.
FIRST_PAGES = ("README.md", "docs/index.md", "docs/getting-started.md")
LARGEST = 1 << 20  # of a package, in bytes: code compresses well, and data do not belong in it


def files(package: Path) -> list[str]:
    """The files of a package; those of an sdist without the folder that holds them all."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as wheel:
            return [name for name in wheel.namelist() if not name.endswith("/")]
    with tarfile.open(package) as sdist:
        names = [member.name for member in sdist.getmembers() if member.isfile()]
    return [name.partition("/")[2] for name in names]


def faults(package: Path) -> list[str]:
    """What a package holds too much or too little of."""
    wheel, names = package.suffix == ".whl", files(package)
    found = []
    if package.stat().st_size > LARGEST:
        found.append(f"it has {package.stat().st_size:,} bytes, more than {LARGEST:,}")
    first = {name.partition("/")[0] for name in names}
    allowed = {"driftwolfe", f"{package.name.rsplit('-', 3)[0]}.dist-info"} if wheel else KEPT
    found += [f"it holds {name}" for name in sorted(first - allowed)]
    source = ROOT / "src"
    base = source if wheel else ROOT
    code = [
        path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    wanted = {path.relative_to(base).as_posix() for path in code if "egg-info" not in str(path)}
    return found + [f"it lacks {name}" for name in sorted(wanted - set(names))]


def extras(page: str) -> str:
    """What the one install line of a page asks for, such as ``experiments,river``."""
    (line,) = re.findall(r"^pip install '\.\[([\w,]+)\]'$", (ROOT / page).read_text(), re.MULTILINE)
    return str(line)


def snippets(page: str) -> str:
    """The code of a page, in order."""
    return "\n".join(text for kind, text in _blocks(page) if kind == "python")


def commands(page: str) -> list[list[str]]:
    """The words of every command that a page shows: in a block, or between backticks."""
    lines = [line for kind, text in _blocks(page) if not kind for line in text.splitlines()]
    text = (ROOT / page).read_text()
    lines += re.findall(r"`((?:driftwolfe|make|pip|python) [^`\n]+)`", text)
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def _blocks(page: str) -> list[tuple[str, str]]:
    """The language and the text of every block of a page."""
    text = (ROOT / page).read_text()
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def install_and_run(wheel: Path) -> None:
    """Install a wheel into an empty environment by the line of the first pages; run all that they show."""
    with tempfile.TemporaryDirectory() as empty:
        folder = Path(empty)
        venv.create(folder / "env", with_pip=True)
        programs = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
        quiet = ("--quiet", "--disable-pip-version-check")
        pip = [programs / "python", "-m", "pip", "install", *quiet]
        wanted = f"{wheel.resolve()}[{extras(FIRST_PAGES[0])}]"
        subprocess.run([*pip, "-c", ROOT / "constraints.txt", wanted], check=True)
        own = {"NUMBA_CACHE_DIR": str(folder / "cache"), "DRIFTWOLFE_OFFLINE": "1"}
        hidden = ("PYTHONPATH", "DRIFTWOLFE_DATA")
        environment = {k: v for k, v in os.environ.items() if k not in hidden} | own
        shown = [words[1:] for words in commands(FIRST_PAGES[0]) if words[0] == "driftwolfe"]
        short = [["reproduce", "classification", "--only", "POLAR", "--seeds", "1"]]
        runs = [words for words in shown if words[0] != "reproduce"] + short  # paper: a day
        for words in [["--version"], *runs]:
            subprocess.run(
                [programs / "driftwolfe", *words], cwd=folder, env=environment, check=True
            )
        for page in FIRST_PAGES:
            program = [programs / "python", "-c", snippets(page)]
            subprocess.run(program, cwd=folder, env=environment, check=True)


def main() -> int:
    """Check the packages of a folder, by default dist; return the exit status."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "dist")
    packages = sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])
    if len(packages) != 2:
        print(f"{folder} must hold one sdist and one wheel, holds {len(packages)}", file=sys.stderr)
        return 1
    bad = [f"{package.name}: {fault}" for package in packages for fault in faults(package)]
    if bad:
        print("\n".join(bad), file=sys.stderr)
        return 1
    install_and_run(next(package for package in packages if package.suffix == ".whl"))
    for package in packages:
        print(f"{package}: {package.stat().st_size:,} bytes, {len(files(package))} files, all good")
    return 0


if __name__ == "__main__":
    sys.exit(main())
