"""Operators are the tests that a condition can make; rules store their codes, positions in `OPERATORS`."""

OPERATORS = ("<=", ">", "==", "!=")  # the last two test nominal features, the others all else
AT_MOST, ABOVE, EQUAL, UNEQUAL = range(4)
