"""A model as a sum over features: steps, shapes, their analysis of variance, and their pictures."""
