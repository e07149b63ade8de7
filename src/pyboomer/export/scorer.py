"""A scorer is a Python file that predicts with a model and imports nothing: neither pyboomer nor anything else.

It is meant to be read as well: a rule is an `if`, with its thresholds in full. Its scores are exactly those of the
model, since it adds the same numbers in the same order. Names and categories may be any text; they appear in the file
only as `repr` writes them, which leaves no way out of a string or a comment.
"""

import re
import warnings
from collections.abc import Iterable, Iterator
from math import e
from typing import TYPE_CHECKING, Any

import numpy as np

import pyboomer
from pyboomer.losses import example_wise_logistic
from pyboomer.losses.joint import LEAST
from pyboomer.losses.squared import CLOSEST, example_wise_squared_hinge
from pyboomer.predicting.calibration import Curve
from pyboomer.predicting.decision import Decision
from pyboomer.predicting.decoding import find_cuts
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.precision import CERTAIN, TIE
from pyboomer.rules.rule import Condition, Rule

if TYPE_CHECKING:
    from pyboomer.estimator import RuleEstimator


def write_scorer(model: "RuleEstimator") -> str:
    """Write a fitted model as the text of a Python file.

    The file has the functions `scores`, `predict` and, unless it predicts numbers, `probabilities`, which take one
    example. One of these is not there, and a warning says so, if it needed a loss that is the user's own code.
    """
    fitted = model.get_fitted()
    rules, decision = fitted.rules, fitted.decision
    if decision.out_of_reach:
        lacking = ["function predict" if what == "labels" else f"function {what}" for what in decision.out_of_reach]
        warnings.warn(
            f"the Python file has no {' and no '.join(lacking)}: {' and '.join(decision.out_of_reach)} depend on "
            f"functions of the loss {decision.loss.name!r}, which are your own code",
            UserWarning,
            stacklevel=3,
        )
    predict = () if "labels" in decision.out_of_reach else _list_predict(fitted.label_format, decision)
    probabilities = () if "probabilities" in decision.out_of_reach else _list_probabilities(decision)
    parts = tuple(dict.fromkeys((*predict, *probabilities)))  # what both need stands there once
    for what, names in ("features", rules.feature_names), ("labels", rules.label_names):
        if len(set(names)) < len(names):
            raise ValueError(f"{what} must have distinct names, got {max(names, key=names.count)!r} twice")
    categories = [f"    {rules.feature_names[f]!r}: {values!r}," for f, values in rules.categories.items()]
    return _join(
        _write_header(rules, decision, bool(predict), bool(probabilities)),
        _write_tuple("FEATURES", map(repr, rules.feature_names)),
        "\n".join(["CATEGORIES = {", *categories, "}"]),
        _write_tuple("LABELS", map(repr, rules.label_names)),
        SCORES,
        _write_constants(parts),
        *parts,
        _write_rules(rules),
    )


# --- What differs from model to model ---------------------------------------------------------------------------------


def _write_header(rules: RuleEnsemble, decision: Decision, predicts: bool, has_probabilities: bool) -> str:
    noun = "target" if decision.rule == "numbers" else "label"
    sizes = {"rule": len(rules), "feature": len(rules.feature_names), noun: len(rules.label_names)}
    counts = ", ".join(f"{size} {what}" if size == 1 else f"{size} {what}s" for what, size in sizes.items())
    result = {
        "numbers": "a number, or a dict from targets to numbers",
        "class": "a class",
    }
    unknown = "not in this file: how scores become labels takes more than can be written here"
    nouns = "labels" if decision.classes is None else "classes"
    line = f"\n    model.probabilities(example)  # a dict from {nouns} to their probabilities"
    return HEADER.format(
        version=pyboomer.__version__,
        counts=counts,
        noun=noun,
        result=result.get(decision.rule, "a dict from labels to 0 and 1") if predicts else unknown,
        probabilities=line if has_probabilities else "",
    )


def _join(*parts: str) -> str:
    return "\n\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _write_tuple(name: str, values: Iterable[str]) -> str:
    return "\n".join([f"{name} = (", *(f"    {value}," for value in values), ")"])


def _write_rules(rules: RuleEnsemble) -> str:
    lines = ["def add_rules(x, total):", '    """Add the head of each rule whose conditions the example meets."""']
    for number, rule in enumerate(rules):
        lines += _write_rule(number, rule, len(rules.label_names))
    return "\n".join(lines)


