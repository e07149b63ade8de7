"""Fits: random data and parameters; the engine learns what the reference learns, and what must not matter does not.

One problem is fitted several times: as it is, again, from other containers, with threads, step by step, with repeated
rows for weights, in another order. The model goes through every form it can be given away in.
"""

import json
import math
import pickle
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp
from conftest import as_reference_rules

from campaign.draw import Array, Problem, choose, draw_problem
from campaign.running import Plan, Tally, require
from pyboomer import BoomerClassifier, load_model
from pyboomer.columns.categories import encode, find_categories
from pyboomer.data.examples import Examples
from pyboomer.data.stratification import group_examples
from pyboomer.engine.sampling import count_examples, count_features, count_labels
from pyboomer.learning.sizing import find_max_features, find_max_labels, find_max_samples
from pyboomer.losses import example_wise_logistic, find_loss, squared_error
from pyboomer.reference import ReferenceRule, Setting, covers, learn_rules, predict_example_wise
from pyboomer.rules.ensemble import RuleEnsemble

FEW = False
EXACTLY = 0.0
CLOSELY = 1e-7  # sums in another order; heads may divide by little


def prepare(plan: Plan) -> None:
    """Say how many kinds may be compiled; warnings about odd data are expected."""
    global FEW
    FEW = plan.few
    warnings.simplefilter("ignore")


def run_case(case: int, rng: np.random.Generator, tally: Tally) -> None:  # noqa: ARG001
    """Make a problem and check the laws on it."""
    problem = draw_problem(rng, FEW)
    tally.begin("fit")
    if not is_possible(problem, tally):
        return
    model = fit(problem, tally)
    check_reference(problem, model, tally)
    check_again(problem, model, tally)
    check_exports(problem, model, rng, tally)
    check_stages(problem, model, tally)
    check_containers(problem, model, rng, tally)
    check_steps(problem, model, rng, tally)
    check_threads(problem, model, tally)
    check_orders(problem, model, rng, tally)
    check_refusals(problem, rng, tally)


def fit(problem: Problem, tally: Tally, X: Any = None, **changed: Any) -> Any:
    """Fit once more, counted."""
    tally.counts["fits"] += 1
    return problem.make(**changed).fit(problem.X if X is None else X, problem.y, problem.weight)


def is_possible(problem: Problem, tally: Tally) -> bool:
    """Whether the problem can be learned from; if not, the error must say why."""
    try:
        fit(problem, tally)
    except ValueError as error:
        known = ("calibration needs at least 5 examples", "early_stopping holds out some", "max_bins must be None")
        if any(text in str(error) for text in known):
            tally.counts["refused"] += 1
            return False
        raise
    return True


# --- Comparing rules --------------------------------------------------------------------------------------------------


def count_settled(gains: Any) -> int:
    """How many rules there are before the first that gains next to nothing: what that one says is up to rounding."""
    gains = np.asarray(gains)
    idle = np.flatnonzero(gains < max(1e-9 * gains.max(initial=0.0), 1e-25))
    return int(idle[0]) if len(idle) else len(gains)


def assert_same(rules: RuleEnsemble, expected: RuleEnsemble, rtol: float = EXACTLY, factor: float = 1.0) -> None:
    """Two ensembles have the same conditions and, up to rounding, the same scores; thresholds times a factor."""
    if rtol != EXACTLY:
        n_rules = count_settled(expected.gain)
        rules, expected = rules[:n_rules], expected[:n_rules]
    for name in ("condition_offsets", "condition_features", "condition_operators", "head_offsets", "head_labels"):
        np.testing.assert_array_equal(getattr(rules, name), getattr(expected, name), err_msg=name)
    nominal = expected.condition_operators >= 2
    values = np.where(nominal, expected.condition_values, expected.condition_values * factor)
    np.testing.assert_array_equal(rules.condition_values, values, err_msg="condition_values")
    size = np.abs(expected.head_scores).max(initial=1e-300)
    for name in ("head_scores", "coverage", "gain"):
        ours, theirs = getattr(rules, name), getattr(expected, name)
        if rtol == EXACTLY:
            np.testing.assert_array_equal(ours, theirs, err_msg=name)
        else:
            scale = max(float(np.abs(theirs).max(initial=0.0)), size)
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-9 * scale, err_msg=name)


