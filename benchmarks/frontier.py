"""How good can a model of 50, 100, 200 or 500 conditions be: cut, refitted, distilled, and by the peers?

Results are kept, one line each; a later run computes what is missing. A peer that is not installed is skipped.

    python benchmarks/frontier.py --results frontier.jsonl --write docs/results/frontier.md \\
        --figure docs/images/frontier.png
"""

import argparse
import json
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from common import REPEAT, Split, describe_machine, fit_official, format_table, load_split, publish
from sklearn.tree import DecisionTreeClassifier

from pyboomer import BoomerClassifier
from pyboomer.editing import refit_heads, replace_rules
from pyboomer.editing.distilling import _distil
from pyboomer.editing.edits import read_for

DATA = ("emotions", "birds", "scene", "yeast", "medical", "slashdot", "enron", "llog")
BUDGETS = (50, 100, 200, 500)
MEASURES = ("hamming", "subset")
LIMIT = 60  # seconds of the processor for a model; one that takes longer has no result, and larger ones neither


class Found(NamedTuple):
    """Predictions of test examples for each measure, and the conditions of the model behind them."""

    labels: dict[str, np.ndarray]
    conditions: int


# --- Peers ------------------------------------------------------------------------------------------------------------


def dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def share(budget: int, Y: np.ndarray) -> list[int]:
    """The conditions of each label: equal shares, and what is left over to the most frequent ones."""
    n_labels = Y.shape[1]
    shares = np.full(n_labels, budget // n_labels)
    shares[np.argsort(-Y.sum(axis=0), kind="stable")[: budget % n_labels]] += 1
    return shares.tolist()


def learn_each(learn: Callable[..., tuple[Any, int]], split: Split, budget: int, seed: int) -> Found:
    """A model for each label; one without conditions predicts the majority."""
    X, X_test = dense(split.X), dense(split.X_test)
    predicted, used = np.zeros(split.Y_test.shape, dtype=np.uint8), 0
    for k, size in enumerate(share(budget, split.Y)):
        y = split.Y[:, k]
        if size == 0 or y.min() == y.max():
            predicted[:, k] = y.mean() > 0.5
            continue
        predict, conditions = learn(X, y, size, seed)
        predicted[:, k] = np.asarray(predict(X_test)) > 0.5
        used += conditions
    return Found(dict.fromkeys(MEASURES, predicted), used)


def grow_tree(split: Split, budget: int, seed: int) -> Found:
    tree = DecisionTreeClassifier(max_leaf_nodes=budget + 1, random_state=seed).fit(dense(split.X), split.Y)
    predicted = np.asarray(tree.predict(dense(split.X_test)))
    return Found(dict.fromkeys(MEASURES, predicted), tree.get_n_leaves() - 1)


def grow_small_tree(X: np.ndarray, y: np.ndarray, size: int, seed: int) -> tuple[Any, int]:
    tree = DecisionTreeClassifier(max_leaf_nodes=size + 1, random_state=seed).fit(X, y)
    return tree.predict, tree.get_n_leaves() - 1


def fit_ebm(X: np.ndarray, y: np.ndarray, size: int, seed: int) -> tuple[Any, int]:
    """The features of the largest F statistic, three steps each, or as many as they have values, within the budget."""
    from interpret.glassbox import ExplainableBoostingClassifier
    from sklearn.feature_selection import f_classif

    steps = min(3, size)
    with np.errstate(divide="ignore", invalid="ignore"):
        ranked = np.argsort(-np.nan_to_num(f_classif(X, y)[0]), kind="stable")[:size]
    costs = np.array([min(steps, len(np.unique(X[:, feature])) - 1) for feature in ranked])
    best = ranked[np.cumsum(costs) <= size]
    model = ExplainableBoostingClassifier(
        interactions=0, max_bins=steps + 3, outer_bags=4, random_state=seed, n_jobs=1
    ).fit(X[:, best], y)
    used = sum(len(levels[0]) for levels in model.bins_ if not isinstance(levels[0], dict))
    return lambda test: model.predict(test[:, best]), used


def fit_figs(X: np.ndarray, y: np.ndarray, size: int, seed: int) -> tuple[Any, int]:
    from imodels import FIGSClassifier

    model = FIGSClassifier(max_rules=size, random_state=seed).fit(X, y)
    return model.predict, int(model.complexity_)


def fit_boosted_rules(X: np.ndarray, y: np.ndarray, size: int, seed: int) -> tuple[Any, int]:
    from imodels import BoostedRulesClassifier

    model = BoostedRulesClassifier(n_estimators=size, random_state=seed).fit(X, y)
    return model.predict, len(model.estimators_)


def fit_rulefit(X: np.ndarray, y: np.ndarray, size: int, seed: int) -> tuple[Any, int]:
    """As many rules as have no more conditions together; fewer are asked for until that is so."""
    from imodels import RuleFitClassifier

    n_rules = size
    while True:
        model = RuleFitClassifier(max_rules=n_rules, tree_size=3, include_linear=False, random_state=seed, cv=False)
        model.fit(X, y)
        used = sum(str(rule).count(" and ") + 1 for rule, c in zip(model.rules_, _weights(model), strict=False) if c)
        if used <= size or n_rules == 1:
            return model.predict, used
        n_rules = max(1, min(n_rules - 1, int(n_rules * size / used)))


def _weights(model: Any) -> Sequence[float]:
    return list(np.ravel(model.coef))[-len(model.rules_) :] if len(model.rules_) else []


def learn_official(split: Split, budget: int, seed: int, max_conditions: int | None) -> Found:
    """mlrl-boomer, for each measure by the loss that is meant for it; its first rules within the budget."""
    from mlrl.boosting import BoomerClassifier as OfficialClassifier
    from mlrl.common.cython.rule_model import EmptyBody

    X = sp.csc_matrix(split.X, dtype=np.float32) if sp.issparse(split.X) else np.asfortranarray(split.X, np.float32)
    X_test = sp.csr_matrix(split.X_test, dtype=np.float32) if sp.issparse(split.X) else split.X_test.astype(np.float32)
    labels, used = {}, []
    for measure, loss in ("hamming", "logistic-decomposable"), ("subset", "logistic-non-decomposable"):
        n_rules = budget + 1
        while True:
            limit = (
                {}
                if max_conditions is None
                else {"rule_induction": f"top-down-greedy{{max_conditions={max_conditions}}}"}
            )
            model = OfficialClassifier(
                loss=loss,
                head_type="complete",
                max_rules=n_rules,
                default_rule="true",
                random_state=seed,
                parallel_rule_refinement="false",
                parallel_statistic_update="false",
                parallel_prediction="false",
                **limit,
            )
            model = fit_official(model, X, split.Y.astype(np.uint32), split.nominal)
            sizes = [0 if isinstance(rule.body, EmptyBody) else sum(1 for _ in rule.body) for rule in model.model_]
            fits = int((np.cumsum(sizes) <= budget).sum())
            if fits == len(sizes):
                break
            n_rules = fits
        predicted = model.predict(X_test)
        labels[measure] = np.asarray(predicted.toarray() if sp.issparse(predicted) else predicted)
        used.append(sum(sizes))
    return Found(labels, max(used))


# --- Ours -------------------------------------------------------------------------------------------------------------


@cache
def fit_whole(data: str, seed: int) -> BoomerClassifier:
    split = load_once(data, seed)
    nominal = split.nominal or None
    return BoomerClassifier(random_state=seed, n_jobs=1, categorical_features=nominal).fit(split.X, split.Y)


@cache
def distil_all(data: str, seed: int) -> dict[int, BoomerClassifier]:
    """A model for each budget, as `size_curve` makes them: rules are chosen once, the best first."""
    split, whole = load_once(data, seed), fit_whole(data, seed)
    models = _distil(whole, read_for(whole, split.X, split.Y), BUDGETS, by_rules=False)
    return dict(zip(BUDGETS, models, strict=True))


def make_smaller(split: Split, budget: int, seed: int, how: str) -> Found:
    whole = fit_whole(split.name, seed)
    rules = whole.rules_
    if how == "distilled":
        model = distil_all(split.name, seed)[budget]
    else:
        model = replace_rules(whole, rules[: int((rules.condition_offsets[1:] <= budget).sum())])
        if how == "refitted":
            model = refit_heads(model, split.X, split.Y)
    labels = {measure: model.predict(split.X_test, decode=measure) for measure in MEASURES}
    return Found(labels, len(model.rules_.condition_features))


OURS = {how: partial(make_smaller, how=how) for how in ("cut", "refitted", "distilled")}
PEERS = {
    "CART": grow_tree,
    "a tree per label": partial(learn_each, grow_small_tree),
    "FIGS per label": partial(learn_each, fit_figs),
    "boosted rules per label": partial(learn_each, fit_boosted_rules),
    "RuleFit per label": partial(learn_each, fit_rulefit),
    "EBM per label": partial(learn_each, fit_ebm),
    "mlrl-boomer": partial(learn_official, max_conditions=None),
    "mlrl-boomer, 1 condition": partial(learn_official, max_conditions=1),
}
METHODS = OURS | PEERS
load_once = cache(load_split)

# --- Running ----------------------------------------------------------------------------------------------------------


class TooLong(Exception):
    """A model has taken longer than it may."""


@contextmanager
def limit_time(seconds: int) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def measure(method: str, data: str, seed: int, budget: int, limit: int) -> dict[str, Any]:
    """Test losses in percent, or why there are none."""
    split = load_once(data, seed)
    start = time.process_time()
    try:
        with limit_time(limit), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = METHODS[method](split, budget, seed)
    except TooLong:
        return {"fault": f"more than {limit} s"}
    except ModuleNotFoundError:
        raise
    except Exception as error:
        return {"fault": f"{type(error).__name__}: {error}"[:200]}
    losses = {name: split.measure(found.labels[name])[name] for name in MEASURES}
    return losses | {"conditions": int(found.conditions), "seconds": round(time.process_time() - start, 2)}


Key = tuple[str, str, int, int]


def read_results(path: Path) -> dict[Key, dict[str, Any]]:
    rows = map(json.loads, path.read_text().splitlines()) if path.exists() else []
    return {(row["method"], row["data"], row["seed"], row["budget"]): row for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--write", type=Path, help="the page to write")
    parser.add_argument("--figure", type=Path, help="the picture to write, for the page")
    parser.add_argument("--report", action="store_true", help="compute nothing, only report what is there")
    parser.add_argument("--datasets", nargs="*", default=DATA)
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=[*METHODS])
    parser.add_argument("--budgets", nargs="*", type=int, default=BUDGETS)
    parser.add_argument("--seeds", nargs="*", type=int, default=[1, 2, 3])
    parser.add_argument("--limit", type=int, default=LIMIT, help="seconds for a model (%(default)s)")
    options = parser.parse_args()
    kept, absent = read_results(options.results), set()
    kept = {key: row for key, row in kept.items() if key[2] in options.seeds}
    todo = [] if options.report else product(options.seeds, options.methods, options.datasets, options.budgets)
    for seed, method, data, budget in todo:
        if (method, data, seed, budget) in kept or method in absent:
            continue
        smaller = [kept.get((method, data, seed, b), {}).get("fault", "") for b in options.budgets if b < budget]
        try:
            late = next((fault for fault in smaller if fault.startswith("more than")), None)
            row = {"fault": late} if late else measure(method, data, seed, budget, options.limit)
        except ModuleNotFoundError as error:
            print(f"*{method}: {error}: skipped*", flush=True)
            absent.add(method)
            continue
        row = {"method": method, "data": data, "seed": seed, "budget": budget, **row}
        kept[method, data, seed, budget] = row
        with options.results.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)
    publish(describe_results(kept, options.figure), options.write)
    if options.figure:
        draw(kept, options.figure)


