"""Points: dense arrays, low-rank-plus-sparse matrices, products of those."""

from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.lanczos import Triplet, leading_triplet
from driftwolfe.points.ops import ProductPoint, clip_to_ball, distance, inner, norm

__all__ = [
    "FactoredMatrix",
    "ProductPoint",
    "Triplet",
    "clip_to_ball",
    "distance",
    "inner",
    "leading_triplet",
    "norm",
]
