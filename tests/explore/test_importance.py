"""Importances are shares of what rules say, or what is lost by shuffling; labels depend as heads say."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.inspection import permutation_importance as permutation_importance_of_sklearn

from pyboomer import BoomerClassifier, BoomerRegressor, Condition, Rule, RuleEnsemble
from pyboomer.datasets import Dataset
from pyboomer.explore.dependence import LabelDependence, label_dependence
from pyboomer.explore.importance import FeatureImportance, feature_importance, permutation_importance
from pyboomer.metrics import METRICS
from pyboomer.rules.schema import Schema

FEATURES, LABELS = ("a", "b", "c"), ("y", "z")


def make_rules(head: dict[int, float] | None = None) -> RuleEnsemble:
    a, b = Condition(0, "<=", 1.0, "a"), Condition(1, ">", 2.0, "b")
    lower = Condition(0, ">", 0.0, "a")
    head = head or {0: 1.0, 1: -3.0}

    def make(body: tuple[Condition, ...], head: dict[int, float], coverage: float, gain: float) -> Rule:
        names = tuple(LABELS[k] for k in head)
        return Rule(body, tuple(head), tuple(head.values()), names, coverage, gain)

    rules = [
        make((), {0: 5.0, 1: 5.0}, 100, 50.0),
        make((a, lower, b), head, 30, 6.0),
        make((b,), {1: 0.5}, 10, 2.0),
    ]
    return RuleEnsemble.from_rules(rules, Schema(FEATURES), LABELS)


def make_data(n: int = 300, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, 6))
    X[rng.random(X.shape) < 0.3] = 0
    Y = np.column_stack([X[:, 0] > 0.4, X[:, 1] > 0.5, X[:, 0] <= 0.4]).astype(int)
    return X, Y


X, Y = make_data()


def fit(data: Any = X, **options: Any) -> BoomerClassifier:
    options = {"n_rules": 60, "learning_rate": 0.3, "max_features": None, "random_state": 1, **options}
    return BoomerClassifier(**options).fit(data, Y)


# --- By gain and by coverage


def test_the_gain_of_a_rule_is_split_over_its_conditions_and_its_head() -> None:
    importance = feature_importance(make_rules())
    # rule 1: 4 for a, 2 for b, in shares of 1/4 and 3/4 of the labels; rule 2: 2 for b, all of it for z
    np.testing.assert_allclose(importance.overall, np.array([4, 4, 0]) / 8)
    np.testing.assert_allclose(importance.per_label, np.array([[1, 3], [0.5, 3.5], [0, 0]]) / 8)


def test_coverage_is_split_like_gain() -> None:
    importance = feature_importance(make_rules(), "coverage")
    np.testing.assert_allclose(importance.overall, np.array([20, 20, 0]) / 40)
    np.testing.assert_allclose(importance.per_label.sum(axis=1), importance.overall)


def test_a_condition_has_the_share_that_it_added() -> None:
    rules = make_rules()
    importance = feature_importance(replace(rules, condition_shares=[0.5, 0.2, 0.3, 1.0]))
    # half of the gain of 6 in thirds, half of it by the shares
    np.testing.assert_allclose(importance.overall, np.array([2 + 0.7 * 3, 1 + 0.3 * 3 + 2, 0]) / 8)
    selected = fit().rules_[5:20]
    per_rule = np.add.reduceat(selected.condition_shares, selected.condition_offsets[:-1])
    np.testing.assert_allclose(per_rule, 1.0)
    assert [c.share for rule in selected for c in rule.body] == selected.condition_shares.tolist()
    again = RuleEnsemble.from_dict(selected.to_dict())
    np.testing.assert_array_equal(again.condition_shares, selected.condition_shares)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "agree"), [("slashdot", 0.9), ("enron", 0.95)])
def test_what_is_read_off_a_model_of_text_does_not_depend_on_the_seed(
    name: str, agree: float, benchmark_data: Callable[[str], Dataset]
) -> None:
    data = benchmark_data(name)
    models = [BoomerClassifier(random_state=seed).fit(data.X, data.Y) for seed in range(5)]
    top = [set(np.argsort(-model.feature_importances_)[:5]) for model in models]
    assert np.mean([len(a & b) / 5 for a, b in combinations(top, 2)]) >= 0.6
    j, k = np.triu_indices(data.Y.shape[1], 1)
    with np.errstate(invalid="ignore"):  # of a label that no example has
        correlation = np.nan_to_num(np.corrcoef(np.asarray(data.Y).T)[j, k])
    clear = np.abs(correlation) * np.sqrt(len(data.Y)) > 3  # standard errors
    signs = [np.sign(label_dependence(model, data.X).matrix[j, k]) == np.sign(correlation) for model in models]
    assert np.mean(signs, axis=0)[clear].mean() >= agree


def test_exclusive_labels_do_not_seem_to_go_together() -> None:
    rng = np.random.default_rng(0)
    c = rng.integers(0, 8, 400)
    words = rng.random((400, 24)) < np.where(np.arange(24) // 3 == c[:, None], 0.4, 0.05)
    model = BoomerClassifier(n_rules=200, random_state=1).fit(words.astype(float), np.eye(8, dtype=int)[c])
    assert label_dependence(model).matrix[np.triu_indices(8, 1)].max() < 0.1


def test_shares_add_up_to_one() -> None:
    for by in ("gain", "coverage"):
        importance = feature_importance(fit(), by)
        assert importance.overall.sum() == pytest.approx(1)
        np.testing.assert_allclose(importance.per_label.sum(axis=1), importance.overall)


def test_a_model_without_conditions_has_no_importances() -> None:
    assert not feature_importance(make_rules()[:1]).overall.any()


def test_features_that_matter_are_found() -> None:
    clf, short = fit(), fit(max_conditions=1)
    for importance in (feature_importance(clf), feature_importance(clf, "coverage")):
        assert set(importance.rank()[:2].tolist()) == {0, 1}
        assert importance.per_label[0, 0] > importance.per_label[1, 0]
    # of a rule with two conditions, it is not known which of them a label is owed to
    for importance in (
        feature_importance(short),
        feature_importance(short, "coverage"),
        permutation_importance(clf, X, Y, random_state=0),
    ):
        assert set(importance.rank()[:2].tolist()) == {0, 1}
        assert importance.per_label[0, 0] > importance.per_label[1, 0]
        assert importance.per_label[1, 1] > importance.per_label[0, 1]
        assert importance.rank(1)[0] == 1


def test_estimators_have_importances_as_scikit_learn_calls_them() -> None:
    clf = fit()
    np.testing.assert_array_equal(clf.feature_importances_, feature_importance(clf).overall)
    assert not hasattr(BoomerClassifier(), "feature_importances_")
    reg = BoomerRegressor(n_rules=50, random_state=1).fit(X, X[:, 2])
    assert reg.feature_importances_.argmax() == 2


def test_only_what_is_there_can_be_asked_for() -> None:
    with pytest.raises(ValueError, match='by must be "gain" or "coverage"'):
        feature_importance(make_rules(), "weight")
    with pytest.raises(ValueError, match="fitted"):
        feature_importance(BoomerClassifier())


def test_the_frame_has_the_most_important_feature_first() -> None:
    pytest.importorskip("pandas")
    frame = permutation_importance(fit(), X, Y, random_state=0).to_frame()
    assert list(frame.columns) == ["(overall)", "(spread)", "y0", "y1", "y2"]
    assert frame["(overall)"].is_monotonic_decreasing
    assert frame.index[0] in ("x0", "x1")
    assert list(feature_importance(fit()).to_frame().columns) == ["(overall)", "y0", "y1", "y2"]
    assert repr(feature_importance(fit())).startswith("<FeatureImportance by gain: x")


# --- By permutation


def test_shuffling_a_feature_that_no_rule_mentions_changes_nothing() -> None:
    clf = fit(max_conditions=1, n_rules=5)
    unused = np.setdiff1d(np.arange(6), clf.rules_.condition_features)
    importance = permutation_importance(clf, X, Y, random_state=0)
    assert len(unused) > 0
    assert not importance.overall[unused].any()
    assert not importance.per_label[unused].any()


def test_the_importance_is_what_a_shuffled_table_costs() -> None:
    clf = fit()
    for measure in ("hamming_loss", "example_f1"):
        importance = permutation_importance(clf, X, Y, measure=measure, n_repeats=50, random_state=0)

        def score(model: Any, X: Any, Y: Any, measure: str = measure) -> float:
            value = METRICS[measure](Y, model.predict(X))
            return value if METRICS[measure].larger_is_better else -value

        theirs = permutation_importance_of_sklearn(clf, X, Y, scoring=score, n_repeats=50, random_state=0)
        np.testing.assert_allclose(importance.overall, theirs.importances_mean, atol=0.01)
        np.testing.assert_allclose(importance.spread, theirs.importances_std, atol=0.01)
        if measure == "hamming_loss":
            np.testing.assert_allclose(importance.per_label.mean(axis=1), importance.overall)


def test_scorers_of_scikit_learn_are_welcome() -> None:
    clf = fit()
    ours = permutation_importance(clf, X, Y, measure="subset_zero_one_loss", random_state=3)
    for measure in ("accuracy", lambda model, X, Y: (model.predict(X) == Y).all(axis=1).mean()):
        theirs = permutation_importance(clf, X, Y, measure=measure, random_state=3)
        np.testing.assert_allclose(theirs.overall, ours.overall, atol=1e-12)


def test_seeds_decide_and_sparse_data_are_no_different() -> None:
    clf = fit(sp.csr_array(X))
    first = permutation_importance(clf, X, Y, random_state=0)
    np.testing.assert_array_equal(permutation_importance(clf, X, Y, random_state=0).overall, first.overall)
    assert (permutation_importance(clf, X, Y, random_state=1).overall != first.overall).any()
    sparse = permutation_importance(clf, sp.csr_array(X), Y, random_state=0)
    np.testing.assert_allclose(sparse.overall, first.overall, atol=1e-12)
    np.testing.assert_allclose(sparse.per_label, first.per_label, atol=1e-12)


def test_unknown_labels_are_left_out() -> None:
    partly = Y.astype(float)
    partly[::2, 1] = np.nan
    importance = permutation_importance(fit(), X, partly, random_state=0)
    assert importance.per_label[1, 1] > 0.1
    by_metric = permutation_importance(fit(), X, partly, measure="hamming_loss", random_state=0)
    assert by_metric.overall[0] > 0.1
    rest = np.where(np.arange(3) == 1, np.nan, Y)
    assert permutation_importance(fit(), X, rest, measure="example_f1", random_state=0).overall[0] > 0.1
    with pytest.raises(ValueError, match="needs examples with all labels known"):
        permutation_importance(fit(), X, rest, measure="accuracy")


def test_targets_have_importances_too() -> None:
    reg = BoomerRegressor(n_rules=100, random_state=1).fit(X, X[:, [2, 3]])
    importance = permutation_importance(reg, X, X[:, [2, 3]], measure="r2", random_state=0)
    assert set(importance.rank()[:2].tolist()) == {2, 3}
    assert importance.per_label[2, 0] > importance.per_label[3, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "f2"}, "there is no measure 'f2'"),
        ({"measure": 3}, "a measure is a name or a scorer"),
        ({"n_repeats": 0}, "n_repeats must be a whole number of at least 1, got 0"),
    ],
)
def test_faults_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        permutation_importance(fit(), X, Y, **options)


def test_metrics_are_about_labels() -> None:
    reg = BoomerRegressor(n_rules=5).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="'hamming_loss' is about labels"):
        permutation_importance(reg, X, X[:, 0], measure="hamming_loss")


def test_classes_have_importances() -> None:
    clf = BoomerClassifier(n_rules=30, random_state=1).fit(X, np.where(X[:, 0] > 0.4, "yes", "no"))
    importance = permutation_importance(clf, X, np.where(X[:, 0] > 0.4, "yes", "no"), measure="hamming_loss")
    assert importance.rank()[0] == 0
    assert isinstance(importance, FeatureImportance)


# --- Dependence


def test_dependence_is_the_weighted_correlation_of_scores() -> None:
    matrix = label_dependence(make_rules()).matrix
    heads, coverage = np.array([[1.0, -3.0], [0.0, 0.5]]), np.array([30.0, 10.0])
    expected = (coverage * heads[:, 0] * heads[:, 1]).sum() / np.sqrt(
        (coverage * heads[:, 0] ** 2).sum() * (coverage * heads[:, 1] ** 2).sum()
    )
    np.testing.assert_allclose(matrix, [[1, expected], [expected, 1]])


def test_opposites_and_twins_are_told_by_sign() -> None:
    rng = np.random.default_rng(0)
    y = (X[:, 0] > 0.4).astype(int)
    labels = np.column_stack([y, y, 1 - y, rng.integers(0, 2, len(y))])
    clf = BoomerClassifier(n_rules=50, random_state=1).fit(X, labels)
    dependence = label_dependence(clf)
    assert dependence.matrix[0, 1] > 0.95
    assert dependence.matrix[0, 2] < -0.95
    assert abs(dependence.matrix[0, 3]) < 0.7
    pairs = dependence.list_pairs()
    assert pairs.iloc[-1]["other"] == "y3"
    assert len(pairs) == 6
    order = dependence.cluster().tolist()
    assert abs(order.index(0) - order.index(1)) == 1
    assert dependence.take(np.array([2, 0])).label_names == ("y2", "y0")
    assert dependence.to_frame().loc["y0", "y2"] == dependence.matrix[0, 2]


def test_dependence_in_predictions_is_the_correlation_of_probabilities() -> None:
    rng = np.random.default_rng(0)
    y = (X[:, 0] > 0.4).astype(int)
    labels = np.column_stack([y, 1 - y, rng.integers(0, 2, len(y))])
    clf = BoomerClassifier(n_rules=50, head="single", random_state=1).fit(X, labels)
    np.testing.assert_allclose(label_dependence(clf, X).matrix, np.corrcoef(clf.predict_proba(X).T))
    regressor = BoomerRegressor(n_rules=20, random_state=1).fit(X, X[:, :2] @ [[1, 2, 0], [-1, 3, 0]])
    matrix = label_dependence(regressor, X).matrix
    np.testing.assert_allclose(matrix[:2, :2], np.corrcoef(regressor.predict(X)[:, :2].T))
    np.testing.assert_array_equal(matrix[2], [0, 0, 1])
    np.testing.assert_array_equal(label_dependence(BoomerClassifier(n_rules=5).fit(X, y), X).matrix, [[1]])
    with pytest.raises(TypeError, match="pass the fitted model"):
        label_dependence(clf.rules_, X)


def test_friends_are_the_strongest_on_each_side() -> None:
    names = ("a", "b", "c", "d", "e")
    matrix = np.eye(5)
    matrix[0] = [1, 0.2, 0.9, -0.3, 0.01]
    dependence = LabelDependence(matrix, names)
    assert dependence.find_friends(0, 1) == [(2, 0.9), (3, -0.3)]
    assert dependence.find_friends(0, 9) == [(2, 0.9), (1, 0.2), (3, -0.3)]


def test_rules_about_one_label_each_tell_no_dependence() -> None:
    with pytest.raises(ValueError, match='pass X, or fit with head="multi"'):
        label_dependence(fit(head="single"))


def test_labels_without_rules_depend_on_nothing() -> None:
    matrix = label_dependence(make_rules()[:1]).matrix
    np.testing.assert_array_equal(matrix, np.eye(2))
