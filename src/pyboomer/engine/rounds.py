"""A round is some rules in a row whose bodies are chosen from the same statistics.

A rule is a small step, so the next body would hardly differ if it were chosen from statistics that are a few rules old.
The bodies of a round therefore do not wait for each other, and can be learned side by side. In a round, the loss is its
second-order approximation at the beginning of the round (Eq. 13): the heads are fitted one after another, and each
changes the gradients of the examples it covers, g_n + H_n p, while the Hessians stay the same.

The size of a round depends on the number of its first rule, never on threads, workers or the device.
"""

GROWTH = 50  # a round that begins with rule t has t / 50 rules: the first rules change much, and learn alone


def count_rules(first: int, most: int) -> int:
    """The size of the round that begins with a rule; rounds have at most `most` rules."""
    return max(min(first // GROWTH, most), 1)


def find_round(rule: int, most: int) -> tuple[int, int]:
    """The first rule of the round that a rule belongs to, and the size of the round.

    The default rule is number 0, and belongs to no round.
    """
    first, size = 1, 1
    while first + size <= rule:
        first += size
        size = count_rules(first, most)
    return first, size
