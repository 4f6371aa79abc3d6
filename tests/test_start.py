"""Starting quickly: what `import driftwolfe` leaves for later, and that it is there when asked for."""

import subprocess
import sys

import pytest

import driftwolfe as dw


def loaded_after(script):
    tail = "; import sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script + tail], check=True, capture_output=True, text=True
    )
    return set(done.stdout.split())


def test_the_import_leaves_slow_parts_for_later():
    slow = {"scipy.sparse", "scipy.linalg", "scipy.optimize", "numba", "tqdm", "matplotlib"}
    extras = {"sklearn", "river", "pandas"}
    lazy = {f"driftwolfe.{name}" for name in ("estimators", "experiments", "regret", "streams")}
    assert not loaded_after("import driftwolfe") & (slow | lazy | extras)
    assert not loaded_after("import driftwolfe.estimators") & (slow | extras)
    assert not loaded_after("import driftwolfe.streams") & {"pooch", "requests", "http.client"}


def test_the_recommender_needs_neither_scikit_learn_nor_river():
    script = (
        "import driftwolfe as dw;"
        "dw.estimators.MatrixCompleter().partial_fit([(0, 1)], [2.0]).predict([(0, 1)])"
    )
    assert not loaded_after(script) & {"sklearn", "river", "pandas"}


def test_the_recommender_loads_loops_with_the_first_rating_and_only_its_own():
    """Those of side features are not among them."""
    script = "import driftwolfe as dw; model = dw.estimators.MatrixCompleter()"
    assert "numba" not in loaded_after(script)
    loaded = loaded_after(f"{script}; model.partial_fit([(0, 1), (1, 1)], [2.0, 3.0])")
    kernels = {name for name in loaded if name.endswith("_kernels")}
    assert kernels == {"driftwolfe.estimators.recommender_kernels"}


@pytest.mark.parametrize(
    ("names", "missing", "extra"),
    [
        (
            ("TraceNormClassifier", "TraceNormRegressor", "MatrixCompletionRegressor"),
            "sklearn",
            "estimators",
        ),
        (
            ("RiverTraceNormClassifier", "RiverTraceNormRegressor", "RiverRecommender"),
            "river",
            "river",
        ),
    ],
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
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name, line in zip(names, done.stdout.splitlines(), strict=True):
        assert line.startswith(f"{name} needs {missing}")
        assert line.endswith(f"install it with: pip install 'driftwolfe[{extra}]'")


def test_dense_learners_need_no_sparse_matrices():
    script = (
        "import numpy as np, driftwolfe as dw;"
        "learner = dw.POLA(dw.TraceNormBall((2, 3)));"
        "learner.update(dw.losses.MulticlassLogistic(np.ones((2, 3)), [0, 1], 2));"
        "dw.POLD(dw.L1Ball(3)).update(dw.losses.SquaredDistance(np.ones(3)))"
    )
    assert "scipy.sparse" not in loaded_after(script)


def test_every_public_name_is_listed_and_there():
    assert set(dw.__all__) <= set(dir(dw))
    for name in dw.__all__:
        assert getattr(dw, name) is not None