def _write_rule(number: int, rule: Rule, n_labels: int) -> Iterator[str]:
    """The lines of a rule. Its conditions are not merged; they come in the order in which they were learned."""
    yield f"    # rule {number}, covers {rule.coverage:.6g}"
    if rule.body:
        yield f"    if {' and '.join(map(_write_condition, rule.body))}:"
    margin = " " * (8 if rule.body else 4)
    scored = [(name, score) for name, score in rule.head.items() if score != 0]
    if len(scored) > max(n_labels / 2, 1):
        scores = dict.fromkeys(range(n_labels), 0.0) | dict(zip(rule.labels, rule.scores, strict=True))
        yield f"{margin}add(total, {tuple(scores.values())!r})"
    else:
        yield from (f"{margin}total[{name!r}] += {score!r}" for name, score in scored)
        if not scored:
            yield f"{margin}pass"


def _write_condition(condition: Condition) -> str:
    if condition.levels:
        position = int(condition.value) + 1
        met = condition.levels[:position] if condition.operator == "<=" else condition.levels[position:]
        return f"x[{condition.name!r}] in {met!r}"
    if condition.operator == "!=":
        return f"differs(x[{condition.name!r}], {condition.value!r})"
    return f"x[{condition.name!r}] {condition.operator} {condition.value!r}"


def _write_constants(parts: Iterable[str]) -> str:
    """The numbers that functions use by name."""
    functions = "".join(part for part in parts if part.startswith("\ndef "))
    numbers = {"E": e, "CERTAIN": CERTAIN, "TIE": TIE}
    return "\n".join(f"{name} = {value!r}" for name, value in numbers.items() if re.search(rf"\b{name}\b", functions))


def _list_predict(label_format: Any, decision: Decision) -> tuple[str, ...]:
    """The function `predict`, behind all that it needs."""
    if decision.rule == "numbers":
        return (PREDICT_NUMBER if label_format.flat else PREDICT_NUMBERS,)
    if decision.classes is not None:
        return _write_classes(decision), PREDICT_CLASS if len(decision.classes) > 2 else PREDICT_TWO_CLASSES
    if decision.rule == "sign" or (decision.rule == "odds" and decision.have_sign_of_scores):
        return (PREDICT_SIGN,)
    n_labels = len(label_format.names)
    if decision.rule == "loss":
        return _write_vectors(decision), _write_least_loss(decision)
    odds = _list_log_odds(decision)
    if decision.rule in ("odds", "thresholds"):
        cuts = np.broadcast_to(0.0 if decision.thresholds is None else find_cuts(decision.thresholds), n_labels)
        return *odds, _write_tuple("CUTS", map(_write_float, cuts.tolist())), PREDICT_CUTS
    if decision.rule == "rank":
        return *odds, f"COUNT = {decision.count}", PREDICT_RANK
    if len(decision.vectors) == 0:
        return *odds, COUNT_INDEPENDENT, PREDICT_F1
    curve = None if decision.calibration is None else decision.calibration.joint
    joint: tuple[str, ...] = (WEIGH_VECTORS, JOINT)
    if curve is not None:
        raw = JOINT.replace("def joint", "def raw_joint")
        joint = (WEIGH_VECTORS, raw, f"JOINT = {_write_curve(curve)}", CALIBRATED_JOINT)
    functions = {
        "subset": (PREDICT_SUBSET,),
        "hamming": (WEIGH_VECTORS, JOINT, PREDICT_HAMMING),
        "f1": (*joint, COUNT_KNOWN, PREDICT_F1),
    }
    if decision.loss.known is None:
        return _write_vectors(decision), *odds, SUM_LOG_ODDS, *functions[decision.rule]
    # there it is said how a curve is followed
    return *(_list_vector_scores(decision) if curve is None else odds), *functions[decision.rule]


def _list_probabilities(decision: Decision) -> tuple[str, ...]:
    """The function `probabilities`, behind all that it needs; nothing, if numbers are predicted."""
    if decision.rule == "numbers":
        return ()
    if decision.classes is None:
        return *_list_log_odds(decision), PROBABILITIES
    if decision.is_settled:
        return _write_classes(decision), PROBABILITY_OF_ONE_CLASS
    of_scores = decision.loss.known is not None and decision.calibration is None
    odds = (LOG_ODDS,) if of_scores else _list_log_odds(decision)
    first = "0.0, " if len(decision.classes) == 2 else ""
    return _write_classes(decision), *odds, PROBABILITIES_OF_CLASSES.replace("FIRST, ", first)


def _write_classes(decision: Decision) -> str:
    assert decision.classes is not None
    return _write_tuple("CLASSES", map(repr, decision.classes.tolist()))