# --- The reference ----------------------------------------------------------------------------------------------------


def reads_as_reference(problem: Problem) -> bool:
    """Whether the reference can learn it: it knows no bounds, no held-out examples and no bins of several values."""
    get = problem.get
    if get("early_stopping") or problem.Y.shape[1] < 1:
        return False
    if problem.kind == "numbers" and get("l2") != 0:
        return False  # there, the default rule is not regularised
    if problem.kind == "classes" and len(set(np.asarray(problem.y).tolist())) < 2:
        return False
    bins = get("max_bins")
    if isinstance(bins, int) and max(len(np.unique(c[~np.isnan(c)])) for c in problem.X.T) > bins:
        return False
    if problem.kind == "numbers":
        return True
    if get("class_weight") == "balanced":
        return False
    loss, head = find_loss(get("loss")), get("head")
    is_one = head == "single" or (isinstance(head, int) and head == 1 < problem.Y.shape[1])
    return loss.decomposable or is_one or get("search") == "exact"


def check_reference(problem: Problem, model: Any, tally: Tally) -> None:
    """The same rules, condition for condition."""
    if not reads_as_reference(problem):
        return
    tally.begin("reference")
    tally.counts["fits"] += 1
    get, Y = problem.get, problem.Y
    weight, label_weight = np.ones(len(Y)), None
    if problem.weight is not None:
        weight, label_weight = (problem.weight, None) if problem.weight.ndim == 1 else (weight, problem.weight)
    if np.isnan(Y).any():
        known = (~np.isnan(Y)).astype(float)
        label_weight = known if label_weight is None else known * label_weight
    class_weight = None if problem.kind == "numbers" else get("class_weight")
    if class_weight is not None:
        per_class = np.where(Y == 1, class_weight.get(1, 1), class_weight.get(0, 1))
        label_weight = per_class if label_weight is None else per_class * label_weight
    rows = weight > 0 if label_weight is None else (weight > 0) & label_weight.any(axis=1)
    mask = np.isin(np.arange(problem.X.shape[1]), problem.nominal)
    X = np.asarray(encode(problem.X, find_categories(problem.X, mask)))
    X, Y, weight = X[rows], np.nan_to_num(Y[rows]), weight[rows]
    binned = isinstance(get("max_bins"), int)
    if binned:  # to learn from bins is to learn from their numbers
        X = np.column_stack(
            [rank_values(column) if j not in problem.nominal else column for j, column in enumerate(X.T)]
        )
    label_weight = None if label_weight is None else label_weight[rows]
    scale = 1.0
    if problem.kind == "numbers":
        scale = 2.0 ** round(math.log2(spread)) if (spread := float(np.std(Y))) > 0 else 1.0
    n, (n_features, n_labels) = len(Y), (X.shape[1], Y.shape[1])
    sampling, fixed = get("sampling"), tuple(get("fixed_features") or ())
    strata: Any = ((), ())
    if get("bootstrap") and sampling != "with-replacement":
        strata = group_examples(Y.astype(np.uint8), sampling.removeprefix("stratified-"))
    setting = Setting(
        loss=squared_error if problem.kind == "numbers" else find_loss(get("loss")),
        head=get("head"),
        default_rule="minimum" if problem.kind == "numbers" else get("default_rule"),
        n_rules=get("n_rules"),
        learning_rate=get("learning_rate"),
        l1=get("l1"),
        l2=get("l2"),
        bootstrap=get("bootstrap"),
        n_samples=count_examples(find_max_samples(get("max_samples"), n), n, sampling == "with-replacement"),
        strata=strata,
        n_drawn_labels=count_labels(
            find_max_labels(get("max_labels"), get("head"), Examples(X, Y, weight, label_weight), {}, model.loss_),
            n_labels,
        ),
        n_drawn_features=count_features(find_max_features(get("max_features"), n, n_features), n_features - len(fixed)),
        fixed_features=fixed,
        nominal=problem.nominal,
        max_conditions=get("max_conditions"),
        min_coverage=get("min_coverage") if get("min_coverage") > 1 else 0.0,
        seed=model.training_facts_["seed"],
    )
    signs = Y / scale if problem.kind == "numbers" else 2 * Y - 1
    expected = learn_rules(X, signs, setting, weight, label_weight)
    compare_with_reference(model.rules_, expected, X, weight, scale, binned)
    as_paper = problem.kind == "labels" and setting.loss is example_wise_logistic and get("decode") == "loss"
    known_only = label_weight is None and problem.weight is None
    if as_paper and known_only and get("known_vectors") and get("calibration") is None:
        tally.begin("decoding")
        chosen = predict_example_wise(model.decision_function(problem.X), signs, setting.loss)
        np.testing.assert_array_equal(np.asarray(model.predict(problem.X)).astype(float), (chosen > 0).astype(float))


