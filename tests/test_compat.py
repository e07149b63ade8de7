"""Every parameter of mlrl-boomer is translated, ignored or refused with a reason, and the documentation says so."""

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification

from pyboomer import BoomerClassifier, BoomerRegressor
from pyboomer.compat import LOSSES, REGRESSOR_ROWS, ROWS, TimeLimit, from_mlrl

PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "from-mlrl-boomer.md"
X, Y = make_multilabel_classification(120, n_features=6, n_classes=4, random_state=1)

PRUNED = {"early_stopping": True, "n_iter_no_change": 100, "validation_fraction": 0.33}
NON_DECOMPOSABLE = {"loss": "logistic-non-decomposable"}
CALIBRATED = {"joint_probability_calibration": "isotonic"}

# parameter, value, other parameters, and what is to become of them
TRANSLATED: list[tuple[str, Any, dict[str, Any], dict[str, Any]]] = [
    ("random_state", None, {}, {"random_state": 1}),
    ("random_state", 7, {}, {"random_state": 7}),
    ("default_rule", "auto", {}, {"default_rule": "newton"}),
    ("default_rule", "true", {}, {"default_rule": "newton"}),
    ("rule_induction", "top-down-greedy", {}, {"max_conditions": None, "min_coverage": 1}),
    (
        "rule_induction",
        "top-down-greedy{max_conditions=3,min_coverage=5}",
        {},
        {"max_conditions": 3, "min_coverage": 5},
    ),
    ("rule_induction", "top-down-greedy{max_head_refinements=0}", {"head_type": "complete"}, {}),
    ("rule_induction", "top-down-greedy{recalculate_predictions=false}", {}, {}),
    ("max_rules", None, {}, {"n_rules": 1000}),
    ("max_rules", 50, {}, {"n_rules": 50}),
    ("max_rules", "50", {}, {"n_rules": 50}),
    ("time_limit", 0, {}, {"callbacks": None}),
    ("time_limit", 60, {}, {"callbacks": TimeLimit(60)}),
    ("global_pruning", "none", {}, {"early_stopping": False}),
    ("global_pruning", "pre-pruning", {}, PRUNED),
    ("global_pruning", "pre-pruning{num_past=10,num_recent=20}", {}, {**PRUNED, "n_iter_no_change": 30}),
    ("global_pruning", "post-pruning", {"max_rules": 300}, {**PRUNED, "n_iter_no_change": 300}),
    ("post_optimization", "none", {}, {}),
    ("head_type", "auto", {}, {"head": "multi"}),
    ("head_type", "complete", {}, {"head": "multi"}),
    ("head_type", "single", {}, {"head": "single"}),
    ("loss", None, {}, {"loss": "label-wise-logistic", "l2": 1.0}),
    *(("loss", word, {}, {"loss": ours, "l2": factor}) for word, (ours, factor, _) in LOSSES.items()),
    ("marginal_probability_calibration", "none", {}, {"calibration": None}),
    ("marginal_probability_calibration", "isotonic", {}, {"calibration": "isotonic", "early_stopping": False}),
    ("joint_probability_calibration", "isotonic{use_holdout_set=true}", {}, {"calibration": "isotonic"}),
    ("binary_predictor", "auto", NON_DECOMPOSABLE, {"decode": "loss", "known_vectors": True}),
    ("binary_predictor", "output-wise", {}, {"decode": "loss", "known_vectors": True}),
    ("binary_predictor", "output-wise", NON_DECOMPOSABLE, {"decode": "loss", "known_vectors": False}),
    ("binary_predictor", "output-wise{based_on_probabilities=true}", {}, {"decode": "hamming"}),
    ("binary_predictor", "example-wise", {}, {"decode": "subset"}),
    ("binary_predictor", "example-wise", NON_DECOMPOSABLE, {"decode": "loss", "known_vectors": True}),
    ("binary_predictor", "example-wise{based_on_probabilities=true}", NON_DECOMPOSABLE, {"decode": "subset"}),
    ("binary_predictor", "gfm", {}, {"decode": "f1", "known_vectors": True}),
    ("binary_predictor", "gfm{use_probability_calibration=false}", {}, {"decode": "f1"}),
    ("probability_predictor", "auto", NON_DECOMPOSABLE, {}),
    ("probability_predictor", "output-wise", {}, {}),
    ("output_sampling", "none", {}, {"max_labels": None}),
    ("output_sampling", "round-robin", {}, {"max_labels": "round-robin"}),
    ("output_sampling", "without-replacement", {}, {"max_labels": 1}),
    ("output_sampling", "without-replacement{min_samples=3,max_samples=3}", {}, {"max_labels": 3}),
    ("output_sampling", "without-replacement{sample_size=0.5,max_samples=0}", {}, {"max_labels": 0.5}),
    ("head_type", "partial-fixed{min_outputs=3,max_outputs=3}", {}, {"head": 3}),
    ("feature_sampling", "without-replacement{num_retained=2}", {}, {"fixed_features": [-2, -1]}),
    ("instance_sampling", None, {}, {"bootstrap": False}),
    (
        "instance_sampling",
        "with-replacement",
        {},
        {"bootstrap": True, "sampling": "with-replacement", "max_samples": 0.66},
    ),
    ("instance_sampling", "without-replacement{sample_size=0.5}", {}, {"bootstrap": True, "max_samples": 0.5}),
    ("instance_sampling", "without-replacement", {}, {"sampling": "without-replacement", "max_samples": 0.66}),
    ("instance_sampling", "with-replacement{min_samples=90,max_samples=90}", {}, {"max_samples": 90}),
    ("instance_sampling", "stratified-output-wise", {}, {"sampling": "stratified-label-wise"}),
    ("instance_sampling", "stratified-example-wise", {}, {"sampling": "stratified-example-wise"}),
    ("feature_sampling", None, {}, {"max_features": "log2"}),
    ("feature_sampling", "none", {}, {"max_features": None}),
    ("feature_sampling", "without-replacement{sample_size=0.5}", {}, {"max_features": 0.5}),
    ("feature_sampling", "without-replacement{min_samples=3,max_samples=3}", {}, {"max_features": 3}),
    ("holdout", "auto", {}, {"early_stopping": False}),
    ("holdout", "none", {}, {"early_stopping": False}),
    ("holdout", "random{holdout_set_size=0.2}", {"global_pruning": "pre-pruning"}, {"validation_fraction": 0.2}),
    ("holdout", "stratified-output-wise", CALIBRATED, {"early_stopping": False, "calibration": "isotonic"}),
    ("feature_binning", None, {}, {"max_bins": "auto"}),
    ("feature_binning", "none", {}, {"max_bins": None}),
    ("feature_binning", "equal-frequency{max_bins=64}", {}, {"max_bins": 64}),
    ("label_binning", "equal-width{bin_ratio=0.1}", {}, {"search": "bound"}),
    ("label_binning", "none", {}, {"search": "bound"}),
    ("rule_pruning", "none", {}, {}),
    ("shrinkage", None, {}, {"learning_rate": 0.3}),
    ("shrinkage", 1, {}, {"learning_rate": 1.0}),
    ("l1_regularization_weight", 0.5, {}, {"l1": 0.5}),
    ("l1_regularization_weight", 0.5, {"loss": "squared-hinge-decomposable"}, {"l1": 2.0}),
    ("l2_regularization_weight", 3, {}, {"l2": 3.0}),
    ("l2_regularization_weight", 3, {"loss": "squared-error-decomposable"}, {"l2": 6.0}),
    *((name, "sparse", {}, {}) for name in ("feature_format", "output_format", "prediction_format")),
    ("statistic_format", "sparse", {}, {}),
    ("statistic_type", "64-bit", {}, {}),
    ("parallel_rule_refinement", "true{num_preferred_threads=4}", {}, {"n_jobs": "auto"}),
    ("parallel_statistic_update", "auto", {}, {}),
    ("parallel_prediction", "false", {}, {}),
]

