"""What a decision is: dense arrays, low-rank-plus-sparse matrices, products of those."""

from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.ops import clip_to_ball, distance, inner, norm
from driftwolfe.points.product import ProductPoint
from driftwolfe.points.triplets import Triplets, leading_triplets
from driftwolfe.points.truncation import Truncation

__all__ = [
    "FactoredMatrix",
    "ProductPoint",
    "Triplets",
    "Truncation",
    "clip_to_ball",
    "distance",
    "inner",
    "leading_triplets",
    "norm",
]
