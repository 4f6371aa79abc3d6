"""Starting quickly: what `import driftwolfe` leaves for later, and that it is there when asked for."""

import subprocess
import sys

import driftwolfe as dw


def loaded_after(script):
    tail = "; import sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script + tail], check=True, capture_output=True, text=True
    )
    return set(done.stdout.split())


def test_the_import_leaves_slow_parts_for_later():
    slow = {"scipy.sparse", "scipy.linalg", "scipy.optimize", "numba", "tqdm", "matplotlib"}
    rooms = {"driftwolfe.regret", "driftwolfe.streams", "driftwolfe.experiments"}
    assert not loaded_after("import driftwolfe") & (slow | rooms)


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
