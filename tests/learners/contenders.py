"""Every learner with a guarantee, in every setting that its guarantee speaks for."""

import driftwolfe as dw

#: Experts of POLAR, all kinds of them.
KINDS = ("lazy", "origin", "agile")

#: Practical and certified, horizon given and not, G given and learned, full and linear feedback.
CONTENDERS = {
    "ogd": (dw.OGD, {}),
    "ogd-anytime": (dw.OGD, {"horizon": None}),
    "ogd-auto": (dw.OGD, {"lipschitz": "auto"}),
    "bogd": (dw.BOGDIP, {}),
    "bogd-halfspace": (dw.BOGDIP, {"tuning": "certified", "oracle": "halfspace"}),
    "bogd-paper": (dw.BOGDIP, {"tuning": "certified", "oracle": "paper"}),
    "bogd-anytime": (dw.BOGDIP, {"horizon": None, "oracle": "corrective"}),
    "bogd-auto": (dw.BOGDIP, {"lipschitz": "auto"}),
    "loo-bogd": (dw.learners.LOOBOGD, {}),
    "loo-bogd-certified": (dw.learners.LOOBOGD, {"tuning": "certified", "oracle": "paper"}),
    "pold": (dw.POLD, {}),
    "pold-linear": (dw.POLD, {"feedback": "linear"}),
    "pold-paper": (dw.POLD, {"grid": "paper", "loss_scale": "certified"}),
    "pold-experiment": (dw.POLD, {"grid": "experiment", "feedback": "linear"}),
    "pold-halfspace": (dw.POLD, {"tuning": "certified", "oracle": "halfspace"}),
    "pold-certified-linear": (
        dw.POLD,
        {"tuning": "certified", "oracle": "paper", "feedback": "linear"},
    ),
    "pold-certified-paper": (dw.POLD, {"tuning": "certified", "oracle": "paper", "grid": "paper"}),
    "pold-anytime": (dw.POLD, {"horizon": None}),
    "pold-auto": (dw.POLD, {"horizon": None, "lipschitz": "auto"}),
    "pold-adahedge": (dw.POLD, {"weights": "adahedge", "tuning": "certified", "lipschitz": "auto"}),
    "pold-adahedge-anytime": (
        dw.POLD,
        {"weights": "adahedge", "horizon": None, "feedback": "linear"},
    ),
    "ader": (dw.Ader, {}),
    "ader-linear": (dw.Ader, {"feedback": "linear", "tuning": "certified"}),
    "ader-anytime": (dw.Ader, {"horizon": None, "lipschitz": "auto"}),
    "pola": (dw.POLA, {}),
    "pola-halfspace": (dw.POLA, {"tuning": "certified", "oracle": "halfspace"}),
    "pola-linear": (dw.POLA, {"loss_scale": "certified", "feedback": "linear"}),
    "pola-origin-auto": (dw.POLA, {"start": "origin", "lipschitz": "auto"}),
    "saol": (dw.learners.SAOL, {"tuning": "certified"}),
    "saol-linear": (dw.learners.SAOL, {"feedback": "linear"}),
    "pamo": (dw.learners.PAMO, {"gauge": "exact", "tuning": "certified"}),
    "pamo-bisection": (dw.learners.PAMO, {"feedback": "linear"}),
    "pamo-lazy": (dw.learners.PAMO, {"gauge": "exact", "steps": "lazy", "tuning": "certified"}),
    "pamo-lazy-auto": (dw.learners.PAMO, {"steps": "lazy", "lipschitz": "auto"}),
    "multi-ocg": (dw.learners.MultiOCG, {"tuning": "certified"}),
    "multi-ocg-linear": (dw.learners.MultiOCG, {"tuning": "certified", "feedback": "linear"}),
    "ofw": (dw.OnlineFrankWolfe, {}),
    "anytime-ofw": (dw.contrib.AnytimeOFW, {}),
    "anytime-ofw-auto": (dw.contrib.AnytimeOFW, {"lipschitz": "auto"}),
    "bogd-budget": (dw.BOGDIP, {"tuning": "certified", "oracle": dw.Oracle(lmo_budget=1.0)}),
    "bogd-budget-even": (
        dw.BOGDIP,
        {
            "tuning": "certified",
            "oracle": dw.Oracle(lmo_budget=4.0, schedule="even"),
            "lipschitz": "auto",
        },
    ),
    "pold-budget": (dw.POLD, {"tuning": "certified", "oracle": dw.Oracle(lmo_budget=1.0)}),
    "pold-budget-anytime": (
        dw.POLD,
        {
            "tuning": "certified",
            "oracle": dw.Oracle(lmo_budget=50.0),
            "horizon": None,
            "feedback": "linear",
        },
    ),
    "pold-budget-even": (
        dw.POLD,
        {"tuning": "certified", "oracle": dw.Oracle(lmo_budget=20.0, schedule="even")},
    ),
    "pold-pooled": (dw.POLD, {"oracle": dw.Oracle(lmo_budget=0.5)}),
    "pold-pooled-cached": (
        dw.POLD,
        {"oracle": dw.Oracle(lmo_budget=1.0), "lipschitz": "auto"},
    ),
    "pola-budget": (dw.POLA, {"tuning": "certified", "oracle": dw.Oracle(lmo_budget=60.0)}),
    "pola-budget-even": (
        dw.POLA,
        {"tuning": "certified", "oracle": dw.Oracle(lmo_budget=100.0, schedule="even")},
    ),
    "pola-pooled": (dw.POLA, {"oracle": dw.Oracle(lmo_budget=1.0)}),
    "pola-pooled-even": (
        dw.POLA,
        {"oracle": dw.Oracle(lmo_budget=1.0, schedule="even"), "feedback": "linear"},
    ),
    "polar": (dw.POLAR, {}),
    "polar-auto": (dw.POLAR, {"lipschitz": "auto", "experts": KINDS}),
    "polar-linear": (dw.POLAR, {"feedback": "linear", "experts": ("origin", "agile")}),
    "polar-corrective": (dw.POLAR, {"oracle": "corrective", "lipschitz": "auto"}),
    "polar-certified": (
        dw.POLAR,
        {"tuning": "certified", "oracle": "halfspace", "experts": KINDS},
    ),
    "polar-certified-auto": (
        dw.POLAR,
        {"tuning": "certified", "oracle": "corrective", "lipschitz": "auto"},
    ),
    "polar-sleeping": (dw.POLAR, {"weights": "sleeping", "tuning": "certified", "experts": KINDS}),
    "polar-sleeping-linear": (
        dw.POLAR,
        {
            "weights": "sleeping",
            "tuning": "certified",
            "oracle": "corrective",
            "feedback": "linear",
            "experts": ("origin",),
        },
    ),
    "polar-agile-sleeping": (
        dw.POLAR,
        {"weights": "sleeping", "loss_scale": "certified", "experts": ("agile",)},
    ),
    "polar-budget": (
        dw.POLAR,
        {"tuning": "certified", "oracle": dw.Oracle(lmo_budget=60.0), "lipschitz": "auto"},
    ),
    "polar-budget-even": (
        dw.POLAR,
        {
            "tuning": "certified",
            "oracle": dw.Oracle(lmo_budget=200.0, schedule="even"),
            "weights": "sleeping",
        },
    ),
    "polar-budget-even-auto": (
        dw.POLAR,
        {
            "tuning": "certified",
            "oracle": dw.Oracle(lmo_budget=40.0, schedule="even"),
            "lipschitz": "auto",
            "experts": KINDS,
        },
    ),
    "polar-pooled": (dw.POLAR, {"oracle": dw.Oracle("corrective", lmo_budget=1.0)}),
    "polar-pooled-even": (dw.POLAR, {"oracle": dw.Oracle(lmo_budget=1.0, schedule="even")}),
    "one-oracle": (dw.learners.OneOracleAder, {"tuning": "certified"}),
    "one-oracle-pooled": (
        dw.learners.OneOracleAder,
        {"oracle": dw.Oracle(lmo_budget=0.3), "lipschitz": "auto"},
    ),
    "one-oracle-anytime": (
        dw.learners.OneOracleAder,
        {"horizon": None, "oracle": dw.Oracle(lmo_budget=2.0)},
    ),
    "one-projection": (dw.learners.OneProjectionAder, {"tuning": "certified"}),
    "one-projection-anytime": (
        dw.learners.OneProjectionAder,
        {"horizon": None, "lipschitz": "auto"},
    ),
    "one-projection-corrective": (
        dw.learners.OneProjectionAder,
        {"tuning": "certified", "oracle": "corrective"},
    ),
    "one-projection-saol": (dw.learners.OneProjectionSAOL, {"tuning": "certified"}),
    "one-projection-saol-halfspace": (
        dw.learners.OneProjectionSAOL,
        {"tuning": "certified", "oracle": "halfspace"},
    ),
    "sword": (dw.contrib.Sword, {}),
    "sword-smooth": (dw.contrib.Sword, {"smoothness": 1.0}),
    "sword-anytime": (dw.contrib.Sword, {"horizon": None, "lipschitz": "auto"}),
    "sword-auto": (dw.contrib.Sword, {"lipschitz": "auto", "smoothness": 0.3}),
    "sword-own": (dw.contrib.Sword, {"gradients": "own"}),
    "sword-own-auto": (
        dw.contrib.Sword,
        {"gradients": "own", "horizon": None, "lipschitz": "auto", "smoothness": 0.3},
    ),
    "sword-one": (dw.contrib.Sword, {"oracle": "auto"}),
    "sword-corrective": (dw.contrib.Sword, {"tuning": "certified", "oracle": "corrective"}),
    "sacs": (dw.contrib.SACS, {"loss_scale": "certified"}),
    "sacs-linear": (
        dw.contrib.SACS,
        {"tuning": "certified", "feedback": "linear", "start": "origin"},
    ),
    "sacs-corrective": (dw.contrib.SACS, {"tuning": "certified", "oracle": "corrective"}),
    "sacs-one": (dw.contrib.SACS, {"tuning": "certified", "projections": "one"}),
    "sacs-one-corrective": (
        dw.contrib.SACS,
        {"tuning": "certified", "projections": "one", "oracle": "corrective"},
    ),
    "smoothed": (dw.contrib.SmoothedOGD, {}),
    "smoothed-certified": (dw.contrib.SmoothedOGD, {"tuning": "certified", "feedback": "linear"}),
    "smoothed-corrective": (dw.contrib.SmoothedOGD, {"oracle": "corrective"}),
    "smoothed-anytime": (dw.contrib.SmoothedOGD, {"horizon": None, "lipschitz": "auto"}),
    "discounted": (dw.contrib.DiscountedAdaptive, {}),
    "discounted-quick": (dw.contrib.DiscountedAdaptive, {"discount": 0.95}),
    "scream": (dw.contrib.Scream, {"switching": 2.0}),
    "scream-anytime": (dw.contrib.Scream, {"switching": 0.2, "horizon": None}),
}

#: One setting of each class, for the dear sets and the long games.
LEADING = (
    "ogd",
    "bogd",
    "bogd-halfspace",
    "loo-bogd",
    "pold",
    "pold-certified-linear",
    "ader",
    "pola",
    "pola-linear",
    "saol",
    "pamo",
    "multi-ocg",
    "ofw",
    "anytime-ofw-auto",
    "pold-budget-even",
    "pold-pooled",
    "pola-pooled-even",
    "one-oracle-pooled",
    "one-projection",
    "one-projection-saol",
    "polar-sleeping",
    "polar-budget",
    "sword",
    "sacs",
    "smoothed",
    "discounted-quick",
    "scream",
)


def make(name, arena):
    """The contender for an arena, told its horizon and G unless it is to do without."""
    cls, settings = CONTENDERS[name]
    given = {"horizon": arena.rounds, "lipschitz": arena.lipschitz, **settings}
    return cls(domain_for(name, arena.domain), **given)


def domain_for(name, domain):
    """The set that a contender plays on."""
    return dw.CachedDomain(domain, 8) if name.endswith("cached") else domain
