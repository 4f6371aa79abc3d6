"""What everything computes on small examples is what `fingerprints.txt` says: a change of it is meant.

`python tests/contracts/test_fingerprints.py` writes the file anew. That the numbers are right is for other tests;
here a constant, a step or a bound that changed unnoticed is seen, and on every kind of machine the same.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

KNOWN = Path(__file__).with_suffix("").with_name("fingerprints.txt")
CALL = "a number has changed; if that is meant: python tests/contracts/test_fingerprints.py"
ROUNDS = 24


def probe(shape):
    return np.cos(1.0 + np.arange(np.prod(shape))).reshape(shape)


def number(value):
    """One number that nearly every change of a value, a point or several of them changes."""
    if isinstance(value, tuple | list):
        return float(sum(number(each) / (2.0 + k) for k, each in enumerate(value)))
    value = getattr(value, "toarray", lambda: value)()
    array = np.asarray(value, dtype=float)
    return float(np.vdot(probe(array.shape), array)) if array.ndim else float(array)


def told(function, *given, **named):
    """The fingerprint of an answer, or why there is none."""
    try:
        return number(function(*given, **named))
    except (NotImplementedError, AttributeError, TypeError, ValueError) as error:
        return type(error).__name__


def learners():
    from contracts.learner_cases import LEARNER_CASES

    found = {f"learner {cls.__name__}": (of_learner, cls) for cls in LEARNER_CASES}
    return {"learner bounds": (of_bounds,), "learner options": (of_options,)} | found


def of_bounds():
    """Bounds of numbers, and the parts of those of POLAR, of which it takes the smallest."""
    from contracts.learner_cases import domains
    from contracts.test_learner_contract import stream
    from driftwolfe import POLAR, Oracle
    from learners.test_formulas import BOUNDS

    yield "bounds", *(bound(1.0, 1.0) for bound in BOUNDS.values())
    domain = domains()["l1"]
    kinds = ("lazy", "origin", "adaptive", "agile")
    for name, settings in {
        "exact": {"experts": kinds},
        "learned": {"experts": kinds, "lipschitz": "auto"},
        "sleeping": {"experts": kinds, "weights": "sleeping"},
        "certified": {"experts": kinds, "tuning": "certified", "oracle": "corrective"},
        "budget": {"tuning": "certified", "oracle": Oracle(lmo_budget=30.0)},
    }.items():
        learner = POLAR(domain, **{"lipschitz": 10.0} | settings)
        for loss in stream(domain, ROUNDS):
            learner.update(loss)
        parts = learner._bounds
        epochs = [parts.epoch(kind, 1 << k) for kind in ("lazy", "origin") for k in range(8)]
        yield f"parts of POLAR, {name}", *map(parts.whole, (1, 3, 24, 1000)), number(epochs)
        levels = [parts._level(k) for k in (0, 2, 3, 5)]
        chains = parts._lazy(0.7), parts._agile(0.7)
        yield f"sums of POLAR, {name}", *levels, parts.whole_adaptive(), *map(number, chains)
        windows = [learner.bound(path, tau) for path in (0.0, 0.3) for tau in (1, 8, 13, 24)]
        yield f"windows of POLAR, {name}", *windows


def of_learner(cls):
    from contracts.learner_cases import LEARNER_CASES, domains, played, suits
    from contracts.test_learner_contract import stream

    for name in ("l1", "simplex", "factored"):
        domain = domains()[name]
        if suits(cls, domain):
            for k, settings in enumerate(LEARNER_CASES[cls]):
                for known in ({}, {"horizon": ROUNDS, "lipschitz": 10.0}):
                    if "tuning" in settings and not known:
                        continue
                    learner = cls(domain, **known, **settings)
                    suffered = [learner.update(loss) for loss in stream(domain, ROUNDS)]
                    calls = learner.oracle_calls
                    yield (
                        f"{cls.__name__} {k}, {name}, {'known' if known else 'unknown'}",
                        number(suffered),
                        number(played(learner)),
                        told(getattr, learner, "expert_weights"),
                        told(learner.bound),
                        told(learner.bound, 1.5),
                        told(learner.bound, 0.5, tau=9),
                        calls.lmo,
                        calls.projection,
                    )


def of_options():
    """What the cases of learners leave out: constraints, losses that come late, bounds by variation."""
    import driftwolfe as dw
    from contracts.learner_cases import LEARNER_CASES, domains
    from contracts.test_learner_contract import stream

    domain = domains()["l1"]
    losses = stream(domain, ROUNDS)
    known = {"horizon": ROUNDS, "lipschitz": 10.0}
    limits = [dw.losses.LinearLoss(probe(4) * (-1) ** (t // 6), 0.2) for t in range(ROUNDS)]
    for k, settings in enumerate(LEARNER_CASES[dw.contrib.LongTerm]):
        learner = dw.contrib.LongTerm(domain, **known, **settings)
        suffered = dw.play(learner, losses, constraints=limits).losses
        parts = learner.violation, getattr(learner, "penalty", 0.0), learner.decision
        bounds = [told(learner.violation_bound), told(learner.violation_bound, tau=9)]
        yield f"LongTerm {k}, constraints", number(suffered), *map(number, parts), *bounds
    for k, settings in enumerate(({}, {"smoothness": 0.3})):
        learner = dw.contrib.Sword(domain, **known, gradients="own", **settings)
        suffered = [learner.update(loss) for loss in losses]
        yield (
            f"Sword {k}, own",
            number(suffered),
            number(learner.decision),
            told(learner.bound, 1.5),
        )
    for cls in (dw.POLD, dw.POLA, dw.Ader):
        learner = cls(domain, **known)
        suffered = dw.play(learner, losses, delay=4).losses
        bounds = [told(learner.bound, 1.5, tau) for tau in (None, 5)]
        yield f"{cls.__name__}, late", number(suffered), number(learner.decision), *bounds
    for cls in (dw.learners.KalhanOFW, dw.learners.LineSearchOFW):
        given = {"variation": 3.0, "first_gap": 0.5}
        given |= {"smoothness": 2.0} if cls is dw.learners.KalhanOFW else {}
        learner = cls(domain, ROUNDS)
        for loss in losses:
            learner.update(loss)
        yield f"{cls.__name__}, bound", told(learner.bound, **given)


def estimators():
    from contracts.estimator_cases import ESTIMATOR_CASES

    return {f"estimator {name}": (of_estimator, name) for name in ESTIMATOR_CASES}


def of_estimator(name):
    from contracts.estimator_cases import ESTIMATOR_CASES

    for k, case in enumerate(ESTIMATOR_CASES[name]):
        model = case.make()
        found = []
        for first, end in ((0, 30), (30, 60), (60, 120), (120, 200)):
            case.learn(model, slice(first, end))
            found.append(number(case.ask(model)))
        yield f"{name} {k}", *found


def sets():
    from contracts.domain_cases import CASES, made
    from driftwolfe.points.devices import HOST

    here = (case for case in CASES if made(*case.values).device is HOST)  # without PyTorch too
    return {f"set {case.id}": (of_set, case) for case in here}


def of_set(case):
    from contracts.domain_cases import made
    from contracts.test_oracle_contract import methods_for
    from driftwolfe import infeasible_projection

    domain = made(*case.values)
    shape = domain.shape
    parts = [domain.radius, domain.diameter, domain.inner_radius]
    yield case.id, *parts, told(getattr, domain, "center")
    if isinstance(shape[0], tuple):
        return
    direction = probe(shape)
    vertex = domain.lmo(direction)
    near, far = 0.5 * (vertex + domain.origin()), domain.radius * 2.0 * direction
    answers = [told(getattr(domain, n), far) for n in ("project", "gauge", "gauge_subgradient")]
    yield f"{case.id} answers", number(vertex), *answers, told(domain.contains, near)
    for method in methods_for(domain):
        how = (0.01 * domain.radius**2, method)
        found = infeasible_projection(domain, near, far, *how, max_lmo_calls=30)
        parts = (found.lmo_calls, found.distance, found.gap)
        yield f"{case.id} by {method}", *map(float, parts), number(found.feasible)


def losses():
    from losses.loss_cases import CASES

    names = [name for name in CASES if "from_" not in name]  # those of other libraries
    return {f"loss {name}": (of_loss, name) for name in names}


def of_loss(name):
    from losses.loss_cases import CASES

    make, shape = CASES[name]
    loss, x = make(np.random.default_rng(0)), probe(shape)
    yield name, float(loss.value(x)), number(loss.gradient(x))


def streams():
    from streams.test_synthetic import ON_ANY_SET, ON_MATRICES

    made = [*((maker, "L1Ball") for maker in ON_ANY_SET), *((maker, None) for maker in ON_MATRICES)]
    return {f"stream {maker}": (of_stream, maker, name) for maker, name in made}


def of_stream(maker, name):
    from driftwolfe import POLD, minimise, play, regret
    from streams.test_synthetic import make

    stream = make(maker, name)
    losses = stream.losses[::5]
    values = [loss.value(stream.comparators[0]) for loss in losses]
    yield maker, number(values), regret.path_length(stream.comparators), stream.lipschitz
    best = regret.offline_minimum(stream.domain, losses, tolerance=1e-3)
    yield f"{maker} at best", best.value, best.iterations
    history = play(POLD(stream.domain, ROUNDS, stream.lipschitz), stream, progress=False)
    windows = regret.adaptive_regret(history, 7), regret.weak_adaptive_regret(history, 7)
    whole = regret.static_regret(history), regret.worst_case_dynamic_regret(history)
    yield f"{maker} regret", *map(float, (*whole, *windows))
    for method in ("vanilla", "away", "pairwise", "corrective"):
        found = minimise(losses[1], stream.domain, 1e-3, method=method, max_lmo_calls=10)
        yield f"{maker} by {method}", found.value, found.lmo_calls, found.iterations


def data():
    return {"data, made up": (of_data,), "experiments of the paper": (of_experiments,)}


def of_data():
    from driftwolfe.streams import movielens_twin, shuttle_twin

    for stream in (movielens_twin(copies=(1, 2)), shuttle_twin()):
        parts = ("rows", "cols", "targets", "features", "labels")
        arrays = [[getattr(loss, part, []) for loss in stream[::97]] for part in parts]
        name = stream.name.replace(":", "")
        yield name, *(number(np.concatenate(each)) for each in arrays), stream.lipschitz


def of_experiments():
    from driftwolfe.experiments.paper import EXPERIMENTS

    for experiment, presets in EXPERIMENTS.items():
        for preset, found in presets.items():
            name = f"{experiment} {preset}"
            own = (found.rounds or 0, found.seeds, found.taus, found.widest, found.tuning_seeds)
            yield name, "_".join([*found.title.split(), found.real, *found.also]), *map(number, own)
            for each in found.contenders:
                words = "_".join(f"{each.label} {each.method} {each.options} {each.like}".split())
                yield f"{name}, {each.label}", words, *map(float, (*each.scales, each.seconds))


def minima():
    from regret.games import KINDS

    return {f"minima of {kind}": (of_minima, kind) for kind in KINDS}


def of_minima(kind):
    from driftwolfe import regret
    from driftwolfe.domains import ConvexHull, L1Ball, Simplex, TraceNormBall
    from regret.games import KINDS, VECTOR, some_losses

    losses, shape = some_losses(kind, 4), KINDS[kind][1]
    domains = [L1Ball(shape, 0.8)]
    if shape == VECTOR:
        domains += [Simplex(5), ConvexHull([probe(VECTOR), -0.7 * probe(VECTOR) ** 2])]
    else:
        domains += [TraceNormBall(shape, 2.0, representation="factored")]
    for domain in domains:
        name = type(domain).__name__
        for words, start in (("", None), (" from a vertex", domain.lmo(probe(shape)))):
            best = regret.offline_minimum(domain, losses, start, 1e-4)
            yield f"{name}{words}", best.value, best.value - best.gap, best.iterations
        varied = regret.function_variation(losses, domain)
        yield f"{name}, variation", float(varied), varied.upper


def everything():
    """How each thing is computed, by name."""
    from contracts.drawn import pictures

    found = {}
    for kind in (learners, estimators, sets, losses, streams, data, minima, pictures):
        found |= kind()
    return found


def lines(compute, *given):
    """A line for everything that is computed, where completers remember 64 ratings and project after 16."""
    from driftwolfe.estimators import completer_tables

    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setattr(completer_tables, "MEMORY", 64)
        for name, *values in compute(*given):
            shown = (each if isinstance(each, str) else f"{each:.8g}" for each in values)
            yield f"{name}: {' '.join(shown)}"


def known():
    """The lines that belong to each name."""
    found = {}
    for line in KNOWN.read_text().splitlines():
        if line.startswith("# "):
            found[line.removeprefix("# ")] = own = []
        else:
            own.append(line)
    return found


def parsed(text):
    """The numbers of lines by name, with words for what is no number."""
    found = {}
    for line in text:
        name, _, values = line.rpartition(": ")
        found[name] = values.split(" ")
    return found


def same(one, other):
    try:
        return one == other or float(one) == pytest.approx(float(other), rel=2e-3, abs=1e-5)
    except ValueError:  # the name of an error
        return False


def test_all_that_is_noted_is_there():
    assert list(known()) == list(everything()), CALL


def pytest_generate_tests(metafunc):
    if "name" in metafunc.fixturenames:  # `__main__` can import what is computed, and needs no test
        metafunc.parametrize("name", everything())


def test_what_is_computed_is_what_was(name):
    now, before = parsed(lines(*everything()[name])), parsed(known().get(name, ()))
    assert now.keys() == before.keys(), CALL
    changed = [
        f"{name}: {before[name]} -> {values}"
        for name, values in now.items()
        if len(values) != len(before[name]) or not all(map(same, values, before[name]))
    ]
    assert not changed, "\n".join([CALL, *changed])


if __name__ == "__main__":
    sys.path.insert(0, str(KNOWN.parents[1]))
    sys.path.insert(0, str(KNOWN.parents[2]))
    noted = ((f"# {name}", *lines(*how)) for name, how in everything().items())
    KNOWN.write_text("\n".join(line for each in noted for line in each) + "\n")
