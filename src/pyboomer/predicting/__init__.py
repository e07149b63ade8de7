"""From rules to predictions: scores, probabilities, decisions."""
