"""The estimators are at home in scikit-learn: its checks, its tools and its ways of copying."""

import copy
import multiprocessing
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from joblib import Parallel, delayed
from scipy.stats import uniform
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score, get_scorer, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OrdinalEncoder, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from pyboomer import BoomerClassifier, BoomerRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6))
Y = (X[:, :3] + 0.3 * RNG.normal(size=(120, 3)) > 0).astype(int)

VARIANTS: list[dict[str, Any]] = [
    {},
    {"loss": "example-wise-logistic", "search": "exact"},
    {"bootstrap": False},
    {"bootstrap": False, "loss": "label-wise-logistic", "head": "single"},
]
MORE: list[dict[str, Any]] = [
    {"loss": "label-wise-logistic"},
    {"loss": "example-wise-logistic", "head": "single"},
    {"loss": "label-wise-logistic", "head": "single"},
]


def classifier(**options: Any) -> BoomerClassifier:
    return BoomerClassifier(**{"n_rules": 30, "random_state": 1, **options})


# --- scikit-learn's own checks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [*VARIANTS, *(pytest.param(options, marks=pytest.mark.slow) for options in MORE)], ids=str
)
def test_the_checks_of_scikit_learn_pass(options: dict[str, Any]) -> None:
    check(BoomerClassifier(n_rules=300, **options))


@pytest.mark.parametrize("options", [{}, {"bootstrap": False}, {"bootstrap": False, "head": "single"}], ids=str)
def test_the_checks_of_scikit_learn_pass_for_the_regressor(options: dict[str, Any]) -> None:
    check(BoomerRegressor(**options))


def check(estimator: Any) -> None:
    """All checks pass, but for three.

    With a bootstrap, two that equate weights with repetition fail, as for scikit-learn's own forests. One demands that
    the labels of positive scores are predicted; the joint loss predicts the most probable label vector.
    """
    expected = {}
    if estimator.bootstrap:
        for kind in ("dense", "sparse"):
            name = f"check_sample_weight_equivalence_on_{kind}_data"
            expected[name] = "a bootstrap draws examples, whatever their weight"
    if estimator.loss in ("auto", "joint-logistic"):
        expected["check_classifier_multioutput"] = "a label vector is predicted, not each label by its score"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about checks that were skipped, or failed as expected
        results = check_estimator(estimator, expected_failed_checks=expected, on_fail=None)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert not failed
    assert {result["check_name"] for result in results if result["status"] == "xfail"} == set(expected)
    assert sum(result["status"] == "passed" for result in results) > 50


@pytest.mark.parametrize("head", ["single", "multi"])
def test_for_the_label_wise_loss_scores_probabilities_and_predictions_agree(head: str) -> None:
    model = classifier(loss="label-wise-logistic", head=head).fit(X, Y)
    scores, probabilities = model.decision_function(X), model.predict_proba(X)
    assert scores.shape == probabilities.shape == Y.shape
    np.testing.assert_array_equal(model.predict(X), scores > 0)
    np.testing.assert_array_equal(model.predict(X), probabilities.round())
    for k in range(3):
        np.testing.assert_array_equal(
            np.argsort(scores[:, k], kind="stable"), np.argsort(probabilities[:, k], kind="stable")
        )


def test_the_tags_say_what_the_classifier_can_do() -> None:
    tags = get_tags(BoomerClassifier())
    assert is_classifier(BoomerClassifier())
    assert tags.input_tags.sparse
    assert tags.input_tags.allow_nan
    assert tags.target_tags.multi_output
    assert tags.classifier_tags.multi_label
    assert tags.classifier_tags.multi_class


def test_an_unfitted_model_says_so() -> None:
    model = BoomerClassifier()
    for method in (
        model.predict,
        model.predict_proba,
        model.decision_function,
        model.staged_predict,
        model.staged_predict_proba,
        model.staged_decision_function,
        lambda table: model.score(table, Y),
    ):
        with pytest.raises(NotFittedError, match="BoomerClassifier"):
            method(X)


# --- Copies -----------------------------------------------------------------------------------------------------------


def test_a_clone_has_the_same_parameters_and_is_not_fitted() -> None:
    model = classifier(learning_rate=0.25, callbacks=[print], categorical_features=[1]).fit(
        X[:, :1].repeat(2, axis=1) > 0, Y
    )
    other = clone(model)
    assert other.get_params() == model.get_params()
    assert not hasattr(other, "rules_")


def test_parameters_are_set_and_shown() -> None:
    model = classifier().set_params(learning_rate=0.5, head="single")
    assert model.get_params()["learning_rate"] == 0.5
    assert "head='single'" in repr(model)


