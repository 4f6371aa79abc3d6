"""Drift-proof classification in a scikit-learn pipeline: a camera is turned upside down.

Handwritten digits pass a camera in batches of 20. Each batch is predicted, then learned. In the middle
third of the stream the camera is upside down. A pipeline that ends in `TraceNormClassifier` is fitted
on the first 100 images and then updated with `partial_fit`. It is compared with scikit-learn's online
classifiers in the same pipeline, each with default settings, and with a logistic regression that is
fitted once on the first 100 images.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, Perceptron, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

import driftwolfe as dw

FIRST, BATCH, ROUNDS = 100, 20, 3
rng = np.random.default_rng(0)
images, labels = load_digits(return_X_y=True)
order = np.concatenate([rng.permutation(len(labels)) for _ in range(ROUNDS)])
X, y = images[order], labels[order]
third = len(y) // 3
X[third : 2 * third] = X[third : 2 * third, ::-1]  # 64 pixels in reverse: rotated by 180 degrees

classifiers = {
    "TraceNormClassifier": dw.estimators.TraceNormClassifier(random_state=0),
    "SGDClassifier": SGDClassifier(loss="log_loss", random_state=0),
    "Perceptron": Perceptron(random_state=0),
    "LogisticRegression, fitted once": LogisticRegression(max_iter=1000),
}
right = {}
for name, classifier in classifiers.items():
    pipeline = make_pipeline(Normalizer(), classifier).fit(X[:FIRST], y[:FIRST])
    guesses = []
    for k in range(FIRST, len(y), BATCH):
        batch = slice(k, k + BATCH)
        guesses.append(pipeline.predict(X[batch]))
        if hasattr(classifier, "partial_fit"):
            classifier.partial_fit(pipeline[:-1].transform(X[batch]), y[batch])
    right[name] = np.concatenate(guesses) == y[FIRST:]

starts = [0, third - FIRST, 2 * third - FIRST, len(y) - FIRST]
parts = [slice(*ends) for ends in pairwise(starts)]
columns = ("upright", "upside down", "upright again", "all")
print(f"{'error rate':38}", *(f"{name:>14}" for name in columns))
for name, hits in right.items():
    shares = [1 - hits[part].mean() for part in [*parts, slice(None)]]
    print(f"{name:38}", *(f"{share:14.1%}" for share in shares))
best = max(right, key=lambda name: right[name].mean())
assert best == "TraceNormClassifier", f"{best} did better"

try:
    from matplotlib.figure import Figure
except ImportError:
    print("no figure: it needs pip install 'driftwolfe[plot]'")
    raise SystemExit from None

figure = Figure(figsize=(9, 4), layout="constrained")
axis = figure.subplots()
height = -np.inf
for name, colour in dw.plot.colours(right).items():
    hits = right[name]
    mean = 100 * (1 - np.convolve(hits, np.ones(200) / 200, "valid"))
    axis.plot(np.arange(200, len(hits) + 1), mean, color=colour, linewidth=1.3)
    height = max(mean[-1], height + 5)  # labels must not overlap
    axis.text(len(hits) * 1.01, height, name, color=colour, fontweight="bold", va="center")
for start, word in zip(starts, columns, strict=False):
    if start < len(y) - FIRST:
        axis.axvline(start, color="#8c8c8c", linestyle=":", linewidth=0.9, zorder=0)
        axis.text(start + third / 2, 84, word, color="#666666", ha="center", va="top")
axis.set(xlim=(0, len(y) - FIRST), ylim=(0, 85), xlabel="digits")
axis.yaxis.set_major_formatter("{x:.0f} %")
axis.xaxis.set_major_formatter("{x:,.0f}")
axis.set_title("error rate over the last 200 digits", loc="left", fontsize=10)
axis.spines[["top", "right"]].set_visible(False)
Path("results/examples").mkdir(parents=True, exist_ok=True)
figure.savefig("results/examples/drift_proof_classifier.png", dpi=150)
print("figure: results/examples/drift_proof_classifier.png")
