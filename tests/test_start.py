"""Starting quickly: what `import driftwolfe` leaves for later, and that it is there when asked for."""

import os
import shutil
from pathlib import Path

import pytest

import driftwolfe as dw
from contracts.test_docstrings import PUBLIC
from driftwolfe.doctor import MODULES
from reliability.children import python


def loaded_after(script):
    tail = "; import sys; print(*sys.modules)"
    return set(python("-c", script + tail).stdout.split())


def test_the_import_leaves_slow_parts_for_later():
    slow = {"scipy.sparse", "scipy.linalg", "scipy.optimize", "numba", "tqdm", "matplotlib"}
    extras = {"sklearn", "river", "pandas"}
    later = {f"driftwolfe.{name}" for name in ("estimators", "experiments", "regret", "streams")}
    assert not loaded_after("import driftwolfe") & (slow | later | extras)
    assert not loaded_after("import driftwolfe.estimators") & (slow | extras)
    small_ball = "import driftwolfe as dw; dw.TraceNormBall((9, 9)).origin()"
    assert "torch" not in loaded_after(small_ball)
    assert not loaded_after("import driftwolfe.streams") & {"pooch", "requests", "http.client"}


def test_what_needs_no_more():
    script = (
        "import driftwolfe as dw;"
        "dw.estimators.MatrixCompleter().partial_fit([(0, 1)], [2.0]).predict([(0, 1)])"
    )
    assert not loaded_after(script) & {"sklearn", "river", "pandas"}
    script = (
        "import numpy as np, driftwolfe as dw;"
        "learner = dw.POLA(dw.TraceNormBall((2, 3)));"
        "learner.update(dw.losses.MulticlassLogistic(np.ones((2, 3)), [0, 1], 2));"
        "dw.POLD(dw.L1Ball(3)).update(dw.losses.SquaredDistance(np.ones(3)))"
    )
    assert "scipy.sparse" not in loaded_after(script)


def test_the_completer_loads_loops_with_the_first_rating_and_only_its_own():
    """Those of side features are not compiled."""
    script = "import driftwolfe as dw; model = dw.estimators.MatrixCompleter()"
    assert "numba" not in loaded_after(script)
    script += "; model.partial_fit([(0, 1), (1, 1)], [2.0, 3.0])"
    script += "; from driftwolfe.estimators import completer_kernels as loops"
    loaded = loaded_after(f"{script}; assert loops.learn.overloads and not loops.blend.overloads")
    kernels = {name for name in loaded if name.endswith("_kernels")}
    names = ("completer", "core.shared")
    assert kernels == {f"driftwolfe.estimators.{name}_kernels" for name in names}


SKLEARN = ("TraceNormClassifier", "TraceNormRegressor", "MatrixCompletionRegressor")
RIVER = ("RiverTraceNormClassifier", "RiverTraceNormRegressor", "RiverRecommender")


@pytest.mark.parametrize(
    ("names", "missing", "extra"), [(SKLEARN, "sklearn", "estimators"), (RIVER, "river", "river")]
)
def test_what_is_missing_is_said_with_what_to_install(names, missing, extra):
    script = (
        f"import sys; sys.modules['{missing}'] = None; import driftwolfe as dw\n"
        "dw.estimators.MatrixCompleter()\n"
        f"for name in {names}:\n"
        "    try:\n"
        "        getattr(dw.estimators, name)\n"
        "    except ModuleNotFoundError as error:\n"
        "        print(error)"
    )
    for name, line in zip(names, python("-c", script).stdout.splitlines(), strict=True):
        assert line.startswith(f"{name} needs {missing}")
        assert line.endswith(f"install it with: pip install 'driftwolfe[{extra}]'")


#: Prints the modules whose loops numba compiles from here on.
WATCHED = """
from numba.core.event import Listener, register
class Compiled(Listener):
    def on_start(self, event):
        print(event.data["dispatcher"].py_func.__module__)
    def on_end(self, event): pass
register("numba:compile", Compiled())
"""
CLASSIFIER = """
import numpy as np
from driftwolfe.estimators import TraceNormClassifier
X = np.random.default_rng(0).normal(size=(40, 3))
TraceNormClassifier().partial_fit(X, X[:, 0] > 0, classes=[False, True]).predict(X)
"""


def compiled_by(script, cache, **more):
    """The modules of ours whose loops a fresh process compiles."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)} | more
    told = python("-W", "ignore", "-c", WATCHED + script, env=environment).stdout
    return {line for line in told.split() if line.startswith("driftwolfe.")}


def test_one_estimator_compiles_only_its_own_and_nothing_where_that_was_done(tmp_path):
    baked, moved = tmp_path / "image" / "cache", tmp_path / "container" / "elsewhere"
    everything = "import driftwolfe.estimators as e\nfor name in e.__all__: getattr(e, name)"
    assert compiled_by(everything, baked) == set()
    names = ("alarm", "classifier", "core.shared")
    ours = {f"driftwolfe.estimators.{name}_kernels" for name in names}
    warmup = "import runpy, sys\nsys.argv = ['driftwolfe', 'warmup', 'TraceNormClassifier']\n"
    warmup += "runpy.run_module('driftwolfe', run_name='__main__')"
    assert compiled_by(warmup, baked) == ours
    shutil.copytree(baked, moved)
    shutil.rmtree(baked)
    assert compiled_by(CLASSIFIER, moved) == set()


def test_a_package_that_was_moved_with_its_cache_compiles_nothing(tmp_path):
    package = Path(dw.__file__).parent
    first, second = tmp_path / "first" / "driftwolfe", tmp_path / "second" / "driftwolfe"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    script = "import driftwolfe as dw; dw.L1Ball(2).project([3.0, 0.0]); print(dw.__file__)"

    def run(copy):
        environment = kept | {"PYTHONPATH": str(copy.parent)}
        done = python("-c", WATCHED + script, cwd=tmp_path, env=environment)
        return done.stdout.splitlines()

    shutil.copytree(package, first, ignore=shutil.ignore_patterns("__pycache__"))
    run(first)  # compiles
    assert run(first) == [str(first / "__init__.py")]
    shutil.copytree(first, second)  # with its stamps
    shutil.rmtree(first)
    assert run(second) == [str(second / "__init__.py")]


def test_warmup_names_what_there_is_and_knows_every_module_of_loops():
    done = python("-m", "driftwolfe", "warmup", "Recomender", status=2)
    assert "did you mean 'Recommender'?" in done.stderr
    package = Path(dw.__file__).parent
    files = (path.relative_to(package) for path in package.rglob("*kernels.py"))
    names = {".".join(path.with_suffix("").parts) for path in files}
    assert names == set().union(*MODULES.values())


def test_a_learner_of_contrib_is_found_by_its_name(tmp_path):
    dw.contrib.OnlineNewtonStep(dw.L1Ball(3)).save(tmp_path / "saved")
    script = f"import driftwolfe as dw; print(dw.load({str(tmp_path / 'saved')!r}))"
    assert python("-c", script).stdout.startswith("OnlineNewtonStep(")


def test_every_public_name_is_listed_and_there():
    assert set(dw.__all__) <= set(dir(dw))
    documented = {place.split(".")[1] for place in PUBLIC if "." in place}
    assert documented <= {*dw.__all__, "comparison", "distributed"}
    for name in dw.__all__:
        assert getattr(dw, name) is not None
