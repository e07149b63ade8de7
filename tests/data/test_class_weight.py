"""Weights of classes are weights of labels, or of examples if y is one column."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyboomer import BoomerClassifier, load_model

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(120, 4)), 1)
Y = (X[:, :3] + RNG.normal(size=(120, 3)) > [1.5, 0.0, -1.0]).astype(int)
HOLES = np.where(RNG.random(Y.shape) < 0.1, np.nan, Y)
CLASSES = np.array(["few", "some", "many", "most"])[Y.sum(axis=1)]


def fit(y: Any, weight: Any = None, **options: Any) -> BoomerClassifier:
    return BoomerClassifier(**{"n_rules": 12, "random_state": 1, **options}).fit(X, y, weight)


@pytest.mark.parametrize("loss", ["example-wise-logistic", "label-wise-logistic"])
def test_they_multiply_the_weights_of_labels(loss: str) -> None:
    weight = np.where(Y == 1, [5.0, 1.0, 1.0], [1.0, 1.0, 0.5])
    model = fit(Y, loss=loss, class_weight=[{1: 5}, {}, {0: 0.5, 1: 1}])
    assert model.rules_ == fit(Y, weight, loss=loss).rules_
    both = fit(Y, np.full(Y.shape, 2.0), loss=loss, class_weight={0: 3.0})
    assert both.rules_ == fit(Y, np.where(Y == 1, 2.0, 6.0), loss=loss).rules_


def test_balanced_labels_count_as_much_as_the_others_together() -> None:
    counts = np.stack([(Y == 0).sum(axis=0), Y.sum(axis=0)])
    weight = 60 / np.take_along_axis(counts, Y, axis=0)
    assert fit(Y, class_weight="balanced").rules_ == fit(Y, weight).rules_
    default = fit(Y, class_weight="balanced", loss="label-wise-logistic").rules_[0]
    np.testing.assert_allclose(default.scores, 0, atol=1e-9)


def test_rare_labels_are_found_more_often() -> None:
    assert fit(Y, class_weight="balanced").predict(X)[:, 0].sum() > fit(Y).predict(X)[:, 0].sum()


def test_what_is_unknown_stays_unknown() -> None:
    known = ~np.isnan(HOLES)
    counts = np.stack([(HOLES == 0).sum(axis=0), (HOLES == 1).sum(axis=0)])
    weight = known.sum(axis=0) / (2 * np.take_along_axis(counts, Y, axis=0))
    assert fit(HOLES, class_weight="balanced").rules_ == fit(HOLES, weight).rules_


@pytest.mark.parametrize("y", [CLASSES, np.where(Y[:, 0] == 1, "yes", "no")], ids=["four", "two"])
def test_classes_of_one_column_weigh_examples(y: np.ndarray) -> None:
    names, counts = np.unique(y, return_counts=True)
    weight = len(y) / (len(names) * counts)
    expected = fit(y, weight[np.searchsorted(names, y)]).rules_
    assert fit(y, class_weight="balanced").rules_ == expected
    assert fit(y, class_weight=dict(zip(names, weight, strict=True))).rules_ == expected


@pytest.mark.parametrize(
    ("y", "weight", "message"),
    [
        (Y, {2: 1.0}, "class_weight has the class 2, but label 'y0' has 0, 1"),
        (Y, [{1: 2.0}], "class_weight must have a dict for each of the 3 labels, got 1"),
        (CLASSES, {"none": 2.0}, "class_weight has the class 'none', but y has few, many, most, some"),
        (CLASSES, [{1: 2.0}], "class_weight must be"),
        (Y, {1: 0.0}, "class_weight must be None"),
        (Y, {1: "2"}, "class_weight must be None"),
        (Y, "even", "class_weight must be None"),
        (Y, ["balanced"] * 3, "class_weight must be None"),
        (Y, {}, "class_weight must be None"),
    ],
)
def test_an_error_names_what_is_wrong(y: Any, weight: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(y, class_weight=weight)


@pytest.mark.parametrize(
    ("y", "weight"), [(Y, [{1: 5}, {np.int64(1): 2.5}, {True: 1, 0: 0.5}]), (CLASSES, {"few": 2}), (Y, "balanced")]
)
def test_a_loaded_model_goes_on_with_the_same_weights(y: Any, weight: Any, tmp_path: Path) -> None:
    fit(y, class_weight=weight).save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json").set_params(n_rules=20, warm_start=True).fit(X, y)
    assert loaded.rules_ == fit(y, class_weight=weight, n_rules=20).rules_