# --- Reporting --------------------------------------------------------------------------------------------------------


def find_losses(kept: dict[Key, dict[str, Any]], method: str, data: str, budget: int, name: str) -> dict[int, float]:
    """The loss of each seed."""
    return {s: row[name] for (m, d, s, b), row in kept.items() if (m, d, b) == (method, data, budget) and name in row}


def average(kept: dict[Key, dict[str, Any]], method: str, data: str, budget: int, name: str) -> float:
    """The mean over the seeds, NaN if there is none."""
    losses = find_losses(kept, method, data, budget, name)
    return float(np.mean([*losses.values()])) if losses else float("nan")


def describe_results(kept: dict[Key, dict[str, Any]], figure: Path | None) -> list[str]:
    """The page: how often the distilled model is better, then every figure."""
    methods = [method for method in METHODS if any(key[0] == method for key in kept)]
    lines = [
        "# Small models",
        "",
        f"{REPEAT}`python benchmarks/frontier.py --results FILE`. Two thirds of the examples train.",
        "",
        "- **Counting.** A condition is a test that somebody has to read. An inner node of a tree counts once, however "
        "many paths lead through it; that is kind to trees. Each step of a shape function of an EBM counts. Heads of "
        "rules and values of leaves are free.",
        "- **One label at a time.** Such peers share the budget equally; what is left over goes to the most frequent "
        "labels.",
        f"- **Ours.** All small models are made of the {BoomerClassifier().n_rules} rules of the default. One model is "
        "decoded for each measure. The distilled ones of a data set come from one selection, as in `size_curve`.",
        "- **Peers.** mlrl-boomer learns a model for each measure: with logistic-decomposable for the Hamming loss, "
        "with logistic-non-decomposable for the subset 0/1 loss. EBM gets the features of the largest F statistic, "
        "three steps each.",
        f"- **Time.** A model may take {LIMIT} s of the processor. If it takes longer, it has no figure, and larger "
        "ones are not tried. A dash: not measured.",
        "",
        "; ".join(
            f"{key} {value}" for key, value in describe_machine(("interpret-core", "imodels", "mlrl-boomer")).items()
        ),
        "",
    ]
    if figure:
        lines += [f"![Loss against conditions](../images/{figure.name})", ""]
    winner = "distilled"
    lines += [
        "## How often the distilled model is better",
        "",
        f"On so many data sets, the *{winner}* model has the lower loss: by Hamming loss, then by subset 0/1 loss. "
        "Data sets count if both have a figure; means are over the seeds that both have.",
        "",
    ]
    rows = []
    for method in methods:
        if method == winner:
            continue
        cells = []
        for budget in BUDGETS:
            counts = []
            for name in MEASURES:
                pairs = [[find_losses(kept, m, data, budget, name) for m in (winner, method)] for data in DATA]
                gaps = [np.mean([b[s] - a[s] for s in a.keys() & b.keys()]) for a, b in pairs if a.keys() & b.keys()]
                counts.append(f"{sum(gap > 0 for gap in gaps)} of {len(gaps)}")
            cells.append(", ".join(counts))
        rows.append([method, *cells])
    lines += [format_table(["than", *(f"{budget} conditions" for budget in BUDGETS)], rows), ""]
    for budget in BUDGETS:
        lines += [f"## {budget} conditions", ""]
        lines += ["A cell shows Hamming loss / subset 0/1 loss in percent, as means over the seeds.", ""]
        rows = []
        for method in methods:
            cells = [[average(kept, method, data, budget, name) for name in MEASURES] for data in DATA]
            rows.append([method, *("-" if h != h else f"{h:.2f} / {s:.1f}" for h, s in cells)])
        lines += [format_table(["", *DATA], rows), ""]
    seeds = {method: sorted({key[2] for key in kept if key[0] == method}) for method in methods}
    lines += ["Seeds: " + "; ".join(f"{method} {', '.join(map(str, s))}" for method, s in seeds.items()) + "."]
    faults = sorted({(m, d, b, row["fault"]) for (m, d, _, b), row in kept.items() if "fault" in row})
    if faults:
        missing = "; ".join(f"{m}, {d}, {b} conditions: {fault}" for m, d, b, fault in faults)
        lines += ["", f"These have no figure: {missing}."]
    return lines


