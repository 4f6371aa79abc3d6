"""Compile ahead of the first use, for images and CI."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from itertools import chain

from driftwolfe.points import checks

_ROWS = "estimators.core.row_kernels"
#: The modules of compiled loops, by what uses them.
MODULES = {
    "learners": (
        *("domains.set_kernels", "ensemble.expert_kernels"),
        *("losses.loss_kernels", "points.sparse_kernels"),
    ),
    "TraceNormClassifier": ("estimators.classifier_kernels", _ROWS),
    "TraceNormRegressor": ("estimators.regressor_kernels", _ROWS),
    "MatrixCompleter": ("estimators.completer_kernels", "estimators.completer_feature_kernels"),
    "Recommender": ("estimators.recommender_kernels",),
}


def warm_up(names: Sequence[str] = ()) -> int:
    """Compile the loops that these use, all by default, or find them in the cache; return how many there are."""
    from tqdm import tqdm

    from driftwolfe.points.compiling import announcement  # brings numba

    for name in names:
        checks.one_of(name, "NAME", MODULES)
    modules = dict.fromkeys(module for name in names or MODULES for module in MODULES[name])
    found = [vars(import_module(f"driftwolfe.{module}")).values() for module in modules]
    loops = [loop for loop in chain(*found) if hasattr(loop, "ready")]
    announcement.announced = True
    for loop in tqdm(loops, "compiling", unit="loop", leave=False, disable=None):
        loop.ready()
    return len(loops)
