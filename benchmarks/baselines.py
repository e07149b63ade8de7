"""How well do the usual learners predict on the data sets of the paper? The figures pyboomer's must be held against.

Pooled out-of-fold predictions of KFold(10, shuffle=True, random_state=1): scikit-learn's random forest, and XGBoost as
binary relevance (BR), classifier chain (CC) and label powerset (LP), stopped early on a tenth of the training fold.
Every result is kept, predictions in a file `<data> <method>.npz` and figures as a line of `results.jsonl`; a later run
computes only what is missing. Codes of nominal features are taken as numbers.
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import xgboost as xgb
from common import Seconds, clock, describe_machine, print_head, print_row
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import KFold, train_test_split

from pyboomer.datasets import Dataset, load_dataset
from pyboomer.metrics import example_f1, hamming_loss, subset_zero_one_loss

DATA = ("emotions", "birds", "scene", "yeast", "medical", "slashdot", "enron", "llog")  # the fastest first
MEASURES = {"hamming": hamming_loss, "subset": subset_zero_one_loss, "f1": example_f1}
TREE = {"learning_rate": 0.1, "tree_method": "hist", "nthread": 1}  # everything else as XGBoost has it
PATIENCE = 20  # rounds without a better loss on the held-out tenth
MAX_ROUNDS = 1000
MAX_ROUNDS_MANY_LABELS = 300  # more than 40 labels: some need over 500 on llog for losses near zero already
MAX_ROUNDS_MANY_VECTORS = 100  # more than 50 label vectors: every round of LP learns as many trees


class Prediction(NamedTuple):
    """Labels, and where the learner has them the marginal probabilities of the labels."""

    labels: np.ndarray
    probabilities: np.ndarray | None


class Model(NamedTuple):
    """A fitted learner: how it predicts, and for each of its boosters the rounds kept and the rounds allowed."""

    predict: Callable[[Any], Prediction]
    rounds: list[tuple[int, int]]


def fit_forest(X: Any, Y: np.ndarray, fold: int) -> Model:
    """A random forest of 300 trees with all labels in each leaf."""
    forest = RandomForestClassifier(300, n_jobs=1, random_state=fold).fit(X, Y)

    def predict(X: Any) -> Prediction:
        both = zip(forest.predict_proba(X), forest.classes_, strict=True)
        marginals = np.column_stack([p[:, classes == 1].sum(axis=1) for p, classes in both])
        return Prediction(marginals > 0.5, marginals)  # as forest.predict, without asking the trees again

    return Model(predict, [])


# --- XGBoost ----------------------------------------------------------------------------------------------------------


def hold_out(n: int, fold: int) -> list[np.ndarray]:
    """Indices of the examples to learn from, and of the tenth that says when to stop."""
    return train_test_split(np.arange(n), test_size=0.1, random_state=fold)


def quantize(X: Any, X_held: Any) -> tuple[Any, Any]:
    learn = xgb.QuantileDMatrix(X, nthread=1)
    return learn, xgb.QuantileDMatrix(X_held, ref=learn, nthread=1)


def boost(learn: Any, held: Any, max_rounds: int, **settings: Any) -> Any:
    """A booster cut at its best round."""
    evals = [(held, "held")]
    booster = xgb.train(
        {**TREE, **settings}, learn, max_rounds, evals=evals, early_stopping_rounds=PATIENCE, verbose_eval=False
    )
    return booster[: booster.best_iteration + 1]


def limit_rounds(n_labels: int) -> int:
    return MAX_ROUNDS_MANY_LABELS if n_labels > 40 else MAX_ROUNDS


def boost_label(learn: Any, y: np.ndarray, held: Any, y_held: np.ndarray, max_rounds: int) -> Any:
    """A booster for one label, or its value if it has only one."""
    if y.min() == y.max():
        return float(y[0])
    learn.set_label(y)
    held.set_label(y_held)
    return boost(learn, held, max_rounds, objective="binary:logistic", eval_metric="logloss")


def predict_label(booster: Any, X: Any) -> np.ndarray:
    return np.full(X.shape[0], booster) if isinstance(booster, float) else booster.inplace_predict(X)


def list_rounds(boosters: list[Any]) -> list[tuple[int, int]]:
    limit = limit_rounds(len(boosters))
    return [(each.num_boosted_rounds(), limit) for each in boosters if not isinstance(each, float)]


def fit_relevance(X: Any, Y: np.ndarray, fold: int) -> Model:
    """Binary relevance: a booster per label."""
    ours, rest = hold_out(len(Y), fold)
    learn, held = quantize(X[ours], X[rest])
    limit = limit_rounds(Y.shape[1])
    boosters = [boost_label(learn, Y[ours, k], held, Y[rest, k], limit) for k in range(Y.shape[1])]

    def predict(X: Any) -> Prediction:
        marginals = np.column_stack([predict_label(each, X) for each in boosters])
        return Prediction(marginals > 0.5, marginals)

    return Model(predict, list_rounds(boosters))


def append(X: Any, labels: np.ndarray) -> Any:
    labels = labels.astype(np.float32)
    return sp.hstack([X, sp.csr_matrix(labels)], format="csr") if sp.issparse(X) else np.hstack([X, labels])


def fit_chain(X: Any, Y: np.ndarray, fold: int) -> Model:
    """A classifier chain in one random order: each label also sees the labels before it, true ones in training."""
    order = np.random.default_rng(fold).permutation(Y.shape[1])
    ours, rest = hold_out(len(Y), fold)
    boosters = []
    for position, k in enumerate(order):
        seen = append(X, Y[:, order[:position]])
        learn, held = quantize(seen[ours], seen[rest])
        boosters.append(boost_label(learn, Y[ours, k], held, Y[rest, k], limit_rounds(len(order))))

    def predict(X: Any) -> Prediction:
        labels = np.zeros((X.shape[0], len(order)), dtype=bool)
        for position, (k, booster) in enumerate(zip(order, boosters, strict=True)):
            labels[:, k] = predict_label(booster, append(X, labels[:, order[:position]])) > 0.5
        return Prediction(labels, None)

    return Model(predict, list_rounds(boosters))


def fit_powerset(X: Any, Y: np.ndarray, fold: int) -> Model:
    """Label powerset: one booster whose classes are the label vectors learned from.

    Held-out examples with other vectors have no class and do not count.
    """
    ours, rest = hold_out(len(Y), fold)
    vectors, classes = np.unique(Y[ours], axis=0, return_inverse=True)
    known = {vector.tobytes(): code for code, vector in enumerate(vectors)}
    codes = np.array([known.get(vector.tobytes(), -1) for vector in Y[rest]])
    learn, held = quantize(X[ours], X[rest[codes >= 0]])
    learn.set_label(classes.ravel())
    held.set_label(codes[codes >= 0])
    max_rounds = MAX_ROUNDS_MANY_VECTORS if len(vectors) > 50 else MAX_ROUNDS
    booster = boost(learn, held, max_rounds, objective="multi:softprob", num_class=len(vectors), eval_metric="mlogloss")

    def predict(X: Any) -> Prediction:
        shares = booster.inplace_predict(X)
        return Prediction(vectors[shares.argmax(axis=1)], shares @ vectors)

    return Model(predict, [(booster.num_boosted_rounds(), max_rounds)])


METHODS = {
    "random forest": fit_forest,
    "XGBoost BR": fit_relevance,
    "XGBoost CC": fit_chain,
    "XGBoost LP": fit_powerset,
}

# --- Running ----------------------------------------------------------------------------------------------------------


def prepare(X: Any) -> Any:
    """X in float32, what all the learners use; dense unless very sparse, which is up to three times faster."""
    if sp.issparse(X):
        X = X.toarray() if X.nnz > 0.05 * np.prod(X.shape) else X.tocsr()
    return X.astype(np.float32)


def cross_validate(data: Dataset, fit: Callable[[Any, np.ndarray, int], Model]) -> tuple[Prediction, dict[str, Any]]:
    """Pooled out-of-fold predictions, and their figures: losses in percent, seconds of fitting, rounds."""
    X = prepare(data.X)
    labels = np.empty(data.Y.shape, dtype=np.uint8)
    marginals: np.ndarray | None = np.empty(data.Y.shape, dtype=np.float32)
    seconds = np.zeros(2)
    rounds = []
    for fold, (train, test) in enumerate(KFold(10, shuffle=True, random_state=1).split(data.Y)):
        spent, model = clock(partial(fit, X[train], data.Y[train], fold))
        labels[test], probabilities = model.predict(X[test])
        if probabilities is None:
            marginals = None
        elif marginals is not None:
            marginals[test] = probabilities
        seconds += spent
        rounds += model.rounds
    figures: dict[str, Any] = {name: 100 * measure(data.Y, labels) for name, measure in MEASURES.items()}
    figures |= Seconds(*seconds.round(2).tolist())._asdict()
    if rounds:
        figures |= {"boosters": len(rounds), "mean_rounds": round(float(np.mean([kept for kept, _ in rounds])), 1)}
        figures |= {"max_rounds": max(limit for _, limit in rounds)}
        figures |= {"cut_by_limit": sum(kept > limit - PATIENCE for kept, limit in rounds)}
    return Prediction(labels, marginals), figures


def order_work(names: list[str]) -> list[tuple[str, str]]:
    """The label powersets come last: they take longest."""
    work = [(name, method) for name in DATA if name in names for method in METHODS]
    return sorted(work, key=lambda each: each[1] == "XGBoost LP")


def read_results(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    lines = path.read_text().splitlines() if path.exists() else []
    return {(row["data"], row["method"]): row for row in map(json.loads, lines)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    default = Path(tempfile.gettempdir()) / "baselines"
    parser.add_argument("--results", type=Path, default=default, metavar="FOLDER", help="where results are kept")
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    args = parser.parse_args()
    args.results.mkdir(parents=True, exist_ok=True)
    store = args.results / "results.jsonl"
    machine = describe_machine(["xgboost"])
    print("; ".join(f"{name} {value}" for name, value in machine.items()) + "\n")
    print_head(
        ("data, method", "Hamming %", "subset 0/1 %", "example F1 %", "fit s", "CPU s", "rounds", "cut by limit")
    )
    done = read_results(store)
    for name, method in order_work(args.data):
        row = done.get((name, method))
        if row is None:
            (labels, marginals), figures = cross_validate(load_dataset(name), METHODS[method])
            row = {"data": name, "method": method, **figures, "machine": machine}
            arrays: dict[str, Any] = (
                {"labels": labels} if marginals is None else {"labels": labels, "probabilities": marginals}
            )
            np.savez_compressed(args.results / f"{name} {method}.npz", **arrays)
            with store.open("a") as file:  # after the predictions: a line says that they are there
                file.write(json.dumps(row) + "\n")
        losses = (f"{row[measure]:.2f}" for measure in MEASURES)
        cut = f"{row['cut_by_limit']} of {row['boosters']}, limit {row['max_rounds']}" if "boosters" in row else "-"
        print_row(f"{name}, {method}", *losses, row["wall"], row["cpu"], row.get("mean_rounds", "-"), cut)


if __name__ == "__main__":
    main()