def round_trip(model: Any) -> Any:
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize("duplicate", [round_trip, copy.deepcopy, copy.copy], ids=["pickle", "deepcopy", "copy"])
@pytest.mark.parametrize("labels", [Y, sp.csr_array(Y), pd.DataFrame(Y, columns=list("abc")), Y.sum(axis=1)], ids=type)
def test_a_copy_predicts_the_same(duplicate: Any, labels: Any) -> None:
    model = classifier(categorical_features=[5]).fit(np.round(X), labels)
    other = duplicate(model)
    assert other.rules_ == model.rules_
    np.testing.assert_array_equal(other.predict_proba(np.round(X)), model.predict_proba(np.round(X)))
    expected, predicted = model.predict(np.round(X)), other.predict(np.round(X))
    if sp.issparse(expected):
        expected, predicted = expected.toarray(), predicted.toarray()
    np.testing.assert_array_equal(predicted, expected)


def test_fitting_again_forgets_the_first_time() -> None:
    model = classifier().fit(pd.DataFrame(X, columns=list("abcdef")), Y)
    model.fit(X[:, :2], Y[:, :2])
    assert model.n_features_in_ == 2
    assert not hasattr(model, "feature_names_in_")
    assert model.rules_ == classifier().fit(X[:, :2], Y[:, :2]).rules_


def test_fit_returns_the_classifier_and_does_not_change_its_parameters() -> None:
    model = classifier()
    before = model.get_params()
    assert model.fit(X, y=Y) is model
    assert model.get_params() == before


# --- Tools ------------------------------------------------------------------------------------------------------------


def test_score_is_the_share_of_label_vectors_predicted_correctly() -> None:
    model = classifier().fit(X, Y)
    assert model.score(X, Y) == accuracy_score(Y, model.predict(X))
    assert classifier().fit(X, sp.csr_array(Y)).score(X, sp.csr_array(Y)) == model.score(X, Y)
    weights = np.arange(120.0)
    assert model.score(X, Y, sample_weight=weights) == accuracy_score(Y, model.predict(X), sample_weight=weights)


def test_it_works_in_a_pipeline() -> None:
    table = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    pipeline = make_pipeline(SimpleImputer(), StandardScaler(), classifier())
    assert pipeline.fit(table, Y).score(table, Y) > 0.3
    assert pipeline.predict_proba(table).shape == Y.shape
    pipeline.fit(table, Y, boomerclassifier__sample_weight=np.ones(120))


@pytest.mark.parametrize("n_labels", [1, 2, 3])
def test_scorers_for_several_labels_work(n_labels: int) -> None:
    labels = Y[:, :n_labels]
    scoring = ["accuracy", "roc_auc", "average_precision", "f1_samples", "f1_macro", "f1_micro", "jaccard_samples"]
    if n_labels == 1:  # scikit-learn takes one column for classes, not for a label
        scoring = ["accuracy", "f1_macro"]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*ill-defined")
        results = cross_validate(classifier(), X, labels, cv=KFold(3), scoring=scoring, error_score="raise")
    for name in scoring:
        assert np.isfinite(results[f"test_{name}"]).all()
        assert results[f"test_{name}"].mean() > 0.3
    if n_labels > 1:
        assert results["test_roc_auc"].mean() > 0.8


@pytest.mark.parametrize("labels", [np.where(Y[:, 0], "yes", "no"), Y.sum(axis=1)], ids=["two", "four"])
def test_scorers_for_classes_work(labels: Any) -> None:
    scoring = ["accuracy", "neg_log_loss", "roc_auc_ovr", "f1_macro"]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*ill-defined")
        results = cross_validate(classifier(), X, labels, cv=3, scoring=scoring, error_score="raise")
    assert all(np.isfinite(results[f"test_{name}"]).all() for name in scoring)


def test_cross_validation_works_for_sparse_features_too() -> None:  # of sparse labels, scikit-learn wants none here
    dense = cross_val_score(classifier(), X, Y, cv=KFold(3))
    sparse = cross_val_score(classifier(), sp.csr_array(X), Y, cv=KFold(3))
    np.testing.assert_allclose(dense, sparse)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
@pytest.mark.parametrize("n_labels", [1, 2, 3])
def test_predictions_out_of_fold_have_the_shape_of_the_labels(method: str, n_labels: int) -> None:
    labels = Y[:, :n_labels]
    predicted = cross_val_predict(classifier(), X, labels, cv=KFold(3), method=method)
    assert predicted.shape == labels.shape
    if method != "predict":
        assert roc_auc_score(labels, predicted) > 0.8


