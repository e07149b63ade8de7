"""An engine whose examples are divided among the workers of a cluster."""
