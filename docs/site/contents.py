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

#: The sidebar: headings, and pages without their suffix, some with a shorter title; at most 15 pages.
#: Pages that do not exist are left out.
SIDEBAR = {
    "Start": {
        "getting-started": "",
        "examples/index": "",
        "tour": "",
    },
    "Use": {
        "howto/which-model": "Which model?",
        "estimators/index": "Estimators",
        "howto/choose": "Which learner?",
        "howto/index": "",
    },
    "Understand": {
        "theory/index": "",
        "architecture": "",
        "reproduce": "",
        "results/README": "Results",
        "benchmarks": "Speed",
    },
    "Look up": {
        "api/index": "Reference",
        "command-line": "",
        "project": "",
    },
}

#: Pages below others, some with a shorter title.
BELOW = {
    "howto/index": {
        "howto/own-set": "My set",
        "howto/own-loss": "Your own loss",
        "howto/routes": "Routes through a network",
        "howto/compare": "Your own learner against ours",
        "howto/portfolio": "Mixtures and portfolios",
        "howto/recommender": "A drifting recommender",
        "howto/refit": "Instead of refitting",
        "howto/saving": "Saving and checkpoints",
        "howto/production": "Answer while it learns",
        "howto/service": "Recommend over HTTP",
        "howto/keys": "One model per key",
        "howto/beyond": "Beyond one machine",
        "howto/container": "In a container",
        "gpu": "",
        "howto/sweeps": "Sweeps on a cluster",
        "howto/settings": "Certified or practical",
        "howto/budget": "Budgets of LMO calls",
        "howto/delays": "Losses that come late",
        "howto/constraints": "Constraints that move",
        "howto/bandit": "Less feedback",
    },
    "howto/choose": {"methods": ""},
    "estimators/index": {
        "estimators/classifier": "",
        "estimators/regressor": "",
        "estimators/completer": "",
        "estimators/recommender": "",
        "howto/rows": "Rows as they are",
        "howto/intervals": "Intervals under drift",
        "howto/changes": "What changed, and when?",
        "howto/sets": "Sets of labels under drift",
        "estimators/measurements": "",
    },
    "theory/index": {
        "theory/proved": "",
        "theory/algorithms": "",
        "theory/bounds": "",
        "theory/polar": "",
        "theory/exp_concave": "",
        "theory/benign": "",
        "theory/delays": "",
        "theory/constraints": "",
        "theory/bandit": "",
        "theory/alarm": "",
        "theory/oracles": "",
        "theory/budget": "",
        "theory/polytopes": "",
        "theory/lower_bound": "",
        "theory/errata": "",
        "glossary": "",
    },
    "architecture": {
        "design": "Why it is built this way",
        "one_round": "One POLD round",
        "howto/extending": "Extend the library",
        "reliability": "",
    },
    "results/README": {
        "results/matrix-completion/summary": "Matrix completion",
        "results/one-machine/summary": "Matrix completion on one machine",
        "results/classification/summary": "Classification",
        "results/small-radius/summary": "Classification, radius 20",
        "results/polar/README": "POLAR",
        "results/polar/summary": "POLAR: all numbers",
        "results/streams/summary": "Models on streams",
        "results/budget/README": "Few LMO calls",
        "results/budget/summary": "Few LMO calls: all numbers",
        "oracles": "The cost of projections",
        "results/gpu/README": "",
        "results/gpu/summary": "A GPU: all numbers",
    },
    "project": {
        "changelog": "",
        "contributing": "",
        "conduct": "",
        "security": "",
        "releasing": "",
        "licences": "Licences",
        "other-libraries": "",
        "coming-from-pynol": "",
    },
}