def draw(kept: dict[Key, dict[str, Any]], path: Path) -> None:
    """A panel for each data set and measure: loss against conditions."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    bold = {"distilled": ("#0072b2", "o", "-"), "cut": ("#d55e00", "s", "--")}
    methods = [method for method in METHODS if any(key[0] == method for key in kept)]
    figure, axes = plt.subplots(4, 4, figsize=(13, 11), layout="constrained")
    markers = "^v<>DPX*hpd"
    for (i, data), (j, name) in product(enumerate(DATA), enumerate(MEASURES)):
        ax = axes[2 * (i // 4) + j, i % 4]
        for n, method in enumerate(methods):
            values = [average(kept, method, data, budget, name) for budget in BUDGETS]
            color, marker, line = bold.get(method, (f"C{n % 10}", markers[n % len(markers)], ":"))
            strong = method in bold
            ax.plot(
                BUDGETS,
                values,
                color=color,
                marker=marker,
                linestyle=line,
                label=method,
                markersize=5 if strong else 4,
                linewidth=2.2 if strong else 1,
                alpha=1 if strong else 0.75,
                zorder=3 if strong else 2,
            )
        ax.set_xscale("log")
        ax.set_xticks(BUDGETS, map(str, BUDGETS))
        ax.minorticks_off()
        ax.set_title(f"{data}: {'Hamming' if name == 'hamming' else 'subset 0/1'} loss, %", fontsize="small")
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize="small")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize="small")
    for ax in axes[-1]:
        ax.set_xlabel("conditions of the model", fontsize="small")
    figure.savefig(path, dpi=80)


if __name__ == "__main__":
    main()
