"""Sweeps as people write them down, mistakes included."""

import time
import tracemalloc

import pytest

from driftwolfe.experiments import sweep as module
from driftwolfe.experiments.sweep import EXAMPLE, Spec, parse_spec, read_spec
from driftwolfe.experiments.trial import DataSet

START = 'data = "jumping-target"\n'
METHOD = '[[methods]]\nmethod = "OGD"\n'


def _trials(text):
    return parse_spec(text.encode()).trials()


def test_the_example_is_a_sweep_and_says_all_that_there_is_to_say(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(EXAMPLE)
    trials = read_spec(path).trials()
    assert len({trial.identity for trial in trials}) == len(trials) == 3 * (4 + 4 + 1)
    assert {trial.title for trial in trials} == {"POLA", "POLA, cold start", "OGD"}
    assert {trial.seed for trial in trials} == {0, 1, 2}
    assert {trial.taus for trial in trials} == {(50,)}
    assert {trial.c for trial in trials if trial.method == "POLA"} == {0.5, 1.0, 2.0, 4.0}
    assert all(trial.data == DataSet(name="jumping-target", rounds=400) for trial in trials)
    for field in (*Spec.__struct_fields__, *module.MethodSpec.__struct_fields__):
        if field not in ("first", "limit"):
            assert field in EXAMPLE


def test_the_order_of_trials_and_each_once():
    text = f"seeds = [5, 3]\n{START}{METHOD}c = [1, 2]\n[[methods]]\nmethod = 'BOGDIP'\n"
    found = [(trial.seed, trial.method, trial.c) for trial in _trials(text)]
    of_one = [("OGD", 1.0), ("OGD", 2.0), ("BOGDIP", None)]
    assert found == [(seed, *rest) for seed in (5, 3) for rest in of_one]
    assert len(_trials(f"seeds = [1, 1, 0]\n{START}{METHOD}c = [1, 1.0, 2]\n")) == 4
    twice = START + METHOD + '[[methods]]\nmethod = "OGD"\nlabel = "again"\n'
    (trial,) = _trials(twice)
    assert trial.title == "OGD"  # the first of them names it


def test_lists_of_options_are_tried_in_every_combination_and_named():
    text = START + (
        '[[methods]]\nmethod = "POLA"\nc = [1, 2]\nfirst = 20\nlimit = 5\n'
        'options = { start = ["origin", "current"], seed = [1, 2], feedback = "linear" }\n'
    )
    trials = _trials(text)
    assert len(trials) == 2 * 2 * 2
    assert {trial.title for trial in trials} == {
        f"POLA, start={start}, seed={seed}, feedback=linear"
        for start in ("origin", "current")
        for seed in (1, 2)
    }
    assert all(trial.options["feedback"] == "linear" for trial in trials)
    assert {(trial.first, trial.limit) for trial in trials} == {(20, 5.0)}


#: What is wrong with a trial is told in test_trial.py.
TABLE = f'{START}[[methods]]\nmethod = "POLA"\n'
MISTAKES = [
    (f"seeds = [-1]\n{START}{METHOD}", "seed must be a whole number >= 0"),
    (f"sedes = 3\n{START}{METHOD}", "unknown key `sedes`"),
    (f"{START}{METHOD}C = 1\n", "unknown key `C`"),
    (f'data = {{ name = "shuttle", round = 5 }}\n{METHOD}', "unknown key `round`"),
    (f'seeds = "three"\n{START}{METHOD}', "Expected `int | array`, got `str`"),
    (f"seeds = true\n{START}{METHOD}", "Expected `int | array`, got `bool`"),
    (f'{START}{METHOD}c = "1"\n', "Expected `float | array | null`, got `str`"),
    (f'{START}methods = {{ method = "OGD" }}\n', "Expected `array`"),
    (f"{START}{METHOD}options = {{ seed = 2024-01-01 }}\n", "got `date`"),
    (f"taus = [2.5]\n{START}{METHOD}", "Expected `int`, got `float`"),
    (METHOD, "missing required field `data`"),
    (START, "missing required field `methods`"),
    (f"{START}methods = []\n", "there is nothing to run"),
    (f"seeds = -3\n{START}{METHOD}", "there is nothing to run"),
    (f"seeds = []\n{START}{METHOD}", "there is nothing to run"),
    (f"{START}{METHOD}c = []\n", "c of OGD is an empty list"),
    (f"{TABLE}options = {{ start = [] }}\n", "start of POLA is an empty list"),
    (f"{START}{METHOD}options = {{seed = [[1]]}}\n", "options"),
    (f"{START}title = 2024-01-01\n{METHOD}", "title"),
    (f'data = {{name = "jumping-target", rounds = 99999999999999}}\n{METHOD}', "at most 1e+07"),
    (bytes(range(256)), "utf-8"),
    (b"\x7fELF\x02", "Invalid"),
    ('title = "a\x00b"', "Illegal character"),
    ("title = \n", "Invalid value (at line 1, column 9)"),
    (f"title = 'a'\ntitle = 'b'\n{START}{METHOD}", "Cannot overwrite a value"),
    ("a = " + "[" * 50_000, "nested too deeply"),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=[sentence for _, sentence in MISTAKES])
def test_a_mistake_gets_one_sentence_that_names_the_file(mistake, tmp_path):
    text, sentence = mistake
    path = tmp_path / "mine.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError) as problem:
        read_spec(path)
    said = str(problem.value)
    assert said.startswith(f"{path}: ") and sentence in said and "\n" not in said


def test_files_that_are_missing_or_too_large(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*gone.toml; `driftwolfe sweep --ex"):
        read_spec(tmp_path / "gone.toml")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_spec(tmp_path)  # a folder
    path = tmp_path / "large.toml"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # no disk is that large: a hole
    with pytest.raises(ValueError, match="too large to be the description of a sweep"):
        read_spec(path)


MANY = f"[{', '.join(map(str, range(1, 1000)))}]"
NAMES = ("accuracy", "seed", "tolerance_scale", "loss_scale")
OPTIONS = ", ".join(f"{name} = {MANY}" for name in NAMES)


@pytest.mark.parametrize("seeds", [100001, 10**30, None])
def test_too_many_trials_are_refused_without_making_them(seeds):
    text = f"seeds = {seeds}\n{START}{METHOD}"
    if seeds is None:
        text = f'{START}[[methods]]\nmethod = "POLD"\noptions = {{ {OPTIONS} }}\n'
    tracemalloc.start()
    started = time.monotonic()
    with pytest.raises(ValueError, match=r"trials are more than 100,000; split the sweep"):
        parse_spec(text.encode())
    assert time.monotonic() - started < 5.0
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()


def test_as_many_trials_as_are_allowed_are_all_there(monkeypatch):
    monkeypatch.setattr(module, "_MOST_TRIALS", 60)
    text = f"seeds = 20\n{START}{METHOD}c = [1, 2, 3]\n"
    assert len(_trials(text)) == 60
    with pytest.raises(ValueError, match="63 trials are more than 60"):
        _trials(text.replace("20", "21"))
    # None is left out silently where many are the same.
    with pytest.raises(ValueError, match="61 trials are more than 60"):
        _trials(f"{START}{METHOD}c = [{'1, ' * 60} 2]\n")
