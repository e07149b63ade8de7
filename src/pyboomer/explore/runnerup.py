"""The runner-up is the label vector that a model would predict if it could not predict the winner.

Where the prediction is one of the known label vectors (Eq. 19, or ``decode="subset"``), it is the second best of these.
Where labels are decided one by one, it is the winner with the label flipped that came nearest to being flipped. Of
classes, it is the second best; of the k best labels, the last makes room for the next; and by expected F-measure, it is
the best vector that differs from the winner in one label.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from pyboomer.arrays import Array
from pyboomer.predicting.decision import Decision
from pyboomer.predicting.decoding import marginal_probabilities, score_vectors, share_out
from pyboomer.predicting.fmeasure import weigh_independent, weigh_known

Vector = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class RunnerUp:
    """The label vector that came second, and by how much: `margin`, in terms of `measure`.

    `head_start` is the part of the margin that no rule adds: the joint loss counts how often label vectors occur.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> digits = load_dataset("digits7")
    >>> X, Y = digits.to_frame(), digits.labels_frame()
    >>> clf = BoomerClassifier(n_rules=50, random_state=1).fit(X, Y)
    >>> (explanation,) = clf.explain(X[3:4])
    >>> runner_up = explanation.runner_up
    >>> explanation.describe(runner_up.vector)
    'a, b, d, e, g'
    >>> runner_up.measure, round(runner_up.margin, 2)
    ('log-probability', 0.28)
    """

    vector: Vector
    measure: str
    margin: float
    head_start: float = 0.0


def find_runner_up(decision: Decision, scores: Array, winner: Vector) -> RunnerUp | None:
    """The runner-up of one example, given its K scores and its prediction; None if there is nothing else to predict."""
    rule, vectors = decision.rule, decision.vectors
    if rule == "class" and len(scores) > 1:
        return _swap(scores, winner, 1, "score")
    if rule in ("class", "sign"):
        return _flip(winner, "score", np.abs(scores))
    if rule == "loss":
        signs = 2.0 * vectors - 1
        return _choose(vectors, decision.loss.value(signs, np.broadcast_to(scores, signs.shape)), winner, "loss")
    log_odds = decision.log_odds(scores[None])
    if rule == "hamming":
        mean = (expit(log_odds) + marginal_probabilities(log_odds, vectors))[0] / 2
        return _flip(winner, "probability", np.abs(mean - 0.5))
    if rule == "subset":
        s = score_vectors(decision.terms(scores[None]), vectors, decision.bias)[0]
        return _choose(vectors, -s, winner, "log-probability", decision.bias)
    if rule == "f1":
        return _flip(winner, "expected F1", _lose_f1(decision, decision.terms(scores[None]), winner))
    if rule == "rank":
        return _swap(log_odds[0], winner, decision.count, "log-odds")
    if rule == "thresholds":
        return _flip(winner, "probability", np.abs(expit(log_odds[0]) - decision.thresholds))
    return _flip(winner, "log-odds", np.abs(log_odds[0]))


def _choose(vectors: Vector, losses: Array, winner: Vector, measure: str, bias: Array | float = 0.0) -> RunnerUp | None:
    """The known vector of least loss, but for the winner."""
    is_winner = (vectors == winner).all(axis=1)
    if is_winner.all():
        return None
    second = int(np.where(is_winner, np.inf, losses).argmin())
    first = int(is_winner.argmax()) if is_winner.any() else second
    start = np.broadcast_to(bias, len(vectors))
    margin = max(float(losses[second] - losses[first]), 0.0)
    return RunnerUp(vectors[second].copy(), measure, margin, float(start[first] - start[second]))


def _flip(winner: Vector, measure: str, distances: Array) -> RunnerUp:
    """The winner with the one label flipped that has least far to go."""
    nearest = int(distances.argmin())
    flipped = winner.copy()
    flipped[nearest] = 1 - flipped[nearest]
    return RunnerUp(flipped, measure, float(distances[nearest]))


def _swap(values: Array, winner: Vector, k: int, measure: str) -> RunnerUp | None:
    """The last of the k best labels makes room for the next."""
    if k >= len(values):
        return None
    order = np.argsort(-values, kind="stable")
    swapped = winner.copy()
    swapped[order[k - 1]], swapped[order[k]] = 0, 1
    return RunnerUp(swapped, measure, float(values[order[k - 1]] - values[order[k]]))


def _lose_f1(decision: Decision, terms: Array, winner: Vector) -> Array:
    """How much of the winner's expected F-measure is lost by flipping each of its labels."""
    length = int(winner.sum())
    if len(decision.vectors):
        _, shares = next(share_out(terms, decision.vectors, decision.bias, decision.curve))
        empty = float(shares.of_none[0])
        weigh = partial(weigh_known, shares)
    else:
        empty = float(expit(-terms).prod())
        weigh = partial(weigh_independent, terms)
    without, same, added = (weigh(r)[0] if r > 0 else np.zeros(len(winner)) for r in (length - 1, length, length + 1))
    expected = np.where(winner == 1, without @ winner - without, added @ winner + added)
    if length == 1:
        expected[winner == 1] = empty
    return np.maximum((same @ winner if length > 0 else empty) - expected, 0.0)
