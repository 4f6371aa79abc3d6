"""Keyed models on a real cluster of processes: those of one process, whatever dies."""

import os
import signal
import threading
from random import Random

import pytest

pytest.importorskip("distributed")

from distributed import Client, LocalCluster

from driftwolfe import distributed
from driftwolfe.keyed import NotOwnerError
from keyed_cases import contents, events, factory, learned


@pytest.fixture(scope="module")
def client():
    alone = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(n_workers=2, **alone) as cluster, Client(cluster) as client:
        yield client


def kill_one(client, random):
    """Kill a worker; its nanny starts another."""
    pids = client.run(os.getpid)
    os.kill(random.choice([*pids.values()]), signal.SIGKILL)


@pytest.mark.parametrize("kills", [1, pytest.param(30, marks=pytest.mark.slow)])
@pytest.mark.skipif(os.name != "posix", reason="this system has no SIGKILL")
def test_models_are_those_of_one_process_though_workers_are_killed(client, tmp_path, kills):
    random, stream = Random(kills), events(400 * kills, keys=60)
    bad = random.sample(range(len(stream)), kills)
    given = [(*event[:2], None) if k in bad else event for k, event in enumerate(stream)]
    refused, timers = {}, []
    with distributed.Keyed(client, factory, tmp_path, shards=4, most=20, every=300) as models:
        for first in range(0, len(given), 50):
            if first % 400 == 200:  # during this batch, or one of the next
                pids = client.run(os.getpid)
                pid = random.choice([*pids.values()])
                timers.append(
                    threading.Timer(0.3 * random.random(), os.kill, (pid, signal.SIGKILL))
                )
                timers[-1].start()
            refused |= models.learn_many(given[first : first + 50], first)
        for timer in timers:
            timer.join()
        good = [event for k, event in enumerate(stream) if k not in bad]
        expected = learned(good)
        if kills > 1:
            kill_one(client, random)
        assert contents(models) == expected and len(models) == len(expected)
        assert set(refused) <= {*bad} and all("label is missing" in why for why in refused.values())
        if kills > 1:
            kill_one(client, random)
        questions = [(key, {"a": 1.0, "b": 0.0, "c": 0.0}) for key in [*expected, "new"]]
        answers = models.predict_many(questions)
        assert answers[-1] is None and set(answers[:-1]) <= {f"class {k}" for k in range(4)}
        mine = [factory().from_bytes(expected[key]).predict_one(x) for key, x in questions[:-1]]
        assert answers[:-1] == mine
    assert len(timers) == kills
    with distributed.Keyed(client, factory, tmp_path, shards=4) as models:
        assert models.offset == len(stream) - 1
        assert models.learn_many(given, 0) == {}  # all of it was learned
        assert contents(models) == expected


def test_a_source_that_dies_sends_again_what_was_not_committed(client, tmp_path):
    stream = events(120)
    first = distributed.Keyed(client, factory, tmp_path, shards=3)
    first.learn_many(stream[:50], 0)
    first.commit()
    first.learn_many(stream[50:80], 50)
    with distributed.Keyed(client, factory, tmp_path, shards=3) as models:  # takes the files over
        assert models.offset == 49
        with pytest.raises(NotOwnerError, match="new owner"):
            first.commit()
        models.learn_many(stream[40:], 40)
        assert contents(models) == learned(stream)
        key = stream[0][0]
        models.forget(key)
        assert key not in models.keys()  # noqa: SIM118
        with pytest.raises(KeyError):
            models.forget(key)
        with pytest.raises(KeyError):
            models[key]


def test_bad_input_and_other_folders(client, tmp_path):
    stream = events(20)
    with distributed.Keyed(client, factory, tmp_path, shards=3) as models:
        models.learn_many(stream, 0)
        with pytest.raises(TypeError, match="a text or a whole number"):
            models.learn_many([*stream, (1.5, {"a": 1.0}, 1)], 20)
        with pytest.raises(ValueError, match="whole number"):
            models.learn_many(stream, "0")
        assert models.offset == 19 and contents(models) == learned(stream)
        assert models.learn_many([], 20) == {} and models.offset == 19
    with pytest.raises(ValueError, match="another number of shards"):
        distributed.Keyed(client, factory, tmp_path, shards=2)
    with pytest.raises(ValueError, match="another factory"):
        distributed.Keyed(client, type(factory()), tmp_path, shards=3)
    with pytest.raises(TypeError, match="neither"):
        distributed.Keyed(client, AnswersOnly, tmp_path / "other", shards=2)


class AnswersOnly:
    def to_bytes(self):
        return b""

    @classmethod
    def from_bytes(cls, content):
        return cls()
