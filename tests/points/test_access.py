"""Many readers or one writer: what is refused, what is not, and what a fork leaves."""

import copy
import pickle
import signal
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import pytest

from driftwolfe.points import access
from driftwolfe.points.access import Guarded, reads, reads_whole, writes
from reliability.children import python, same_copy


class Pair(Guarded):
    """Two numbers that are equal, except within a write."""

    def __init__(self):
        self.one = self.other = 0

    @writes
    def add(self, between=lambda: None):
        self.one += 1
        between()
        self.other += 1

    @reads
    def both(self, between=lambda: None):
        one = self.one
        between()
        return one, self.other

    @writes
    def nothing(self):
        pass

    @reads_whole
    def keep(self):
        return self.one, self.other


@contextmanager
def busy(method):
    """Hold a call in the middle, in another thread."""
    inside, go_on = threading.Event(), threading.Event()

    def wait():
        inside.set()
        assert go_on.wait(30)

    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(method, wait)
        assert inside.wait(30)
        try:
            yield
        finally:
            go_on.set()
        call.result(30)


MIDDLE = "this Pair is in the middle of an update, in this same thread: save it after the update has returned"
WRITING = "this Pair is at work in another thread; give each thread its own, or let them take turns"


def refused(call):
    with pytest.raises(RuntimeError) as problem:
        call()
    return str(problem.value)


def test_while_one_thread_writes_all_others_are_refused():
    pair = Pair()
    calls = (pair.both, pair.add, pair.keep)
    copies = (lambda: copy.copy(pair), lambda: copy.deepcopy(pair), lambda: pickle.dumps(pair))
    with busy(pair.add):
        assert [refused(call) for call in (*calls, *copies)] == [WRITING] * 6
        assert Pair().both() == (0, 0)  # another one is not concerned
    assert pair.both() == pair.keep() == (1, 1)


def test_readers_run_beside_each_other_and_refuse_writers():
    pair = Pair()
    with busy(pair.both), busy(pair.both):
        assert pair.both() == pair.keep() == (0, 0)
        assert copy.deepcopy(pair).both() == (0, 0)
        assert refused(pair.add) == WRITING
        assert pair.both() == (0, 0)
    pair.add()
    assert pair.both() == (1, 1)


SNAPSHOT = (
    "this Pair is a snapshot, which can only be read; what it was taken from learns on, and so does a "
    "copy.deepcopy of the snapshot"
)


def test_a_snapshot_is_for_all_readers_and_no_writer():
    pair, told = Pair(), []
    pair.within = [Pair()]
    pair.add(lambda: told.append(refused(pair.snapshot)))
    assert told == [MIDDLE]
    with busy(pair.add):
        assert refused(pair.snapshot) == WRITING
    with busy(pair.within[0].add):
        assert refused(pair.snapshot) == WRITING
    with busy(pair.both):
        frozen = pair.snapshot()
    for each in (frozen, frozen.within[0], frozen.snapshot(), copy.copy(frozen).within[0]):
        with busy(each.both):
            assert refused(each.add) == SNAPSHOT
    pair.add()
    free = copy.deepcopy(frozen)
    free.add()
    free.within[0].add()
    assert (pair.both(), frozen.both(), free.both()) == ((3, 3), (2, 2), (3, 3))


def test_who_reads_a_snapshot_is_not_refused_because_others_try_to_write():
    frozen, end = Pair().snapshot(), time.monotonic() + 0.5

    def read():
        while time.monotonic() < end:
            assert frozen.both() == (0, 0)
        return True

    with ThreadPoolExecutor(2) as pool:
        reading = pool.submit(read)
        while time.monotonic() < end:
            assert refused(frozen.add) == SNAPSHOT
        assert reading.result(30)


def test_a_thread_does_not_refuse_itself():
    pair, seen = Pair(), []

    def again():
        seen.append(pair.both())
        pair.both(pair.add)
        pair.add()

    pair.add(again)
    assert seen == [(1, 0)]
    assert pair.both(pair.add) == (3, 4)
    with ThreadPoolExecutor(1) as pool:  # nothing is left behind
        pool.submit(pair.add).result(30)
    assert pair.keep() == (5, 5)


def test_who_is_at_work_is_not_refused_because_others_try():
    """Those who are refused leave a trace for a moment, which must not stop who is at work."""
    pair, stop = Pair(), threading.Event()

    def try_all():
        while not stop.is_set():
            for call in (pair.both, pair.add):
                with suppress(RuntimeError):
                    call()

    def work():
        with ThreadPoolExecutor(3) as pool:
            others = [pool.submit(try_all) for _ in range(3)]
            try:
                for _ in range(2000):
                    pair.both()
                    pair.nothing()
            finally:
                stop.set()
            for other in others:
                other.result(30)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        pair.add(work)
    finally:
        sys.setswitchinterval(interval)
    assert pair.both() == (1, 1)


