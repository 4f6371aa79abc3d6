"""`python -m benchmarks.gpu` with PyTorch on the host: what it measures, keeps and draws."""

import json
import math
import os
import subprocess
import sys

import pytest

import driftwolfe as dw
from devices import NO_TORCH

torch = pytest.importorskip("torch", reason=NO_TORCH)

from benchmarks import ROOT, data  # noqa: E402
from benchmarks.gpu import learning  # noqa: E402
from benchmarks.gpu.__main__ import main  # noqa: E402
from benchmarks.gpu.figures import write_pages  # noqa: E402
from benchmarks.gpu.setting import two_cores  # noqa: E402
from benchmarks.gpu.tables import SECTIONS  # noqa: E402

#: It plays every section, which takes a minute and a half, and is no part of the library.
pytestmark = pytest.mark.slow

FIGURES = ("floors", "crossover", "libraries")


def run(folder, *sections):
    told = ["--device", "torch", "--short", "--out", str(folder), "--sections", *sections]
    return main(told)


def read(folder):
    return json.loads((folder / "results.json").read_text())


def numbers(value):
    """All numbers that a section's result holds."""
    if isinstance(value, dict):
        return [number for each in value.values() for number in numbers(each)]
    if isinstance(value, list):
        return [number for each in value for number in numbers(each)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("gpu")
    assert run(where, "bandwidth", "libraries", "stream", "learning") == 0
    assert run(where, "kernels", "projection", "crossover", "auto") == 0
    return where


def test_sections_of_two_runs_are_kept_together(folder):
    results = read(folder)
    assert set(results) == set(SECTIONS) - {"movielens"}
    for section, result in results.items():
        made = result.pop("made")
        assert (made["short"], made["option"]) == (True, "torch"), section
        assert torch.__version__.startswith(made["torch"])
        assert made["device"] and made["cores"] >= 1
        found = numbers(result)
        assert found, section
        assert all(math.isfinite(number) and number >= 0 for number in found), section


def test_what_takes_time_takes_some(folder):
    results = read(folder)
    assert results["bandwidth"]["bytes_a_second"] > 0
    assert all(row["torch"] > 0 for row in results["libraries"]["milliseconds"])
    for name in ("wide", "low"):
        game, look = results["stream"][name], results["kernels"]["games"][name]
        assert game["projections"] > game["rounds"]
        assert min(game["seconds"], game["projection_ms"], *game["ranks"]) > 0
        assert look["wall_ms"] > 0
        for kind, each in look["kinds"].items():
            assert each["device_ms"] > 0, (name, kind)
            if kind != "to and from the host":  # where all of it is, nothing need move
                assert min(each["calls"], each["floor_ms"]) > 0, (name, kind)
    whole = results["kernels"]["whole wide"]
    assert whole["projections"] == results["stream"]["wide"]["projections"]
    for each in results["crossover"]["projections"]:
        assert min(each["host_ms"], each["device_ms"]) > 0


def test_host_and_device_play_the_same_game(folder):
    found = read(folder)["projection"]
    assert found["host"]["projections"] == found["device"]["projections"] > 0
    # Rough answers come from other random starts there: each is within the tolerance of a projection.
    assert found["difference_of_losses"] < 1e-3
    assert found["ratio"] > 0


def test_learners_learn_and_each_is_kept_as_it_ends(folder, tmp_path, monkeypatch):
    found = read(folder)["learning"]
    assert list(found["learners"]) == list(learning.STEP_SCALES)
    for each in found["learners"].values():
        assert len(each["tenths"]) == 10
        assert 0 < each["mean_loss"] < 2 * found["mean_loss_of_zero"]
        assert min(each["seconds"], each["projections"], each["calls"]) > 0
    assert found["mean_loss_of_truth"] < found["mean_loss_of_zero"]

    def stopped(*given):
        if first:
            raise KeyboardInterrupt
        first.append(given)
        return {"tenths": []}

    first = []
    monkeypatch.setattr(learning, "_played", stopped)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, "learning")
    assert list(read(tmp_path)["learning"]["learners"]) == ["POLAR"]


def test_a_section_measured_again_takes_the_place_of_the_old_one(tmp_path, capsys):
    old = {"bandwidth": {"old": 1}, "stream": {"kept": 2}}
    (tmp_path / "results.json").write_text(json.dumps(old))
    assert run(tmp_path, "bandwidth") == 0
    results = read(tmp_path)
    assert results["stream"] == {"kept": 2}
    assert "old" not in results["bandwidth"]
    assert "| copy of 16 MiB |" in capsys.readouterr().out


def test_movielens_is_skipped_aloud_without_data_and_played_with_it(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("DRIFTWOLFE_DATA", raising=False)
    assert run(tmp_path, "movielens") == 0
    assert "skipped movielens" in capsys.readouterr().out
    assert not (tmp_path / "results.json").exists()
    monkeypatch.setenv("DRIFTWOLFE_DATA", str(tmp_path))
    monkeypatch.setattr(data, "movielens", dw.streams.movielens_twin)
    assert run(tmp_path, "movielens") == 0
    found = read(tmp_path)["movielens"]
    assert found["host"]["loss"] > 0
    # Rough answers come from other random starts there: each is within the tolerance of a projection.
    assert found["difference_of_losses"] < 1e-3


def test_drawing_makes_tables_and_figures_and_leaves_a_page_that_is_there(folder):
    (folder / "README.md").unlink(missing_ok=True)
    assert main(["--draw", "--out", str(folder)]) == 0
    drawn = {path.stem for path in (folder / "figures").glob("*.png")}
    assert drawn == set(FIGURES)
    summary = (folder / "summary.md").read_text()
    rows = [line.split(" | ")[0] for line in summary.splitlines() if line.startswith("| ")]
    named = [row for row in rows if ": " in row or ", " in row]
    assert len(named) == len(set(named)) > 40
    for section in set(SECTIONS) - {"movielens"}:
        assert f"--device torch --short --sections {section}`" in summary
    page = folder / "README.md"
    assert all(f"figures/{name}.png" in page.read_text() for name in FIGURES)
    page.write_text("by hand\n")
    write_pages(read(folder), folder)
    assert page.read_text() == "by hand\n"


def test_what_cannot_be_drawn_or_measured_is_said(tmp_path, capsys):
    assert main(["--draw", "--out", str(tmp_path)]) == 2
    assert "measure first" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    with pytest.raises(SystemExit) as stopped:
        run(tmp_path, "nonsense")
    assert stopped.value.code == 2
    assert "invalid choice: 'nonsense'" in capsys.readouterr().err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_said_in_a_sentence(tmp_path, capsys):
    assert main(["--out", str(tmp_path)]) == 2
    assert 'device "cuda" cannot be used here' in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cores are not to be chosen")
def test_two_cores_are_given_back():
    before = os.sched_getaffinity(0)
    with two_cores():
        assert len(os.sched_getaffinity(0)) == min(2, len(before))
    assert os.sched_getaffinity(0) == before


def test_measuring_needs_no_package_that_a_bare_machine_lacks():
    code = (
        "import sys; from importlib import import_module as load\n"
        "from benchmarks.gpu.__main__ import MODULES\n"
        "for section, name in MODULES.items(): getattr(load(f'benchmarks.gpu.{name}'), section)\n"
        "print({'river', 'msgspec', 'plotly', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