def rank_values(column: Array) -> Array:
    """The place of each value among the distinct ones; NaN stays."""
    values = np.unique(column[~np.isnan(column)])
    return np.where(np.isnan(column), np.nan, np.searchsorted(values, column).astype(float))


def compare_with_reference(
    rules: RuleEnsemble, expected: list[ReferenceRule], X: Array, weight: Array, scale: float, binned: bool
) -> None:
    found = as_reference_rules(rules)
    assert len(found) == len(expected), (len(found), len(expected))
    coverage = []
    n_rules = count_settled([rule.gain for rule in expected])
    for t, (a, b) in enumerate(zip(found[:n_rules], expected[:n_rules], strict=True)):
        if binned:
            assert [c[:2] for c in a.body] == [c[:2] for c in b.body], f"rule {t}: {a.body}, expected {b.body}"
        else:
            assert a.body == b.body, f"rule {t}: {a.body}, expected {b.body}"
        largest = max(float(np.abs(b.head).max()), 1e-3) * scale
        rtol = CLOSELY if a.body else 1e-5  # the default rule is a minimum, which may be flat
        np.testing.assert_allclose(a.head, b.head * scale, rtol=rtol, atol=1e-9 * largest, err_msg=f"head of {t}")
        np.testing.assert_allclose(
            a.gain, b.gain * scale**2, rtol=CLOSELY, atol=1e-9 * scale**2, err_msg=f"gain of {t}"
        )
        coverage.append(weight[covers(b.body, X)].sum())
    np.testing.assert_allclose(rules.coverage[:n_rules], coverage, err_msg="coverage")


# --- The same again ---------------------------------------------------------------------------------------------------


def check_again(problem: Problem, model: Any, tally: Tally) -> None:
    tally.begin("twice")
    again = fit(problem, tally)
    assert_same(again.rules_, model.rules_)
    assert_same_answers(again, model, problem.X)


def answers(model: Any, X: Any) -> list[Array]:
    """All that a model says of examples."""
    found = [plain(model.predict(X))]
    if isinstance(model, BoomerClassifier):
        found += [model.decision_function(X), model.predict_proba(X)]
    return found


def plain(values: Any) -> Any:
    return values.toarray() if sp.issparse(values) else np.asarray(values)


