"""A peer is another multi-label learner, made comparable: what it is fitted with, and what it forecasts.

Each is a function `fit(X, Y, held, seed, **settings)` that gives a `Fitted`. `held` are examples to stop early by, or
None. What a peer says becomes a `Forecast`: probabilities of labels and, where it has them, of label vectors. From
these `decode_all` tries every way to predict that is known to us, so that no peer loses by its decoding.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from common import OFFICIAL_LOSSES, fit_official, for_official_fit, for_official_predict
from scipy.special import logit
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from pyboomer.experiments.baselines import import_xgboost
from pyboomer.experiments.measures import MEASURES
from pyboomer.predicting.decoding import decode_by_f1, decode_by_marginals, decode_by_probability

Held = tuple[Any, np.ndarray] | None
PATIENCE = 20  # rounds without a better loss on held-out examples
SHARE_HELD = 0.2  # of the training examples, to tune by
CERTAIN = 1e-6  # probabilities are kept this far from 0 and 1
N_DRAWS = 50  # label vectors drawn from a classifier chain for each example


class Forecast(NamedTuple):
    """Probabilities of labels, (N, K); of the label vectors (V, K), if there are any, (N, V); labels of its own choice.

    A peer that has several ways to choose labels has a name for each.
    """

    marginals: np.ndarray
    vectors: np.ndarray | None = None
    joint: np.ndarray | None = None
    own: Mapping[str, np.ndarray] = {}


class Fitted(NamedTuple):
    """A fitted peer: what it forecasts, and the settings it found out, with which it can be fitted to all examples.

    `cut` are boosters that the limit of time has ended.
    """

    predict: Callable[[Any], Forecast]
    found: dict[str, Any]
    cut: int = 0


Fit = Callable[..., Fitted]


# --- Decoding and tuning ----------------------------------------------------------------------------------------------


def decode_all(forecast: Forecast, known: np.ndarray) -> dict[str, np.ndarray]:
    """Labels by every decoding that the forecast allows, by name; `known` are the label vectors of training."""
    log_odds = logit(np.clip(forecast.marginals, CERTAIN, 1 - CERTAIN))
    found = {
        **forecast.own,
        "probable labels": forecast.marginals > 0.5,
        "probable labels, known vectors": decode_by_marginals(log_odds, known),
        "known vector": decode_by_probability(log_odds, known),
        "expected F1": decode_by_f1(log_odds, None),
        "expected F1, known vectors": decode_by_f1(log_odds, known),
    }
    vectors, joint = forecast.vectors, forecast.joint
    if vectors is not None and joint is not None:
        found["probable vector"] = vectors[joint.argmax(axis=1)]
        rows = iter(joint)  # the decoder asks block by block, in order
        found["expected F1, probable vectors"] = decode_by_f1(
            log_odds, vectors, lambda block, _: np.stack([next(rows) for _ in block])
        )
    return {name: np.asarray(labels, dtype=bool) for name, labels in found.items()}


def know(Y: np.ndarray) -> np.ndarray:
    """The distinct label vectors."""
    return np.unique(np.asarray(Y, dtype=np.uint8), axis=0)


def fit_stopped(X: Any, Y: np.ndarray, _held: Held, seed: int, *, fit: Fit, **settings: Any) -> Fitted:
    """Stopped early by a tenth of the examples."""
    own, held = train_test_split(np.arange(len(Y)), test_size=0.1, random_state=seed)
    return fit(X[own], Y[own], (X[held], Y[held]), seed, **settings)


def tune(
    fit: Fit, grid: Sequence[dict[str, Any]], X: Any, Y: np.ndarray, seed: int, limit: float
) -> tuple[dict[str, Fitted], dict[str, Any]]:
    """For each measure the settings that were best by it on held-out examples, fitted to all; and what was chosen.

    Settings are tried in the order of the grid until `limit` CPU seconds are over.
    """
    own, held = train_test_split(np.arange(len(Y)), test_size=SHARE_HELD, random_state=seed)
    best = dict.fromkeys(MEASURES, (np.inf, {}))
    start = time.process_time()
    tried = 0
    for settings in grid:
        if tried and time.process_time() - start > limit:
            break
        tried += 1
        fitted = fit(X[own], Y[own], (X[held], Y[held]), seed, **settings)
        candidates = decode_all(fitted.predict(X[held]), know(Y[own])).values()
        for name, measure in MEASURES.items():
            loss = min(float(measure.as_loss(measure(Y[held], labels)).mean()) for labels in candidates)
            if loss < best[name][0]:
                best[name] = loss, {**settings, **fitted.found}
    refitted: list[tuple[dict[str, Any], Fitted]] = []
    models = {}
    for name, (_, settings) in best.items():
        same = [model for known, model in refitted if known == settings]
        models[name] = same[0] if same else fit(X, Y, None, seed, **settings)
        refitted.append((settings, models[name]))
    chosen = {name: {k: v for k, v in settings.items() if k != "rounds"} for name, (_, settings) in best.items()}
    cut = sum(model.cut for model in models.values())
    return models, {"tried": tried, "of": len(grid), "chosen": chosen, "cut": cut}


# --- XGBoost ----------------------------------------------------------------------------------------------------------

USUAL = {
    "rate": 0.1,
    "depth": 6,
    "child": 1.0,
    "features": "all",
    "sample": 1.0,
}  # XGBoost's, but for the rate
DRAWN = {**USUAL, "features": "log2", "sample": 0.66}  # as in the paper, and several times faster
# What matters most comes first: whether leaves of few examples are allowed decides on text, the draws on all others.
TREE_GRID = [
    {**DRAWN, "rate": 0.3},
    {**USUAL, "rate": 0.3, "child": 0.1, "sample": 0.66},
    {**DRAWN, "child": 0.1},
    {**USUAL, "depth": 3, "child": 0.1, "sample": 0.66},
    {**DRAWN, "rate": 0.3, "depth": 3},
    {**USUAL},
]


class Booster(NamedTuple):
    """A booster of XGBoost, or None if there is nothing to learn; whether the limit of time has ended it."""

    booster: Any
    cut: bool = False
    value: float = 0.0  # of a label that has only one

    @property
    def rounds(self) -> int:
        """How many were kept."""
        return 1 if self.booster is None else int(self.booster.num_boosted_rounds())

    def predict(self, X: Any) -> np.ndarray:
        """Probabilities: of a label, or of each class."""
        if self.booster is None:
            return np.full(X.shape[0], self.value)
        return np.asarray(self.booster.inplace_predict(X))


def describe_boosters(boosters: Sequence[Booster]) -> tuple[dict[str, Any], int]:
    """The rounds of each, to be learned again; and how many were cut."""
    return {"rounds": [each.rounds for each in boosters]}, sum(each.cut for each in boosters)


def boost(
    X: Any, y: np.ndarray, held: Held, seed: int, goal: dict[str, Any], rounds: int, seconds: float, how: dict[str, Any]
) -> Any:
    """A booster; if examples are held out, cut at its best round, else of so many rounds. CPU seconds are limited."""
    xgboost = import_xgboost()
    drawn = int(np.log2(max(X.shape[1] - 1, 1)) + 1)
    settings = {
        "learning_rate": how["rate"],
        "max_depth": how["depth"],
        "min_child_weight": how["child"],
        "subsample": how["sample"],
        "colsample_bynode": min((drawn + 0.5) / X.shape[1], 1.0) if how["features"] == "log2" else 1.0,
        "tree_method": "hist",
        "nthread": 1,
        "seed": seed,
        **goal,
    }
    start = time.process_time()

    class Limit(xgboost.callback.TrainingCallback):
        over = False

        def after_iteration(self, *_: Any) -> bool:
            self.over = time.process_time() - start > seconds
            return self.over

    limit = Limit()

    learn = xgboost.QuantileDMatrix(X, y, nthread=1)
    if held is None:
        booster = xgboost.train(settings, learn, rounds, callbacks=[limit])
        return Booster(booster, limit.over)
    booster = xgboost.train(
        settings,
        learn,
        rounds,
        evals=[(xgboost.DMatrix(held[0], held[1], nthread=1), "held")],
        verbose_eval=False,
        callbacks=[xgboost.callback.EarlyStopping(rounds=PATIENCE), limit],  # in this order: it knows its best round
    )
    return Booster(booster[: booster.best_iteration + 1], limit.over)


def boost_label(X: Any, y: np.ndarray, held: Held, seed: int, rounds: int, seconds: float, how: dict[str, Any]) -> Any:
    """A booster for one label, or its value if it has only one."""
    if y.min() == y.max():
        return Booster(None, value=float(y[0]))
    return boost(X, y, held, seed, {"objective": "binary:logistic", "eval_metric": "logloss"}, rounds, seconds, how)


def fit_relevance(
    X: Any, Y: np.ndarray, held: Held, seed: int, *, rounds: Sequence[int] = (), limit: float = 60.0, **how: Any
) -> Fitted:
    """Binary relevance: a booster per label."""
    K = Y.shape[1]
    boosters = [
        boost_label(X, Y[:, k], held and (held[0], held[1][:, k]), seed, rounds[k] if rounds else 500, limit / K, how)
        for k in range(K)
    ]
    return Fitted(
        lambda X: Forecast(np.column_stack([each.predict(X) for each in boosters])), *describe_boosters(boosters)
    )


def fit_powerset(
    X: Any, Y: np.ndarray, held: Held, seed: int, *, rounds: Sequence[int] = (), limit: float = 60.0, **how: Any
) -> Fitted:
    """Label powerset: one booster whose classes are the label vectors. Held-out examples with others do not count."""
    vectors, classes = np.unique(Y, axis=0, return_inverse=True)
    known = {vector.tobytes(): code for code, vector in enumerate(vectors)}
    if held is not None:
        codes = np.array([known.get(vector.tobytes(), -1) for vector in held[1]], dtype=np.int64)
        held = (held[0][codes >= 0], codes[codes >= 0])
    goal = {"objective": "multi:softprob", "num_class": len(vectors), "eval_metric": "mlogloss"}
    booster = boost(X, classes.ravel(), held, seed, goal, rounds[0] if rounds else 500, limit, how)

    def predict(X: Any) -> Forecast:
        joint = booster.predict(X)
        return Forecast(joint @ vectors, vectors, joint)

    return Fitted(predict, *describe_boosters([booster]))


def append(X: Any, labels: np.ndarray) -> Any:
    columns = labels.astype(np.float32)
    return sp.hstack([X, sp.csr_matrix(columns)], format="csr") if sp.issparse(X) else np.hstack([X, columns])


def fit_chain(
    X: Any,
    Y: np.ndarray,
    held: Held,
    seed: int,
    *,
    rounds: Sequence[int] = (),
    limit: float = 60.0,
    draws: int = N_DRAWS,
    **how: Any,
) -> Fitted:
    """A classifier chain in one random order: each label also sees the labels before it, true ones in training.

    It predicts greedily, which is its own; or vectors are drawn from it, which gives their probabilities.
    """
    K = Y.shape[1]
    order = np.random.default_rng(seed).permutation(K)
    boosters = []
    for position, k in enumerate(order):
        before = order[:position]
        judged = held and (append(held[0], held[1][:, before]), held[1][:, k])
        most = rounds[position] if rounds else 500
        boosters.append(boost_label(append(X, Y[:, before]), Y[:, k], judged, seed, most, limit / K, how))

    def follow(X: Any, thresholds: np.ndarray) -> np.ndarray:
        labels = np.zeros(thresholds.shape, dtype=np.uint8)
        for position, (k, booster) in enumerate(zip(order, boosters, strict=True)):
            labels[:, k] = booster.predict(append(X, labels[:, order[:position]])) > thresholds[:, k]
        return labels

    def predict(X: Any) -> Forecast:
        n = X.shape[0]
        greedy = follow(X, np.full((n, K), 0.5))
        every = np.tile(np.arange(n), draws)
        drawn = follow(X[every], np.random.default_rng(seed).random((n * draws, K)))
        return count_draws(drawn.reshape(draws, n, K))._replace(own={"greedy": greedy})

    return Fitted(predict, *describe_boosters(boosters))


def count_draws(drawn: np.ndarray) -> Forecast:
    """The shares of label vectors drawn, (draws, N, K)."""
    draws, n, K = drawn.shape
    vectors, codes = np.unique(drawn.reshape(-1, K), axis=0, return_inverse=True)
    joint = np.zeros((n, len(vectors)))
    np.add.at(joint, (np.tile(np.arange(n), draws), codes.ravel()), 1 / draws)
    return Forecast(drawn.mean(axis=0), vectors, joint)


def fit_chains(X: Any, Y: np.ndarray, _held: Held, seed: int, *, n_chains: int = 10, **how: Any) -> Fitted:
    """An ensemble of classifier chains (ECC), each in an order of its own and of a bootstrap; draws are pooled."""
    generator = np.random.default_rng(seed)
    chains = []
    for number in range(n_chains):
        sample = generator.integers(0, len(Y), len(Y))
        chains.append(fit_chain(X[sample], Y[sample], None, 1000 * seed + number, draws=N_DRAWS // n_chains, **how))

    def predict(X: Any) -> Forecast:
        forecasts = [chain.predict(X) for chain in chains]
        votes = np.mean([each.own["greedy"] for each in forecasts], axis=0)
        vectors = np.vstack([each.vectors for each in forecasts])
        joint = np.hstack([each.joint for each in forecasts]) / n_chains
        distinct, codes = np.unique(vectors, axis=0, return_inverse=True)
        merged = np.asarray(joint @ sp.csr_matrix((np.ones(len(codes)), (np.arange(len(codes)), codes.ravel()))))
        return Forecast(joint @ vectors, distinct, merged, {"votes of chains": votes > 0.5})

    return Fitted(predict, {}, sum(chain.cut for chain in chains))


# --- CatBoost ---------------------------------------------------------------------------------------------------------


def fit_catboost(X: Any, Y: np.ndarray, held: Held, seed: int, *, limit: float = 60.0) -> Fitted:
    """CatBoost by MultiLogloss, stopped early, all else as it has it. It refuses labels of one value."""
    from catboost import CatBoostClassifier, Pool

    start = time.process_time()

    class Limit:
        over = False

        def after_iteration(self, _: Any) -> bool:
            self.over = time.process_time() - start > limit
            return not self.over

    clock = Limit()
    live = Y.min(axis=0) != Y.max(axis=0)
    model = CatBoostClassifier(
        loss_function="MultiLogloss",
        iterations=1000,
        learning_rate=0.1,
        early_stopping_rounds=PATIENCE,
        random_seed=seed,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
    )
    X = X.toarray() if sp.issparse(X) else X
    X_held = held[0].toarray() if sp.issparse(held[0]) else held[0]
    model.fit(Pool(X, Y[:, live]), eval_set=Pool(X_held, held[1][:, live]), callbacks=[clock])

    def predict(X: Any) -> Forecast:
        marginals = np.tile(Y[0].astype(np.float64), (X.shape[0], 1))
        marginals[:, live] = model.predict_proba(X.toarray() if sp.issparse(X) else X)
        return Forecast(marginals)

    return Fitted(predict, {"rounds": [model.tree_count_]}, int(clock.over))


# --- Forests ----------------------------------------------------------------------------------------------------------


def fit_forest(X: Any, Y: np.ndarray, _held: Held, seed: int, *, kind: Any, n_trees: int = 200, **how: Any) -> Fitted:
    """A forest of scikit-learn with all labels in each leaf.

    Probabilities of label vectors are those among the examples in the leaves, averaged over the trees as those of the
    labels are.
    """
    forest = kind(n_trees, n_jobs=1, random_state=seed, **how).fit(X, Y)
    vectors, codes = np.unique(Y, axis=0, return_inverse=True)
    sizes = [tree.tree_.node_count for tree in forest.estimators_]
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    leaves = forest.apply(X) + offsets
    parts = []
    for t, sample in enumerate(forest.estimators_samples_):
        own = sp.csr_matrix(
            (np.ones(len(sample)), (leaves[sample, t] - offsets[t], codes.ravel()[sample])), (sizes[t], len(vectors))
        )
        total = np.asarray(own.sum(axis=1)).ravel()
        parts.append(sp.diags_array(1 / np.maximum(total, 1)) @ own)
    shares = sp.vstack(parts, format="csr")

    def predict(X: Any) -> Forecast:
        met = forest.apply(X) + offsets
        where = sp.csr_matrix(
            (np.full(met.size, 1 / met.shape[1]), met.ravel(), np.arange(0, met.size + 1, met.shape[1])),
            (len(met), shares.shape[0]),
        )
        joint = (where @ shares).toarray()
        return Forecast(joint @ vectors, vectors, joint)

    return Fitted(predict, {})


FOREST_GRID = [{"max_features": "sqrt"}, {"max_features": 0.2}]
FORESTS = {"random forest": RandomForestClassifier, "extra trees": ExtraTreesClassifier}


# --- Others -----------------------------------------------------------------------------------------------------------


def fit_knn(X: Any, Y: np.ndarray, _held: Held, _seed: int, *, k: int = 10, space: str = "plain") -> Fitted:
    """ML-kNN (Zhang and Zhou, 2007): how many of the k neighbours have a label decides, by Bayes' rule; smoothing 1.

    In the "standard" space features are divided by their deviations, in the "cosine" space examples by their lengths.
    """
    scaler = StandardScaler(with_mean=False).fit(X) if space == "standard" else None
    scale = scaler.transform if scaler is not None else (lambda X: X)
    search = NearestNeighbors(n_neighbors=k, metric="cosine" if space == "cosine" else "euclidean").fit(scale(X))
    prior = (1 + Y.sum(axis=0)) / (2 + len(Y))
    counts = Y[search.kneighbors(return_distance=False)].sum(axis=1)  # an example is no neighbour of itself
    tables = np.ones((2, k + 1, Y.shape[1]))
    for label in range(Y.shape[1]):
        for value in (0, 1):
            tables[value, :, label] += np.bincount(counts[Y[:, label] == value, label], minlength=k + 1)
    tables /= tables.sum(axis=1, keepdims=True)

    def predict(X: Any) -> Forecast:
        met = Y[search.kneighbors(scale(X), return_distance=False)].sum(axis=1)
        columns = np.arange(Y.shape[1])
        yes, no = prior * tables[1, met, columns], (1 - prior) * tables[0, met, columns]
        return Forecast(yes / (yes + no))

    return Fitted(predict, {})


KNN_GRID = [{"k": k, "space": space} for k in (5, 10, 20, 40) for space in ("plain", "standard", "cosine")]


def fit_rakel(X: Any, Y: np.ndarray, _held: Held, seed: int, *, size: int = 3, n_trees: int = 30) -> Fitted:
    """RAkEL: 2K random sets of three labels, a forest for the label vectors of each; probabilities are averaged."""
    generator = np.random.default_rng(seed)
    K = Y.shape[1]
    sets = [generator.permutation(K)[:size] for _ in range(2 * K)]
    sets += [np.append(k, generator.permutation(K)[: size - 1]) for k in set(range(K)) - set(np.concatenate(sets))]
    models = []
    for labels in sets:
        vectors, codes = np.unique(Y[:, labels], axis=0, return_inverse=True)
        forest = RandomForestClassifier(n_trees, n_jobs=1, random_state=seed).fit(X, codes.ravel())
        models.append((labels, vectors, forest))

    def predict(X: Any) -> Forecast:
        total, votes = np.zeros((X.shape[0], K)), np.zeros(K)
        for labels, vectors, forest in models:
            total[:, labels] += forest.predict_proba(X) @ vectors
            votes[labels] += 1
        return Forecast(total / votes)

    return Fitted(predict, {})


def fit_boomer(
    X: Any,
    Y: np.ndarray,
    _held: Held,
    seed: int,
    *,
    loss: str,
    rate: float,
    nominal: Sequence[int] = (),
    n_rules: int = 1000,
) -> Fitted:
    """mlrl-boomer with complete heads, a bootstrap of N examples and log2 features; it has predictors of its own."""
    from mlrl.boosting import BoomerClassifier as OfficialClassifier

    learner = OfficialClassifier(
        loss=OFFICIAL_LOSSES[loss],
        head_type="complete",
        max_rules=n_rules,
        default_rule="true",
        shrinkage=rate,
        l2_regularization_weight=1.0,
        instance_sampling=f"with-replacement{{min_samples={len(Y)}}}",
        feature_sampling="without-replacement",
        feature_binning="none",
        label_binning="auto",
        binary_predictor="example-wise",  # so that the model keeps the label vectors, which the others need, too
        probability_predictor="marginalized",
        parallel_rule_refinement="false",
        parallel_statistic_update="false",
        parallel_prediction="false",
        random_state=seed,
    )
    fit_official(learner, for_official_fit(X), Y.astype("uint8"), nominal)

    def predict(X: Any) -> Forecast:
        X = for_official_predict(X)
        own = {}
        for name in ("output-wise", "example-wise", "gfm"):
            labels = learner.set_params(binary_predictor=name).predict(X)
            own[f"its {name}"] = labels.toarray() if sp.issparse(labels) else labels
        return Forecast(learner.predict_proba(X), own=own)

    return Fitted(predict, {})


BOOMER_GRID = [
    {"loss": "example-wise", "rate": 0.1},
    {"loss": "label-wise", "rate": 0.1},
    {"loss": "example-wise", "rate": 0.3},
    {"loss": "label-wise", "rate": 0.3},
]
