"""Models with other rules: inserted, refitted, merged, distilled."""

from pyboomer.editing.distilling import distil, size_curve
from pyboomer.editing.edits import compact, drop_redundant_conditions, insert_rule, refit_heads, replace_rules

__all__ = [
    "compact",
    "distil",
    "drop_redundant_conditions",
    "insert_rule",
    "refit_heads",
    "replace_rules",
    "size_curve",
]
