"""The search for the body of a rule: Algorithm 3, by histograms or example by example."""
