"""Ratings: the experts behind `MatrixCompleter`."""
