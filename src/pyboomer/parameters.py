"""A parameter is a choice left to the user: its name, default, allowed values and meaning, all in one table.

The estimators' signatures, docstrings and checks and the options of the command line follow this table.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from textwrap import wrap
from typing import Any

import numpy as np

from pyboomer.losses import FOR_LABELS, FOR_NUMBERS, Loss


@dataclass(frozen=True)
class Parameter:
    """A row of the table."""

    name: str
    default: Any
    allowed: str
    check: Callable[[Any], bool]
    meaning: str

    def validate(self, value: Any) -> None:
        """Raise an error that names the parameter and the allowed values if `value` is not one of them."""
        if not self.check(value):
            raise ValueError(f"{self.name} must be {self.allowed}, got {value!r}")


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def _is_real(value: Any) -> bool:
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def _one_of(*options: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in options


def _is_fraction(value: Any) -> bool:
    return _is_real(value) and not isinstance(value, Integral) and 0 < value <= 1


def _is_size(value: Any, *words: str) -> bool:
    """Whether it is None, a number of things, a fraction of them, or one of the words."""
    return value is None or _is_whole(value, 1) or _is_fraction(value) or _one_of(*words)(value)


def _is_feature_choice(value: Any) -> bool:
    return value is None or isinstance(value, str | list | tuple) or hasattr(value, "__array__")


def _is_random_state(value: Any) -> bool:
    if value is None or isinstance(value, np.random.RandomState):
        return True
    return isinstance(value, Integral) and not isinstance(value, bool) and 0 <= int(value) < 2**32


def _is_decode(value: Any) -> bool:
    if isinstance(value, str):
        return value in ("loss", "hamming", "subset", "f1") or re.fullmatch("top-[1-9][0-9]{0,8}", value) is not None
    if isinstance(value, list | tuple | np.ndarray):
        return len(value) > 0 and all(_is_real(threshold) and 0 <= threshold <= 1 for threshold in value)
    return _is_real(value) and 0 <= value <= 1


def _is_class_weight(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return len(value) > 0 and all(
            isinstance(each, Mapping) and (not each or _is_class_weight(each)) for each in value
        )
    if isinstance(value, Mapping):
        return len(value) > 0 and all(_is_real(weight) and weight > 0 for weight in value.values())
    return value is None or _one_of("balanced")(value)


def _is_scoring(value: Any) -> bool:
    if isinstance(value, str) and value == "loss":
        return True
    from sklearn.metrics import get_scorer_names  # takes its time, and is rarely needed
    from sklearn.metrics._scorer import _BaseScorer  # a scorer asks for predictions, and nothing else, of the model

    return isinstance(value, _BaseScorer) or (isinstance(value, str) and value in get_scorer_names())


PARAMETERS = (
    Parameter(
        "loss",
        "auto",
        '"auto", "joint-logistic", "(label|example)-wise-(logistic|squared-error|squared-hinge)", or a pyboomer.Loss',
        lambda value: isinstance(value, Loss) or _one_of("auto", *FOR_LABELS)(value),
        "The loss to minimise; `loss_` says which it was."
        '\n- "auto": "joint-logistic"; but "label-wise-logistic" if there are more than half as many '
        "label vectors as examples, if vectors have more than 20 labels on average, if examples times vectors exceed "
        "20 million, if labels have weights, or if known_vectors=False."
        '\n- "joint-logistic" learns the probability of each known label vector, and so which labels go together.'
        '\n- "example-wise-logistic", of the paper, also aims at whole label vectors (Eq. 7, subset 0/1 loss).'
        '\n- "label-wise-logistic", of the paper, aims at each label by itself (Eq. 6, Hamming loss). Its scores are '
        "log-odds."
        "\n- The squared losses are sums over the labels of (1 - y f)^2 and max(0, 1 - y f)^2, or the roots of these "
        "sums.",
    ),
    Parameter(
        "head",
        "multi",
        '"multi", "single", a whole number of at least 1 or a fraction in (0, 1)',
        lambda value: (
            _one_of("multi", "single")(value) or _is_whole(value, 1) or (_is_fraction(value) and float(value) < 1)
        ),
        "The labels that a rule scores: all; a single one; a number of them, those of largest gain; or those whose "
        "gain is at least this fraction of the largest. The first condition of a rule decides which.",
    ),
    Parameter(
        "n_rules",
        "auto",
        '"auto" or a whole number of at least 1',
        lambda value: _one_of("auto")(value) or _is_whole(value, 1),
        'The number of rules to learn, the default rule included. "auto": 3000. With head="multi", and '
        "rules about m of more than 32 labels (max_labels), N K / m / 10,000 times as many, for N examples and K "
        "labels, but at least 3000 and at most 15,000.",
    ),
    Parameter(
        "rules_per_round",
        "auto",
        '"auto" or a whole number from 1 to 32',
        lambda value: _one_of("auto")(value) or (_is_whole(value, 1) and value <= 32),
        "The largest number of rules whose conditions are chosen from the same statistics, by several threads or a GPU "
        "side by side. Rounds grow: one that begins with rule t has t / 25 rules, but at least one. 1 is the algorithm "
        "of the paper. "
        '"auto": 32 for more than 20,000 examples, but 1 if search="exact" or if rules score some labels (max_labels).',
    ),
    Parameter(
        "default_rule",
        "minimum",
        '"minimum" or "newton"',
        _one_of("minimum", "newton"),
        "The scores of the first rule, which covers all examples: those of least training loss, or the paper's single "
        "Newton step towards them. That step overshoots if labels are many or rare.",
    ),
    Parameter(
        "learning_rate",
        "auto",
        '"auto" or in (0, 1]',
        lambda value: _one_of("auto")(value) or (_is_real(value) and 0 < value <= 1),
        "The shrinkage: it multiplies the scores of every rule but the default rule (Alg. 1, line 8). "
        '"auto": 0.067 for up to 2,500 examples, 0.133 for 10,000, 0.4 for 90,000 and more, growing with the square '
        'root of their number. With head="multi", and R of n_rules="auto" rules about each label (max_labels), it is '
        "sqrt(3000 / R) times as large, but at most 0.4. With the joint loss, it is at most 1 / s for label vectors of "
        "s labels.",
    ),
    Parameter(
        "l1",
        0.0,
        "a number of at least 0",
        lambda value: _is_real(value) and value >= 0,
        "The weight of the L1 regularisation of all scores. It makes them smaller and the smallest zero, so heads have "
        "fewer labels. Keep it well below the number of examples that a rule covers, else all scores become 0.",
    ),
    Parameter(
        "l2",
        1.0,
        "a number of at least 0",
        lambda value: _is_real(value) and value >= 0,
        "The weight of the L2 regularisation of the scores (Eq. 15).",
    ),
    Parameter(
        "bootstrap",
        True,
        "True or False",
        lambda value: isinstance(value, bool | np.bool_),
        "Whether to learn the body of each rule on a bootstrap sample of the examples. Its head is always fitted on "
        "all examples.",
    ),
    Parameter(
        "sampling",
        "with-replacement",
        '"with-replacement", "without-replacement", "stratified-label-wise" or "stratified-example-wise"',
        _one_of("with-replacement", "without-replacement", "stratified-label-wise", "stratified-example-wise"),
        "How to draw the examples of a sample, if bootstrap=True: with replacement (the paper's bootstrap), without, "
        "or stratified without replacement, by the rarest relevant label of an example or by its whole label vector.",
    ),
    Parameter(
        "max_samples",
        "auto",
        '"auto", None, a whole number from 1 to 2**32 or a fraction in (0, 1]',
        lambda value: _one_of("auto")(value) or (_is_size(value) and (value is None or value <= 2**32)),  # one by one
        "The size of a sample, if bootstrap=True: a number of examples or a fraction. None: as many as there are with "
        'replacement, two thirds of them without. "auto": a twentieth, at least 20,000; None if there are fewer.',
    ),
    Parameter(
        "max_features",
        "auto",
        '"auto", "sqrt", "log2", None, a whole number of at least 1 or a fraction in (0, 1]',
        lambda value: _is_size(value, "auto", "sqrt", "log2"),
        "How many of the L features to draw for each condition: their square root, rounded up; the paper's "
        'floor(log2(L - 1) + 1); all (None); a number; or a fraction. "auto": for up to 20,000 examples about log2(L), '
        "but L / 30 of more than 300, and at most the square root; for more examples, twice the square root.",
    ),
    Parameter(
        "fixed_features",
        None,
        "None, a mask, indices or names",
        lambda value: _is_feature_choice(value) and not isinstance(value, str),
        "Features to consider for every condition. `max_features` are drawn from the others.",
    ),
    Parameter(
        "max_labels",
        "auto",
        '"auto", None, "round-robin", a whole number of at least 1 or a fraction in (0, 1]',
        lambda value: _is_size(value, "auto", "round-robin"),
        "How many labels a rule may score: all (None), a number or a fraction. They are dealt like cards, at random, "
        "and all have their turn. "
        '"round-robin": each label in turn. "auto": where most values of X are 0 and head="multi", at most 16 of '
        "more than 32 labels, or a tenth if that is more; with the joint loss, at most 8 of 16 to 32. Otherwise all.",
    ),
    Parameter(
        "max_conditions",
        4,
        "None or a whole number of at least 1",
        lambda value: value is None or _is_whole(value, 1),
        "The largest number of conditions of a rule; None for no limit, as in the paper. With 1, the model is "
        "additive: see `shape_functions`.",
    ),
    Parameter(
        "min_coverage",
        1,
        "a number of at least 1",
        lambda value: _is_real(value) and value >= 1,
        "The least number (sum of weights) of sampled examples that a condition must leave covered; 1 for no limit.",
    ),
    Parameter(
        "search",
        "bound",
        '"bound" or "exact"',
        _one_of("bound", "exact"),
        "How to compare candidates for a multi-label head under a non-decomposable loss: by a lower bound of the gain, "
        "in time linear in the number of labels, or by solving a linear system for each, as the paper does. The head "
        "of a finished rule is exact either way. Other heads and losses need no bound.",
    ),
    Parameter(
        "max_bins",
        "auto",
        'None, "auto" or a whole number from 2 to 255',
        lambda value: value is None or _one_of("auto")(value) or (_is_whole(value, 2) and value <= 255),
        "The largest number of bins for the values of a numeric feature, by quantiles. Bins make learning from many "
        'examples faster; None considers all values. "auto": 255 for a dense X of more than 10,000 examples, unless '
        'search="exact"; else None. '
        "If a nominal feature has more than 255 categories, bins tell the 254 commonest apart.",
    ),
    Parameter(
        "decode",
        "loss",
        '"loss", "hamming", "subset", "f1", "top-1", "top-2", ..., or thresholds in [0, 1]',
        _is_decode,
        "How `predict` turns scores into labels: choose the measure you are judged by."
        '\n- "loss": as the paper does, by sign for a decomposable loss (Eq. 18), else the known label vector of least '
        "loss (Eq. 19)."
        '\n- "hamming": each label more probable than not.'
        '\n- "subset": the most probable known label vector.'
        '\n- "f1": the label vector of largest expected F-measure. With few rules, probabilities are not yet right: '
        'set calibration="isotonic".'
        '\n- "top-3": the three most probable labels.'
        "\n- Thresholds, one for all labels or one for each: the labels of larger probability. "
        "`pyboomer.predicting.decoding.tune_thresholds` finds good ones.",
    ),
    Parameter(
        "known_vectors",
        "auto",
        '"auto", True or False',
        lambda value: _one_of("auto")(value) or isinstance(value, bool | np.bool_),
        "Whether to decide among the label vectors seen in training. False allows all label vectors: labels are "
        'independent given their scores. decode="hamming" and "f1" may predict unseen vectors either way. "auto" is '
        "True, but False if there are more than half as many label vectors as examples and the loss decomposes. The "
        "joint logistic loss learns the probabilities of the known ones and needs them.",
    ),
    Parameter(
        "calibration",
        None,
        'None or "isotonic"',
        lambda value: value is None or _one_of("isotonic")(value),
        'How scores become probabilities: by the logistic function (None), or by curves ("isotonic") that are fitted '
        "to scores of unseen examples. These are the examples held out for early stopping or, without them, all "
        "examples by five-fold cross-fitting.",
    ),
    Parameter(
        "class_weight",
        None,
        'None, "balanced", a dict of classes with positive weights, or a list of such dicts',
        _is_class_weight,
        "How much classes count in training. In a matrix of labels, the classes are 1 (relevant) and 0: {1: 5} makes a "
        'missed label cost five times as much; a list has a dict for each label. "balanced": the relevant examples of '
        "a label count as much as all others together. These are weights of labels, as in `fit`; if y is one column, "
        "weights of examples. Probabilities become those of the weighted examples.",
    ),
    Parameter(
        "categorical_features",
        None,
        'None, "from_dtype", a mask, indices or names',
        _is_feature_choice,
        "The nominal features, which rules test for equality. None: the columns of a DataFrame that hold text or "
        'unordered categories; "from_dtype": all columns of objects as well. A boolean mask, a list of indices or of '
        "column names says exactly which; an array or sparse matrix has none otherwise.",
    ),
    Parameter(
        "early_stopping",
        False,
        "True or False",
        lambda value: isinstance(value, bool | np.bool_),
        "Whether to end training when held-out examples stop gaining: a part of the training data or, in `fit`, the "
        "examples of `eval_set`. The best number of rules is kept.",
    ),
    Parameter(
        "validation_fraction",
        0.1,
        "in (0, 1)",
        lambda value: _is_real(value) and 0 < value < 1,
        "The share of the training examples that early stopping holds out, stratified by the labels.",
    ),
    Parameter(
        "n_iter_no_change",
        100,
        "a whole number of at least 1",
        lambda value: _is_whole(value, 1),
        "How many rules early stopping waits for a better score.",
    ),
    Parameter(
        "scoring",
        "loss",
        '"loss", the name of a scikit-learn scorer, or one made by make_scorer',
        _is_scoring,
        "How to judge held-out examples: by the loss that is minimised, or by a scorer (larger is better). "
        "`sklearn.metrics.make_scorer` makes a scorer of any measure.",
    ),
    Parameter(
        "warm_start",
        False,
        "True or False",
        lambda value: isinstance(value, bool | np.bool_),
        "Whether `fit` adds rules to the model, up to n_rules. From the same data, the result is as if all had been "
        "learned at once, up to rounding. Other data are allowed, if loss and categories stay the same. With early "
        "stopping, set it from the first `fit` on: held-out examples must not have been learned from before.",
    ),
    Parameter(
        "random_state",
        None,
        "None, a whole number from 0 to 2**32 - 1 or a numpy.random.RandomState",
        _is_random_state,
        "The seed of all random draws; a whole number makes the model reproducible.",
    ),
    Parameter(
        "n_jobs",
        "auto",
        '"auto", None or a whole number of at most 1024, other than 0',
        lambda value: (
            value is None or _one_of("auto")(value) or (_is_whole(value, -(2**31)) and value != 0 and value <= 1024)
        ),
        "The number of threads that learn the rules of a round and that score examples in predictions; -1 for all "
        'cores, None for one. "auto": all cores to learn rounds of several rules from more than 20,000 examples, or to '
        "score many; else one, as in each of several parallel jobs. The result does not depend on it.",
    ),
    Parameter(
        "device",
        "cpu",
        '"cpu", "cuda" or "auto"',
        _one_of("cpu", "cuda", "auto"),
        "Where rules are learned and examples are scored: by the processor, or by an NVIDIA GPU, from binned features. "
        '"auto": by a GPU if there is one and X is dense; rules from more than 10,000 examples, and scores from ten '
        "million examples times rules.",
    ),
    Parameter(
        "verbose",
        0,
        "a whole number of at least 0, or a bool",
        lambda value: isinstance(value, bool | np.bool_) or _is_whole(value, 0),
        "Whether `fit` shows a progress bar.",
    ),
    Parameter(
        "callbacks",
        None,
        "None, a function or a list of functions",
        lambda value: (
            value is None or callable(value) or (isinstance(value, list | tuple) and all(map(callable, value)))
        ),
        "Functions to call after each rule with a `Progress` (number of rules, training loss, seconds, validation "
        "score). Training stops when one returns True. If one fails, the rules learned so far are kept.",
    ),
)

_LOSS_OF_NUMBERS = Parameter(
    "loss",
    "squared-error",
    '"squared-error", "absolute-error", "huber", or a pyboomer.Loss',
    lambda value: isinstance(value, Loss) or _one_of(*FOR_NUMBERS)(value),
    "The loss to minimise. The absolute error aims at the median instead of the mean, and minds outliers less. Huber's "
    "loss is the squared error for errors below 1 and the absolute error beyond: scale the targets, or choose where it "
    "changes (`pyboomer.losses.make_huber`).",
)
_SAMPLING = Parameter(
    "sampling",
    "with-replacement",
    '"with-replacement" or "without-replacement"',
    _one_of("with-replacement", "without-replacement"),
    "How to draw the examples of a sample, if bootstrap=True: with replacement or without.",
)
_N_RULES = Parameter(
    "n_rules",
    500,  # as many as labels are learned with would overfit numbers
    "a whole number of at least 1",
    lambda value: _is_whole(value, 1),
    "The number of rules to learn, the default rule included.",
)
_OF_LABELS = ("loss", "default_rule", "search", "decode", "known_vectors", "calibration", "class_weight")
# A regressor has nothing to decode or to calibrate, and no candidates that the bound is for.
_DEFAULTS_FOR_NUMBERS = {
    "learning_rate": 0.1,
    "max_features": "log2",
    "max_labels": None,
    "max_conditions": None,
}
_OF_NUMBERS = {"n_rules": _N_RULES, "sampling": _SAMPLING} | {
    p.name: replace(p, default=_DEFAULTS_FOR_NUMBERS[p.name]) for p in PARAMETERS if p.name in _DEFAULTS_FOR_NUMBERS
}
# What the paper learns with. It tunes the learning rate, l2 and the number of rules; these are in the middle.
PAPER: dict[str, Any] = {
    "loss": "example-wise-logistic",
    "n_rules": 1000,
    "rules_per_round": 1,
    "default_rule": "newton",
    "learning_rate": 0.3,
    "max_samples": None,
    "max_features": "log2",
    "max_labels": None,
    "max_conditions": None,
    "known_vectors": True,
}
REGRESSOR_PARAMETERS = (_LOSS_OF_NUMBERS, *(_OF_NUMBERS.get(p.name, p) for p in PARAMETERS if p.name not in _OF_LABELS))


def check_parameters(table: tuple[Parameter, ...], values: Mapping[str, Any]) -> None:
    """Raise an error that names the first parameter of a table whose value is not allowed."""
    for parameter in table:
        parameter.validate(values[parameter.name])


def _wrap(text: str, indent: str) -> list[str]:
    """Lines of a docstring: names stay in one piece, and further lines are indented."""
    begin = " " * 8
    return wrap(
        text, 110, initial_indent=begin, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )


def describe_parameters(table: tuple[Parameter, ...]) -> str:
    """A table as the "Parameters" section of a docstring."""
    lines = []
    for parameter in table:
        lines += [f"    {parameter.name} : {parameter.allowed}, default={parameter.default!r}"]
        text, *points = parameter.meaning.split("\n")  # points begin with "- ", and form a list
        lines += _wrap(text, " " * 8)
        for point in points:
            lines += ["", *_wrap(point, " " * 10)]
    return "\n".join(lines).lstrip()
