"""How to make every learner on a set, in the settings that the contract is checked for."""

import driftwolfe as dw

#: One entry per class: keyword settings beyond the defaults.
LEARNER_CASES = {
    dw.OGD: [{}],
    dw.OnlineFrankWolfe: [{}, {"variant": "classic"}],
    dw.BOGDIP: [{}, {"tuning": "certified"}, {"method": "halfspace"}],
    dw.LOOBOGD: [{}],
    dw.POLD: [
        {},
        {"feedback": "linear"},
        {"tuning": "certified"},
        {"grid": "paper"},
        {"method": "halfspace", "tuning": "certified", "grid": "experiment"},
    ],
    dw.POLA: [{}, {"feedback": "linear"}, {"tuning": "certified"}, {"start": "origin"}],
    dw.Ader: [{}, {"feedback": "linear"}, {"method": "corrective", "accuracy": 0.05}],
    dw.MultiOCG: [
        {},
        {"max_inner": 2},
        {"strong_convexity": 0.1, "max_inner": 5},
        {"tolerance_scale": 2.0, "accuracy": 0.1},
    ],
    dw.PAMO: [{}, {"gauge": "exact"}, {"accuracy": 1e-4}, {"tolerance_scale": 10.0}],
    dw.KalhanOFW: [{}, {"inner_steps": 2}],
    dw.LineSearchOFW: [{"smoothness": 2.0}],
    dw.SAOL: [{}, {"method": "corrective", "tolerance_scale": 1e-4}],
}

#: What a learner asks of a set beyond its linear minimisation.
NEEDS_PROJECTION = (dw.OGD, dw.Ader, dw.SAOL)
NEEDS_GAUGE = (dw.PAMO,)


def domains():
    """Sets of every kind: with and without 0, with and without projection, dense and factored."""
    return {
        "l1": dw.L1Ball(4, radius=2.0),
        "simplex": dw.Simplex(5),
        "birkhoff": dw.BirkhoffPolytope(3),
        "trees": dw.SpanningTreePolytope(4),
        "trace-norm": dw.TraceNormBall((3, 4), radius=2.0),
        "factored": dw.TraceNormBall((12, 10), radius=6.0, representation="factored"),
        "own": dw.LMODomain(3, dw.L2Ball(3).lmo, radius=1.0),
    }


def suits(cls, domain):
    """Whether a learner can work on a set."""
    if cls in NEEDS_PROJECTION:
        return domain.can("project")
    if cls in NEEDS_GAUGE:
        offered = domain.can("gauge") and domain.can("gauge_subgradient")
        return offered and domain.inner_radius > 0 and not getattr(domain, "factored", False)
    return True
