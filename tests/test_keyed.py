"""One model per key: those of a dict, whatever is evicted, killed or refused."""

import copy
import json
import os
import sqlite3
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.estimators import RiverTraceNormClassifier, TraceNormRegressor
from keyed_cases import contents, events, factory, learned
from reliability.children import python, same_copy


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "folder" / "models.sqlite"


@pytest.mark.parametrize(("most", "with_prior"), [(1, False), (5, True), (1000, False)])
def test_models_are_those_of_a_dict(path, most, with_prior):
    stream, random, plain = events(180), np.random.default_rng(1), {}
    prior = factory() if with_prior else None
    for first in range(0, 180, 90):  # opened anew
        with dw.Keyed(factory, path, most, factory() if with_prior else None, every=37) as models:
            for offset, (key, x, y) in enumerate(stream[: first + 90]):  # from the start each time
                new = prior if with_prior else factory()
                assert models.predict(key, x) == plain.get(key, new).predict_one(x)
                if offset >= first:
                    plain.setdefault(key, copy.deepcopy(new)).learn_one(x, y)
                    if with_prior:
                        prior.learn_one(x, y)
                assert models.learn(key, x, y, offset=offset) == (offset >= first)
                assert len(models._models) <= most
                if random.random() < 0.02:
                    models.commit()
            assert contents(models) == {key: model.to_bytes() for key, model in plain.items()}
            assert models.keys() == [*plain] and len(models) == len(plain)
            assert models.offset == first + 89
            assert not with_prior or models.prior.to_bytes() == prior.to_bytes()


def test_the_least_recently_used_leave(path):
    (_, x, y), *_ = events(1)
    with dw.Keyed(factory, path, 4) as models:
        for key in "abcd":
            models.learn(key, x, y)
        models.predict("a", x)
        models.learn("e", x, y)
        assert [*models._models] == ["c", "d", "a", "e"]
        models.predict("b", x)
        assert [*models._models] == ["d", "a", "e", "b"]


def test_models_of_scikit_learn(path):
    with dw.Keyed(TraceNormRegressor, path, 1, TraceNormRegressor()) as models:
        models.commit(3)
        models.learn("a", [[1.0, 2.0]], [1.0], offset=4)
        models.learn("b", [[1.0, 2.0]], [3.0], offset=5)
        assert models.prior.n_features_in_ == models["a"].n_features_in_ == 2
        assert models.predict("a", [[1.0, 2.0]]) < models.predict("b", [[1.0, 2.0]])
    with pytest.raises(ValueError, match="another factory"):
        dw.Keyed(lambda: TraceNormRegressor(random_features=8), path, prior=TraceNormRegressor())


def test_many_events_have_offsets_one_after_the_other(path):
    stream = events(50)
    with dw.Keyed(factory, path) as models:
        assert models.learn_many(stream[:20], offset=0) == 20
        assert models.learn_many(stream[10:30], offset=10) == 10
        bad = [*stream[30:35], (stream[35][0], {"a": "no number"}, None), *stream[36:]]
        with pytest.raises(ValueError, match="label is missing"):
            models.learn_many(bad, offset=30)
        assert models.offset == 34
        assert models.learn_many(stream, offset=0) == 15
        assert contents(models) == learned(stream)
        models.commit(60)  # ten events that were for no model
        assert models.offset == 60 and not models.learn(*stream[0], offset=60)
        assert models.learn_many(stream[:2]) == 2 and models.offset == 60
    with dw.Keyed(factory, path) as models:
        assert models.offset == 60


@pytest.mark.parametrize(
    ("times", "prior"),
    [
        (3, "prior"),
        pytest.param(30, "prior", marks=pytest.mark.slow),
        pytest.param(30, "none", marks=pytest.mark.slow),
    ],
)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no SIGKILL")
def test_kills_lose_and_double_nothing(tmp_path, times, prior):
    program = Path(__file__).with_name("keyed_kills.py")
    environment = same_copy(program.parent, PYTHONWARNINGS="error")
    kills = json.loads(python(program, tmp_path, times, prior, env=environment).stdout)
    assert kills["in a transaction"] == kills["before an event"] == times // 3