def _write_vectors(decision: Decision) -> str:
    known = decision.vectors if decision.loss.known is None else decision.loss.known.vectors
    vectors = _write_tuple("VECTORS", (repr("".join(map(str, v))) for v in known.tolist()))
    return f"# the known label vectors, the most frequent first\n{vectors}"


def _write_least_loss(decision: Decision) -> str:
    if decision.loss == example_wise_logistic:
        return PREDICT_LOSS
    hinge = decision.loss == example_wise_squared_hinge
    return PREDICT_SQUARES.replace("RESIDUAL", "max(0.0, 1 - y * f)" if hinge else "1 - y * f")


def _list_vector_scores(decision: Decision) -> tuple[str, ...]:
    """How known label vectors are scored by a loss about them."""
    assert decision.loss.known is not None
    return _write_vectors(decision), _write_tuple("BIAS", map(repr, decision.loss.known.bias.tolist())), SUM_SCORES


def _list_log_odds(decision: Decision) -> tuple[str, ...]:
    """How scores become log-odds."""
    plain = {
        "scores": LOG_ODDS,
        "means": LOG_ODDS_OF_MEANS.replace("CLOSEST", repr(CLOSEST)),
        "vectors": LOG_ODDS_OF_VECTORS.replace("LEAST", repr(LEAST)),
    }[decision.odds]
    needed: tuple[str, ...] = () if decision.odds == "scores" else (LOG,)
    if decision.odds == "vectors":
        needed = (*_list_vector_scores(decision), WEIGH_VECTORS, LOG)
    if decision.calibration is None:
        return (*needed, plain)
    curves = _write_tuple("CURVES", map(_write_curve, decision.calibration.labels))
    raw = plain.replace("def log_odds", "def raw_log_odds")
    return tuple(dict.fromkeys((*needed, LOG, raw, curves, CALIBRATED_LOG_ODDS)))


def _write_curve(curve: Curve) -> str:
    return repr((curve.x, curve.y))


def _write_float(value: float) -> str:
    return 'float("inf")' if value == float("inf") else repr(value)


# --- What is the same for all models ----------------------------------------------------------------------------------

HEADER = '''
"""Predictions of a rule model: {counts}.

Written by pyboomer {version}. Nothing is imported. Save this file as model.py, for instance, and then

    import model

    model.scores(example)         # a dict from {noun}s to their scores
    model.predict(example)        # {result}{probabilities}

An example is a dict from the names of features to their values, or a sequence of the values of all FEATURES in their
order. A value that is None or NaN, or that the dict does not have, is missing: it meets no condition. (Zeros must be
given, even if the model was learned from sparse data.) CATEGORIES has the categories of nominal features: text,
numbers or booleans. One that is not among them differs from all.
"""
'''

SCORES = '''
def scores(example):
    """The score of each label: the sum over all rules that cover the example."""
    x = read(example)
    total = dict.fromkeys(LABELS, 0.0)
    add_rules(x, total)
    return total


def read(example):
    """The value of each feature by its name, NaN if it is missing."""
    if not hasattr(example, "keys"):
        if len(example) != len(FEATURES):
            raise ValueError(f"an example has {len(FEATURES)} features, got {len(example)} values")
        example = dict(zip(FEATURES, example))
    x = dict.fromkeys(FEATURES, float("nan"))
    for name in example.keys():
        if name not in x:
            raise ValueError(f"there is no feature {name!r}")
        value = example[name]
        if value is None or type(value).__name__ == "NAType" or value != value:
            continue
        x[name] = read_category(value) if name in CATEGORIES else float(value)
    return x


def read_category(value):
    """Text and numbers as they are, of whatever kind; anything else as text."""
    if isinstance(value, (str, int)):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)


def differs(value, category):
    """Whether a value is another category; a missing one is not."""
    return value == value and value != category


def add(total, head):
    """Add a score to each label."""
    for label, score in zip(LABELS, head):
        total[label] += score
'''

PREDICT_NUMBERS = '''
def predict(example):
    """The number predicted for each target."""
    return scores(example)
'''

PREDICT_NUMBER = '''
def predict(example):
    """The number predicted."""
    return scores(example)[LABELS[0]]
'''

PREDICT_TWO_CLASSES = '''
def predict(example):
    """The second class if its score is above 0, else the first."""
    return CLASSES[scores(example)[LABELS[0]] > 0]
'''

PREDICT_CLASS = '''
def predict(example):
    """The class of the largest score; of equals, the first."""
    total = list(scores(example).values())
    return CLASSES[total.index(max(total))]
'''

PREDICT_SIGN = '''
def predict(example):
    """1 for each label whose score is above 0, else 0."""
    return {label: int(score > 0) for label, score in scores(example).items()}
'''