def assert_same_answers(model: Any, expected: Any, X: Any) -> None:
    for ours, theirs in zip(answers(model, X), answers(expected, X), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


# --- Forms in which a model is given away -----------------------------------------------------------------------------


def check_exports(problem: Problem, model: Any, rng: np.random.Generator, tally: Tally) -> None:
    X = disturb(problem.X, rng)
    scores = np.asarray(model._last_scores(X))
    assert np.isfinite(scores).all()
    tally.begin("JSON")
    model.save("model.json")
    assert_same_answers(load_model("model.json"), model, X)
    json.loads(Path("model.json").read_text(encoding="utf-8"))
    if rng.random() < 0.5:
        tally.begin("pickle")
        assert_same_answers(pickle.loads(pickle.dumps(model)), model, X)
    if rng.random() < 0.5:
        tally.begin("Python file")
        check_python(model, X, scores)
    if rng.random() < 0.2:
        tally.begin("ONNX")
        check_onnx(model, X, scores)
    tally.begin("text")
    assert str(model.rules_)
    if rng.random() < 0.05:
        tally.begin("page")
        assert "</html>" in model.to_html(X=X)
    if rng.random() < 0.05:
        tally.begin("explanation")
        explained = model.explain(X[:2])
        assert all(str(explanation) for explanation in explained)


def disturb(X: Array, rng: np.random.Generator) -> Array:
    """Examples to predict: some as they were learned from, some with missing, unseen or extreme values."""
    X = X.copy()
    X[rng.random(X.shape) < 0.1] = choose(rng, np.nan, 1e300, -1e300, 0.0, 12345.0)
    return X


def check_python(model: Any, X: Array, scores: Array) -> None:
    scorer: dict[str, Any] = {}
    exec(compile(model.to_python(), "model.py", "exec"), scorer)
    found = np.array([list(scorer["scores"](row).values()) for row in X.tolist()])
    np.testing.assert_array_equal(found, scores)
    if "predict" not in scorer:
        return
    expected = plain(model.predict(X))
    predicted = [scorer["predict"](row) for row in X.tolist()]
    if expected.ndim == 1:
        assert predicted == expected.tolist()
    else:
        np.testing.assert_array_equal([list(each.values()) for each in predicted], expected)


def check_onnx(model: Any, X: Array, scores: Array) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    graph = model.to_onnx().SerializeToString()
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    results = dict(zip(names, session.run(names, {"X": X}), strict=True))
    size = float(np.abs(scores).max(initial=1.0))
    np.testing.assert_allclose(results["scores"], scores, rtol=1e-12, atol=1e-12 * size)
    clear = (np.abs(scores) > 1e-9).all(axis=1)  # a sum in another order may change the sign of next to nothing
    if "labels" in results and model._find_decision().rule in ("sign", "odds"):
        np.testing.assert_array_equal(results["labels"][clear], plain(model.predict(X))[clear])
    if "probabilities" in results:
        np.testing.assert_allclose(results["probabilities"], model.predict_proba(X), rtol=1e-9, atol=1e-12)


def check_stages(problem: Problem, model: Any, tally: Tally) -> None:
    tally.begin("stages")
    X = problem.X
    last = None
    for n_rules, last in enumerate(model.staged_predict(X), 1):  # noqa: B007
        pass
    assert n_rules == len(model.rules_)
    np.testing.assert_array_equal(plain(last), plain(model.predict(X)))


# --- Containers -------------------------------------------------------------------------------------------------------


def stack_apart(X: Array) -> Any:
    wide = np.empty((2 * len(X), 3 * X.shape[1]))
    wide[::2, ::3] = X
    return wide[::2, ::3]


def freeze(X: Array) -> Any:
    X = X.copy()
    X.flags.writeable = False
    return X


def with_stored_zeros(X: Array) -> Any:
    """A CSR array that stores all entries, zeros too, each row backwards."""
    n, width = X.shape
    backwards = np.ascontiguousarray(X[:, ::-1]).ravel()
    return sp.csr_array((backwards, np.tile(np.arange(width)[::-1], n), np.arange(n + 1) * width), shape=X.shape)


def with_long_indices(X: Array) -> Any:
    M = sp.csr_array(X)
    M.indices, M.indptr = M.indices.astype(np.int64), M.indptr.astype(np.int64)
    return M


DENSE = {
    "list": lambda X: X.tolist(),
    "tuple of arrays": tuple,
    "Fortran order": np.asfortranarray,
    "strided": stack_apart,
    "read-only": freeze,
    "objects": lambda X: X.astype(object),
    "big-endian": lambda X: X.astype(">f8"),
    "pandas": lambda X: pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])], index=range(9, 9 + len(X))),
    "polars": lambda X: pl.DataFrame(X, schema=[f"f{j}" for j in range(X.shape[1])], orient="row"),
}
NARROW = {"float32": np.float32, "int64": np.int64, "int8": np.int8, "uint8": np.uint8, "bool": bool}
SPARSE = {
    "CSR": sp.csr_array,
    "CSR matrix": sp.csr_matrix,
    "CSC": sp.csc_array,
    "COO": sp.coo_array,
    "LIL": sp.lil_array,
    "DOK": sp.dok_array,
    "BSR": sp.bsr_array,
    "CSR with stored zeros": with_stored_zeros,
    "CSR with long indices": with_long_indices,
}


