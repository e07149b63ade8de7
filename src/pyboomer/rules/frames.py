"""A frame is a DataFrame of pandas, which is imported only where one is asked for."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pyboomer.rules.ensemble import RuleEnsemble


def import_pandas(wanted_by: str) -> Any:
    """Import pandas, or say how to get it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(f"{wanted_by} needs pandas: pip install 'pyboomer[pandas]'") from error
    return pandas


def frame_rules(rules: "RuleEnsemble") -> Any:
    """Tabulate rules as a DataFrame; see `RuleEnsemble.to_frame`."""
    pd = import_pandas("to_frame")
    listed = list(rules)
    columns = {
        "body": [rule.body_text(None) for rule in listed],
        "head": [rule.head_text() for rule in listed],
        "n_conditions": np.diff(rules.condition_offsets),
        "n_labels": np.array([np.count_nonzero(rule.scores) for rule in listed], dtype=np.int64),
        "coverage": rules.coverage.copy(),
        "gain": rules.gain.copy(),
        "share": rules.share.copy(),
        "order": rules.order.copy(),
    }
    return pd.DataFrame(columns, index=pd.Index(rules.order.copy(), name="rule"))
