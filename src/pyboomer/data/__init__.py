"""What users pass, read once: tables, labels, targets, weights."""
