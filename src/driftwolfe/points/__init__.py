"""What a decision is: dense arrays, low-rank-plus-sparse matrices, products of those."""
