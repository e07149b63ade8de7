"""Precision: what floating point may decide, and what it may not; decided once for the reference and all engines."""

TIE = 1e-10  # of two gains, one is larger only if it is by this relative margin
NOISE = 1e-15  # a gain that is not above it, per unit of weight, is rounding: no gain
FLOOR = 1e-6  # a denominator or pivot not above it is degenerate: that label gets score 0 and gain 0
CERTAIN = 1e12  # scores beyond it are cut off before they are added: beside larger ones, a sum would lose the others


def midpoint(a: float, b: float) -> float:
    """The threshold between two adjacent values a < b: at least a and below b, in floating point too."""
    middle = a / 2 + b / 2
    return middle if a <= middle < b else a
