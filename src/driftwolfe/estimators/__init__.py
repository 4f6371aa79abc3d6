"""Estimators for drifting streams: a classifier and a recommender, with the faces of scikit-learn and river."""
