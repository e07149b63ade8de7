"""Rules as values: conditions, rules, ensembles, and their text."""
