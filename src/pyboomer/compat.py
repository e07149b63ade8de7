"""A translation turns a configuration of mlrl-boomer, the official implementation, into an estimator of pyboomer.

One table says what becomes of each of its parameters; `docs/how-to/from-mlrl-boomer.md` shows the same rows. A setting
that would give another model, and has no counterpart here, is an error that says why. Settings of speed or formats
alone are ignored.
Names, values and defaults are those of mlrl-boomer 0.15.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, NoReturn

from sklearn.base import is_regressor

from pyboomer.classifier import BoomerClassifier
from pyboomer.learning.training import Progress
from pyboomer.regressor import BoomerRegressor

Words = Mapping[str, Mapping[str, Any]]  # the values a parameter may have; of each the options and their defaults
Settings = Mapping[str, Any]  # all parameters of mlrl-boomer by name: a number, or a Choice
Translation = dict[str, Any]  # parameters of pyboomer by name
Translate = Callable[[Any, Settings], Translation]


@dataclass(frozen=True)
class Choice:
    """A value of mlrl-boomer that is a word with options, such as "with-replacement{sample_size=0.5}"."""

    parameter: str
    text: str
    word: str
    options: Mapping[str, Any]
    defaults: Mapping[str, Any]

    def refuse(self, why: str) -> NoReturn:
        raise ValueError(f"{self.parameter}={self.text!r} has no counterpart in pyboomer: {why}")

    def refuse_other(self, option: str, why: str) -> None:
        """Refuse an option unless it has its default value."""
        if self.options[option] != self.defaults[option]:
            self.refuse(f"{option}: {why}")


@dataclass(frozen=True)
class Row:
    """A parameter of mlrl-boomer: its default, its words and their options with defaults, and what becomes of it.

    `becomes` and `remark` are for the documentation. A parameter without words is a number.
    """

    name: str
    default: Any
    words: Words | None
    becomes: str
    remark: str
    translate: Translate

    def read(self, value: Any) -> Any:
        """A number or a Choice; an error that names the parameter and what it may be."""
        value = self.default if value is None else value
        return self._read_number(value) if self.words is None else self._read_choice(str(value))

    def _read_number(self, value: Any) -> int | float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise ValueError(f"{self.name} must be a number, got {value!r}") from None
        whole = isinstance(self.default, int)
        if not number >= 0 or (whole and not number.is_integer()):
            raise ValueError(f"{self.name} must be a {'whole ' * whole}number of at least 0, got {value!r}")
        return int(number) if whole else number

    def _read_choice(self, text: str) -> Choice:
        assert self.words is not None
        match = re.fullmatch(r"([\w-]+)\s*(?:\{(.*)\})?", text)
        if match is None or match[1] not in self.words:
            raise ValueError(f"{self.name} must be one of {', '.join(self.words)}, got {text!r}")
        defaults = self.words[match[1]]
        options = dict(defaults)
        for pair in filter(None, (match[2] or "").split(",")):
            key, _, value = pair.partition("=")
            if key not in defaults:
                known = ", ".join(defaults) or "there are none"
                raise ValueError(f"{self.name}={text!r} has an unknown option {key!r}; options: {known}")
            try:
                options[key] = _read_option(value, defaults[key])
            except (KeyError, ValueError):
                kind = type(defaults[key]).__name__
                raise ValueError(f"{self.name}={text!r}: {key} must be a value of type {kind}") from None
        return Choice(self.name, text, match[1], options, defaults)


def _read_option(text: str, default: Any) -> Any:
    return {"true": True, "false": False}[text] if isinstance(default, bool) else type(default)(text)


@dataclass(frozen=True)
class TimeLimit:
    """A callback that ends training after some seconds.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.compat import TimeLimit
    >>> clf = BoomerClassifier(callbacks=TimeLimit(seconds=60))
    """

    seconds: float

    def __call__(self, progress: Progress) -> bool:
        return progress.seconds >= self.seconds


# --- What becomes of a parameter --------------------------------------------------------------------------------------

# Our names, and by what l2 and l1 are to be multiplied for the same steps. Over there, sums of squares are halved, and
# the hinge wants scores of 1 and 0 instead of 1 and -1: ours are twice as far apart.
LOSSES = {
    "logistic-decomposable": ("label-wise-logistic", 1.0, 1.0),
    "logistic-non-decomposable": ("example-wise-logistic", 1.0, 1.0),
    "squared-error-decomposable": ("label-wise-squared-error", 2.0, 2.0),
    "squared-error-non-decomposable": ("example-wise-squared-error", 1.0, 1.0),
    "squared-hinge-decomposable": ("label-wise-squared-hinge", 2.0, 4.0),
    "squared-hinge-non-decomposable": ("example-wise-squared-hinge", 0.5, 1.0),
}
SAMPLINGS = {
    "with-replacement": "with-replacement",
    "without-replacement": "without-replacement",
    "stratified-output-wise": "stratified-label-wise",
    "stratified-example-wise": "stratified-example-wise",
}
HOLDOUT = 0.33  # the share of the examples that is held out if nothing else is said


def _ignore(value: Any, settings: Settings) -> Translation:  # noqa: ARG001
    return {}


def _only(word: str, why: str) -> Translate:
    """There is one way to do it; "auto" is this one."""

    def translate(choice: Choice, settings: Settings) -> Translation:  # noqa: ARG001
        if choice.word not in (word, "auto"):
            choice.refuse(why)
        return {}

    return translate


_NO_DEFAULT = "the first rule always is a default rule"


def _default(choice: Choice, settings: Settings) -> Translation:  # noqa: ARG001
    if choice.word == "false":
        choice.refuse(_NO_DEFAULT)
    return {"default_rule": "newton"}


def _rename(name: str) -> Translate:
    return lambda value, settings: {name: value}  # noqa: ARG005


def _is_decomposable(settings: Settings) -> bool:
    return not settings["loss"].word.endswith("non-decomposable")


def _is_calibrated(settings: Settings) -> bool:
    names = ("marginal_probability_calibration", "joint_probability_calibration")
    return any(settings[name].word != "none" for name in names if name in settings)


def _loss(choice: Choice, settings: Settings) -> Translation:  # noqa: ARG001
    return {"loss": LOSSES[choice.word][0]}


def _regression_loss(choice: Choice, settings: Settings) -> Translation:  # noqa: ARG001
    if choice.word != "squared-error-decomposable":
        choice.refuse("numbers are learned by the squared error, or by a pyboomer.Loss of your own")
    return {"loss": "squared-error"}


def _l2(weight: float, settings: Settings) -> Translation:
    return {"l2": weight * LOSSES[settings["loss"].word][1]}


def _l1(weight: float, settings: Settings) -> Translation:
    return {"l1": weight * LOSSES[settings["loss"].word][2]}


def _rules(count: int, settings: Settings) -> Translation:  # noqa: ARG001
    if count == 0:
        raise ValueError(
            "max_rules=0, no limit, has no counterpart in pyboomer: n_rules is a number; early_stopping=True "
            "(global_pruning) ends training before it is reached"
        )
    return {"n_rules": count}


def _time(seconds: int, settings: Settings) -> Translation:  # noqa: ARG001
    return {"callbacks": TimeLimit(seconds)} if seconds else {}


def _induction(choice: Choice, settings: Settings) -> Translation:
    if choice.word != "top-down-greedy":
        choice.refuse("rules are refined greedily, as in the paper")
    choice.refuse_other("min_support", "give min_coverage, the number of examples that a rule must cover")
    if settings["instance_sampling"].word != "none":
        choice.refuse_other("recalculate_predictions", "heads are always fitted on all examples")
    if settings["head_type"].word == "single":
        choice.refuse_other("max_head_refinements", "the first condition of a rule decides on its label")
    return {"max_conditions": choice.options["max_conditions"] or None, "min_coverage": choice.options["min_coverage"]}


def _head(choice: Choice, settings: Settings) -> Translation:  # noqa: ARG001
    if choice.word == "partial-dynamic":
        choice.refuse("it compares scores; head=0.5, say, keeps the labels of at least half of the largest gain")
    if choice.word == "partial-fixed":
        choice.refuse_other("output_ratio", "heads have a number of labels: give min_outputs = max_outputs")
        if choice.options["min_outputs"] != choice.options["max_outputs"]:
            choice.refuse("heads have a number of labels: give min_outputs = max_outputs")
        return {"head": choice.options["max_outputs"]}
    return {"head": "single" if choice.word == "single" else "multi"}


def _pruning(choice: Choice, settings: Settings) -> Translation:
    if choice.word == "none":
        return {}
    if settings["holdout"].word == "none":
        choice.refuse('early stopping judges by held-out examples, and holdout is "none"')
    choice.refuse_other("use_holdout_set", "early stopping judges by held-out examples")
    choice.refuse_other("remove_unused_rules", "rules that are not used are not kept; see staged_predict")
    for option in choice.options.keys() & {"min_rules", "interval", "update_interval", "stop_interval"}:
        choice.refuse_other(option, "early stopping judges every ten rules, from the first on")
    for option in choice.options.keys() & {"aggregation", "min_improvement"}:
        choice.refuse_other(option, "early stopping waits for any better score")
    if choice.word == "pre-pruning":
        return {"early_stopping": True, "n_iter_no_change": choice.options["num_past"] + choice.options["num_recent"]}
    return {"early_stopping": True, "n_iter_no_change": settings["max_rules"]}


def _holdout(choice: Choice, settings: Settings) -> Translation:
    if settings["global_pruning"].word != "none":
        return {"validation_fraction": choice.options.get("holdout_set_size", HOLDOUT)}
    if choice.word not in ("auto", "none") and not _is_calibrated(settings):
        choice.refuse("examples are held out for early stopping (global_pruning) only, and all others are learned from")
    return {}


def _size(choice: Choice) -> float | int:
    """The share or the number of things in a sample."""
    least, most = choice.options["min_samples"], choice.options["max_samples"]
    if least == most:
        return int(most)
    for option in ("min_samples", "max_samples"):
        choice.refuse_other(option, "a sample is a share or a number; for a number give min_samples = max_samples")
    return float(choice.options["sample_size"])


def _instances(choice: Choice, settings: Settings) -> Translation:  # noqa: ARG001
    if choice.word == "none":
        return {"bootstrap": False}
    return {"bootstrap": True, "sampling": SAMPLINGS[choice.word], "max_samples": _size(choice)}


def _features(choice: Choice, settings: Settings) -> Translation:  # noqa: ARG001
    if choice.word == "none":
        return {"max_features": None}
    retained = choice.options["num_retained"]
    return {"max_features": _size(choice) or "log2", "fixed_features": list(range(-retained, 0)) or None}


def _outputs(choice: Choice, settings: Settings) -> Translation:  # noqa: ARG001
    if choice.word == "none":
        return {"max_labels": None}
    if choice.word == "round-robin":
        return {"max_labels": "round-robin"}
    by_share = choice.options["min_samples"] == 1 and choice.options["max_samples"] == 0
    return {"max_labels": choice.options["sample_size"] if by_share else _size(choice)}


def _bins(choice: Choice, settings: Settings) -> Translation:  # noqa: ARG001
    if choice.word in ("none", "auto"):
        return {"max_bins": None if choice.word == "none" else "auto"}
    if choice.word == "equal-width" or choice.options["max_bins"] == 0:
        choice.refuse('bins hold about equally many examples, up to 255 of them: try "equal-frequency{max_bins=255}"')
    for option in ("bin_ratio", "min_bins"):
        choice.refuse_other(option, "give max_bins, the largest number of bins")
    return {"max_bins": choice.options["max_bins"]}


def _calibration(choice: Choice, settings: Settings) -> Translation:  # noqa: ARG001
    if choice.word == "none":
        return {}
    choice.refuse_other("use_holdout_set", "curves are fitted to examples that the rules were not learned from")
    return {"calibration": "isotonic"}


def _refuse_uncalibrated(choice: Choice, settings: Settings) -> None:
    if _is_calibrated(settings) and "use_probability_calibration" in choice.options:
        choice.refuse_other("use_probability_calibration", "the probabilities of a calibrated model are calibrated")


def _labels(choice: Choice, settings: Settings) -> Translation:
    by_probability = choice.options.get("based_on_probabilities", choice.word == "gfm")
    if by_probability:
        _refuse_uncalibrated(choice, settings)
    if choice.word == "gfm":
        return {"decode": "f1", "known_vectors": True}
    if choice.word == "output-wise":
        return {"decode": "hamming" if by_probability else "loss", "known_vectors": _is_decomposable(settings)}
    if choice.word == "example-wise" and (by_probability or _is_decomposable(settings)):
        return {"decode": "subset", "known_vectors": True}
    return {"decode": "loss", "known_vectors": True}


def _probabilities(choice: Choice, settings: Settings) -> Translation:
    _refuse_uncalibrated(choice, settings)
    if choice.word == "marginalized":
        choice.refuse("predict_proba looks at each label alone; predict_joint(X) @ label_vectors_ gives marginals")
    return {}


# --- The table --------------------------------------------------------------------------------------------------------


def _words(*words: str, **options: Any) -> Words:
    """Words that have the same options."""
    return dict.fromkeys(words, options)


_FORMATS = _words("auto", "dense", "sparse")
_THREADS = {**_words("false"), **_words("true", num_preferred_threads=0)}
_CALIBRATIONS = {**_words("none"), **_words("isotonic", use_holdout_set=True)}
_SAMPLE = {"sample_size": 0.66, "min_samples": 1, "max_samples": 0}
_INDUCTION = {
    "max_conditions": 0,
    "min_coverage": 1,
    "min_support": 0.0,
    "max_head_refinements": 1,
    "recalculate_predictions": True,
}
_PRUNING = {"use_holdout_set": True, "remove_unused_rules": True, "min_rules": 100}
_BINS = {"bin_ratio": 0.33, "min_bins": 2, "max_bins": 0}
_BY_PROBABILITY = {"based_on_probabilities": False, "use_probability_calibration": True}

ROWS = (
    Row("random_state", 1, None, "`random_state`", "If left out, it is 1, as over there.", _rename("random_state")),
    Row("feature_format", "auto", _FORMATS, "ignored", "Sparse matrices stay sparse.", _ignore),
    Row("output_format", "auto", _FORMATS, "ignored", "Labels may be sparse.", _ignore),
    Row("prediction_format", "auto", _FORMATS, "ignored", "Predictions are sparse where Y was sparse.", _ignore),
    Row("statistic_format", "auto", _FORMATS, "ignored", "Gradients are dense.", _ignore),
    Row(
        "statistic_type",
        "32-bit",
        _words("32-bit", "64-bit"),
        "ignored",
        "Scores have 64 bits; sums that only compare candidates may have 32.",
        _ignore,
    ),
    Row(
        "default_rule",
        "auto",
        _words("auto", "true", "false"),
        '`default_rule="newton"`',
        "There always is a default rule; `false` is an error.",
        _default,
    ),
    Row(
        "rule_induction",
        "top-down-greedy",
        {
            "top-down-greedy": _INDUCTION,
            "top-down-beam-search": {**_INDUCTION, "beam_width": 4, "resample_features": False},
        },
        "`max_conditions`, `min_coverage`",
        "`top-down-greedy` with these two options. Heads are always refitted on all examples. `top-down-beam-search` "
        "and `min_support` are errors.",
        _induction,
    ),
    Row("max_rules", 1000, None, "`n_rules`", "The default rule is counted. 0 (no limit) is an error.", _rules),
    Row("time_limit", 0, None, "`callbacks`", "A callback, `pyboomer.compat.TimeLimit`, ends training.", _time),
    Row(
        "global_pruning",
        "none",
        {
            "none": {},
            "post-pruning": {**_PRUNING, "interval": 1},
            "pre-pruning": {
                **_PRUNING,
                "aggregation": "avg",
                "update_interval": 1,
                "stop_interval": 1,
                "num_past": 50,
                "num_recent": 50,
                "min_improvement": 0.005,
            },
        },
        "`early_stopping`, `n_iter_no_change`",
        "`pre-pruning` waits for `num_past` + `num_recent` rules, `post-pruning` learns all; either keeps the best "
        "number of rules, which may be fewer than 100. The other options are errors.",
        _pruning,
    ),
    Row(
        "post_optimization",
        "none",
        {"none": {}, "sequential": {"num_iterations": 2, "refine_heads": False, "resample_features": True}},
        "none",
        "`sequential` is an error: rules are not learned again.",
        _only("none", "rules are not learned again; a smaller learning_rate and more rules serve the same end"),
    ),
    Row(
        "head_type",
        "auto",
        {
            "auto": {},
            "single": {},
            "complete": {},
            "partial-fixed": {"output_ratio": 0.0, "min_outputs": 2, "max_outputs": 0},
            "partial-dynamic": {"threshold": 0.02, "exponent": 2.0},
        },
        "`head`",
        '`complete` and `auto` are `"multi"` (over there, `auto` is `single` for the squared hinge and sparse labels); '
        '`single` is `"single"`; `partial-fixed` with `min_outputs` = `max_outputs` is that number. `partial-dynamic` '
        "is an error: it compares scores, not gains; try a fraction.",
        _head,
    ),
    Row(
        "loss",
        "logistic-decomposable",
        _words(*LOSSES),
        "`loss`",
        "`logistic-decomposable`, the default, is `label-wise-logistic`; `logistic-non-decomposable` is "
        "`example-wise-logistic`; `squared-error-...` and `squared-hinge-...` likewise. For a regressor, "
        "`squared-error-decomposable` is `squared-error`.",
        _loss,
    ),
    Row(
        "marginal_probability_calibration",
        "none",
        _CALIBRATIONS,
        "`calibration`",
        '`isotonic` is `"isotonic"`, which calibrates marginal and joint probabilities alike.',
        _calibration,
    ),
    Row(
        "joint_probability_calibration",
        "none",
        _CALIBRATIONS,
        "`calibration`",
        "The same.",
        _calibration,
    ),
    Row(
        "binary_predictor",
        "auto",
        {
            "auto": {},
            "output-wise": _BY_PROBABILITY,
            "example-wise": _BY_PROBABILITY,
            "gfm": {"use_probability_calibration": True},
        },
        "`decode`, `known_vectors`",
        '`auto` is `"loss"`; `gfm` is `"f1"`; `example-wise` is `"loss"` for a loss that does not decompose and '
        '`"subset"` otherwise; `output-wise` is `"loss"`, or `"hamming"` if based on probabilities, with '
        "`known_vectors=False` for a loss that does not decompose.",
        _labels,
    ),
    Row(
        "probability_predictor",
        "auto",
        {
            "auto": {},
            "output-wise": {"use_probability_calibration": True},
            "marginalized": {"use_probability_calibration": True},
        },
        "always `output-wise`",
        "`marginalized` is an error: `clf.predict_joint(X) @ clf.label_vectors_`.",
        _probabilities,
    ),
    Row(
        "output_sampling",
        "none",
        {
            "none": {},
            "without-replacement": {"sample_size": 0.33, "min_samples": 1, "max_samples": 1},
            "round-robin": {},
        },
        "`max_labels`",
        '`none` is `None`; `round-robin` is `"round-robin"`; `without-replacement` draws one label, the number given '
        "as `min_samples` and `max_samples`, or, with `max_samples=0`, the fraction `sample_size`.",
        _outputs,
    ),
    Row(
        "instance_sampling",
        "none",
        {**_words("none"), **_words(*SAMPLINGS, **_SAMPLE)},
        "`bootstrap`, `sampling`, `max_samples`",
        "`none`, the default, is `bootstrap=False`; `stratified-output-wise` is `stratified-label-wise`. "
        "`sample_size`, 0.66 if left out, is `max_samples`; equal `min_samples` and `max_samples` are a number.",
        _instances,
    ),
    Row(
        "feature_sampling",
        "without-replacement",
        {"none": {}, "without-replacement": {**_SAMPLE, "sample_size": 0.0, "num_retained": 0}},
        "`max_features`, `fixed_features`",
        '`none` is `None`; `without-replacement` is `"log2"` on both sides; `sample_size` is a fraction; equal '
        "`min_samples` and `max_samples` are a number. The last `num_retained` features are fixed.",
        _features,
    ),
    Row(
        "holdout",
        "auto",
        {
            **_words("auto", "none"),
            **_words("random", "stratified-output-wise", "stratified-example-wise", holdout_set_size=HOLDOUT),
        },
        "`validation_fraction`",
        "With `global_pruning`, 0.33 if left out; always stratified by the labels. Calibration alone needs no held-out "
        "examples: it is cross-fitted. Without either, an error.",
        _holdout,
    ),
    Row(
        "feature_binning",
        "auto",
        {**_words("auto", "none"), **_words("equal-width", "equal-frequency", **_BINS)},
        "`max_bins`",
        '`none` is `None`; `auto` is `"auto"`, which bins from 10,000 examples on instead of 200,000; '
        "`equal-frequency{max_bins=...}` up to 255. Other options and `equal-width` are errors.",
        _bins,
    ),
    Row(
        "label_binning",
        "auto",
        {"auto": {}, "none": {}, "equal-width": {"bin_ratio": 0.04, "min_bins": 1, "max_bins": 0}},
        "ignored",
        'Candidates are compared by a bound, which costs less; `search="exact"` compares them as the paper does.',
        _ignore,
    ),
    Row(
        "rule_pruning",
        "none",
        _words("none", "irep"),
        "none",
        "`irep` is an error: conditions are not taken back.",
        _only("none", "conditions are not taken back; max_conditions and min_coverage keep rules short"),
    ),
    Row("shrinkage", 0.3, None, "`learning_rate`", "If left out, 0.3, as over there.", _rename("learning_rate")),
    Row(
        "l1_regularization_weight",
        0.0,
        None,
        "`l1`",
        "Times 2 for `squared-error-decomposable` (of labels), times 4 for `squared-hinge-decomposable`. Here it makes "
        "scores smaller; over there, up to 0.15.6, larger: the weight is added to gradients instead of taken away.",
        _l1,
    ),
    Row(
        "l2_regularization_weight",
        1.0,
        None,
        "`l2`",
        "Times 2 for `squared-error-decomposable` (of labels) and `squared-hinge-decomposable`, times 1/2 for "
        "`squared-hinge-non-decomposable`: these losses have another scale.",
        _l2,
    ),
    Row(
        "parallel_rule_refinement",
        "auto",
        {"auto": {}, **_THREADS},
        "ignored",
        "Set `n_jobs`: the threads that learn from binned features, and predict.",
        _ignore,
    ),
    Row("parallel_statistic_update", "auto", {"auto": {}, **_THREADS}, "ignored", "The same.", _ignore),
    Row("parallel_prediction", "true", _THREADS, "ignored", "The same.", _ignore),
)

_OF_LABELS = (
    "marginal_probability_calibration",
    "joint_probability_calibration",
    "binary_predictor",
    "probability_predictor",
    "label_binning",
)


def _for_regressor(row: Row) -> Row:
    if row.name == "loss":
        names = ("squared-error-decomposable", "squared-error-non-decomposable")
        return replace(row, default=names[0], words=_words(*names), translate=_regression_loss)
    if row.name == "default_rule":
        return replace(row, translate=_only("true", _NO_DEFAULT))  # the mean, after one step
    if row.name in ("l1_regularization_weight", "l2_regularization_weight"):
        return replace(row, translate=_rename(row.name[:2]))
    if row.words is not None:
        return replace(row, words={w: row.words[w] for w in row.words if not w.startswith("stratified")})
    return row


REGRESSOR_ROWS = tuple(_for_regressor(row) for row in ROWS if row.name not in _OF_LABELS)


# --- Translating ------------------------------------------------------------------------------------------------------


def from_mlrl(config: Any, *, regression: bool = False) -> BoomerClassifier | BoomerRegressor:
    """Make an unfitted estimator that does what mlrl-boomer would do with a configuration, as nearly as possible.

    Parameters
    ----------
    config : mapping, or estimator of mlrl-boomer
        Parameters by name. Those left out, or None, get the defaults of mlrl-boomer, not of pyboomer.
    regression : bool, default=False
        Whether a mapping is for a regressor. An estimator says so itself.

    Examples
    --------
    >>> from pyboomer.compat import from_mlrl
    >>> from_mlrl({"max_rules": 500, "feature_sampling": "without-replacement{sample_size=0.5}"}).max_features
    0.5
    """
    if not isinstance(config, Mapping):
        if not hasattr(config, "get_params"):
            raise TypeError(f"config must be a mapping or an estimator of mlrl-boomer, got {type(config).__name__}")
        regression = is_regressor(config)
        config = config.get_params()
    rows = {row.name: row for row in (REGRESSOR_ROWS if regression else ROWS)}
    for name in config:
        if name not in rows:
            close = get_close_matches(str(name), rows, n=1)
            raise ValueError(
                f"{name!r} is not a parameter of mlrl-boomer" + (f": did you mean {close[0]!r}?" if close else "")
            )
    settings = {name: row.read(config.get(name)) for name, row in rows.items()}
    estimator = BoomerRegressor() if regression else BoomerClassifier.paper()
    table = {parameter.name: parameter for parameter in estimator.parameter_table}
    for name, row in rows.items():
        for ours, value in row.translate(settings[name], settings).items():
            try:
                table[ours].validate(value)
            except ValueError as error:
                raise ValueError(f"{name}={config.get(name)!r}: {error}") from None
            estimator.set_params(**{ours: value})
    return estimator
