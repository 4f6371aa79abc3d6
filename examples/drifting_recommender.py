"""A recommender that follows drift: users and films are added, and in winter tastes change.

A synthetic streaming service: ratings arrive one by one, and users and films may be new. Halfway,
winter starts and everybody likes other kinds of films. Each rating is predicted before it is learned.
`MatrixCompleter`, which has nothing to tune, is compared with river's matrix factorisation at three
learning rates and with the mean of each film so far. The best of the three rates follows winter as
well as ours, but it is not known in advance.
"""

from collections import defaultdict
from pathlib import Path

import numpy as np

import driftwolfe as dw

USERS, FILMS, KINDS, RATINGS, WINTER = 300, 200, 4, 40_000, 20_000
rng = np.random.default_rng(3)

# A rating depends on the film's quality, the user's mood, and the user's taste for its kind.
quality, mood = 0.5 * rng.standard_normal(FILMS), 0.3 * rng.standard_normal(USERS)
taste, kind = 0.7 * rng.standard_normal((USERS, KINDS)), np.eye(KINDS)[np.arange(FILMS) % KINDS]
seasons = [taste, np.roll(taste, 1, axis=1)]
stream = []
for t in range(RATINGS):
    joined, released = (round(n * min(1, 0.2 + t / RATINGS)) for n in (USERS, FILMS))
    user, film = rng.integers(joined), int(released * rng.beta(1, 2))  # some films are popular
    liking = 3.5 + quality[film] + mood[user] + seasons[t >= WINTER][user] @ kind[film]
    stars = np.clip(round(liking + 0.5 * rng.standard_normal()), 1, 5)
    stream.append((f"user {user}", f"film {film}", float(stars)))
pairs, ratings = [(user, film) for user, film, _ in stream], np.array([r for *_, r in stream])

completer = dw.estimators.MatrixCompleter()
errors = {"MatrixCompleter": np.abs(completer.prequential(pairs, ratings) - ratings)}

rated = defaultdict(lambda: [3.0])
means = []
for (_, film), stars in zip(pairs, ratings, strict=True):
    means.append(np.mean(rated[film]))
    rated[film].append(stars)
errors["mean of each film"] = np.abs(means - ratings)

try:
    from river import optim, reco
except ImportError:
    print("river is not installed: no comparison with it")
else:
    for rate in (0.01, 0.03, 0.1):
        sgd = optim.SGD(rate)
        start = optim.initializers.Normal(sigma=0.1, seed=0)
        model = reco.BiasedMF(8, sgd, sgd, latent_initializer=start, clip_gradient=3.0)
        predicted = []
        for (user, film), stars in zip(pairs, ratings, strict=True):
            predicted.append(model.predict_one(user, film))
            model.learn_one(user, film, stars)
        errors[f"river's BiasedMF at rate {rate}"] = np.abs(predicted - ratings)

parts = {"first 2,000": (0, 2000), "summer": (0, WINTER), "winter": (WINTER, RATINGS)}
print(f"{'mean error in stars':30}", *(f"{name:>12}" for name in [*parts, "all"]))
for name, error in errors.items():
    shown = [error[start:stop].mean() for start, stop in [*parts.values(), (0, RATINGS)]]
    print(f"{name:30}", *(f"{value:12.3f}" for value in shown))
user = completer.users_[0]
print(f"recommended to {user}:", ", ".join(completer.recommend(user, 5)))
print("recommended to a new user:", ", ".join(completer.recommend("new user", 5)))
best = min(errors, key=lambda name: errors[name].mean())
assert best == "MatrixCompleter", f"{best} did better"

try:
    from matplotlib.figure import Figure
except ImportError:
    print("no figure: it needs pip install 'driftwolfe[plot]'")
    raise SystemExit from None

figure = Figure(figsize=(9, 4), layout="constrained")
axis = figure.subplots()
ends = {}
for name, colour in dw.plot.colours(errors).items():
    mean = np.convolve(errors[name], np.ones(1000) / 1000, "valid")
    axis.plot(np.arange(1000, RATINGS + 1), mean, color=colour, linewidth=1.3)
    ends[name] = (mean[-1], colour)
height = -np.inf
for name, (end, colour) in sorted(ends.items(), key=lambda item: item[1][0]):
    height = max(end, height + 0.022)  # labels must not overlap
    axis.text(RATINGS * 1.01, height, name, color=colour, fontweight="bold", va="center")
axis.axvline(WINTER, color="#8c8c8c", linestyle=":", linewidth=0.9, zorder=0)
axis.text(WINTER, axis.get_ylim()[1], " winter starts", color="#666666", va="top")
axis.set(xlim=(0, RATINGS), xlabel="ratings")
axis.xaxis.set_major_formatter("{x:,.0f}")
axis.set_title("error in stars, mean of the last 1,000 ratings", loc="left", fontsize=10)
axis.spines[["top", "right"]].set_visible(False)
Path("results/examples").mkdir(parents=True, exist_ok=True)
figure.savefig("results/examples/drifting_recommender.png", dpi=150)
print("figure: results/examples/drifting_recommender.png")
