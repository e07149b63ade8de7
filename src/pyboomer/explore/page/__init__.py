"""A model as one HTML page."""
