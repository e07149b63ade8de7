"""Looking at a fitted model: explanations, importances, pictures and a page."""
