"""The default rule of a fit on a GPU: the host finds it, from few examples that have the same one."""

import numpy as np

from pyboomer.engine.cpu.default_rule import find_default_head, merge_equal
from pyboomer.engine.cpu.state import ExampleState
from pyboomer.engine.cpu.threads import Threads
from pyboomer.engine.cuda.plan import Scales, number_loss, round_scores
from pyboomer.engine.odds_state import make_rule
from pyboomer.engine.protocol import Chunk, Settings, Task
from pyboomer.losses.compiled import LABEL_WISE, SQUARED
from pyboomer.losses.loss import Loss

BLOCK = 2**14  # examples whose weights are added up at once


def learn_default_rule(task: Task, settings: Settings, scales: Scales) -> Chunk:
    """The rule that scores all labels of all examples."""
    threads = Threads(settings.n_threads)
    state = ExampleState(_condense(task, settings.loss), settings.loss, False, threads)
    head, gain = find_default_head(state, settings)
    threads.close()
    scores = round_scores(np.array(head), scales)
    return make_rule(np.empty((0, 4)), np.arange(len(head)), scores, float(task.weight.sum()), gain)


def _condense(task: Task, loss: Loss) -> Task:
    """A task of few examples that has the same default rule: where each label is on its own, sums of weights do."""
    number, (n, k) = number_loss(loss), task.Y.shape
    if number not in (LABEL_WISE, SQUARED):
        return merge_equal(task)
    total, sums = np.zeros((2, k))  # of the weights, and of the weights of relevant labels or of targets
    for start in range(0, n, BLOCK):
        Y, weight = task.Y[start : start + BLOCK], task.weight[start : start + BLOCK, None]
        if task.label_weight is not None:
            weight = weight * task.label_weight[start : start + BLOCK]
        total += (weight * np.ones(k)).sum(axis=0)
        sums += (weight * (Y > 0 if number == LABEL_WISE else Y)).sum(axis=0)
    if number == LABEL_WISE:  # an example that has all labels, and one that has none
        signs = np.array([[1], [-1]], dtype=np.int8).repeat(k, axis=1)
        return Task(None, signs, np.ones(2), np.stack([sums, np.maximum(total - sums, 0.0)]))
    return Task(None, (sums / np.where(total > 0, total, 1.0))[None], np.ones(1), total[None])
