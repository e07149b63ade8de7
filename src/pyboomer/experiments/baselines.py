"""A baseline is another learner that the rules are compared with: XGBoost in three reductions, and a random forest.

The reductions are those of the paper: binary relevance (BR), one booster per label; label powerset (LP), one booster
whose classes are the label vectors; classifier chain (CC), one booster per label that also sees the labels before it.
XGBoost samples 66 % of the examples in each round and draws floor(log2(L - 1) + 1) features at each split, as in the
paper; its trees are grown by histograms. Codes of nominal features are taken as numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

PATIENCE = 20  # rounds without a better loss on the held-out tenth


class Boosting(NamedTuple):
    """How XGBoost learns: shrinkage, L2 regularisation, rounds at most, and whether held-out examples may end it."""

    learning_rate: float
    l2: float
    max_rounds: int
    early_stopping: bool
    seed: int


class Prediction(NamedTuple):
    """Labels of the test examples, and how many rounds each booster kept."""

    labels: np.ndarray
    rounds: list[int]


def prepare_features(X: Any) -> Any:
    """X in float32, what the baselines use; sparse where it is, which is several times faster."""
    return (X.tocsr() if sp.issparse(X) else X).astype(np.float32)


def predict_forest(X: Any, Y: np.ndarray, X_test: Any, *, n_trees: int, seed: int) -> Prediction:
    """A random forest with all labels in each leaf; labels more probable than not."""
    forest = RandomForestClassifier(n_trees, random_state=seed).fit(X, Y if Y.shape[1] > 1 else Y.ravel())
    return Prediction(np.asarray(forest.predict(X_test), dtype=bool).reshape(X_test.shape[0], -1), [])


# --- XGBoost ----------------------------------------------------------------------------------------------------------


def predict_relevance(X: Any, Y: np.ndarray, X_test: Any, *, how: Boosting) -> Prediction:
    """Binary relevance: a booster per label."""
    own, held = _hold_out(len(Y), how)
    learn, judge = _quantize(X[own], X[held])
    boosters = [_boost_label(learn, Y[own, k], judge, Y[held, k], how, X.shape[1]) for k in range(Y.shape[1])]
    labels = np.column_stack([_predict_label(booster, X_test) for booster in boosters])
    return Prediction(labels, _list_rounds(boosters))


def predict_chain(X: Any, Y: np.ndarray, X_test: Any, *, how: Boosting, order: int) -> Prediction:
    """A classifier chain in the random order of that number: true labels are seen in training, predicted ones after."""
    labels = np.random.RandomState(order).permutation(Y.shape[1])
    own, held = _hold_out(len(Y), how)
    predicted = np.zeros((X_test.shape[0], Y.shape[1]), dtype=bool)
    boosters = []
    for position, k in enumerate(labels):
        before = labels[:position]
        seen = _append(X, Y[:, before])
        learn, judge = _quantize(seen[own], seen[held])
        boosters.append(_boost_label(learn, Y[own, k], judge, Y[held, k], how, seen.shape[1]))
        predicted[:, k] = _predict_label(boosters[-1], _append(X_test, predicted[:, before]))
    return Prediction(predicted, _list_rounds(boosters))


def predict_powerset(X: Any, Y: np.ndarray, X_test: Any, *, how: Boosting) -> Prediction:
    """Label powerset: one booster whose classes are the label vectors learned from.

    Held-out examples with other vectors have no class and do not count.
    """
    own, held = _hold_out(len(Y), how)
    vectors, classes = np.unique(Y[own], axis=0, return_inverse=True)
    known = {vector.tobytes(): code for code, vector in enumerate(vectors)}
    codes = np.array([known.get(vector.tobytes(), -1) for vector in Y[held]], dtype=np.int64)
    learn, judge = _quantize(X[own], X[held[codes >= 0]])
    learn.set_label(classes.ravel())
    if judge is not None:
        judge.set_label(codes[codes >= 0])
    goal = {"objective": "multi:softprob", "num_class": len(vectors), "eval_metric": "mlogloss"}
    booster = _boost(learn, judge, how, X.shape[1], goal)
    return Prediction(vectors[booster.inplace_predict(X_test).argmax(axis=1)] == 1, _list_rounds([booster]))


def import_xgboost() -> Any:
    """XGBoost, or an error that tells how to get it."""
    try:
        import xgboost
    except ImportError as error:
        raise ImportError("the baselines need XGBoost: pip install 'pyboomer[experiments]'") from error
    return xgboost


def _hold_out(n: int, how: Boosting) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the examples to learn from, and of the tenth, if any, that says when to stop."""
    if not how.early_stopping:
        return np.arange(n), np.arange(0)
    own, held = train_test_split(np.arange(n), test_size=0.1, random_state=how.seed)
    return own, held


def _quantize(X: Any, X_held: Any) -> tuple[Any, Any]:
    xgboost = import_xgboost()
    learn = xgboost.QuantileDMatrix(X, nthread=1)
    # Plain, because quantised sparse examples take twenty times as long to predict, which is done after each round.
    return learn, (xgboost.DMatrix(X_held, nthread=1) if X_held.shape[0] else None)


def _boost(learn: Any, judge: Any, how: Boosting, n_features: int, goal: dict[str, Any]) -> Any:
    """A booster, cut at its best round if there are examples to judge by."""
    drawn = int(np.log2(max(n_features - 1, 1)) + 1)
    settings = {
        "learning_rate": how.learning_rate,
        "reg_lambda": how.l2,
        "subsample": 0.66,
        "colsample_bynode": min((drawn + 0.5) / n_features, 1.0),  # XGBoost rounds the number down
        "tree_method": "hist",
        "nthread": 1,
        "seed": how.seed,
    }
    boost = import_xgboost().train
    if judge is None:
        return boost({**settings, **goal}, learn, how.max_rounds)
    booster = boost(
        {**settings, **goal},
        learn,
        how.max_rounds,
        evals=[(judge, "held")],
        early_stopping_rounds=PATIENCE,
        verbose_eval=False,
    )
    return booster[: booster.best_iteration + 1]


def _boost_label(learn: Any, y: np.ndarray, judge: Any, y_held: np.ndarray, how: Boosting, n_features: int) -> Any:
    """A booster for one label, or its value if it has only one."""
    if y.min() == y.max():
        return bool(y[0])
    learn.set_label(y)
    if judge is not None:
        judge.set_label(y_held)
    return _boost(learn, judge, how, n_features, {"objective": "binary:logistic", "eval_metric": "logloss"})


def _predict_label(booster: Any, X: Any) -> np.ndarray:
    if isinstance(booster, bool):
        return np.full(X.shape[0], booster)
    return np.asarray(booster.inplace_predict(X) > 0.5)


def _append(X: Any, labels: np.ndarray) -> Any:
    columns = labels.astype(np.float32)
    return sp.hstack([X, sp.csr_matrix(columns)], format="csr") if sp.issparse(X) else np.hstack([X, columns])


def _list_rounds(boosters: list[Any]) -> list[int]:
    return [booster.num_boosted_rounds() for booster in boosters if not isinstance(booster, bool)]
