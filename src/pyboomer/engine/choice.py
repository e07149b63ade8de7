"""The choice of an engine: which one suits the columns and the settings, and on which device it learns."""

from dataclasses import replace

from pyboomer.columns.binned import FROM, LARGEST
from pyboomer.compiling.device import import_cupy, is_there_a_device
from pyboomer.engine.cpu.engines import HostEngine
from pyboomer.engine.cuda.engine import CudaEngine
from pyboomer.engine.cuda.plan import number_loss
from pyboomer.engine.protocol import Engine, Replay, Settings, Task
from pyboomer.engine.search.plan import is_single
from pyboomer.losses.compiled import NOT_COMPILED


def make_engine(task: Task, settings: Settings, replay: Replay | None = None, n_rules: int = 0) -> Engine:
    """The engine that suits the columns; it has learned the default rule, unless it goes on with other rules.

    To go on after `n_rules` rules that there are already, `replay` adds their scores to an (N, K) array, in the order
    of the rules, so that nothing differs from having learned them now.
    """
    if settings.device == "cuda":
        return CudaEngine(task, settings, replay, n_rules)
    return HostEngine(task, settings, replay, n_rules)


def _solves(settings: Settings, n_labels: int) -> bool:
    """Whether a linear system is solved for each candidate."""
    loss = settings.loss
    exact = settings.search == "exact" or loss.shape == "dense"
    return exact and loss.shape != "diagonal" and not is_single(settings.head, n_labels)


def choose_device(settings: Settings, shape: tuple[int, ...], sparse: bool, there: bool = False) -> Settings:
    """The settings with the device that is used, for Y of a shape; on a GPU, features are always binned.

    `there` says that X is on a GPU already.
    """
    if settings.device == "cpu":
        if there:
            raise ValueError('X is on a GPU: set device="cuda", or copy it to the host')
        return settings
    if there:
        settings = replace(settings, device="cuda")
    obstacle = _find_obstacle(settings, shape[1], sparse)
    if settings.device == "auto":
        # with as few examples, all values of features are considered elsewhere; with more, a GPU is always faster
        if obstacle or shape[0] <= FROM or not is_there_a_device():
            return replace(settings, device="cpu")
    elif obstacle:
        raise ValueError(f'device="cuda" {obstacle}; or set device="cpu"')
    import_cupy()  # or say why it is not there
    return replace(settings, device="cuda", max_bins=LARGEST if settings.max_bins == "auto" else settings.max_bins)


def _find_obstacle(settings: Settings, n_labels: int, sparse: bool) -> str:
    """What keeps rules from being learned on a GPU; nothing, if it is empty."""
    if sparse:
        return "learns from dense features, and X is sparse: pass X.toarray()"
    if settings.max_bins is None:
        return 'learns from binned features, and max_bins=None wants all values: set max_bins="auto"'
    if number_loss(settings.loss) == NOT_COMPILED:
        return f"has no kernel for loss {settings.loss.name!r}"
    if _solves(settings, n_labels):
        return 'compares candidates by the bound of their gain: set search="bound"'
    return ""