def test_forgotten_models_leave_the_file(path):
    with dw.Keyed(factory, path, 2) as models:
        for number in range(60):  # rewritten often, and so at several places
            for key in ("ann", "bob", "secret-key"):
                models.learn(key, {f"feature of {key}": float(number)}, f"label of {key}")
            if number % 10 == 0:
                models.commit()
        models.learn("unwritten", {"a": 1.0}, 1)
        content = zlib.compress(models["secret-key"].to_bytes(), 1)
        models.commit()
        middle = content[len(content) // 2 :][:200]
        assert any(middle in f.read_bytes() for f in path.parent.iterdir())
        models.forget("secret-key")
        models.learn("unseen", {"a": 1.0}, 1)
        models.forget("unseen")  # was never written
        for file in path.parent.iterdir():
            for part in (middle, b"secret-key"):
                assert part not in file.read_bytes()
        assert models.keys() == ["ann", "bob", "unwritten"] and len(models) == 3
        with pytest.raises(KeyError, match="secret-key"):
            models.forget("secret-key")
        with pytest.raises(KeyError, match="secret-key"):
            models["secret-key"]
        models.learn("secret-key", {"a": 1.0}, 1)
        assert models["secret-key"]._columns.labels == ["a"]  # a new one
    with dw.Keyed(factory, path) as models:
        assert models.keys() == ["ann", "bob", "unwritten", "secret-key"]


@pytest.mark.parametrize("with_prior", [False, True])
def test_refused_events_change_nothing(path, with_prior):
    stream = events(60)
    with dw.Keyed(factory, path, 5, factory() if with_prior else None) as models:
        models.learn_many(stream, offset=0)
        before, offset, prior = contents(models), models.offset, models.prior
        prior = with_prior and prior.to_bytes()
        known, x, _ = stream[-1]
        for key in (known, "new"):
            for bad in (({"a": np.inf}, 1), (x, None), ([1.0], 1), (x,), (x, 1, 2, 3)):
                with pytest.raises((ValueError, TypeError)):
                    models.learn(key, *bad, offset=99)
        for key in (None, 1.5, True, ("a", 1), b"a", 1 << 63, "\ud800", [], np.float64(1)):
            with pytest.raises((TypeError, ValueError)):
                models.learn(key, x, "a", offset=99)
            with pytest.raises((TypeError, ValueError)):
                models.predict(key, x)
            with pytest.raises((TypeError, ValueError)):
                assert key in models
        for place in (-1, 1.5, "1", True, 1 << 63):
            with pytest.raises((TypeError, ValueError)):
                models.learn(known, x, "a", offset=place)
        assert contents(models) == before and models.offset == offset and "new" not in models
        assert not with_prior or models.prior.to_bytes() == prior
        assert (
            models.learn(np.int64(777), x, "a") and 777 in models and np.str_("777") not in models
        )


def test_a_second_opener_is_refused(path):
    with dw.Keyed(factory, path) as models:
        models.learn("a", {"x": 1.0}, 1, offset=5)
        with pytest.raises(BlockingIOError, match="close that first"):
            dw.Keyed(factory, path)
        program = (
            "import sys; import driftwolfe as dw; from keyed_cases import factory\n"
            "try: dw.Keyed(factory, sys.argv[1])\nexcept BlockingIOError as error: print(error)"
        )
        done = python("-c", program, path, env=same_copy(Path(__file__).parent))
        assert "open in another process" in done.stdout
        models.learn("a", {"x": 1.0}, 1, offset=6)
    with dw.Keyed(factory, path) as models:
        assert models.offset == 6
    with pytest.raises(ValueError, match="is closed"):
        models.learn("b", {"x": 1.0}, 1)
    models.close()  # again


def test_a_new_owner_takes_over(path):
    first = dw.Keyed(factory, path, owner="first")
    stream = events(40)
    first.learn_many(stream[:10], offset=0)
    first.commit()
    first.learn_many(stream[10:20], offset=10)
    second = dw.Keyed(factory, path, owner="second")
    assert second.offset == 9
    for _ in range(2):
        with pytest.raises(dw.keyed.NotOwnerError, match="new owner"):
            first.commit()
    second.learn_many(stream[10:], offset=10)
    assert contents(second) == learned(stream)
    second.close()
    with pytest.raises(dw.keyed.NotOwnerError):
        first.close()


NEWER = "UPDATE facts SET value = replace(value, 'version 1', 'version 2') WHERE name = 'described'"


def test_files_of_something_else(path, tmp_path):
    with dw.Keyed(factory, path, prior=factory()) as models:
        models.learn_many(events(10), offset=0)
    with pytest.raises(ValueError, match="another factory"):
        dw.Keyed(RiverTraceNormClassifier, path, prior=RiverTraceNormClassifier())
    with pytest.raises(ValueError, match="another factory"):
        dw.Keyed(TraceNormRegressor, path)
    with pytest.raises(ValueError, match="has a prior"):
        dw.Keyed(factory, path)
    for query, words in [
        (NEWER, "version 2"),
        ("PRAGMA application_id = 1", "else"),
    ]:
        database = sqlite3.connect(path)
        database.execute(query)
        database.commit()
        database.close()
        with pytest.raises(ValueError, match=words):
            dw.Keyed(factory, path, prior=factory())
    text = tmp_path / "text"
    text.write_text("not a database, but long enough to be taken for one" * 40)
    with pytest.raises(ValueError, match="no file of Keyed"):
        dw.Keyed(factory, text)
    assert text.read_text().startswith("not a database")
    with pytest.raises(OSError, match="could not use"):
        dw.Keyed(factory, tmp_path)
    with pytest.raises(OSError, match="is not a folder"):
        dw.Keyed(factory, text / "below")


def test_damaged_models_are_refused(path):
    with dw.Keyed(factory, path) as models:
        models.learn("a", {"x": 1.0}, 1)
        models.learn("b", {"x": 1.0}, 1)
    database = sqlite3.connect(path)
    database.execute("UPDATE models SET content = X'00' WHERE key = 'a'")
    database.commit()
    database.close()
    with dw.Keyed(factory, path) as models:
        with pytest.raises(ValueError, match="damaged"):
            models.predict("a", {"x": 1.0})
        with pytest.raises(ValueError, match="damaged"):
            models.learn("a", {"x": 1.0}, 1, offset=3)
        assert models.offset == -1 and models.predict("b", {"x": 1.0}) == 1


def test_a_full_disk_changes_nothing(path):
    stream = events(60)
    models = dw.Keyed(factory, path, 1000)
    models.learn_many(stream[:20], offset=0)
    models.commit()
    models._file._db.execute("PRAGMA max_page_count = 1")
    models.learn_many(stream[20:50], offset=20)
    with pytest.raises(OSError, match="full"):
        models.commit()
    with pytest.raises(OSError, match="full"):
        models.forget(stream[0][0])
    assert contents(models) == learned(stream[:50])
    models._file._db.execute("PRAGMA max_page_count = 100000")
    models.learn_many(stream[50:], offset=50)
    models.close()
    with dw.Keyed(factory, path) as models:
        assert contents(models) == learned(stream) and models.offset == 59


class Interrupting(RiverTraceNormClassifier):
    """Stands for Ctrl-C in the middle of an update."""

    def learn_one(self, x, y, w=1.0):
        super().learn_one(x, y)
        if y == "stop":
            raise KeyboardInterrupt


def test_what_an_interrupt_left_half_learned_is_not_written(path):
    models = dw.Keyed(Interrupting, path)
    models.learn("a", {"x": 1.0}, 1, offset=0)
    models.commit()
    models.learn("a", {"x": 1.0}, 1, offset=1)
    with pytest.raises(KeyboardInterrupt):
        models.learn("a", {"x": 1.0}, "stop", offset=2)
    with pytest.raises(RuntimeError, match="half updated"):
        models.learn("a", {"x": 1.0}, 1, offset=3)
    models.close()
    with dw.Keyed(Interrupting, path) as models:
        assert models.offset == 0  # the source goes on from here


def test_a_second_thread_is_refused(path):
    inside, go, told = threading.Event(), threading.Event(), []

    class Slow(RiverTraceNormClassifier):
        def learn_one(self, x, y, w=1.0):
            inside.set()
            assert go.wait(20)

    with dw.Keyed(Slow, path) as models:
        thread = threading.Thread(target=models.learn, args=("a", {"x": 1.0}, 1))
        thread.start()
        assert inside.wait(20)
        try:
            models.predict("a", {"x": 1.0})
        except RuntimeError as error:
            told.append(str(error))
        go.set()
        thread.join()
        models._changed.clear()  # it learned nothing
    assert "at work in another thread" in told[0]


class Mean:
    """A model that is not of the library, and writes itself."""

    def __init__(self, total=0.0, count=0):
        self.total, self.count = total, count

    def learn_one(self, y):
        self.total, self.count = self.total + y, self.count + 1

    def predict_one(self):
        return self.total / self.count if self.count else 0.0

    def to_bytes(self):
        return json.dumps([self.total, self.count]).encode()

    @classmethod
    def from_bytes(cls, content):
        return cls(*json.loads(content))


def test_models_of_others(path):
    with dw.Keyed(Mean, path, 2) as models:
        for number in range(30):
            models.learn(f"key {number % 5}", float(number))
        assert [models.predict(f"key {k}") for k in range(5)] == [12.5, 13.5, 14.5, 15.5, 16.5]
    linear = pytest.importorskip("river.linear_model")
    with pytest.raises(TypeError, match="has no to_bytes and from_bytes"):
        dw.Keyed(linear.LogisticRegression, path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"factory": 3},
        {"factory": dict},
        {"factory": dw.DriftAlarm},
        {"most": 0},
        {"most": 1.5},
        {"every": 0},
        {"prior": 3},
        {"prior": TraceNormRegressor()},
    ],
)
def test_wrong_arguments(path, wrong):
    with pytest.raises((TypeError, ValueError)):
        dw.Keyed(**{"factory": factory, "store": path} | wrong)
    assert not path.exists()