def fits_into(X: Array, kind: Any) -> bool:
    with np.errstate(all="ignore"):
        return np.array_equal(X.astype(kind).astype(np.float64), X, equal_nan=kind is np.float32)


def check_containers(problem: Problem, model: Any, rng: np.random.Generator, tally: Tally) -> None:
    X = problem.X
    name = choose(rng, *DENSE)
    tally.begin(f"container: {name}")
    assert_same(fit(problem, tally, DENSE[name](X)).rules_, model.rules_)
    for name, kind in NARROW.items():
        if fits_into(X, kind):
            tally.begin(f"container: {name}")
            other = fit(problem, tally, X.astype(kind))
            assert_same(other.rules_, model.rules_)
            assert_same_answers(other, model, X)
            break
    if isinstance(problem.get("max_bins"), int):
        return
    name = choose(rng, *SPARSE)
    tally.begin(f"container: {name}")
    other = fit(problem, tally, SPARSE[name](X))
    assert_same(other.rules_, model.rules_, CLOSELY)
    np.testing.assert_allclose(other._last_scores(X), model._last_scores(X), rtol=1e-6, atol=1e-9 * size_of(model))
    np.testing.assert_array_equal(other._last_scores(SPARSE[name](X)), other._last_scores(X))


def size_of(model: Any) -> float:
    return max(1.0, float(np.abs(model.rules_.head_scores).max(initial=0.0)))


# --- Steps, threads, orders -------------------------------------------------------------------------------------------


def check_steps(problem: Problem, model: Any, rng: np.random.Generator, tally: Tally) -> None:
    """Rules learned in several calls are those learned in one; fewer rules are the first of them."""
    n_rules = problem.get("n_rules")
    if n_rules < 2 or problem.get("early_stopping"):
        return
    some = int(rng.integers(1, n_rules))
    tally.begin("warm start")
    later = {} if problem.kind == "numbers" else {"calibration": problem.get("calibration")}
    begun = fit(problem, tally, n_rules=some, warm_start=True, **dict.fromkeys(later))
    assert_same(begun.rules_, model.rules_[:some].renumber())
    if rng.random() < 0.5:
        begun = pickle.loads(pickle.dumps(begun))
    tally.counts["fits"] += 1
    begun.set_params(n_rules=n_rules, **later).fit(problem.X, problem.y, problem.weight)
    assert_same(begun.rules_, model.rules_)
    assert_same_answers(begun, model, problem.X)
    tally.begin("callbacks")
    seen: list[int] = []
    told = fit(problem, tally, callbacks=lambda progress: seen.append(progress.n_rules))
    assert seen == list(range(1, n_rules + 1))
    assert_same(told.rules_, model.rules_)


