"""Engines learn rules: Algorithms 1 to 3, compiled."""