def test_a_read_never_sees_a_write_in_the_middle():
    """Two that write and two that read, at random moments: whatever is not refused is consistent."""
    pair, wrong, done = Pair(), [], {"add": 0, "both": 0}
    end = time.monotonic() + 30.0

    def use(name, seed):
        random, call = Random(seed), getattr(pair, name)
        while min(done.values()) < 50 and time.monotonic() < end:
            time.sleep(random.uniform(0.0, 5e-4))
            try:
                told = call(lambda: time.sleep(random.uniform(0.0, 1e-4)))
                done[name] += 1
            except RuntimeError as problem:
                told = None if str(problem) == WRITING else problem
            if told is not None and not (name == "both" and told[0] == told[1]):
                wrong.append(told)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(use, ("add", "add", "both", "both"), range(4)))
    assert wrong == []
    assert pair.one == pair.other >= 50 <= done["both"]


def test_the_whole_state_is_not_kept_within_a_write_of_the_same_thread():
    pair, told = Pair(), []
    pair.add(lambda: told.append(refused(pair.keep)))
    assert told == [MIDDLE]
    pair.both(lambda: told.append(pair.keep()))
    assert told[1] == (1, 1)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this system")
def test_a_signal_handler_neither_waits_for_ever_nor_keeps_half_a_state():
    pair, kept, refusals = Pair(), [], []

    def handler(*_):
        try:
            kept.append(pair.keep())
        except RuntimeError as problem:
            refusals.append(str(problem))

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            pair.add(lambda: sum(range(50)))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert kept or refusals
    assert all(one == other for one, other in kept)
    assert all("in the middle of an update" in each for each in refusals)


def test_errors_free_the_object_and_entries_go_with_it():
    pair = Pair()
    for method in (pair.add, pair.both):
        with pytest.raises(ZeroDivisionError):
            method(lambda: 1 / 0)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(pair.add).result(30)
    key, entries = id(pair), len(weakref.finalize._registry)
    pair.both()
    assert key in access._ACCESS and len(weakref.finalize._registry) == entries
    del pair, method
    assert key not in access._ACCESS


def test_copies_have_all_that_the_object_has():
    class Slotted(Pair):
        __slots__ = ("third",)

    made = Slotted()
    made.third, made.me, made.listed = [1], made, [2]
    made.add()
    for copied in (copy.deepcopy(made), pickle.loads(pickle.dumps(Pair())), copy.copy(made)):
        assert copied is not made
    copied = copy.deepcopy(made)
    assert (copied.one, copied.third, copied.listed) == (1, [1], [2])
    assert copied.me is copied
    assert copied.third is not made.third and copied.listed is not made.listed


FORKED = """
import os, sys, threading, warnings
from concurrent.futures import ThreadPoolExecutor
warnings.simplefilter("ignore")  # of forks beside threads, from Python 3.12 on
from points.test_access import Pair, busy


def told(call):
    try:
        return repr(call())
    except RuntimeError as problem:
        return str(problem)


def in_child(*calls):
    sys.stdout.flush()
    child = os.fork()
    if not child:
        for call in calls:
            print(told(call))
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


rest, read, written, mine, frozen = Pair(), Pair(), Pair(), Pair(), Pair().snapshot()
in_child(frozen.both, frozen.add)
rest.add()
with busy(read.both), busy(written.add):
    in_child(rest.both, rest.add, rest.both, read.add, read.both, written.both, written.add, written.keep)
mine.add(lambda: in_child(mine.both, mine.add, mine.keep))
print(told(written.both), told(mine.both))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no forks on this system")
def test_a_forked_process_goes_on_with_what_was_at_rest_and_says_what_was_not():
    done = python("-c", FORKED, timeout=120, env=same_copy(Path(__file__).parents[1]))
    half = (
        "this Pair is half updated: an update was interrupted, or in progress in another thread when this "
        "process was forked; load it from a file or make a new one"
    )
    assert done.stdout.splitlines() == [
        *("(0, 0)", SNAPSHOT),
        *("(1, 1)", "None", "(2, 2)"),  # at rest
        *("None", "(1, 1)"),  # the other thread's read has ended here
        *(half, half, half),
        *("(1, 0)", "None", MIDDLE),  # the thread that forked is in its own update
        "(1, 1) (1, 1)",  # in the parent all went on
    ]


def test_a_reader_that_a_writer_overtakes_is_refused_and_one_alone_is_not():
    """A writer may begin after a reader has found none, and before that writer can see it."""
    pair, other = Pair(), -1
    assert pair.both() == (0, 0)

    class Overtaken(list):
        def append(self, reader):
            super().append(reader)
            writers.append(other)

    writers, readers = [], Overtaken()
    access._ACCESS[id(pair)] = access._Access(readers=readers, writers=writers)
    with pytest.raises(RuntimeError, match="is at work in another thread"):
        pair.both()
    assert (readers, writers) == ([], [other])
    # One that came and went again, and one of this thread, do not count.
    for left in ([], [threading.get_ident()]):
        Overtaken.append = lambda self, me, left=left: (list.append(self, me), writers.extend(left))
        writers.clear()
        assert pair.both() == (0, 0)
