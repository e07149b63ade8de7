"""Training curves are what the first rules of a model would have given."""

from typing import Any

import numpy as np
import pytest

from pyboomer import BoomerClassifier, BoomerRegressor
from pyboomer.datasets import load_dataset
from pyboomer.explore.curves import TEST, TRAIN, training_curve
from pyboomer.metrics import METRICS

DIGITS = load_dataset("digits7")
X, Y, X_TEST, Y_TEST = DIGITS.X[:300], DIGITS.Y[:300], DIGITS.X[300:500], DIGITS.Y[300:500]


@pytest.fixture(scope="module")
def clf() -> BoomerClassifier:
    return BoomerClassifier(n_rules=80, random_state=1).fit(X, Y)


def test_points_are_the_measures_of_the_first_rules(clf: BoomerClassifier) -> None:
    curve = training_curve(clf, X, Y, X_TEST, Y_TEST, at=[1, 10, 80])
    assert list(curve.values) == [TRAIN, TEST]
    assert list(curve.larger_is_better) == ["loss", "hamming_loss", "subset_zero_one_loss", "example_f1"]
    for data, (own_X, own_Y) in {TRAIN: (X, Y), TEST: (X_TEST, Y_TEST)}.items():
        for i, predicted in enumerate(clf.staged_predict(own_X, at=[1, 10, 80])):
            for name in ("hamming_loss", "subset_zero_one_loss", "example_f1"):
                assert curve.values[data][name][i] == pytest.approx(METRICS[name](own_Y, predicted))
    assert curve.values[TRAIN]["loss"][-1] == pytest.approx(clf.training_facts_["loss"])


def test_a_shorter_model_is_a_point_of_the_curve(clf: BoomerClassifier) -> None:
    short = BoomerClassifier(n_rules=25, random_state=1).fit(X, Y)
    curve = training_curve(clf, X, Y, at=[25])
    assert curve.values[TRAIN]["loss"][0] == pytest.approx(short.training_facts_["loss"])


def test_the_points_are_denser_where_there_are_few_rules(clf: BoomerClassifier) -> None:
    n_rules = training_curve(clf, X, Y, measures=["loss"]).n_rules
    assert n_rules[0] == 1
    assert n_rules[-1] == 80
    assert (np.diff(n_rules) > 0).all()
    assert np.diff(n_rules)[0] < np.diff(n_rules)[-1]


def test_the_best_number_of_rules(clf: BoomerClassifier) -> None:
    curve = training_curve(clf, X, Y, X_TEST, Y_TEST)
    for name in curve.larger_is_better:
        values = curve.values[TEST][name]
        best = values.max() if curve.larger_is_better[name] else values.min()
        assert values[curve.n_rules.tolist().index(curve.find_best(name))] == best
    assert training_curve(clf, X, Y, measures=["loss"]).find_best() == 80
    with pytest.raises(ValueError, match="the curve has no 'accuracy'"):
        curve.find_best("accuracy")


def test_scorers_classes_and_targets() -> None:
    classes = np.where(Y[:, 0] == 1, "on", "off")
    clf = BoomerClassifier(n_rules=20, random_state=1).fit(X, classes)
    curve = training_curve(clf, X, classes, measures=["accuracy", "subset_zero_one_loss"])
    np.testing.assert_allclose(curve.values[TRAIN]["accuracy"], 1 - curve.values[TRAIN]["subset_zero_one_loss"])
    reg = BoomerRegressor(n_rules=20, random_state=1).fit(X, X[:, 20])
    curve = training_curve(reg, X, X[:, 20])
    assert curve.values[TRAIN]["r2"][-1] == pytest.approx(reg.score(X, X[:, 20]))
    assert curve.larger_is_better == {"loss": False, "r2": True}


def test_unknown_labels_are_left_out(clf: BoomerClassifier) -> None:
    partly = Y.astype(float)
    partly[:100] = np.nan
    partly[100:150, 0] = np.nan
    curve = training_curve(clf, X, partly, measures=["loss", "hamming_loss"], at=[80])
    expected = (clf.predict(X) != Y)[~np.isnan(partly)].mean()
    assert curve.values[TRAIN]["hamming_loss"][0] == pytest.approx(expected)


def test_the_frame_has_a_column_per_data_set_and_measure(clf: BoomerClassifier) -> None:
    pytest.importorskip("pandas")
    frame = training_curve(clf, X, Y, X_TEST, Y_TEST, at=[5, 50], measures=["loss", "example_f1"]).to_frame()
    assert frame.index.tolist() == [5, 50]
    assert frame.columns.tolist() == [(d, m) for d in (TRAIN, TEST) for m in ("loss", "example_f1")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at": [10, 5]}, "at must ascend from 1 to at most 80, the number of rules; got"),
        ({"at": [0, 5]}, "at must ascend from 1"),
        ({"at": [5, 81]}, "at must ascend from 1"),
        ({"at": [1.5]}, "at must ascend from 1"),
        ({"at": []}, "at must have at least one"),
        ({"measures": []}, "measures must name at least one"),
        ({"measures": ["loss", "loss"]}, "measures must differ"),
        ({"measures": ["f2"]}, "there is no measure 'f2'"),
        ({"X_test": X_TEST}, "X_test and y_test must be given together"),
    ],
)
def test_faults_are_named(clf: BoomerClassifier, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        training_curve(clf, X, Y, **options)
