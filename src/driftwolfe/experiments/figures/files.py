"""Figures as files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driftwolfe.experiments.figures.call_curves import oracle_calls
from driftwolfe.experiments.figures.canvas import print_style
from driftwolfe.experiments.figures.loss_panels import panels
from driftwolfe.experiments.figures.regret_dots import Regrets, regret
from driftwolfe.experiments.figures.scale_dots import sensitivity
from driftwolfe.experiments.figures.weight_maps import weights
from driftwolfe.experiments.summary import Summary
from driftwolfe.storage.files import write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Formats, and the metadata without which files would differ from run to run.
FORMATS: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
}
_DOTS_PER_INCH = 200


@print_style()
def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG, PDF and SVG, each whole or not at all; return their paths.

    The same figure always gives the same bytes.

    Parameters
    ----------
    figure
        The figure.
    folder, name
        Where to: the files are ``folder/name.png`` and so on.
    """
    paths = []
    for ending, metadata in FORMATS.items():
        path = folder / f"{name}.{ending}"
        write(path, _filler(figure, metadata))
        paths.append(path)
    return paths


def _filler(figure: Figure, metadata: dict[str, Any]) -> Callable[[Path], None]:
    return lambda part: figure.savefig(part, dpi=_DOTS_PER_INCH, metadata=metadata)


def draw_all(summary: Summary, regrets: Sequence[Regrets], folder: Path) -> list[Path]:
    """Draw and write every figure that there is something for; return the paths of their files.

    Parameters
    ----------
    summary
        The trials of a sweep, summed up.
    regrets
        What is known of the regret of its methods; empty for nothing.
    folder
        Where the files go.
    """
    figures = {
        "panels": panels(summary),
        "oracle-calls": oracle_calls(summary),
        "sensitivity": sensitivity(summary),
        "weights": weights(summary),
        "regret": regret(summary, regrets),
    }
    written: list[Path] = []
    for name, figure in figures.items():
        if figure is not None:
            written += save(figure, folder, name)
    return written
