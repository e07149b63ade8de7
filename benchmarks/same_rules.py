"""Do two versions of pyboomer learn the same rules, bit for bit?

Each version, given as the folder of its checkout, learns in a process of its own with many configurations: losses,
heads, searches, kinds of columns, samplings, weights, threads. Of each model the arrays of its rules, the training loss
and the scores of the training examples are hashed, as bytes; one different bit makes a different hash.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ARRAYS = (
    "condition_offsets",
    "condition_features",
    "condition_operators",
    "condition_values",
    "condition_digits",
    "head_offsets",
    "head_labels",
    "head_scores",
    "coverage",
    "gain",
)
LW, EW = {"loss": "label-wise-logistic"}, {"loss": "example-wise-logistic"}
SINGLE = {"head": "single"}
EXACT = {"search": "exact"}


def list_configurations() -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """Names, data sets, parameters of the estimator, and what else `fit` is given."""
    variants = {"ex multi": EW, "ex single": EW | SINGLE, "lw multi": LW, "lw single": LW | SINGLE}
    for data in ("emotions", "birds", "enron", "medical", "missing", "binned"):
        for name, parameters in variants.items():
            yield name, data, parameters, {}
    options: dict[str, dict[str, Any]] = {
        "exact": EW | EXACT,
        "l1": EW | {"l1": 2.0},
        "l1, single": LW | SINGLE | {"l1": 2.0},
        "l1, exact": EW | EXACT | {"l1": 1.0},
        "l2 0": EW | {"l2": 0.0},
        "l2 0, single": LW | SINGLE | {"l2": 0.0},
        "two labels": EW | {"head": 2},
        "two labels, label-wise": LW | {"head": 2},
        "two labels, exact": EW | EXACT | {"head": 2},
        "half of the gain": EW | {"head": 0.5},
        "half of the gain, label-wise": LW | {"head": 0.5},
        "three labels drawn": EW | {"max_labels": 3},
        "three labels drawn, single": LW | SINGLE | {"max_labels": 3},
        "two of three labels drawn": EW | {"max_labels": 3, "head": 2},
        "labels in turn": EW | {"max_labels": "round-robin"},
        "no sampling": EW | {"bootstrap": False},
        "without replacement": EW | {"sampling": "without-replacement"},
        "all features, five conditions": EW | {"max_features": None, "max_conditions": 5},
        "fixed features": EW | {"fixed_features": [0, 3], "min_coverage": 10},
    }
    for name, parameters in options.items():
        for data in ("emotions", "enron", "binned"):
            if data == "emotions" or "exact" not in name or data == "binned":
                yield name, data, parameters, {}
    for data in ("emotions", "enron", "binned"):
        yield "own loss, diagonal", data, {"loss": "own diagonal"}, {}
        yield "own loss, outer", data, {"loss": "own outer"}, {}
        yield "own loss, single", data, {"loss": "own outer", "head": "single"}, {}
        yield "weights of labels", data, EW, {"weights": "labels"}
        yield "weights of examples, single", data, LW | SINGLE, {"weights": "examples"}
    yield "two labels", "few, binned", EW | {"head": 2}, {}
    yield "single, 20 examples", "few, binned", EW | SINGLE | {"min_coverage": 20}, {}
    yield "multi, 20 examples", "few, binned", LW | {"min_coverage": 20}, {}
    yield "half of the gain, weights", "few, binned", EW | {"head": 0.5}, {"weights": "examples"}
    yield "own loss, dense", "emotions", {"loss": "own dense"}, {}
    yield "own loss, outer, two labels", "emotions", {"loss": "own outer", "head": 2}, {}
    yield "squared hinge", "emotions", {"loss": "example-wise-squared-hinge"}, {}
    yield "squared error", "emotions", {"loss": "label-wise-squared-error"}, {}
    yield "unknown labels", "emotions", EW, {"unknown": True}
    yield "unknown labels, single", "emotions", LW | SINGLE, {"unknown": True}
    yield "stratified", "emotions", LW | {"sampling": "stratified-label-wise"}, {}
    yield "early stopping", "yeast", EW | {"early_stopping": True, "n_iter_no_change": 20}, {}
    yield "calibrated", "emotions", EW | {"calibration": "isotonic"}, {}
    yield "warm start", "emotions", EW, {"again": 100}
    yield "one column of classes", "emotions", EW, {"classes": True}
    yield "exact", "missing", EW | EXACT, {}
    yield "exact, many labels", "birds", EW | EXACT | {"n_rules": 5}, {}
    yield "many labels", "cal500", EW | {"n_rules": 20}, {}
    for name, parameters in {**variants, "two labels": EW | {"head": 2}}.items():
        yield f"two threads, {name}", "large", parameters | {"n_jobs": 2, "n_rules": 20}, {}
        yield f"one thread, {name}", "large", parameters | {"n_rules": 20}, {}
    for data in ("targets", "many targets"):
        yield "regression", data, {}, {}
        yield "regression, single", data, SINGLE, {}
        yield "regression, two targets", data, {"head": 2}, {}
    yield "regression, unknown targets", "targets", {}, {"unknown": True}
    yield "regression, weights of targets", "targets", {}, {"weights": "labels"}
    yield "regression, own loss", "targets", {"loss": "own regression"}, {}


def make_data(name: str) -> tuple[Any, np.ndarray, dict[str, Any]]:
    """X, Y and the parameters that go with them."""
    from pyboomer.datasets import load_dataset

    rng = np.random.default_rng(1)
    if name in ("missing", "binned", "few, binned", "large"):
        n = {"large": 60_000, "few, binned": 300}.get(name, 1500)
        X = rng.normal(size=(n, 8)).round(1 if "binned" in name else 6)
        X[:, 5] = rng.integers(0, 5, n)
        X[rng.random(X.shape) < 0.1] = np.nan
        Y = (np.nan_to_num(X) @ rng.normal(size=(8, 9)) + rng.normal(size=(n, 9)) > 0.5).astype(np.int8)
        return X, Y, {"categorical_features": [5]} | ({"max_bins": 40} if "binned" in name else {})
    if name in ("targets", "many targets"):
        n = 700 if name == "targets" else 55_000
        X = rng.normal(size=(n, 6))
        return X, X @ rng.normal(size=(6, 3)) * 10 + rng.normal(size=(n, 3)) + 100, {"n_rules": 40}
    data = load_dataset(name)
    Y = data.Y.toarray() if hasattr(data.Y, "toarray") else np.asarray(data.Y)
    return data.X, Y, {"categorical_features": list(data.nominal_features) or None}


def make_own_losses() -> dict[str, Any]:
    """Losses as users write them, of all three shapes."""
    from pyboomer import Loss

    def value(Y: np.ndarray, F: np.ndarray) -> np.ndarray:
        return np.log1p(np.exp(-Y * F).sum(axis=1))

    def outer(Y: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, ...]:
        e = np.exp(-Y * F)
        p = e / (1 + e.sum(axis=1, keepdims=True))
        return -Y * p, p, -Y * p

    def dense(Y: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, ...]:
        g, a, _ = outer(Y, F)
        return g, a[:, :, None] * np.eye(Y.shape[1]) - g[:, :, None] * g[:, None, :]

    def derive_squares(Y: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, ...]:
        return F - Y, np.ones(F.shape)

    losses = (
        Loss("own diagonal", "diagonal", lambda Y, F: ((Y - F) ** 2).sum(axis=1), derive_squares),
        Loss("own outer", "diagonal-minus-outer", value, outer),
        Loss("own dense", "dense", value, dense),
        Loss("own regression", "diagonal", lambda Y, F: np.abs(F - Y).sum(axis=1), derive_squares),
    )
    return {loss.name: loss for loss in losses}


def learn(data: tuple[Any, np.ndarray, dict[str, Any]], parameters: dict[str, Any], extras: dict[str, Any]) -> str:
    """Learn with a configuration; the hash of what was learned."""
    from pyboomer import BoomerClassifier, BoomerRegressor

    X, Y, own = data
    losses = make_own_losses()
    defaults: dict[str, Any] = {"n_rules": 60, "random_state": 7, "learning_rate": 0.3}
    defaults |= {"max_samples": None, "max_features": "log2", "max_conditions": None}  # as they once were
    parameters = {**defaults, **own, **parameters}
    parameters["loss"] = losses.get(parameters.get("loss"), parameters.get("loss"))
    rng = np.random.default_rng(2)
    estimator: Callable[..., Any] = BoomerClassifier
    if Y.dtype == np.float64 and not np.isin(Y, (0, 1)).all():
        estimator = BoomerRegressor
    if parameters["loss"] is None:
        parameters["loss"] = "squared-error" if estimator is BoomerRegressor else "example-wise-logistic"
    if "default_rule" in estimator().get_params():
        parameters["default_rule"] = "newton"  # the only one that early versions know
    if extras.get("unknown"):
        Y = np.where(rng.random(Y.shape) < 0.2, np.nan, Y)
    if extras.get("classes"):
        Y = Y.argmax(axis=1)
    weight = {"labels": rng.integers(0, 4, Y.shape) / 2, "examples": rng.integers(0, 4, len(Y)) / 2}
    model = estimator(**parameters).fit(X, Y, weight.get(extras.get("weights", "")))
    if "again" in extras:
        model.set_params(n_rules=extras["again"], warm_start=True).fit(X, Y)
    scores = model.decision_function(X) if estimator is BoomerClassifier else model.predict(X)
    parts = [getattr(model.rules_, name) for name in ARRAYS]
    parts += [np.float64(model.training_facts_["loss"]), scores, model.predict(X)]
    if extras.get("calibrated") or parameters.get("calibration"):
        parts.append(model.predict_proba(X))
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()[:16]


def learn_all() -> None:
    """Print a line of JSON for each configuration."""
    import warnings

    warnings.simplefilter("ignore")
    made: dict[str, Any] = {}
    for name, data, parameters, extras in list_configurations():
        try:
            made[data] = made.get(data) or make_data(data)
            found = learn(made[data], parameters, extras)
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        print(json.dumps([data, name, found]), flush=True)


def run(checkout: Path) -> dict[tuple[str, str], str]:
    """What the version in a checkout learns."""
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve() / "src")}
    command = [sys.executable, __file__, "--learn"]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return {(data, name): found for data, name, found in map(json.loads, done.stdout.splitlines())}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("before", type=Path, nargs="?", help="the folder of a checkout")
    parser.add_argument("after", type=Path, nargs="?", default=Path(__file__).parent.parent, help="this one (default)")
    parser.add_argument("--learn", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.learn:
        learn_all()
        return
    if args.before is None:
        parser.error("name the folder of the checkout to compare with")
    before, after = run(args.before), run(args.after)
    print("| data | configuration | before | after | |\n|---|---|---|---|---|")
    for key in before | after:
        one, two = before.get(key, "-"), after.get(key, "-")
        print(f"| {key[0]} | {key[1]} | {one} | {two} | {'' if one == two else '**differs**'} |")
    same = sum(before.get(key) == after[key] for key in after)
    print(f"\n{same} of {len(before | after)} configurations have learned the same rules, bit for bit.")
    sys.exit(same < len(before | after))


if __name__ == "__main__":
    main()
