"""Ctrl-C at any moment of a call leaves an object as before, as after, or refusing everything."""

from __future__ import annotations

import copy
import json
import opcode
import random
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

import driftwolfe as dw
from contracts.estimator_cases import ESTIMATOR_CASES
from contracts.learner_cases import LEARNER_CASES, domains, suits
from contracts.test_domain_contract import same
from contracts.test_learner_contract import make, stream
from driftwolfe.estimators import MatrixCompleter, Recommender, recommender_tables
from driftwolfe.estimators.completer_experts import CompleterPool
from driftwolfe.estimators.core.models import Watch
from learners.families import play_all

SOURCE = str(Path(dw.__file__).parent)
#: After these, and when a function is entered, CPython handles signals.
HANDLES = {"CALL", "CALL_FUNCTION_EX", "JUMP_BACKWARD"}
REFUSED = "is half updated: .*load it from a file or make a new one"


class Moments:
    """Counts the moments of a call at which a signal may be handled, and raises at one of them."""

    def __init__(self, at=0):
        self.at, self.count, self._due = at, 0, set()

    def run(self, call):
        # CPython may go on holding an exception that was being handled: this thread would, for all later tests.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(self._traced, call).result()

    def _traced(self, call):
        sys.settrace(self._enter)
        try:
            return call()
        finally:
            sys.settrace(None)

    def _enter(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        self._moment()
        if frame.f_code.co_name == "guarded":  # it returns a call in a try; the next opcode is not
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, frame, event, arg):
        if event == "opcode":
            if frame in self._due:
                self._due.discard(frame)
                self._moment()
            if opcode.opname[frame.f_code.co_code[frame.f_lasti]] in HANDLES:
                self._due.add(frame)
        return self._step

    def _moment(self):
        self.count += 1
        if self.count == self.at:
            sys.settrace(None)
            raise KeyboardInterrupt


def saved(model, path):
    model.save(path)
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]  # its names are in no order


def interrupted(make, call, number, path, seed=0):
    """Yield models that were interrupted in a call: as before it (0), as after it (1), or refusing (None)."""
    before, after, moments = make(), make(), Moments()
    call(make())  # what is first done only once
    moments.run(lambda: call(after))
    states = saved(before, path), saved(after, path)
    for at in random.Random(seed).sample(range(1, moments.count + 1), min(number, moments.count)):
        model = make()
        with suppress(KeyboardInterrupt):
            Moments(at).run(lambda model=model: call(model))
        saved(before, path)
        good = path.read_bytes()
        try:
            state = saved(model, path)
        except RuntimeError as error:
            assert path.read_bytes() == good
            with pytest.raises(RuntimeError, match=REFUSED):
                raise error
            with pytest.raises(RuntimeError, match=REFUSED):
                call(model)
            with pytest.raises(RuntimeError, match=REFUSED):
                copy.deepcopy(model)
            yield model, None
        else:
            assert state in states, at
            yield model, states.index(state)
            type(model).load(path)


CASES = [
    pytest.param(case, id=f"{name}-{number}")
    for name, cases in ESTIMATOR_CASES.items()
    for number, case in enumerate(cases)
]


@pytest.mark.in_turn
@pytest.mark.parametrize("rows", [slice(70, 71), slice(63, 64), slice(62, 66), slice(60, 130)])
@pytest.mark.parametrize("case", CASES)
def test_interrupted_estimators(case, rows, tmp_path):
    learned = case.make()
    if hasattr(learned, "learn_one") and not hasattr(learned, "partial_fit"):
        rows = slice(rows.start, rows.start + 1)  # one call for each
    case.learn(learned, slice(rows.start))
    ends, number = [], 4 if rows.stop - rows.start > 60 else 12  # of long calls few
    call = lambda model: case.learn(model, rows)  # noqa: E731
    for model, end in interrupted(partial(copy.deepcopy, learned), call, number, tmp_path / "m"):
        ends.append(end)
        if end is None:
            with pytest.raises(RuntimeError, match=REFUSED):
                case.ask(model)
    if rows.stop - rows.start == 1 and "observe" not in dir(learned):
        assert {0, 1} & set(ends)


def learn(model, pairs):
    model.partial_fit(pairs, *([[1.0] * len(pairs)] if type(model) is MatrixCompleter else []))


def with_four(kind):
    model = kind()
    learn(model, [("ann", "tea"), ("bob", "jam"), ("ann", "jam"), ("cat", "tea")])
    return model


