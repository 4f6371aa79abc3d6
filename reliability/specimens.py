"""Files of every kind that driftwolfe reads: how to make, mutate, load and use each."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
import lzma
import pickle
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import driftwolfe as dw
from driftwolfe.estimators import (
    MatrixCompleter,
    Recommender,
    RiverTraceNormClassifier,
    TraceNormClassifier,
    TraceNormRegressor,
)
from driftwolfe.experiments import trial as results
from driftwolfe.experiments.sweep import EXAMPLE, Store, packed, parse_spec, read_packed, read_spec
from driftwolfe.experiments.trial import DataSet, Trial
from driftwolfe.game import Checkpoint
from driftwolfe.losses import AbsoluteEntries, LinearLoss
from driftwolfe.points import FactoredMatrix
from driftwolfe.streams import datasets
from reliability.mutations import (
    json_text,
    mutated_archive,
    mutated_bytes,
    mutated_toml,
    mutated_tree,
)

#: Rounds for which a loaded object is used.
ROUNDS = 20


@dataclass(frozen=True)
class Specimen:
    """A file of one kind.

    Attributes
    ----------
    name
        In the table; specimens of one kind share it up to the colon.
    file
        Its path, relative to a folder.
    make
        Writes the file.
    craft
        Returns a mutation with a valid checksum.
    load
        Reads the file; raises ValueError or OSError if it is invalid.
    use
        Uses the loaded object and asserts that it is sound.
    """

    name: str
    file: str
    make: Callable[[Path], Any]
    craft: Callable[[Path, np.random.Generator, str], bytes]
    load: Callable[[Path], Any]
    use: Callable[[Any], Any]

    def mutation(self, original: Path, rng: np.random.Generator, canary: str) -> bytes:
        """One mutation of the file; three in four have a valid checksum."""
        draw = rng.random()
        if draw < 0.02:
            return pickle.dumps(Payload(canary))
        if draw < 0.25:
            return mutated_bytes(original.read_bytes(), rng)
        return self.craft(original, rng, canary)


class Payload:
    """Creates the canary file when it is unpickled."""

    def __init__(self, canary: str) -> None:
        self.canary = canary

    def __reduce__(self) -> Any:
        return (Path.touch, (Path(self.canary),))


# -- learners -----------------------------------------------------------------------------------


def losses_on(domain: Any, rounds: int, seed: int = 0) -> list[Any]:
    """Losses for any set that a file may hold."""
    rng = np.random.default_rng(seed)
    if isinstance(domain.origin(), FactoredMatrix):
        m, n = domain.shape
        picks = [(rng.integers(0, m, 6), rng.integers(0, n, 6)) for _ in range(rounds)]
        return [AbsoluteEntries(*pick, rng.standard_normal(6)) for pick in picks]
    return [LinearLoss(rng.standard_normal(domain.shape)) for _ in range(rounds)]


def require(fits: Any, what: str) -> None:
    """Raise AssertionError unless it holds."""
    if not fits:
        raise AssertionError(what)


def is_sound(point: Any, domain: Any) -> bool:
    """Whether a decision is finite and in the set."""
    return bool(domain.contains(point, atol=1e-6))


def use_learner(learner: Any) -> None:
    """Play some rounds; a loss may be refused if the decision stays feasible."""
    refusal = None
    require(is_sound(learner.decision, learner.domain), "the decision is not feasible")
    for loss in losses_on(learner.domain, ROUNDS):
        try:
            require(np.isfinite(learner.update(loss)), "the loss suffered is not finite")
        except ValueError as error:
            refusal = error
        require(is_sound(learner.decision, learner.domain), "the decision is not feasible")
        weights = learner.expert_weights
        fits = weights is None or (np.isfinite(weights).all() and abs(weights.sum() - 1) < 1e-6)
        require(fits, "the weights do not sum to 1")
    if refusal is not None:
        raise refusal


def learner_specimen(name: str, make: Callable[[], Any]) -> Specimen:
    """A learner after some rounds."""

    def write(path: Path) -> None:
        learner = make()
        for loss in losses_on(learner.domain, 23, seed=1):
            learner.update(loss)
        learner.save(path)

    return _archive_specimen(f"learner: {name}", write, use_learner)


def _archive_specimen(name: str, write: Any, use: Any) -> Specimen:
    return Specimen(name, "saved.safetensors", write, mutated_archive, _load_archive, use)


def _load_archive(path: Path) -> Any:
    """Load a file, or, about one in two, its bytes."""
    content = path.read_bytes()
    return dw.from_bytes(content) if zlib.crc32(content) % 2 else dw.load(path)


def _pola() -> Any:
    return dw.POLA(dw.L1Ball(4), step_scale=0.5)


def _write_game(path: Path) -> None:
    learner = _pola()
    losses = losses_on(learner.domain, 23, seed=1)
    dw.play(learner, losses, checkpoint=path)


def _load_game(path: Path) -> Any:
    learner = _pola()
    return learner, Checkpoint(path, learner).resume(learner), path


def _use_game(loaded: Any) -> None:
    learner, rows, path = loaded
    use_learner(learner)
    again = _pola()
    losses = losses_on(again.domain, len(rows) + 5, seed=1)
    history = dw.play(again, losses, checkpoint=path)
    require(np.isfinite(history.losses).all(), "the history holds losses that are not finite")
    require(len(history) == len(losses), "the game is not complete")


# -- estimators ---------------------------------------------------------------------------------


def _write_completer(path: Path) -> None:
    rng = np.random.default_rng(0)
    pairs, ratings = rng.integers(0, 8, (1_100, 2)), rng.integers(1, 6, 1_100)
    MatrixCompleter().partial_fit(pairs, ratings).save(path)


def _use_completer(completer: Any) -> None:
    rng = np.random.default_rng(1)
    for _ in range(ROUNDS):
        pairs = rng.integers(0, 12, (5, 2))
        require(np.isfinite(completer.predict(pairs)).all(), "a prediction is not finite")
        completer.partial_fit(pairs, rng.integers(1, 6, 5))
        finite = all(np.isfinite(part).all() for part in completer.factors())
        require(finite, "a factor is not finite")
    require(len(completer.recommend(3, 2)) <= 2, "more recommendations than requested")


def _write_recommender(path: Path) -> None:
    rng = np.random.default_rng(0)
    model = Recommender().partial_fit(rng.integers(0, (9, 30), (150, 2)))
    model.save(path, note={"offset": 150})


def _use_recommender(model: Any) -> None:
    rng = np.random.default_rng(1)
    for _ in range(ROUNDS):
        pairs = rng.integers(0, 40, (5, 2))
        scores = model.recommend_many([3, "new"], 5, return_scores=True)[1]
        for each in (model.predict(pairs), *scores):
            require(np.isfinite(each).all(), "a probability is not finite")
        model.partial_fit(pairs)
    tables = model.tables()
    require(np.isfinite(tables.scores(tables.seen_by(0))).all(), "a score is not finite")
    require(len(model.recommend(3, 2)) <= 2, "more recommendations than requested")


def _labelled(rows: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    return X, np.where(X[:, 0] > 0, "up", np.where(X[:, 1] > 0, "left", "right"))


def _write_classifier(path: Path) -> None:
    X, y = _labelled(90, 0)
    TraceNormClassifier().partial_fit(X, y, classes=np.unique(y)).save(path)


def _use_classifier(model: Any) -> None:
    features, classes = model.n_features_in_, model.classes_
    rng = np.random.default_rng(1)
    for _ in range(ROUNDS):
        X = rng.normal(size=(3, features))
        _require_probabilities(model.predict_proba(X))
        model.partial_fit(X, classes[rng.integers(len(classes), size=3)])
    require(np.isfinite(model.coef_).all(), "a coefficient is not finite")


def _write_river(path: Path) -> None:
    model = RiverTraceNormClassifier()
    X, y = _labelled(60, 0)
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        model.learn_one(dict(zip("abc", row, strict=True)), label)
    model.save(path)


def _use_river(model: Any) -> None:
    X, y = _labelled(ROUNDS, 1)
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        x = dict(zip("abd", row, strict=True))
        found = model.predict_proba_one(x)
        _require_probabilities(np.array([list(found.values())]) if found else np.ones((1, 1)))
        model.learn_one(x, label)


def _write_regressor(path: Path) -> None:
    X, _ = _labelled(90, 0)
    model = TraceNormRegressor()
    model.partial_fit(X, np.stack([X[:, 0], X @ np.arange(X.shape[1])], axis=1)).save(path)


def _use_regressor(model: Any) -> None:
    rng = np.random.default_rng(1)
    for _ in range(ROUNDS):
        X = rng.normal(size=(3, model.n_features_in_))
        told = model.predict(X)
        require(np.isfinite(told).all(), "a prediction is not finite")
        model.partial_fit(X, rng.normal(size=told.shape))


def _require_probabilities(p: Any) -> None:
    fits = np.isfinite(p).all() and (p >= 0).all() and np.allclose(p.sum(axis=1), 1.0)
    require(fits, "the probabilities do not sum to 1")


# -- experiments --------------------------------------------------------------------------------


def _write_spec(path: Path) -> None:
    path.write_text(EXAMPLE)


def _craft_spec(original: Path, rng: np.random.Generator, canary: str) -> bytes:
    text = original.read_text()
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        text = mutated_toml(text, rng, canary)
    return text.encode()


def _use_spec(spec: Any) -> None:
    folder = Path("somewhere")
    for trial in spec.trials()[:ROUNDS]:
        require(Store(folder).path(trial).parent == folder / "trials", "a path leads elsewhere")


def _result() -> results.Result:
    return results.Result(
        trial=Trial(
            method="POLA", data=DataSet(name="jumping-target", rounds=40), c=2.0, taus=(5,)
        ),
        rounds=[1, 20, 40],
        loss=[1.0, 15.0, 22.5],
        seconds=[0.1, 0.2, 0.3],
        lmo=[1, 20, 40],
        projection=[0, 0, 0],
        gauge=[0, 0, 0],
        drifts=[10, 20, 30],
        stream="jumping target",
        adaptive=[results.AdaptiveRegret(5, 1.5, 0.1, (3, 8))],
        weights=results.StoredWeights([0, 40], ["1 round", "2 rounds"], [[1.0, None], [0.5, 0.5]]),
        wall=1.0,
        environment={"python": "3", "packages": {"numpy": "2"}},
    )


def _craft_json(original: Path, rng: np.random.Generator, canary: str) -> bytes:
    tree = json.loads(original.read_bytes())
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        tree = mutated_tree(tree, rng)
    return json_text(tree, canary).encode()


def _use_result(result: Any) -> None:
    require(np.isfinite(result.loss[-1]), "the loss is not finite")
    require(results.decode(result.encode(), results.Result) == result, "it differs when read again")


def _write_plan(path: Path) -> None:
    Store(path.parent).add("steps", parse_spec(EXAMPLE.encode()).trials()[:5])


def _load_plan(path: Path) -> Any:
    store = Store(path.parent)
    return store, store.trials


def _use_plan(loaded: Any) -> None:
    store, trials = loaded
    for trial in trials:
        require(store.path(trial).parent == store.folder / "trials", "a path leads elsewhere")
    require(len(store.missing) == len(trials), "there are results without files")


def _craft_packed(original: Path, rng: np.random.Generator, canary: str) -> bytes:
    tree = json.loads(lzma.decompress(original.read_bytes()))
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        tree = mutated_tree(tree, rng)
    return lzma.compress(json_text(tree, canary).encode())


# -- data ---------------------------------------------------------------------------------------


def _ratings_text() -> bytes:
    rng = np.random.default_rng(0)
    rows = zip(
        rng.integers(1, 944, 40), rng.integers(1, 1683, 40), rng.integers(1, 6, 40), strict=True
    )
    return "".join(f"{u}\t{i}\t{r}\t88125{k}\n" for k, (u, i, r) in enumerate(rows)).encode()


def _shuttle_text() -> bytes:
    rng = np.random.default_rng(0)
    lines = []
    for label in rng.integers(1, 8, 40):
        pairs = (f"{j + 1}:{value:.3g}" for j, value in enumerate(rng.uniform(-1, 1, 9)))
        lines.append(f"{label} {' '.join(pairs)}\n")
    return "".join(lines).encode()


def _craft_text(content: bytes, rng: np.random.Generator) -> bytes:
    """A table with some words replaced."""
    words = [
        *b"0 -1 nan inf 1e308 1: :1 0:1 10:1 1_0 # 1.5 1:2:3 99999:1 abc".split(),
        *(b"9" * 400, b"", b"\n", b"\n\n", b"\xff", b"\0"),
    ]
    parts = content.replace(b"\n", b" \n ").split(b" ")
    if b"\t" in content:
        parts = [piece for line in content.splitlines(True) for piece in line.split(b"\t")]
    for place in rng.integers(len(parts), size=rng.integers(1, 4)):
        parts[place] = words[rng.integers(len(words))]
    return (b"\t" if b"\t" in content else b" ").join(parts)


def data_specimen(name: str, file: str, packed: bool) -> Specimen:
    """A data file whose size and checksum the loader is made to accept."""
    if name == "MovieLens":
        read, constant, content = datasets.movielens_100k, "RATINGS", _ratings_text()
    else:
        read, constant, content = datasets.shuttle, "ROWS", _shuttle_text()
    published = getattr(datasets, constant)

    def craft(original: Path, rng: np.random.Generator, canary: str) -> bytes:
        del original, canary
        text = _craft_text(content, rng)
        if packed and rng.random() < 0.1:
            text += b" " * 10**8  # a few thousand times as much as there is in the file
        return gzip.compress(text, 1) if packed else text

    def load(path: Path) -> Any:
        held = _unpacked(path.read_bytes()) if packed else path.read_bytes()
        digest = hashlib.sha256(held).hexdigest()
        trusted = dataclasses.replace(published, size=len(content) + 500, sha256=digest)
        setattr(datasets, constant, trusted)
        try:
            return read(path.parent.parent, per_round=10)
        finally:
            setattr(datasets, constant, published)

    return Specimen(
        f"data: {name}{' .gz' if packed else ''}",
        file + (".gz" if packed else ""),
        lambda path: path.write_bytes(gzip.compress(content) if packed else content) and None,
        craft,
        load,
        _use_stream,
    )


def _unpacked(packed: bytes) -> bytes:
    try:
        return gzip.decompress(packed)
    except Exception:  # the loader is to say so
        return b""


def _use_stream(stream: Any) -> None:
    origin = stream.domain.origin()
    for loss in stream.losses[:ROUNDS]:
        value, gradient = loss.value_and_gradient(origin)
        vertex = stream.domain.lmo(gradient)
        require(np.isfinite([value, loss.value(vertex)]).all(), "a loss is not finite")


SPECIMENS = (
    learner_specimen("OGD", lambda: dw.OGD(dw.L2Ball((2, 3)))),
    learner_specimen("OnlineFrankWolfe", lambda: dw.OnlineFrankWolfe(dw.KSparsePolytope(5, 2))),
    learner_specimen("BOGDIP", lambda: dw.BOGDIP(dw.TraceNormBall((5, 4)))),
    learner_specimen("POLD", lambda: dw.POLD(dw.Simplex(4), horizon=40)),
    learner_specimen(
        "POLD, even",
        lambda: dw.POLD(
            dw.BirkhoffPolytope(3), horizon=40, oracle=dw.Oracle(lmo_budget=2.0, schedule="even")
        ),
    ),
    learner_specimen(
        "POLA, cached",
        lambda: dw.POLA(dw.CachedDomain(dw.Simplex(5), 4), oracle=dw.Oracle(lmo_budget=1.0)),
    ),
    learner_specimen(
        "OneOracleAder",
        lambda: dw.learners.OneOracleAder(dw.L1Ball(4), oracle=dw.Oracle(lmo_budget=0.5)),
    ),
    learner_specimen(
        "OneProjectionSAOL, factored",
        lambda: dw.learners.OneProjectionSAOL(
            dw.TraceNormBall((7, 6), 3.0, representation="factored")
        ),
    ),
    learner_specimen(
        "POLD, factored",
        lambda: dw.POLD(dw.TraceNormBall((7, 6), 3.0, representation="factored"), horizon=40),
    ),
    learner_specimen("POLA", lambda: dw.POLA(dw.BirkhoffPolytope(3))),
    learner_specimen("POLAR", lambda: dw.POLAR(dw.Simplex(4), experts=("lazy", "origin", "agile"))),
    learner_specimen(
        "POLAR, sleeping, with a budget",
        lambda: dw.POLAR(
            dw.BirkhoffPolytope(3), weights="sleeping", oracle=dw.Oracle(lmo_budget=1.0)
        ),
    ),
    learner_specimen(
        "POLAR, factored",
        lambda: dw.POLAR(dw.TraceNormBall((7, 6), 3.0, representation="factored")),
    ),
    learner_specimen(
        "Mixture",
        lambda: dw.contrib.Mixture(
            dw.Simplex(3), [dw.learners.Constant, dw.contrib.OnlineNewtonStep, dw.POLAR]
        ),
    ),
    learner_specimen("POLA, spanning trees", lambda: dw.POLA(dw.SpanningTreePolytope(4))),
    learner_specimen(
        "MultiOCG, factored",
        lambda: dw.learners.MultiOCG(dw.TraceNormBall((7, 6), 3.0, representation="factored")),
    ),
    learner_specimen("MultiOCG", lambda: dw.learners.MultiOCG(dw.Box([-1.0, 0.0], [1.0, 2.0]))),
    learner_specimen("Ader", lambda: dw.Ader(dw.GroupLassoBall(5, [0, 0, 1, 1, 2]))),
    learner_specimen("PAMO", lambda: dw.learners.PAMO(dw.LinfBall(3))),
    learner_specimen("SAOL", lambda: dw.learners.SAOL(dw.Spectrahedron(3))),
    learner_specimen("KalhanOFW", lambda: dw.learners.KalhanOFW(dw.ConvexHull(np.eye(3)))),
    Specimen("game", "game.safetensors", _write_game, mutated_archive, _load_game, _use_game),
    _archive_specimen("MatrixCompleter", _write_completer, _use_completer),
    _archive_specimen("Recommender", _write_recommender, _use_recommender),
    _archive_specimen("TraceNormClassifier", _write_classifier, _use_classifier),
    _archive_specimen("RiverTraceNormClassifier", _write_river, _use_river),
    _archive_specimen("TraceNormRegressor", _write_regressor, _use_regressor),
    Specimen("sweep (TOML)", "sweep.toml", _write_spec, _craft_spec, read_spec, _use_spec),
    Specimen(
        "result (JSON)",
        "result.json",
        lambda path: path.write_bytes(_result().encode()),
        _craft_json,
        lambda path: results.decode(path.read_bytes(), results.Result),
        _use_result,
    ),
    Specimen(
        "packed results (xz)",
        "trials.jsonl.xz",
        lambda path: path.write_bytes(packed([_result()])),
        _craft_packed,
        read_packed,
        lambda found: list(map(_use_result, found)),
    ),
    Specimen("trials (JSON)", "sweep.json", _write_plan, _craft_json, _load_plan, _use_plan),
    data_specimen("MovieLens", "ml-100k/u.data", packed=False),
    data_specimen("MovieLens", "ml-100k/u.data", packed=True),
    data_specimen("Shuttle", "shuttle/shuttle.scale", packed=False),
    data_specimen("Shuttle", "shuttle/shuttle.scale", packed=True),
)
