"""The choice of an engine: which one suits the columns and the settings."""

from pyboomer.columns.binned import BinnedColumns
from pyboomer.engine.cpu.engines import BinnedEngine, ExampleEngine
from pyboomer.engine.plan import is_single
from pyboomer.engine.promise import Engine, Replay, Settings, Task


def make_engine(task: Task, settings: Settings, replay: Replay | None = None, n_rules: int = 0) -> Engine:
    """The engine that suits the columns; it has learned the default rule, unless it goes on with other rules.

    To go on after `n_rules` rules that there are already, `replay` adds their scores to an (N, K) array, in the order
    of the rules, so that nothing differs from having learned them now.
    """
    loss = settings.loss
    exact = settings.search == "exact" or loss.shape == "dense"
    solves = exact and loss.shape != "diagonal" and not is_single(settings.head, task.Y.shape[1])
    if isinstance(task.columns, BinnedColumns) and not solves:  # there are no sums of Hessians over bins
        return BinnedEngine(task, settings, replay, n_rules)
    return ExampleEngine(task, settings, replay, n_rules)