# parameter, value, other parameters, and a part of the reason
REFUSED: list[tuple[str, Any, dict[str, Any], str]] = [
    ("default_rule", "false", {}, "the first rule always is a default rule"),
    ("rule_induction", "top-down-beam-search{beam_width=8}", {}, "greedily"),
    ("rule_induction", "top-down-greedy{min_support=0.1}", {}, "give min_coverage"),
    (
        "rule_induction",
        "top-down-greedy{recalculate_predictions=false}",
        {"instance_sampling": "with-replacement"},
        "on all",
    ),
    ("rule_induction", "top-down-greedy{max_head_refinements=0}", {"head_type": "single"}, "decides on its label"),
    ("global_pruning", "pre-pruning", {"holdout": "none"}, 'holdout is "none"'),
    ("global_pruning", "post-pruning{use_holdout_set=false}", {}, "held-out examples"),
    ("global_pruning", "post-pruning{remove_unused_rules=false}", {}, "staged_predict"),
    ("global_pruning", "post-pruning{interval=10}", {}, "every ten rules"),
    ("global_pruning", "pre-pruning{min_rules=5}", {}, "every ten rules"),
    ("global_pruning", "pre-pruning{aggregation=min}", {}, "any better score"),
    ("post_optimization", "sequential", {}, "learning_rate"),
    ("head_type", "partial-fixed{output_ratio=0.5}", {}, "min_outputs = max_outputs"),
    ("head_type", "partial-fixed", {}, "min_outputs = max_outputs"),
    ("head_type", "partial-dynamic", {}, "largest gain"),
    ("marginal_probability_calibration", "isotonic{use_holdout_set=false}", {}, "not learned from"),
    ("binary_predictor", "gfm{use_probability_calibration=false}", CALIBRATED, "are calibrated"),
    ("probability_predictor", "marginalized", {}, "predict_joint"),
    ("probability_predictor", "output-wise{use_probability_calibration=false}", CALIBRATED, "are calibrated"),
    ("output_sampling", "without-replacement{max_samples=3}", {}, "min_samples = max_samples"),
    ("instance_sampling", "with-replacement{min_samples=90}", {}, "min_samples = max_samples"),
    ("feature_sampling", "without-replacement{max_samples=9}", {}, "min_samples = max_samples"),
    ("holdout", "random", {}, "early stopping"),
    ("feature_binning", "equal-width{max_bins=64}", {}, "equal-frequency{max_bins=255}"),
    ("feature_binning", "equal-frequency", {}, "equal-frequency{max_bins=255}"),
    ("feature_binning", "equal-frequency{bin_ratio=0.1,max_bins=9}", {}, "give max_bins"),
    ("rule_pruning", "irep", {}, "max_conditions"),
]


