"""A scorer is a Python file that predicts with a model and imports nothing: neither pyboomer nor anything else.

It is meant to be read as well: a rule is an `if`, with its thresholds in full. Its scores are exactly those of the
model, since it adds the same numbers in the same order. Names and categories may be any text; they appear in the file
only as `repr` writes them, which leaves no way out of a string or a comment.
"""

from collections.abc import Iterable, Iterator
from math import e
from typing import TYPE_CHECKING

import pyboomer
from pyboomer.losses import example_wise_logistic
from pyboomer.predicting.decision import Decision
from pyboomer.predicting.decoding import CERTAIN
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.precision import TIE
from pyboomer.rules.rule import Condition, Rule

if TYPE_CHECKING:
    from pyboomer.estimator import RuleEstimator

RULES = ("numbers", "class", "sign", "loss", "subset", "hamming")  # of `Decision`, that a file can follow


def write_scorer(model: "RuleEstimator") -> str:
    """Write a fitted model as the text of a Python file.

    The file has the functions `scores` and `predict`, which take one example. There is no `predict` if it needed a
    loss that is the user's own code.
    """
    rules, decision = model.rules_, model._find_decision()
    rule = decision.translate(RULES, (example_wise_logistic,))
    for what, names in ("features", rules.feature_names), ("labels", rules.label_names):
        if len(set(names)) < len(names):
            raise ValueError(f"{what} must have distinct names, got {max(names, key=names.count)!r} twice")
    categories = [f"    {rules.feature_names[f]!r}: {values!r}," for f, values in rules.categories.items()]
    return _join(
        _write_header(rules, rule),
        _write_tuple("FEATURES", map(repr, rules.feature_names)),
        "\n".join(["CATEGORIES = {", *categories, "}"]),
        _write_tuple("LABELS", map(repr, rules.label_names)),
        SCORES,
        _write_predict(model, decision, rule),
        _write_rules(rules),
    )


# --- What differs from model to model ---------------------------------------------------------------------------------


def _write_header(rules: RuleEnsemble, rule: str) -> str:
    noun = "target" if rule == "numbers" else "label"
    sizes = {"rule": len(rules), "feature": len(rules.feature_names), noun: len(rules.label_names)}
    counts = ", ".join(f"{size} {what}" if size == 1 else f"{size} {what}s" for what, size in sizes.items())
    result = {
        "numbers": "a number, or a dict from targets to numbers",
        "class": "a class",
        "unknown": "not in this file: how scores become labels takes more than can be written here",
    }
    return HEADER.format(
        version=pyboomer.__version__,
        counts=counts,
        noun=noun,
        result=result.get(rule, "a dict from labels to 0 and 1"),
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


def _write_predict(model: "RuleEstimator", decision: Decision, rule: str) -> str:
    if rule == "unknown":
        return ""
    if rule == "numbers":
        return PREDICT_NUMBER if model._form.flat else PREDICT_NUMBERS
    if rule == "sign":
        return PREDICT_SIGN
    if decision.classes is not None:
        classes = _write_tuple("CLASSES", map(repr, decision.classes.tolist()))
        return _join(classes, PREDICT_CLASS if len(decision.classes) > 2 else PREDICT_TWO_CLASSES)
    vectors = _write_tuple("VECTORS", (repr("".join(map(str, v))) for v in decision.vectors.tolist()))
    functions = {
        "loss": (f"E = {e!r}\nTIE = {TIE!r}", PREDICT_LOSS),
        "subset": (f"CERTAIN = {CERTAIN!r}", SUM_LOG_ODDS, PREDICT_SUBSET),
        "hamming": (f"E = {e!r}\nCERTAIN = {CERTAIN!r}", SUM_LOG_ODDS, PREDICT_HAMMING),
    }
    return _join(f"# the known label vectors, the most frequent first\n{vectors}", *functions[rule])


# --- What is the same for all models ----------------------------------------------------------------------------------

HEADER = '''
"""Predictions of a rule model: {counts}.

Written by pyboomer {version}. Nothing is imported. Save this file as model.py, for instance, and then

    import model

    model.scores(example)   # a dict from {noun}s to their scores
    model.predict(example)  # {result}

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

SUM_LOG_ODDS = '''
def sum_log_odds(example):
    """For each known label vector the sum of the scores of its relevant labels, the log of a share of probability."""
    total = [max(-CERTAIN, min(CERTAIN, score)) for score in scores(example).values()]
    return [sum(score for score, y in zip(total, vector) if y == "1") for vector in VECTORS]
'''

PREDICT_SUBSET = '''
def predict(example):
    """The most probable known label vector; of equals, the first."""
    log_odds = sum_log_odds(example)
    best = VECTORS[log_odds.index(max(log_odds))]
    return {label: int(y) for label, y in zip(LABELS, best)}
'''

PREDICT_HAMMING = '''
def predict(example):
    """1 for each label more probable than not: the mean of what the known label vectors and the label alone say."""
    log_odds = sum_log_odds(example)
    largest = max(log_odds)
    weights = [E ** (value - largest) for value in log_odds]
    total = sum(weights)
    together = [sum(w for w, vector in zip(weights, VECTORS) if vector[k] == "1") / total for k in range(len(LABELS))]
    alone = [1 / (1 + E ** -max(-700, min(700, score))) for score in scores(example).values()]
    return {label: int((p + q) / 2 > 0.5) for label, p, q in zip(LABELS, together, alone)}
'''