# Eq. 19 without logarithms: the sums of exp(-y f) order the known vectors as their losses do. Exponents are shifted, if
# need be, so that the largest of the best vector is 0: neither does its sum underflow nor any sum overflow.
PREDICT_LOSS = '''
def predict(example):
    """The known label vector of least loss: log(1 + sum of exp(-y f)), y being +1 for relevant labels, else -1."""
    exponents = [{"0": score, "1": -score} for score in scores(example).values()]
    shift = 0.0
    if max(pair["0"] for pair in exponents) > 300 or max(pair["1"] for pair in exponents) > 300:
        shift = min(max(pair[y] for pair, y in zip(exponents, vector)) for vector in VECTORS)
    terms = [{y: E ** min(pair[y] - shift, 700.0) for y in "01"} for pair in exponents]
    losses = [sum(pair[y] for pair, y in zip(terms, vector)) for vector in VECTORS]
    limit = min(losses) * (1 + TIE)
    best = next(vector for vector, loss in zip(VECTORS, losses) if loss <= limit)
    return {label: int(y) for label, y in zip(LABELS, best)}
'''

PREDICT_SQUARES = '''
def predict(example):
    """The known label vector of least loss: the root of the sum of squared residuals, y being +1 or -1."""
    total = scores(example).values()
    losses = [sum(square(f, y) for f, y in zip(total, vector)) ** 0.5 for vector in VECTORS]
    limit = min(losses) + TIE * min(1.0, *losses)
    best = next(vector for vector, loss in zip(VECTORS, losses) if loss <= limit)
    return {label: int(y) for label, y in zip(LABELS, best)}


def square(f, relevant):
    """The squared residual of a label."""
    y = 1 if relevant == "1" else -1
    residual = RESIDUAL
    return residual * residual
'''

LOG = '''
def log(x):
    """The natural logarithm, by Halley's method."""
    result = 0.0
    for _ in range(500):
        power = 2.718281828459045 ** result
        step = 2 * (x - power) / (x + power)
        result += step
        if abs(step) < 1e-6:
            break
    return result
'''

LOG_ODDS = '''
def log_odds(example):
    """The scores of the labels are their log-odds."""
    return list(scores(example).values())
'''

LOG_ODDS_OF_MEANS = '''
def log_odds(example):
    """The log-odds of the labels: scores are expectations of labels that are -1 or +1."""
    means = [max(-CLOSEST, min(CLOSEST, score)) for score in scores(example).values()]
    return [log((1 + mean) / (1 - mean)) for mean in means]
'''

CALIBRATED_LOG_ODDS = '''
def log_odds(example):
    """The log-odds of the labels: each has a curve from what the scores say to its probability."""
    calibrated = [follow(curve, value) for curve, value in zip(CURVES, raw_log_odds(example))]
    return [log(p / (1 - p)) for p in calibrated]


def follow(curve, value):
    """The height of a curve, which is a line through points, and level beyond the first and the last."""
    x, y = curve
    after = sum(point <= value for point in x)
    if after in (0, len(x)):
        return y[0] if after == 0 else y[-1]
    slope = (y[after] - y[after - 1]) / (x[after] - x[after - 1])
    return slope * (value - x[after - 1]) + y[after - 1]
'''

PROBABILITIES = '''
def probabilities(example):
    """The probability of each label."""
    odds = zip(LABELS, log_odds(example))
    return {label: 1 / (1 + E ** -max(-700, min(700, value))) for label, value in odds}
'''

PROBABILITY_OF_ONE_CLASS = '''
def probabilities(example):
    """The probability of the only class."""
    return {CLASSES[0]: 1.0}
'''

PROBABILITIES_OF_CLASSES = '''
def probabilities(example):
    """The probability of each class, one of which is right."""
    values = [FIRST, *(max(-CERTAIN, min(CERTAIN, value)) for value in log_odds(example))]
    weights = [E ** (value - max(values)) for value in values]
    return {name: weight / sum(weights) for name, weight in zip(CLASSES, weights)}
'''

PREDICT_CUTS = '''
def predict(example):
    """1 for each label whose log-odds are above its cut, else 0."""
    return {label: int(value > cut) for label, value, cut in zip(LABELS, log_odds(example), CUTS)}
'''

PREDICT_RANK = '''
def predict(example):
    """1 for the most probable labels, COUNT of them; of equals, the first."""
    values = log_odds(example)
    best = sorted(range(len(LABELS)), key=lambda k: -values[k])[:COUNT]
    return {label: int(k in best) for k, label in enumerate(LABELS)}
'''

