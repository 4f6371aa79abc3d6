"""Convex sets: what a decision may be."""

from driftwolfe.domains.base import Domain
from driftwolfe.domains.birkhoff_polytope import BirkhoffPolytope
from driftwolfe.domains.box import Box
from driftwolfe.domains.convex_hull import ConvexHull
from driftwolfe.domains.count_calls import CountedDomain, OracleCalls, count_calls
from driftwolfe.domains.flow_polytope import FlowPolytope
from driftwolfe.domains.group_lasso_ball import GroupLassoBall
from driftwolfe.domains.k_sparse_polytope import KSparsePolytope
from driftwolfe.domains.l1_ball import L1Ball
from driftwolfe.domains.l2_ball import L2Ball
from driftwolfe.domains.linf_ball import LinfBall
from driftwolfe.domains.lmo_domain import LMODomain
from driftwolfe.domains.partition_matroid_polytope import PartitionMatroidPolytope
from driftwolfe.domains.product_domain import ProductDomain
from driftwolfe.domains.simplex import Simplex
from driftwolfe.domains.spanning_tree_polytope import SpanningTreePolytope
from driftwolfe.domains.spectrahedron import Spectrahedron
from driftwolfe.domains.trace_norm_ball import TraceNormBall
from driftwolfe.domains.uniform_matroid_polytope import UniformMatroidPolytope

__all__ = [
    "BirkhoffPolytope",
    "Box",
    "ConvexHull",
    "CountedDomain",
    "Domain",
    "FlowPolytope",
    "GroupLassoBall",
    "KSparsePolytope",
    "L1Ball",
    "L2Ball",
    "LMODomain",
    "LinfBall",
    "OracleCalls",
    "PartitionMatroidPolytope",
    "ProductDomain",
    "Simplex",
    "SpanningTreePolytope",
    "Spectrahedron",
    "TraceNormBall",
    "UniformMatroidPolytope",
    "count_calls",
]
