"""Losses: what is minimised, each with its readable definition and its compiled twin."""
