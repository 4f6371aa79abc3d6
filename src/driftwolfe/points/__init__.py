"""Points: dense arrays, low-rank-plus-sparse matrices, products of those."""

from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.ops import ProductPoint, distance, inner, norm

__all__ = ["FactoredMatrix", "ProductPoint", "distance", "inner", "norm"]
