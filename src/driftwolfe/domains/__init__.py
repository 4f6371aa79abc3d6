"""Convex sets: what a decision may be."""

from driftwolfe.domains.balls import Ellipsoid, GroupLassoBall, KSparsePolytope, L1Ball, L2Ball
from driftwolfe.domains.base import CachedDomain, CountedDomain, Domain, OracleCalls, count_calls
from driftwolfe.domains.boxes import Box, LinfBall, Simplex
from driftwolfe.domains.combinatorial import (
    BirkhoffPolytope,
    MatchingPolytope,
    PartitionMatroidPolytope,
    Permutahedron,
    SpanningTreePolytope,
    TransportPolytope,
    UniformMatroidPolytope,
)
from driftwolfe.domains.composite import (
    LMODomain,
    MembershipDomain,
    ProductDomain,
    SeparationDomain,
)
from driftwolfe.domains.flows import FlowPolytope
from driftwolfe.domains.hull import ConvexHull
from driftwolfe.domains.programs import LinearProgram, from_cvxpy
from driftwolfe.domains.spectral import Spectrahedron, TraceNormBall

__all__ = ["BirkhoffPolytope", "Box", "CachedDomain", "ConvexHull", "CountedDomain", "Domain"]
__all__ += ["Ellipsoid", "FlowPolytope", "GroupLassoBall", "KSparsePolytope", "L1Ball", "L2Ball"]
__all__ += ["LMODomain", "LinearProgram", "LinfBall", "MatchingPolytope", "MembershipDomain"]
__all__ += ["OracleCalls", "PartitionMatroidPolytope", "Permutahedron", "ProductDomain"]
__all__ += ["SeparationDomain", "Simplex", "SpanningTreePolytope", "Spectrahedron"]
__all__ += ["TraceNormBall", "TransportPolytope", "UniformMatroidPolytope", "count_calls"]
__all__ += ["from_cvxpy"]