def cases(table: list[tuple[Any, ...]]) -> list[Any]:
    return [pytest.param(*case, id=f"{case[0]}={case[1]}" + ",".join(case[2])) for case in table]


def test_every_parameter_has_examples_here() -> None:
    assert {case[0] for case in TRANSLATED} == {row.name for row in ROWS}


@pytest.mark.parametrize(("name", "value", "others", "expected"), cases(TRANSLATED))
def test_a_parameter_becomes_ours(name: str, value: Any, others: dict[str, Any], expected: dict[str, Any]) -> None:
    ours = from_mlrl({name: value, **others}).get_params()
    assert {key: ours[key] for key in expected} == expected
    if not expected:
        assert ours == from_mlrl(others).get_params()


@pytest.mark.parametrize(("name", "value", "others", "reason"), cases(REFUSED))
def test_what_has_no_counterpart_is_refused_with_a_reason(
    name: str, value: str, others: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError) as caught:
        from_mlrl({name: value, **others})
    assert str(caught.value).startswith(f"{name}={value!r} has no counterpart in pyboomer: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"max_rule": 5}, "'max_rule' is not a parameter of mlrl-boomer: did you mean 'max_rules'?"),
        ({"gibberish": 5}, "'gibberish' is not a parameter of mlrl-boomer"),
        ({"loss": "hinge"}, "loss must be one of logistic-decomposable, "),
        ({"max_rules": 0}, "max_rules=0, no limit, has no counterpart in pyboomer"),
        ({"max_rules": 2.5}, "max_rules must be a whole number of at least 0, got 2.5"),
        ({"time_limit": -1}, "time_limit must be a whole number of at least 0, got -1"),
        ({"shrinkage": "fast"}, "shrinkage must be a number, got 'fast'"),
        ({"shrinkage": 3}, 'shrinkage=3: learning_rate must be "auto" or in (0, 1], got 3.0'),
        ({"shrinkage": float("nan")}, "shrinkage must be a number of at least 0, got nan"),
        ({"l1_regularization_weight": -1}, "l1_regularization_weight must be a number of at least 0, got -1"),
        ({"feature_sampling": "without-replacement{size=1}"}, "feature_sampling='without-replacement{size=1}' has an "),
        ({"feature_sampling": "without-replacement{sample_size=x}"}, "feature_sampling='without-replacement{sample_"),
        ({"feature_sampling": "without-replacement{"}, "feature_sampling must be one of none, without-replacement, "),
        (
            {"feature_binning": "equal-frequency{max_bins=999}"},
            "feature_binning='equal-frequency{max_bins=999}': max_b",
        ),
        ({"holdout": "random{holdout_set_size=2}", "global_pruning": "pre-pruning"}, "holdout='random{holdout_set_"),
    ],
)
def test_a_mistake_is_named(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        from_mlrl(config)
    assert str(caught.value).startswith(message)


def test_something_else_is_no_configuration() -> None:
    with pytest.raises(TypeError, match="got list"):
        from_mlrl(["max_rules", 5])
    with pytest.raises(ValueError, match="is not a parameter of mlrl-boomer"):
        from_mlrl(BoomerClassifier())


def test_an_empty_configuration_has_the_defaults_of_mlrl_boomer() -> None:
    expected: dict[str, Any] = {
        "loss": "label-wise-logistic",
        "learning_rate": 0.3,
        "n_rules": 1000,
        "bootstrap": False,
        "random_state": 1,
    }
    assert from_mlrl({}).get_params() == BoomerClassifier.paper(**expected).get_params()
    del expected["loss"]
    assert from_mlrl({}, regression=True).get_params() == BoomerRegressor(**expected).get_params()


def test_a_regressor_has_a_loss_and_parameters_of_its_own() -> None:
    model = from_mlrl({"loss": "squared-error-decomposable", "l2_regularization_weight": 3}, regression=True)
    assert (model.loss, model.l2) == ("squared-error", 3.0)
    for config, message in (
        ({"loss": "squared-error-non-decomposable"}, "pyboomer.Loss"),
        ({"loss": "logistic-decomposable"}, "loss must be one of squared-error-decomposable"),
        ({"binary_predictor": "gfm"}, "'binary_predictor' is not a parameter"),
        ({"instance_sampling": "stratified-example-wise"}, "instance_sampling must be one of none, with"),
    ):
        with pytest.raises(ValueError, match=message):
            from_mlrl(config, regression=True)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_translated_estimator_learns(loss: str) -> None:
    config = {"max_rules": 15, "loss": loss, "instance_sampling": "stratified-output-wise", "time_limit": 600}
    model = clone(from_mlrl(config)).fit(X, Y)
    assert len(model.rules_) == 15
    assert (np.asarray(model.predict(X)) == Y).mean() > 0.7


def test_a_time_limit_ends_training() -> None:
    model = from_mlrl({"max_rules": 10**6, "time_limit": 1}).fit(X, Y)
    assert 1 < len(model.rules_) < 10**6


# --- Documentation ----------------------------------------------------------------------------------------------------


def test_the_page_has_the_rows_of_the_table_and_no_others() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = [f"| `{row.name}` | {row.becomes} | {row.remark} |" for row in ROWS]
    assert re.findall(r"^\| `.*$", text, flags=re.MULTILINE) == rows


def test_the_code_of_the_page_runs_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), namespace)
    assert capsys.readouterr().out.startswith("post_optimization='sequential' has no counterpart in pyboomer")


