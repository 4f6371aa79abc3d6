"""What the site holds, and where it comes from."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]

#: Pages that lie outside docs/, and their place on the site.
FROM_ROOT = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "RELEASING.md": "releasing.md",
    "benchmarks/README.md": "benchmarks.md",
}

#: The sidebar: headings, and pages without their endings, some with a shorter title than their own.
#: Pages that are not there are left out.
SIDEBAR = {
    "Start": {
        "getting-started": "",
        "tour": "",
        "examples/index": "",
        "coming-from-pynol": "",
        "glossary": "",
    },
    "How to": {
        "howto/own-set": "A set of your own",
        "howto/own-loss": "A loss of your own",
        "howto/recommender": "A drifting recommender",
        "howto/sweeps": "Sweeps on a cluster",
        "howto/saving": "Saving and checkpoints",
        "howto/settings": "Certified or practical",
        "howto/budget": "Few linear minimisations",
        "howto/extending": "Add to the library",
    },
    "In depth": {
        "estimators": "Estimators",
        "oracles": "What projections cost",
        "gpu": "On a GPU",
        "theory/index": "",
        "architecture": "",
        "reliability": "Reliability",
    },
    "The paper": {
        "experiments": "What is run",
        "results/README": "Results on real data",
        "benchmarks": "Speed",
    },
    "Reference": {"api/index": "All public names"},
    "The project": {
        "changelog": "",
        "contributing": "",
        "security": "",
        "releasing": "",
        "licences": "Licences",
    },
}

#: Pages below others.
BELOW = {
    "theory/index": [
        "theory/bounds",
        "theory/oracles",
        "theory/budget",
        "theory/lower_bound",
        "theory/errata",
    ],
    "results/README": [
        "results/matrix-completion/summary",
        "results/classification/summary",
        "results/budget/README",
        "results/budget/summary",
        "results/gpu/README",
        "results/gpu/summary",
    ],
}
