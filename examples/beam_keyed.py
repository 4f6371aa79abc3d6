"""One model per key in Apache Beam: a stateful DoFn.

Twelve shops send what they sold, each with the features of the hour; the model of a shop says what it expects, and
then learns what it was. A model rests between events as bytes in Beam's state, so it goes wherever Beam keeps the
state of its key: on the runners for Flink, Spark and Dataflow too. Beam promises no order within a key, and may
send an event again. So every event has a number within its key: what comes early waits, what was learned before
is dropped. The answers are those of one process that learns in order, bit by bit; the example compares them.

It runs on Beam's own runner in Python, FnApiRunner. Beam needs an environment of its own, as it holds other
packages back: `pip install "driftwolfe[beam]"`; without it only the serial answers are shown.
"""

import json
import random
import tempfile
import time
from pathlib import Path

import numpy as np

import driftwolfe as dw

try:
    import apache_beam as beam
    from apache_beam.coders import BytesCoder, VarIntCoder
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner
    from apache_beam.transforms.userstate import BagStateSpec, ReadModifyWriteStateSpec
except ImportError:
    beam = None

SHOPS, HOURS, FEATURES = 12, 40, 5


def new_model():
    """The model of a key that has sent nothing yet."""
    return dw.POLA(dw.L2Ball(FEATURES, radius=3.0))


def answer(model, event):
    """What the model expects of an event, before it learns it."""
    expected = float(np.dot(model.decision, event["x"]))
    model.update(dw.losses.HuberRows([event["x"]], [event["y"]]))
    return expected


if beam is not None:

    class KeyedModel(beam.DoFn):
        """A model for each key: (key, event as bytes) in, (key, number, what was expected) out.

        `new_model` makes the model of a new key, and `answer` predicts and learns; both are functions of a module
        that workers import. An event is JSON with its `number` within its key: 0, 1, 2, ...
        """

        MODEL = ReadModifyWriteStateSpec("model", BytesCoder())
        NEXT = ReadModifyWriteStateSpec("next", VarIntCoder())
        EARLY = BagStateSpec("early", BytesCoder())

        def __init__(self, new_model, answer):
            self.new_model, self.answer = new_model, answer

        def process(
            self,
            element,
            model_state=beam.DoFn.StateParam(MODEL),
            next_state=beam.DoFn.StateParam(NEXT),
            early_state=beam.DoFn.StateParam(EARLY),
        ):
            key, content = element
            following = next_state.read() or 0
            if json.loads(content)["number"] > following:
                early_state.add(content)
                return
            waiting = {}
            for each in (*early_state.read(), content):
                event = json.loads(each)
                waiting[event["number"]] = (event, each)
            model = self.new_model()
            if (held := model_state.read()) is not None:
                model = type(model).from_bytes(held)
            first = following
            while following in waiting:
                event, _ = waiting.pop(following)
                yield key, following, self.answer(model, event)
                following += 1
            if following > first:  # else it had been learned before
                model_state.write(model.to_bytes())
                next_state.write(following)
                early_state.clear()
                for number, (_, each) in waiting.items():
                    if number > following:
                        early_state.add(each)


def events(seed=0):
    """All events by shop, in order: what sells turns around after half of the time."""
    rng = np.random.default_rng(seed)
    found = {}
    for shop in range(SHOPS):
        tastes = rng.standard_normal((2, FEATURES)) / 2.0
        hours = []
        for number in range(HOURS):
            x = rng.standard_normal(FEATURES)
            y = tastes[number // (HOURS // 2)] @ x + 0.1 * rng.standard_normal()
            hours.append({"number": number, "x": x.tolist(), "y": float(y)})
        found[f"shop {shop}"] = hours
    return found


def serial(by_shop):
    """The answers of one process that learns each shop's events in order."""
    found = {}
    for shop, hours in by_shop.items():
        model = new_model()
        for event in hours:
            found[shop, event["number"]] = answer(model, event)
    return found


def by_beam(by_shop, seed=0):
    """Beam's answers to the same events, shuffled, with every tenth sent twice."""
    sent = [
        (shop, json.dumps(event).encode()) for shop, hours in by_shop.items() for event in hours
    ]
    sent += sent[::10]
    random.Random(seed).shuffle(sent)
    with tempfile.TemporaryDirectory() as folder:
        with beam.Pipeline(runner=FnApiRunner()) as pipeline:
            found = pipeline | beam.Create(sent) | beam.ParDo(KeyedModel(new_model, answer))
            _ = found | beam.Map(json.dumps) | beam.io.WriteToText(f"{folder}/answers")
        lines = [line for file in Path(folder).iterdir() for line in file.read_text().splitlines()]
    return [tuple(json.loads(line)) for line in lines]


def main():
    by_shop = events()
    started = time.perf_counter()
    expected = serial(by_shop)
    print(f"{SHOPS} shops, {HOURS} events each; mean error of every quarter")
    errors = [
        [abs(expected[shop, n] - hours[n]["y"]) for n in range(HOURS)]
        for shop, hours in by_shop.items()
    ]
    quarters = np.array(errors).mean(axis=0).reshape(4, -1).mean(axis=1)
    print("  ".join(f"{error:.2f}" for error in quarters))
    print(f"in one process: {len(expected)} answers in {time.perf_counter() - started:.1f} s")
    if beam is None:
        print("no Beam here: it needs pip install 'driftwolfe[beam]', in an environment of its own")
        return
    started = time.perf_counter()
    answers = by_beam(by_shop)
    same = len(answers) == len(expected) and all(expected[k, n] == x for k, n, x in answers)
    print(
        f"by Beam: {len(answers)} answers in {time.perf_counter() - started:.1f} s, all equal: {same}"
    )


if __name__ == "__main__":
    main()
