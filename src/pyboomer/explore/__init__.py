"""Looking at a model: explanations, importances, dependencies, curves, and pictures of them."""