def check_threads(problem: Problem, model: Any, tally: Tally) -> None:
    if isinstance(problem.get("max_bins"), int):
        tally.begin("threads")
        assert_same(fit(problem, tally, n_jobs=2).rules_, model.rules_)
    tally.begin("threads that predict")
    X = np.tile(problem.X, (50, 1))
    expected = model._last_scores(X)
    model.set_params(n_jobs=2)
    np.testing.assert_array_equal(model._last_scores(X), expected)
    model.set_params(n_jobs=None)


def check_orders(problem: Problem, model: Any, rng: np.random.Generator, tally: Tally) -> None:
    """The order of rows, and of columns and labels as far as gains go; weights are repetitions; units do not matter."""
    if not problem.nominal and np.nanmin(np.abs(problem.X), initial=1.0, where=problem.X != 0) > 1e-200:
        tally.begin("units")
        other = fit(problem, tally, problem.X / 4)
        assert_same(other.rules_, model.rules_, factor=0.25)
    if problem.get("bootstrap") or problem.get("early_stopping"):
        return
    order = rng.permutation(len(problem.X))
    tally.begin("order of rows")
    y = np.asarray(problem.y)
    weight = None if problem.weight is None else problem.weight[order]
    plainly = {name: value for name, value in problem.parameters.items() if name != "calibration"}  # that draws folds
    problem = replace(problem, parameters=plainly)
    moved = replace(problem, X=problem.X[order], y=y[order], weight=weight)
    assert_same(fit(moved, tally).rules_, model.rules_, CLOSELY)
    counts_rows = problem.parameters.get("class_weight") == "balanced"  # as scikit-learn does, whatever they weigh
    if weight is not None and weight.ndim == 1 and (weight == weight.round()).all() and not counts_rows:
        tally.begin("weights are repetitions")
        times = problem.weight.astype(int)  # type: ignore[union-attr]
        repeated = replace(problem, X=np.repeat(problem.X, times, axis=0), y=np.repeat(y, times, axis=0), weight=None)
        assert_same_rules_of_repetition(fit(repeated, tally).rules_, model.rules_)
    check_gains(problem, rng, tally)


def assert_same_rules_of_repetition(rules: RuleEnsemble, expected: RuleEnsemble) -> None:
    # an example of weight 0 still names its category, and its class
    if rules.categories == expected.categories and rules.label_names == expected.label_names:
        assert_same(rules, expected, CLOSELY)


def check_gains(problem: Problem, rng: np.random.Generator, tally: Tally) -> None:
    """The best condition has the same gain, whatever the order of features and labels."""
    if problem.kind == "classes" or not reads_as_reference(problem) or problem.get("max_labels") not in ("auto", None):
        return
    tally.begin("order of features and labels")
    simple = {"n_rules": 2, "max_conditions": 1, "max_features": None, "fixed_features": None, "max_bins": None}
    first = fit(problem, tally, **simple)
    features, labels = rng.permutation(problem.X.shape[1]), rng.permutation(problem.Y.shape[1])
    nominal = [int(np.flatnonzero(features == f)[0]) for f in problem.nominal]
    y = np.asarray(problem.y)
    weight = problem.weight
    moved = replace(
        problem,
        X=problem.X[:, features],
        y=y if y.ndim == 1 else y[:, labels],
        weight=weight if weight is None or weight.ndim == 1 else weight[:, labels],
        parameters={**problem.parameters, "categorical_features": nominal or None},
    )
    gains = fit(moved, tally, **simple).rules_.gain, first.rules_.gain
    np.testing.assert_allclose(gains[0], gains[1], rtol=1e-6, atol=1e-9 * max(1.0, float(np.abs(gains[1]).max())))


# --- What cannot be -------------------------------------------------------------------------------------------------

