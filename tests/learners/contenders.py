"""Every learner with a guarantee, in every setting that its guarantee speaks for."""

import driftwolfe as dw

#: Experts of POLAR, all kinds of them.
KINDS = ("lazy", "origin", "agile")
#: What settings are made of.
CERTIFIED, LINEAR = {"tuning": "certified"}, {"feedback": "linear"}
AUTO, ANYTIME, SLEEPING = {"lipschitz": "auto"}, {"horizon": None}, {"weights": "sleeping"}
HALFSPACE, CORRECTIVE = {"oracle": "halfspace"}, {"oracle": "corrective"}


def budget(rate, schedule="blocks", method="auto"):
    """An oracle with so many calls per round."""
    return {"oracle": dw.Oracle(method, lmo_budget=rate, schedule=schedule)}


#: Practical and certified, horizon given and not, G given and learned, full and linear feedback.
CONTENDERS = {
    "ogd": (dw.OGD, {}),
    "ogd-anytime": (dw.OGD, ANYTIME),
    "bogd": (dw.BOGDIP, {}),
    "bogd-halfspace": (dw.BOGDIP, CERTIFIED | HALFSPACE),
    "bogd-anytime": (dw.BOGDIP, ANYTIME | CORRECTIVE),
    "bogd-auto": (dw.BOGDIP, AUTO),
    "loo-bogd": (dw.learners.LOOBOGD, {}),
    "pold": (dw.POLD, {}),
    "pold-linear": (dw.POLD, LINEAR),
    "pold-certified-linear": (dw.POLD, CERTIFIED | LINEAR | {"oracle": "paper"}),
    "pold-anytime": (dw.POLD, ANYTIME),
    "pold-auto": (dw.POLD, ANYTIME | AUTO),
    "ader": (dw.Ader, {}),
    "ader-linear": (dw.Ader, LINEAR | CERTIFIED),
    "ader-anytime": (dw.Ader, ANYTIME | AUTO),
    "pola": (dw.POLA, {}),
    "pola-halfspace": (dw.POLA, CERTIFIED | HALFSPACE),
    "pola-linear": (dw.POLA, LINEAR | {"loss_scale": "certified"}),
    "pola-origin-auto": (dw.POLA, AUTO | {"start": "origin"}),
    "saol": (dw.learners.SAOL, CERTIFIED),
    "pamo": (dw.learners.PAMO, CERTIFIED | {"gauge": "exact"}),
    "pamo-lazy": (dw.learners.PAMO, CERTIFIED | {"gauge": "exact", "steps": "lazy"}),
    "multi-ocg": (dw.learners.MultiOCG, CERTIFIED),
    "ofw": (dw.OnlineFrankWolfe, {}),
    "anytime-ofw-auto": (dw.contrib.AnytimeOFW, AUTO),
    "bogd-budget": (dw.BOGDIP, CERTIFIED | budget(1.0)),
    "bogd-budget-even": (dw.BOGDIP, CERTIFIED | budget(4.0, "even") | AUTO),
    "pold-budget": (dw.POLD, CERTIFIED | budget(1.0)),
    "pold-budget-anytime": (dw.POLD, CERTIFIED | budget(50.0) | ANYTIME | LINEAR),
    "pold-budget-even": (dw.POLD, CERTIFIED | budget(20.0, "even")),
    "pold-pooled": (dw.POLD, budget(0.5)),
    "pola-budget": (dw.POLA, CERTIFIED | budget(60.0)),
    "pola-pooled": (dw.POLA, budget(1.0)),
    "pola-pooled-even": (dw.POLA, budget(1.0, "even") | LINEAR),
    "polar": (dw.POLAR, {}),
    "polar-auto": (dw.POLAR, AUTO | {"experts": (*KINDS, "adaptive")}),
    "polar-certified": (dw.POLAR, CERTIFIED | HALFSPACE | {"experts": KINDS}),
    "polar-sleeping": (dw.POLAR, SLEEPING | CERTIFIED | {"experts": KINDS}),
    "polar-budget": (dw.POLAR, CERTIFIED | budget(60.0) | AUTO),
    "polar-budget-sleeping": (dw.POLAR, CERTIFIED | budget(200.0) | SLEEPING),
    "polar-pooled": (dw.POLAR, budget(1.0, method="corrective")),
    "one-oracle": (dw.learners.OneOracleAder, CERTIFIED),
    "one-oracle-pooled": (dw.learners.OneOracleAder, budget(0.3) | AUTO),
    "one-oracle-anytime": (dw.learners.OneOracleAder, ANYTIME | budget(2.0)),
    "one-projection": (dw.learners.OneProjectionAder, CERTIFIED),
    "one-projection-anytime": (dw.learners.OneProjectionAder, ANYTIME | AUTO),
    "one-projection-corrective": (dw.learners.OneProjectionAder, CERTIFIED | CORRECTIVE),
    "one-projection-saol": (dw.learners.OneProjectionSAOL, CERTIFIED),
    "sword": (dw.contrib.Sword, {}),
    "sword-smooth": (dw.contrib.Sword, {"smoothness": 1.0}),
    "sword-anytime": (dw.contrib.Sword, ANYTIME | AUTO),
    "sword-own": (dw.contrib.Sword, {"gradients": "own"}),
    "sword-own-auto": (dw.contrib.Sword, ANYTIME | AUTO | {"gradients": "own", "smoothness": 0.3}),
    "sword-one": (dw.contrib.Sword, {"oracle": "auto"}),
    "sword-corrective": (dw.contrib.Sword, CERTIFIED | CORRECTIVE),
    "sacs": (dw.contrib.SACS, {"loss_scale": "certified"}),
    "sacs-corrective": (dw.contrib.SACS, CERTIFIED | CORRECTIVE),
    "sacs-one": (dw.contrib.SACS, CERTIFIED | {"projections": "one"}),
    "smoothed": (dw.contrib.SmoothedOGD, {}),
    "smoothed-certified": (dw.contrib.SmoothedOGD, CERTIFIED | LINEAR),
    "smoothed-anytime": (dw.contrib.SmoothedOGD, ANYTIME | AUTO),
    "discounted-quick": (dw.contrib.DiscountedAdaptive, {"discount": 0.95}),
    "scream": (dw.contrib.Scream, {"switching": 2.0}),
    "scream-anytime": (dw.contrib.Scream, ANYTIME | {"switching": 0.2}),
}

#: One setting of each class, for the dear sets and the long games.
LEADING = (
    *("ogd", "bogd", "bogd-halfspace", "loo-bogd", "pold", "pold-certified-linear", "ader", "pola"),
    *("pola-linear", "saol", "pamo", "multi-ocg", "ofw", "anytime-ofw-auto", "pold-budget-even"),
    *("pold-pooled", "pola-pooled-even", "one-oracle-pooled", "one-projection"),
    *("one-projection-saol", "polar-sleeping", "polar-budget", "sword", "sacs", "smoothed"),
    *("discounted-quick", "scream"),
)


def make(name, arena):
    """The contender for an arena, told its horizon and G unless it is to do without."""
    cls, settings = CONTENDERS[name]
    given = {"horizon": arena.rounds, "lipschitz": arena.lipschitz, **settings}
    return cls(arena.domain, **given)
