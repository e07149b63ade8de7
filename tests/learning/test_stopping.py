"""Early stopping keeps the best number of rules, by the loss or any measure, and changes nothing else."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification, make_regression
from sklearn.metrics import f1_score, make_scorer

from pyboomer import BoomerClassifier, BoomerRegressor
from pyboomer.learning.stopping import EVERY
from pyboomer.losses import example_wise_logistic
from pyboomer.metrics import hamming_loss

X, Y = make_multilabel_classification(300, n_features=12, n_classes=5, random_state=1)
TRAIN, HELD_OUT = np.arange(200), np.arange(200, 300)


def classifier(**options: Any) -> BoomerClassifier:
    return BoomerClassifier(**{"n_rules": 600, "random_state": 1, "learning_rate": 0.3, **options})


def fit_with_eval_set(**options: Any) -> BoomerClassifier:
    model = classifier(early_stopping=True, n_iter_no_change=50, **options)
    return model.fit(X[TRAIN], Y[TRAIN], eval_set=(X[HELD_OUT], Y[HELD_OUT]))


def test_the_curve_is_minus_the_loss_of_the_held_out_examples() -> None:
    model = classifier(loss="example-wise-logistic", n_rules=35).fit(
        X[TRAIN], Y[TRAIN], eval_set=(X[HELD_OUT], Y[HELD_OUT])
    )
    counts = [point.n_rules for point in model.validation_curve_]
    assert counts == [1, 10, 20, 30, 35]
    for point, scores in zip(
        model.validation_curve_, model.staged_decision_function(X[HELD_OUT], at=counts), strict=True
    ):
        expected = -example_wise_logistic.value(2.0 * Y[HELD_OUT] - 1, scores).mean()
        assert point.score == pytest.approx(expected)


def test_the_best_number_of_rules_is_kept_after_some_patience() -> None:
    model = fit_with_eval_set()
    best = max(model.validation_curve_, key=lambda point: point.score)
    assert len(model.rules_) == best.n_rules < 600
    assert model.validation_curve_[-1].n_rules == best.n_rules + 50
    assert model.training_facts_["rules"] == len(model.rules_)


def test_the_rules_kept_are_the_first_of_those_learned_without_stopping() -> None:
    stopped = fit_with_eval_set()
    all_rules = classifier().fit(X[TRAIN], Y[TRAIN]).rules_
    assert stopped.rules_ == all_rules[: len(stopped.rules_)]


def test_an_evaluation_set_alone_stops_nothing() -> None:
    model = classifier(n_rules=60).fit(X[TRAIN], Y[TRAIN], eval_set=(X[HELD_OUT], Y[HELD_OUT]))
    assert model.rules_ == classifier(n_rules=60).fit(X[TRAIN], Y[TRAIN]).rules_
    assert len(model.validation_curve_) == 7


def test_a_pair_in_a_list_is_an_evaluation_set_too() -> None:
    model = classifier(n_rules=20).fit(X[TRAIN], Y[TRAIN], eval_set=[(X[HELD_OUT], Y[HELD_OUT])])
    assert len(model.validation_curve_) == 3


def test_without_held_out_examples_there_is_no_curve() -> None:
    model = classifier(n_rules=20).fit(X, Y, eval_set=(X, Y))
    assert hasattr(model, "validation_curve_")
    assert not hasattr(model.fit(X, Y), "validation_curve_")


@pytest.mark.parametrize("kind", ["labels", "classes", "two classes"])
def test_a_part_of_the_training_data_is_held_out_if_no_other_is_given(kind: str) -> None:
    y = {"labels": Y, "classes": Y[:, :3].sum(axis=1), "two classes": np.where(Y[:, 0], "yes", "no")}[kind]
    options: dict[str, Any] = {"early_stopping": True, "validation_fraction": 0.25, "n_iter_no_change": 30}
    model = classifier(**options).fit(X, y)
    assert model.training_facts_["examples"] == 225
    assert model.rules_[0].coverage == 225
    assert (
        model.rules_ == classifier(early_stopping=True, validation_fraction=0.25, n_iter_no_change=30).fit(X, y).rules_
    )


SCORERS = {
    "accuracy": "accuracy",
    "f1_samples": "f1_samples",
    "roc_auc": "roc_auc",
    "probabilities": make_scorer(lambda y, p: -float(((y - p) ** 2).mean()), response_method="predict_proba"),
    "own": make_scorer(hamming_loss, greater_is_better=False),
    "function": make_scorer(f1_score, average="micro"),
}


@pytest.mark.parametrize("scoring", SCORERS.values(), ids=SCORERS)
@pytest.mark.parametrize("decode", ["loss", "hamming"])
def test_any_scorer_may_judge(scoring: Any, decode: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*ill-defined")
        model = fit_with_eval_set(scoring=scoring, decode=decode)
        from sklearn.metrics import get_scorer

        scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
        best = max(model.validation_curve_, key=lambda point: point.score)
        assert scorer(model, X[HELD_OUT], Y[HELD_OUT]) == pytest.approx(best.score)
    assert len(model.rules_) == best.n_rules


@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc_ovr", "neg_log_loss"])
def test_scorers_judge_classes_too(scoring: str) -> None:
    y = np.array(["none", "one", "more"])[np.minimum(Y[:, :2].sum(axis=1), 2)]
    model = classifier(early_stopping=True, scoring=scoring, n_iter_no_change=30, n_rules=100).fit(X, y)
    assert max(model.validation_curve_, key=lambda point: point.score).n_rules == len(model.rules_)


def test_a_scorer_sees_only_complete_examples_and_the_loss_all() -> None:
    masked = np.where(np.random.default_rng(1).random(Y.shape) < 0.1, np.nan, Y)
    for scoring in ("loss", "accuracy"):
        model = classifier(early_stopping=True, scoring=scoring, n_rules=50).fit(X, masked)
        assert len(model.rules_) >= 1
    masked = np.where(np.random.default_rng(1).random(Y.shape) < 0.3, np.nan, Y)
    with pytest.warns(UserWarning, match=r'scoring judges \d+ of 30 held-out .* scoring="loss" judges all'):
        classifier(early_stopping=True, scoring="accuracy", n_rules=50).fit(X, masked)
    masked[np.arange(300), np.arange(300) % 5] = np.nan
    with (
        pytest.warns(UserWarning, match="no example has all its labels known"),
        pytest.raises(ValueError, match='scoring must be "loss": no held-out example has all its labels known'),
    ):
        classifier(loss="joint-logistic", early_stopping=True, scoring="accuracy", n_rules=50).fit(X, masked)


def test_a_score_that_is_no_number_is_an_error() -> None:
    with pytest.raises(ValueError, match="scoring gave nan for the held-out examples"):
        fit_with_eval_set(scoring=make_scorer(lambda *_: np.nan))


def test_held_out_classes_may_be_only_some() -> None:
    y = np.array(["a", "b", "c"])[np.arange(300) % 3]
    some = np.flatnonzero(y[HELD_OUT] == "b")
    model = classifier(n_rules=20).fit(X[TRAIN], y[TRAIN], eval_set=(X[HELD_OUT][some], y[HELD_OUT][some]))
    assert len(model.validation_curve_) == 3


REFUSED: dict[str, tuple[Any, str]] = {
    "no pair": (X, r"eval_set must be a pair \(X, y\)"),
    "two pairs": ([(X, Y), (X, Y)], r"eval_set must be a pair \(X, y\)"),
    "a number": (3, r"eval_set must be a pair \(X, y\)"),
    "no labels": ((X, None), r"eval_set must be a pair \(X, y\)"),
    "classes": ((X, Y[:, 0]), "eval_set: y is one column of classes, but the model was learned from a matrix"),
    "infinity": ((X + np.inf, Y), "eval_set: X contains infinity"),
    "three": ((X, Y, Y), r"eval_set must be a pair \(X, y\)"),
    "other features": ((X[:, :3], Y), "eval_set: X has 3 features, but BoomerClassifier is expecting 12 features"),
    "other labels": ((X, Y[:, :3]), "eval_set: Y has 3 labels, but the model was learned from 5"),
    "too few labels": ((X, Y[:-1]), "eval_set: X has 300 examples, but Y has 299"),
    "a two": ((X, Y + 1), "eval_set: Y must hold only 0 and 1"),
}


@pytest.mark.parametrize(("eval_set", "message"), REFUSED.values(), ids=REFUSED)
def test_an_evaluation_set_that_does_not_fit_is_refused(eval_set: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        classifier(n_rules=5).fit(X, Y, eval_set=eval_set)


def test_an_unseen_class_in_the_evaluation_set_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"eval_set: y has the class 'd', but the model was learned from \['a', 'b'\]"):
        classifier(n_rules=5).fit(X[:2], ["a", "b"], eval_set=(X[:2], ["a", "d"]))


def test_a_single_example_cannot_be_held_out() -> None:
    with pytest.raises(ValueError, match="early_stopping holds out some of the examples"):
        classifier(early_stopping=True).fit(X[:1], Y[:1])


@pytest.mark.parametrize("max_bins", [None, 16])
def test_a_regressor_stops_as_well(max_bins: int | None) -> None:
    table, targets = make_regression(300, 8, n_targets=2, noise=30, random_state=1)
    model = BoomerRegressor(
        n_rules=2000, random_state=1, learning_rate=0.3, early_stopping=True, n_iter_no_change=50, max_bins=max_bins
    ).fit(table[:200], targets[:200], eval_set=(table[200:], targets[200:]))
    best = max(model.validation_curve_, key=lambda point: point.score)
    assert len(model.rules_) == best.n_rules < 2000
    error = 0.5 * ((model.predict(table[200:]) - targets[200:]) ** 2).sum(axis=1).mean()
    assert best.score == pytest.approx(-error)
    r2 = BoomerRegressor(n_rules=200, early_stopping=True, scoring="r2", random_state=1).fit(table, targets[:, 0])
    assert max(r2.validation_curve_, key=lambda point: point.score).score > 0.3


def test_the_facts_are_those_of_the_rules_that_are_kept() -> None:
    model = fit_with_eval_set(loss="example-wise-logistic")
    expected = example_wise_logistic.value(2.0 * Y[TRAIN] - 1, model.decision_function(X[TRAIN])).mean()
    assert model.training_facts_["loss"] == pytest.approx(expected)


def test_a_label_unknown_in_the_evaluation_set_alone_is_no_trouble() -> None:
    labels = Y[HELD_OUT].astype(float)
    labels[:, 1] = np.nan
    model = classifier(n_rules=20).fit(X[TRAIN], Y[TRAIN], eval_set=(X[HELD_OUT], labels))
    assert (model.decision_function(X)[:, 1] != 0).any()


def test_callbacks_are_told_the_validation_score() -> None:
    told: list[Any] = []
    classifier(n_rules=25, callbacks=told.append).fit(X, Y, eval_set=(X, Y))
    assert [progress.n_rules for progress in told] == list(range(1, 26))
    scores = [progress.validation_score for progress in told]
    assert len(set(scores)) == 4  # after 1, 10, 20 and 25 rules
    assert scores[0] < scores[-1]
    told.clear()
    classifier(n_rules=3, callbacks=told.append).fit(X, Y)
    assert [progress.validation_score for progress in told] == [None] * 3


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["label-wise-logistic", "example-wise-logistic"])
def test_on_yeast_the_number_of_rules_chosen_does_as_well_as_the_best_on_test_data(
    benchmark_data: Callable[[str], Any], loss: str
) -> None:
    ds = benchmark_data("yeast")
    chosen, best, spread = [], [], []
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(ds.X))
        train, test = order[:1600], order[1600:]
        options: dict[str, Any] = {"loss": loss, "random_state": seed, "n_rules": 3000, "early_stopping": True}
        model = BoomerClassifier(**options).fit(ds.X[train], ds.Y[train])
        full = BoomerClassifier(**options | {"early_stopping": False}).fit(ds.X[train], ds.Y[train])
        signs = 2.0 * ds.Y[test] - 1
        from pyboomer.losses import find_loss

        curve = [
            find_loss(loss).value(signs, scores)
            for scores in full.staged_decision_function(ds.X[test], at=range(EVERY, 3001, EVERY))
        ]
        own = find_loss(loss).value(signs, model.decision_function(ds.X[test]))
        k = int(np.argmin([losses.mean() for losses in curve]))
        chosen.append(own.mean())
        best.append(curve[k].mean())
        spread.append((own - curve[k]).std() / np.sqrt(len(own)))
        assert len(model.rules_) < 3000
    # within noise: of the difference between the two on test examples, and of losing a tenth of the training data
    assert np.mean(chosen) - np.mean(best) < 2 * np.mean(spread) + 0.02 * np.mean(best)