def test_a_grid_search_finds_a_loss_and_a_learning_rate() -> None:
    grid = {"loss": ["label-wise-logistic", "example-wise-logistic"], "learning_rate": [0.001, 0.3]}
    search = GridSearchCV(classifier(), grid, cv=KFold(3), scoring="accuracy").fit(X, Y)
    assert search.best_params_["learning_rate"] == 0.3
    assert search.predict(X).shape == Y.shape


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_joblib_fits_in_parallel(backend: str) -> None:
    models = Parallel(n_jobs=2, backend=backend)(delayed(classifier(random_state=s).fit)(X, Y) for s in range(3))
    for seed, model in enumerate(models):
        assert model.rules_ == classifier(random_state=seed).fit(X, Y).rules_


def test_the_random_state_decides_all_draws() -> None:
    assert classifier(random_state=3).fit(X, Y).rules_ == classifier(random_state=3).fit(X, Y).rules_
    assert classifier(random_state=3).fit(X, Y).rules_ != classifier(random_state=4).fit(X, Y).rules_
    one, other = (classifier(random_state=np.random.RandomState(5)).fit(X, Y).rules_ for _ in range(2))
    assert one == other
    np.random.seed(6)
    classifier(random_state=3).fit(X, Y)
    assert np.random.random() == np.random.RandomState(6).random()  # nobody else's draws are changed


def test_weights_are_routed_through_meta_estimators() -> None:
    weight = np.where(np.arange(120) < 60, 1.0, 0.0)
    with config_context(enable_metadata_routing=True):
        model = classifier().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(MinMaxScaler(), model).fit(X, Y, sample_weight=weight)
        direct = classifier().fit(MinMaxScaler().fit_transform(X), Y, sample_weight=weight)
        assert pipeline[-1].rules_ == direct.rules_
        results = cross_validate(
            model, X, Y, cv=KFold(3), params={"sample_weight": np.ones(120)}, return_estimator=True
        )
        assert len(results["estimator"]) == 3
        search = GridSearchCV(model, {"learning_rate": [0.1, 0.3]}, cv=KFold(3))
        assert search.fit(X, Y, sample_weight=np.ones(120)).best_estimator_.rules_
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            GridSearchCV(classifier(), {"learning_rate": [0.1]}).fit(X, Y, sample_weight=weight)


def test_weights_per_label_are_split_in_cross_validation() -> None:
    weight = np.random.default_rng(1).choice([0.5, 1.0], size=Y.shape)
    results = cross_validate(classifier(), X, Y, cv=KFold(3), params={"sample_weight": weight}, error_score="raise")
    assert np.isfinite(results["test_score"]).all()


def test_columns_are_transformed_by_their_kind() -> None:
    frame = pd.DataFrame({"size": X[:, 0], "colour": np.where(X[:, 1] > 0, "red", "blue"), "weight": X[:, 2]})
    columns = make_column_transformer(
        (StandardScaler(), ["size", "weight"]), (OrdinalEncoder(), ["colour"]), verbose_feature_names_out=False
    )
    pipeline = make_pipeline(columns.set_output(transform="pandas"), classifier(categorical_features=["colour"]))
    assert pipeline.fit(frame, Y).score(frame, Y) > 0.5
    assert pipeline[-1].feature_names_in_.tolist() == ["size", "weight", "colour"]


def test_a_randomised_search_finds_a_learning_rate() -> None:
    search = RandomizedSearchCV(
        classifier(), {"learning_rate": uniform(0.1, 0.5), "l2": [0.5, 1, 2]}, n_iter=3, cv=KFold(3), random_state=1
    )
    assert search.fit(X, Y).best_score_ > 0.3


def test_notebooks_show_the_parameters() -> None:
    html = classifier(learning_rate=0.25)._repr_html_()
    assert "BoomerClassifier" in html
    assert "learning_rate" in html
    assert "BoomerClassifier" in make_pipeline(StandardScaler(), classifier())._repr_html_()


def test_labels_of_a_chain_of_single_label_models_are_learned() -> None:
    for wrapper in (ClassifierChain(classifier()), MultiOutputClassifier(classifier())):
        assert wrapper.fit(X, Y).score(X, Y) > 0.3
    assert CalibratedClassifierCV(classifier(), cv=3).fit(X, Y[:, 0]).predict_proba(X).shape == (120, 2)


def test_scorers_of_several_measures_agree_with_their_functions() -> None:
    model = classifier().fit(X, Y)
    assert get_scorer("roc_auc")(model, X, Y) == roc_auc_score(Y, model.decision_function(X))


def _fit_in_process(seed: int) -> Any:
    return classifier(random_state=seed).fit(X, Y).rules_


@pytest.mark.slow
@pytest.mark.parametrize("method", [m for m in multiprocessing.get_all_start_methods() if m != "fork"])
def test_several_processes_fit_at_once(method: str) -> None:
    with multiprocessing.get_context(method).Pool(2) as pool:
        results = pool.map(_fit_in_process, range(4))
    assert results == [_fit_in_process(seed) for seed in range(4)]