@pytest.mark.parametrize("ghosts", [1, 3])
@pytest.mark.parametrize("kind", [MatrixCompleter, Recommender])
def test_nobody_gets_the_items_of_a_ghost(kind, ghosts, tmp_path):
    call = lambda model: learn(model, [(f"ghost {k}", f"secret {k}") for k in range(ghosts)])  # noqa: E731
    ends = set()
    for model, end in interrupted(partial(with_four, kind), call, 60, tmp_path / "m"):
        ends.add(end)
        if end is not None:
            learn(model, [("newcomer", "tea")])
            unseen = {"jam", *(f"secret {k}" for k in range(ghosts * end))}
            assert set(model.recommend("newcomer")) == unseen
            again = saved(model, tmp_path / "m")
            assert saved(kind.load(tmp_path / "m"), tmp_path / "m") == again
    assert {0, 1} <= ends


@pytest.mark.parametrize(
    "pairs", [[("bob", "tea")], [("new", "new")], [("new", "tea"), ("bob", "new")]]
)
@pytest.mark.parametrize("kind", [MatrixCompleter, Recommender])
@pytest.mark.parametrize("done", [False, True])
def test_a_call_stopped_before_its_first_row_is_undone_and_after_its_last_complete(
    done, kind, pairs, monkeypatch, tmp_path
):
    model, wanted = with_four(kind), with_four(kind)
    if done:
        learn(wanted, pairs)

    def stop(*given):
        for take in takes:
            take(*given)
        raise KeyboardInterrupt

    takes = []
    with monkeypatch.context() as patch:
        if done:
            takes.append(Watch.take if len(pairs) > 1 else Watch.take_one)
            patch.setattr(Watch, takes[0].__name__, stop)
        else:
            patch.setattr(CompleterPool, "_tables", stop)
            patch.setattr(recommender_tables, "scratch", stop)
        with pytest.raises(KeyboardInterrupt):
            learn(model, pairs)
    assert saved(model, tmp_path / "m") == saved(wanted, tmp_path / "m")


@pytest.mark.in_turn
@pytest.mark.parametrize("name", ["l1", "factored"])
@pytest.mark.parametrize("cls", LEARNER_CASES)
def test_interrupted_learners(cls, name, tmp_path):
    domain, rng = domains()[name], random.Random(1)
    if not suits(cls, domain):
        pytest.skip(f"{cls.__name__} is not for this set")
    losses = stream(domain, 12)
    clean = make(cls, LEARNER_CASES[cls][0], domain)
    twins = [clean.clone()]
    for loss in losses:
        clean.update(loss)
        twins.append(clean.clone())
    for t in range(3, 9, 1 if name == "l1" else 2):
        moments = Moments()
        moments.run(lambda t=t: twins[t].clone().update(losses[t]))
        for at in rng.sample(range(1, moments.count + 1), min(6, moments.count)):
            learner = twins[t].clone()
            with suppress(KeyboardInterrupt):
                Moments(at).run(lambda each=learner, t=t: each.update(losses[t]))
            try:
                learner.decision  # noqa: B018
            except RuntimeError:
                calls = (learner.clone, lambda each=learner: copy.deepcopy(each))
                update, save = (lambda: learner.update(losses[t])), tmp_path / "learner"  # noqa: B023
                for call in (*calls, update, lambda: learner.save(save)):  # noqa: B023
                    with pytest.raises(RuntimeError, match=REFUSED):
                        call()
                assert not save.exists()
                continue
            play_all(learner, losses[learner.t : t + 3])
            if cls is not dw.learners.OneOracleAder:  # calls that were made stay spent
                assert same(learner.decision, twins[t + 3].decision)


def test_a_ticket_is_used_or_open():
    loss, ends = dw.losses.LinearLoss([1.0, -1.0]), set()
    dw.OGD(dw.L2Ball(2), horizon=4, lipschitz=2.0).update(loss)  # what is done only once
    for asking in (True, False):
        interrupted, at = True, 0
        while interrupted:
            learner = dw.OGD(dw.L2Ball(2), horizon=4, lipschitz=2.0)
            call = learner.ask if asking else partial(learner.update, loss, learner.ask())
            at += 1
            try:
                Moments(at).run(call)
                interrupted = False
            except KeyboardInterrupt:
                pass
            try:
                ends.add((asking, learner.t, len(learner.tickets)))
            except RuntimeError as error:
                assert re.search(REFUSED, str(error))
                ends.add((asking, None, None))
    refused = {(True, None, None), (False, None, None)}
    assert ends == {(True, 0, 0), (True, 0, 1), (False, 0, 1), (False, 1, 0), *refused}