LOG_ODDS_OF_VECTORS = '''
def log_odds(example):
    """The log-odds of the labels: how probable the known label vectors are that have them, and those that do not."""
    weights = weigh_vectors(example)
    total = sum(weights)
    odds = []
    for k in range(len(LABELS)):
        shares = [sum(w for w, vector in zip(weights, VECTORS) if vector[k] == y) / total for y in "10"]
        odds.append(log(max(shares[0], LEAST)) - log(max(shares[1], LEAST)))
    return odds
'''

SUM_SCORES = '''
def score_vectors(example):
    """The score of each known label vector, the log of a share of probability: those of its labels, and its bias."""
    total = [max(-CERTAIN, min(CERTAIN, value)) for value in scores(example).values()]
    sums = [sum(value for value, y in zip(total, vector) if y == "1") for vector in VECTORS]
    return [value + bias for value, bias in zip(sums, BIAS)]
'''

SUM_LOG_ODDS = '''
def score_vectors(example):
    """For each known label vector the sum of the log-odds of its labels, the log of a share of probability."""
    total = [max(-CERTAIN, min(CERTAIN, value)) for value in log_odds(example)]
    return [sum(value for value, y in zip(total, vector) if y == "1") for vector in VECTORS]
'''

WEIGH_VECTORS = '''
def weigh_vectors(example):
    """How probable each known label vector is, in relation to the most probable one."""
    sums = score_vectors(example)
    largest = max(sums)
    return [E ** (value - largest) for value in sums]
'''

PREDICT_SUBSET = '''
def predict(example):
    """The most probable known label vector; of equals, the first."""
    sums = score_vectors(example)
    best = VECTORS[sums.index(max(sums))]
    return {label: int(y) for label, y in zip(LABELS, best)}
'''

JOINT = '''
def joint(example):
    """The probability of each known label vector."""
    weights = weigh_vectors(example)
    total = sum(weights)
    return [weight / total for weight in weights]
'''

CALIBRATED_JOINT = '''
def joint(example):
    """The probability of each known label vector: there is a curve from what the scores say to it."""
    scaled = [follow(JOINT, share) for share in raw_joint(example)]
    total = sum(scaled)
    return [share / total for share in scaled]
'''

PREDICT_HAMMING = '''
def predict(example):
    """1 for each label more probable than not: the mean of what the known label vectors and the label alone say."""
    shares = joint(example)
    together = [sum(p for p, vector in zip(shares, VECTORS) if vector[k] == "1") for k in range(len(LABELS))]
    alone = [1 / (1 + E ** -max(-700, min(700, value))) for value in log_odds(example)]
    return {label: int((p + q) / 2 > 0.5) for label, p, q in zip(LABELS, together, alone)}
'''

COUNT_KNOWN = '''
def count(example):
    """For each size of a label vector the probabilities of its labels, given together with that size."""
    shares, empty = {}, 0.0
    for p, vector in zip(joint(example), VECTORS):
        if "1" not in vector:
            empty += p
        share = shares.setdefault(vector.count("1"), [0.0] * len(LABELS))
        for k, y in enumerate(vector):
            if y == "1":
                share[k] += p
    return shares, empty
'''

COUNT_INDEPENDENT = '''
def count(example):
    """For each size of a label vector the probabilities of its labels, given together with that size."""
    alone = [1 / (1 + E ** -max(-700, min(700, value))) for value in log_odds(example)]
    shares, empty = {size: [] for size in range(1, len(alone) + 1)}, 1.0
    for k, p in enumerate(alone):
        empty *= 1 - p
        others = [1.0] + [0.0] * (len(alone) - 1)  # how probable it is that 0, 1, ... of the others are relevant
        for q in alone[:k] + alone[k + 1 :]:
            others = [a * (1 - q) + b * q for a, b in zip(others, [0.0] + others)]
        for size, share in shares.items():
            share.append(p * others[size - 1])
    return shares, empty
'''

PREDICT_F1 = '''
def predict(example):
    """The label vector of largest expected F-measure: of each length the best labels, and of these the best."""
    shares, best = count(example)  # nothing is right if there is nothing
    chosen = []
    for length in range(1, len(LABELS) + 1):
        gains = [sum(2 / (size + length) * share[k] for size, share in shares.items()) for k in range(len(LABELS))]
        largest = sorted(range(len(LABELS)), key=lambda k: -gains[k])[:length]
        expected = sum(gains[k] for k in largest)
        if expected > best:
            best, chosen = expected, largest
    return {label: int(k in chosen) for k, label in enumerate(LABELS)}
'''