STRANGE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 10**30, -(2**40), 0.0, 0.5, 1.0, 1.5, -0.5, 1e308, math.inf, math.nan,
    "", "x", "multi", "log2", "auto", "loss", "top-0", "top-2", [], [0], [-1], [99], ["x"], (), {}, {"a": 1}, b"x",
    np.int64(3), np.float32(0.5), np.bool_(True), np.array([True]), np.array([0.5]), np.str_("single"), 1j, object(),
)  # fmt: skip


def check_refusals(problem: Problem, rng: np.random.Generator, tally: Tally) -> None:
    """A strange value of a parameter works or is refused by name; strange data are refused."""
    tally.begin("strange parameter")
    table = problem.make().parameter_table
    name = table[rng.integers(len(table))].name
    value = choose(rng, *STRANGE)
    if name == "n_rules" and isinstance(value, int) and value > 100:
        value = -value
    tally.doing = f"strange parameter {name}={value!r:.30}"
    try:
        fit(problem, tally, **{name: value, "n_rules": value if name == "n_rules" else 2})
    except (ValueError, TypeError) as error:
        named = name.split("_")[0] in str(error) or "features" in name or "early_stopping" in str(error)
        require(named, f"{name}={value!r} is not named by {error}")
    if rng.random() < 0.5:
        tally.begin("strange data")
        check_strange_data(problem, rng, tally)


def check_strange_data(problem: Problem, rng: np.random.Generator, tally: Tally) -> None:
    X, y, weight = problem.X.copy(), problem.y, problem.weight
    place = tuple(int(rng.integers(size)) for size in X.shape)
    kind = rng.integers(14)
    if kind == 0:
        X[place] = choose(rng, np.inf, -np.inf)
    elif kind == 1:
        X = X.astype(object)
        X[place] = choose(rng, "x", None, [1], {}, 10**400, b"1", 1j, pd.NA, pd.Timestamp(0), "nan", "1.5", object())
    elif kind == 2:
        X = X[: int(rng.integers(len(X)))]
    elif kind == 3:
        X = choose(
            rng, X[:, :0], X[:, None], X.ravel(), X[0, 0], [], [[]], None, "X", X + 0j, X.astype("M8[s]"), np.str_(X)
        )
    elif kind == 4:
        y = choose(rng, None, [], "y", 1, np.asarray(y)[:1], np.asarray(y)[..., None, None], [[]] * len(X), {})
    elif kind == 5:
        y = np.asarray(y).astype(object)
        y[tuple(int(rng.integers(size)) for size in y.shape)] = choose(
            rng, None, "x", 2, -1, 0.5, np.inf, 10**400, [], 1j
        )
    elif kind == 6:
        weight = choose(
            rng, -np.ones(len(X)), np.zeros(len(X)), np.full(len(X), np.nan), np.ones(3), "w", 1.0, [[1]], -1
        )
    elif kind == 7:
        weight = np.ones(len(X)) * choose(rng, 1e-300, 1e-30, 1e30, 1e90)
    elif kind == 8:
        X = np.ma.masked_array(X, rng.random(X.shape) < 0.1)
    elif kind == 9:
        X = pd.DataFrame(X).astype(choose(rng, "category", "string", "Float64", object))
    elif kind == 10:
        X = pd.DataFrame(
            X, columns=choose(rng, ["x"] * X.shape[1], [(1, j) for j in range(X.shape[1])], [None] * X.shape[1])
        )
    elif kind == 11:
        X = X * choose(rng, 1e308, 1e-308, 1e-320)
        X[~np.isfinite(X)] = 0
    elif kind == 12:
        X = X.astype(choose(rng, np.float16, np.longdouble, ">f4", "U8", "S8"))
    else:
        y = sp.csr_array(np.nan_to_num(np.asarray(problem.Y)))
    try:
        tally.counts["fits"] += 1
        with np.errstate(all="ignore"):
            model = problem.make(n_rules=2).fit(X, y, weight)
    except (ValueError, TypeError) as error:
        require(str(error) != "", f"{type(error).__name__} without a message")
        return
    plain(model.predict(X))
