"""Classes: the experts behind `TraceNormClassifier`."""
