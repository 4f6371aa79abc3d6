"""The pages of the site and their sources."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]

#: Pages outside docs/, and their place on the site.
FROM_ROOT = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "RELEASING.md": "releasing.md",
    "benchmarks/README.md": "benchmarks.md",
}

#: The sidebar: headings, and pages without their suffix, some with a shorter title.
#: Pages that do not exist are left out.
SIDEBAR = {
    "Start": {
        "getting-started": "",
        "tour": "",
        "examples/index": "",
        "coming-from-pynol": "",
        "other-libraries": "",
        "glossary": "",
    },
    "How to": {
        "howto/which-model": "Which model?",
        "howto/choose": "Which learner?",
        "methods": "All methods",
        "howto/own-set": "Your own set",
        "howto/own-loss": "Your own loss",
        "howto/compare": "Your own learner against ours",
        "howto/portfolio": "Mixtures and portfolios",
        "howto/recommender": "A drifting recommender",
        "howto/sweeps": "Sweeps on a cluster",
        "howto/saving": "Saving and checkpoints",
        "howto/settings": "Certified or practical",
        "howto/budget": "Budgets of LMO calls",
        "howto/delays": "Losses that come late",
        "howto/constraints": "Constraints that move",
        "howto/bandit": "Less feedback",
        "howto/intervals": "Intervals under drift",
        "howto/extending": "Extend the library",
    },
    "In depth": {
        "estimators/index": "Estimators",
        "oracles": "The cost of projections",
        "gpu": "On a GPU",
        "theory/index": "",
        "architecture": "",
        "one_round": "One POLD round",
        "reliability": "Reliability",
    },
    "The paper": {
        "reproduce": "Its two figures",
        "results/README": "Results",
        "benchmarks": "Speed",
    },
    "Reference": {"api/index": "All public names", "command-line": "The command line"},
    "The project": {
        "changelog": "",
        "contributing": "",
        "conduct": "",
        "security": "",
        "releasing": "",
        "licences": "Licences",
    },
}

#: Pages below others.
BELOW = {
    "estimators/index": [
        "estimators/classifier",
        "estimators/regressor",
        "estimators/completer",
        "estimators/recommender",
        "estimators/measurements",
    ],
    "theory/index": [
        "theory/bounds",
        "theory/polar",
        "theory/exp_concave",
        "theory/benign",
        "theory/delays",
        "theory/constraints",
        "theory/bandit",
        "theory/oracles",
        "theory/budget",
        "theory/lower_bound",
        "theory/errata",
    ],
    "results/README": [
        "results/matrix-completion/summary",
        "results/classification/summary",
        "results/small-radius/summary",
        "results/polar/README",
        "results/streams/summary",
        "results/budget/README",
        "results/budget/summary",
        "results/gpu/README",
        "results/gpu/summary",
    ],
}
