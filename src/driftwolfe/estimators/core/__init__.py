"""What several estimators share: ids, rows of features and their maps, weights of experts."""