# --- The official implementation, where it is installed ---------------------------------------------------------------


@pytest.fixture
def official() -> Any:
    return pytest.importorskip("mlrl.boosting.learners", reason="mlrl-boomer is not installed")


each_kind = pytest.mark.parametrize(
    ("name", "rows"), [("BoomerClassifier", ROWS), ("BoomerRegressor", REGRESSOR_ROWS)], ids=["classifier", "regressor"]
)


@each_kind
def test_the_table_has_every_parameter_of_the_official_signature(official: Any, name: str, rows: Any) -> None:
    signature = inspect.signature(getattr(official, name)).parameters
    assert list(signature) == [row.name for row in rows]
    defaults = {row.name: row.default for row in rows}
    assert all(p.default in (None, defaults[p.name]) for p in signature.values())


@each_kind
def test_the_table_has_the_official_words_and_options(official: Any, name: str, rows: Any) -> None:
    config = getattr(official, f"{name}Config")
    theirs = {p.name: p for p in getattr(official, f"{name.upper().replace('BOOMER', 'BOOMER_')}_PARAMETERS")}
    for row in rows:
        if row.name not in theirs:  # a format of data
            assert set(row.words) == {"auto", "dense", "sparse"}
        elif row.words is None:
            assert theirs[row.name].numeric_type is type(row.default)
        else:
            values = [value for value in theirs[row.name].values.values() if issubclass(config, value.mixin)]
            expected: dict[str, set[str]] = (
                {"auto": set()} if "auto" in row.words else {}
            )  # of some, documented but not accepted
            expected |= {value.name: value.options or set() for value in values}
            assert {word: set(options) for word, options in row.words.items()} == expected, row.name


@each_kind
def test_an_official_estimator_is_translated(official: Any, name: str, rows: Any) -> None:
    kind = getattr(official, name)
    assert type(from_mlrl(kind())).__name__ == name
    assert from_mlrl(kind()).get_params() == from_mlrl({}, regression=rows is REGRESSOR_ROWS).get_params()
    assert from_mlrl(kind(max_rules=77)).n_rules == 77


@pytest.mark.filterwarnings("ignore")  # what the peer warns of is its own business
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if "hinge" not in loss])
def test_rules_of_one_condition_have_the_official_scores(official: Any, loss: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 1000, (150, 4)).astype(np.float32)  # few ties, and no rounding of thresholds
    Y = np.column_stack([X[:, 0] > 500, X[:, 0] + X[:, 1] > 1000, X[:, 2] > 700]) ^ (rng.random((150, 3)) < 0.1)
    theirs = official.BoomerClassifier(
        loss=loss,
        max_rules=10,
        l2_regularization_weight=0.5,
        feature_sampling="none",
        label_binning="none",
        statistic_type="64-bit",
        rule_induction="top-down-greedy{max_conditions=1}",
    ).fit(X, Y.astype(np.uint8))
    ours = from_mlrl(theirs).set_params(search="exact").fit(X, Y.astype(int))
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)
