"""Does pyboomer predict better than every other multi-label learner, by each of the three measures?

Eight data sets, `KFold(10, shuffle=True, random_state=seed)`, any of its folds; every system is decoded for each
measure. What is learned is kept, a file for each system, data set, seed and fold; a later run computes what is missing.

    python benchmarks/win_every_column.py run --results FOLDER --seeds 1 2 3 --folds 0 1 2
    python benchmarks/win_every_column.py report --results FOLDER --write docs/results/win-every-column.md
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import LONG, describe_machine, format_table, is_installed, publish
from peers import (
    BOOMER_GRID,
    FOREST_GRID,
    FORESTS,
    KNN_GRID,
    TREE_GRID,
    USUAL,
    Fit,
    decode_all,
    fit_boomer,
    fit_catboost,
    fit_chain,
    fit_chains,
    fit_forest,
    fit_knn,
    fit_powerset,
    fit_rakel,
    fit_relevance,
    fit_stopped,
    know,
    tune,
)
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from pyboomer import BoomerClassifier
from pyboomer.datasets import Dataset, load_dataset
from pyboomer.experiments import MEASURES, Comparison, compare
from pyboomer.experiments.baselines import prepare_features
from pyboomer.experiments.plots import CriticalDifferenceDisplay, import_pyplot, save_figure
from pyboomer.experiments.reports import ALPHAS, round_digits
from pyboomer.experiments.store import Outcome, Store
from pyboomer.losses.joint import ALPHA
from pyboomer.predicting.decoding import decode_by_probability, find_label_vectors

DATA = ("emotions", "birds", "scene", "yeast", "medical", "slashdot", "enron", "llog")
OURS: dict[str, dict[str, Any]] = {
    "default": {},
    "joint": {"loss": "joint-logistic", "default_rule": "newton", **LONG},
    "joint, 4 conditions": {"loss": "joint-logistic", "default_rule": "newton", **LONG, "max_conditions": 4},
    "example-wise": {"loss": "example-wise-logistic", **LONG},
    "label-wise": {"loss": "label-wise-logistic", **LONG},
}  # everything else as it is by default
OWN = "own"  # how ours are decoded: by `decode=` for the measure
# How much the decoding of ours takes into account how often label vectors occur, see `report_frequencies`.
BETAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
LIMIT = 40.0  # CPU seconds of one fit, or of the search for settings


class Part(NamedTuple):
    """A data set in two parts; X as the peers want it."""

    data: Dataset
    train: np.ndarray
    test: np.ndarray
    X: Any

    @property
    def Y(self) -> np.ndarray:
        """The labels to learn from."""
        return np.asarray(self.data.Y[self.train])


Learned = tuple[dict[str, dict[str, np.ndarray]], dict[str, Any]]  # labels by measure and decoding, and facts


def learn_ours(part: Part, seed: int, settings: dict[str, Any]) -> Learned:
    data = part.data
    nominal = list(data.nominal_features) or None
    model = BoomerClassifier(**settings, categorical_features=nominal, random_state=seed)
    model.fit(data.X[part.train], part.Y)
    labels = {name: {OWN: model.predict(data.X[part.test], decode=name)} for name in MEASURES}
    vectors, information, head_start = inform(part.Y)
    scores = model.decision_function(data.X[part.test])
    known = head_start if model.loss_.name == "joint-logistic" else 0.0
    labels["subset"] |= {
        f"beta={beta:g}": decode_by_probability(scores, vectors, known + beta * information) for beta in BETAS
    }
    return labels, {}


def inform(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The known label vectors; by how much each is more frequent than if labels were independent, as a logarithm.

    And what the joint loss gives each besides its labels.
    """
    vectors, counts = find_label_vectors(Y.astype(np.uint8), np.ones(len(Y)))
    p, frequency = Y.mean(axis=0), np.log(counts / len(Y))
    return vectors, frequency - np.log(np.where(vectors == 1, p, 1 - p)).sum(axis=1), ALPHA * frequency


def learn_peer(part: Part, seed: int, fit: Fit) -> Learned:
    fitted = fit(part.X[part.train], part.Y, None, seed)
    labels = decode_all(fitted.predict(part.X[part.test]), know(part.Y))
    return dict.fromkeys(MEASURES, labels), {**fitted.found, "cut": fitted.cut}


def learn_tuned(part: Part, seed: int, fit: Fit, grid: Sequence[dict[str, Any]]) -> Learned:
    models, facts = tune(fit, grid, part.X[part.train], part.Y, seed, LIMIT)
    known = know(part.Y)
    return {name: decode_all(model.predict(part.X[part.test]), known) for name, model in models.items()}, facts


def learn_boomer(part: Part, seed: int) -> Learned:
    fit = partial(fit_boomer, nominal=[int(i) for i in part.data.nominal_features])
    return learn_tuned(part, seed, fit, BOOMER_GRID)


def learn_chains(part: Part, seed: int) -> Learned:
    fit = partial(fit_chains, rounds=[30] * part.Y.shape[1], limit=LIMIT / 5, **{**USUAL, "rate": 0.2})
    return learn_peer(part, seed, fit)


REDUCTIONS = {"BR": fit_relevance, "LP": fit_powerset, "CC": fit_chain}
SYSTEMS: dict[str, Callable[[Part, int], Learned]] = {
    **{name: partial(learn_ours, settings=settings) for name, settings in OURS.items()},
    "ML-kNN": partial(learn_tuned, fit=fit_knn, grid=KNN_GRID),
    **{
        name: partial(learn_tuned, fit=partial(fit_forest, kind=kind), grid=FOREST_GRID)
        for name, kind in FORESTS.items()
    },
    **{
        f"XGBoost {name}": partial(learn_peer, fit=partial(fit_stopped, fit=fit, limit=LIMIT, **USUAL))
        for name, fit in REDUCTIONS.items()
    },
    "RAkEL": partial(learn_peer, fit=fit_rakel),
    "CatBoost": partial(learn_peer, fit=partial(fit_stopped, fit=fit_catboost, limit=LIMIT)),
    "mlrl-boomer": learn_boomer,
    **{
        f"XGBoost {name}, tuned": partial(learn_tuned, fit=partial(fit, limit=LIMIT / 2), grid=TREE_GRID)
        for name, fit in REDUCTIONS.items()
    },
    "chains": learn_chains,
}  # the cheapest first
PEERS = [name for name in SYSTEMS if name not in OURS]
NEEDED = {"CatBoost": "catboost", "mlrl-boomer": "mlrl-boomer"}  # packages
WHAT = {
    "ML-kNN": "Zhang and Zhou, 2007; 5 to 40 neighbours, plain, standardised or by angle",
    "random forest": "scikit-learn's, 200 trees with all labels in each leaf; features per split tuned",
    "extra trees": "likewise",
    "XGBoost BR": "a booster per label: rate 0.1, all else as XGBoost has it, stopped early by a tenth of the examples",
    "XGBoost LP": "one booster, the classes are label vectors; likewise",
    "XGBoost CC": "a booster per label that sees the labels before it, in a random order; likewise",
    "XGBoost ..., tuned": "six settings of rate, depth, least weight of a leaf, and draws of examples and features; "
    "rounds by early stopping; then fitted to all training examples",
    "RAkEL": "2K random sets of three labels, a random forest of 30 trees for each",
    "CatBoost": "`MultiLogloss`, rate 0.1, stopped early by a tenth of the examples",
    "mlrl-boomer": "complete heads, 1000 rules, both logistic losses at the rates 0.1 and 0.3; its own predictors, too",
    "chains": "an ensemble of ten classifier chains of XGBoost, 30 rounds at 0.2, each of a bootstrap",
}

# --- Running ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=len(DATA))
def load(name: str) -> tuple[Dataset, Any]:
    data = load_dataset(name)
    return data, prepare_features(data.X)


def split(name: str, seed: int, fold: int) -> Part:
    data, X = load(name)
    train, test = list(KFold(10, shuffle=True, random_state=seed).split(data.Y))[fold]
    return Part(data, train, test, X)


@cache
def compile_ours(name: str, data: str) -> None:
    """Learn a few rules, so that compiling is not counted."""
    learn_ours(split(data, 1, 0), 1, {**OURS[name], "n_rules": 5})


def name_task(system: str, data: str, seed: int, fold: int) -> str:
    return f"{data}/{system}/seed={seed} fold={fold}of10"


def do_task(system: str, data: str, seed: int, fold: int) -> Outcome:
    if system in OURS:
        compile_ours(system, data)
    part = split(data, seed, fold)
    start = time.process_time()
    learned, facts = SYSTEMS[system](part, seed)
    facts["cpu"] = round(time.process_time() - start, 2)
    facts["stages"] = [[measure, decoding] for measure, labels in learned.items() for decoding in labels]
    stages = [np.asarray(each, dtype=bool) for labels in learned.values() for each in labels.values()]
    return Outcome(np.stack(stages), facts)


def run(args: argparse.Namespace) -> None:
    threadpool_limits(1)
    store = Store(args.results)
    systems = [name for name in args.systems if name not in NEEDED or is_installed(NEEDED[name])]
    for seed in args.seeds:
        for system in systems:
            for fold in args.folds:
                for data in args.data:
                    key = name_task(system, data, seed, fold)
                    with store.claim(key) as is_ours:
                        if is_ours:
                            try:
                                outcome = do_task(system, data, seed, fold)
                            except Exception as error:  # a peer's: the others go on, and this one is missing
                                print(key, f"failed: {error!r}", flush=True)
                                continue
                            store.write(key, outcome)
                            print(key, f"{outcome.facts['cpu']:.1f} s", flush=True)


# --- Reporting --------------------------------------------------------------------------------------------------------

Cell = tuple[int, int]  # seed and fold


class Results:
    """What the store has: for data set, system and cell the loss of each test example, by measure and decoding."""

    def __init__(self, store: Store, args: argparse.Namespace) -> None:
        self.losses: dict[tuple[str, str], dict[Cell, dict[tuple[str, str], np.ndarray]]] = {}
        self.facts: dict[tuple[str, str], list[dict[str, Any]]] = {}
        cells = [(seed, fold) for seed in args.seeds for fold in args.folds]
        for data in args.data:
            for system in args.systems:
                found = self.losses[data, system] = {}
                for seed, fold in cells:
                    key = name_task(system, data, seed, fold)
                    if store.has(key):
                        outcome = store.read(key)
                        true = np.asarray(load(data)[0].Y)[split(data, seed, fold).test] == 1
                        found[seed, fold] = {
                            (measure, decoding): MEASURES[measure].as_loss(MEASURES[measure](true, labels))
                            for (measure, decoding), labels in zip(outcome.facts["stages"], outcome.labels, strict=True)
                        }
                        self.facts.setdefault((data, system), []).append(outcome.facts)
        self.data = tuple(args.data)
        self.systems = [
            system for system in args.systems if all(len(self.losses[data, system]) >= args.least for data in self.data)
        ]
        # ranks are those of the same examples: the cells that all systems have
        self.cells = {
            data: sorted(set.intersection(*(set(self.losses[data, system]) for system in self.systems)))
            for data in self.data
        }
        self.decodings = {
            (system, measure): self._choose(system, measure) for system in self.systems for measure in MEASURES
        }

    def _choose(self, system: str, measure: str) -> str:
        """The decoding that was best by this measure, over all data sets: in hindsight, to the benefit of peers."""
        if system in OURS:
            return OWN
        first = self.losses[self.data[0], system][self.cells[self.data[0]][0]]
        names = [decoding for found, decoding in first if found == measure]
        means = {
            decoding: np.mean([np.mean(self._list(data, system, measure, decoding)) for data in self.data])
            for decoding in names
        }
        return min(names, key=lambda name: means[name])

    def _list(self, data: str, system: str, measure: str, decoding: str) -> np.ndarray:
        return np.concatenate([self.losses[data, system][cell][measure, decoding] for cell in self.cells[data]])

    def rate(self, data: str, system: str, measure: str) -> np.ndarray:
        """The mean loss in percent of each example tested: over the seeds, if it was tested several times."""
        values = 100 * self._list(data, system, measure, self.decodings[system, measure])
        tested = np.concatenate([split(data, *cell).test for cell in self.cells[data]])
        _, who, times = np.unique(tested, return_inverse=True, return_counts=True)
        return np.bincount(who, weights=values) / times

    def compare(self, measure: str, systems: Sequence[str]) -> Comparison:
        values = [[self.rate(data, system, measure).mean() for system in systems] for data in self.data]
        return compare(np.array(values), tuple(systems))


def describe(values: np.ndarray) -> tuple[float, float]:
    """A mean and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def tabulate(results: Results, measure: str) -> str:
    """A row for each system: its mean and standard error on each data set, and the average rank."""
    kind, digits = MEASURES[measure], round_digits(measure)
    comparison = results.compare(measure, results.systems)
    average = dict(zip(comparison.names, comparison.average_ranks, strict=True))
    means = {
        (data, system): describe(results.rate(data, system, measure))
        for data in results.data
        for system in results.systems
    }
    least = {data: min(means[data, system][0] for system in results.systems) for data in results.data}
    rows = []
    for system in sorted(results.systems, key=lambda name: average[name]):
        cells = []
        for data in results.data:
            mean, error = means[data, system]
            shown = f"{100 - mean if kind.larger_is_better else mean:.{digits}f}"
            cells.append(f"{f'**{shown}**' if mean == least[data] else shown} ± {error:.{digits}f}")
        rows.append([f"**{system}**" if system in OURS else system, f"{average[system]:.2f}", *cells])
    return format_table([f"{kind.title} (%)", "rank", *results.data], rows)


def test_significance(results: Results, measure: str, ours: str) -> str:
    """Both tests in a sentence, and whom the one of ours differs from."""
    comparison = results.compare(measure, results.systems)
    distances = " / ".join(f"{comparison.critical_distance(alpha):.2f}" for alpha in ALPHAS)
    levels = " / ".join(f"{alpha:g}" for alpha in ALPHAS)
    others = [name for name in results.systems if name != ours and comparison.differ(ours, name, ALPHAS[-1])]
    return (
        f"Friedman: p = {comparison.p_value:.2g}. Nemenyi: critical distances {distances} at α = {levels}; at "
        f"{ALPHAS[-1]:g}, {ours} differs from {', '.join(others) or 'none'}."
    )


def rank_alone(results: Results) -> str:
    """Each setting of ours alone among the peers."""
    peers = [name for name in results.systems if name in PEERS]
    rows = []
    for ours in (name for name in results.systems if name in OURS):
        cells = []
        for measure in MEASURES:
            comparison = results.compare(measure, [ours, *peers])
            own, others = comparison.average_ranks[0], comparison.average_ranks[1:]
            place = 1 + int((others < own).sum())
            cells.append(f"{own:.2f}, place {place} (best peer: {peers[others.argmin()]}, {others.min():.2f})")
        rows.append([ours, *cells])
    return format_table([f"average rank of {1 + len(peers)}", *(m.title for m in MEASURES.values())], rows)


def compare_powerset(results: Results) -> str:
    """By how much each setting of ours is behind label powerset on subset 0/1 loss, example by example."""
    against = [name for name in ("XGBoost LP", "XGBoost LP, tuned") if name in results.systems]
    rows = []
    for ours in (name for name in results.systems if name in OURS):
        for other in against:
            cells = []
            for data in results.data:
                mean, error = describe(results.rate(data, ours, "subset") - results.rate(data, other, "subset"))
                shown = f"{mean:+.1f} ± {error:.1f}"
                cells.append(f"**{shown}**" if mean > error else shown)
            rows.append([f"{ours} - {other}", *cells])
    return format_table(["subset 0/1 loss, difference", *results.data], rows)


def tell_cost(results: Results, data: str, system: str) -> str:
    """CPU seconds per model; a star if boosters were cut; how many settings were tried, if not all were."""
    facts = results.facts[data, system]
    shown = f"{np.mean([each['cpu'] for each in facts]):.1f}" + "\\*" * any(each.get("cut") for each in facts)
    tried, of = (np.mean([each.get(key, 0) for each in facts]) for key in ("tried", "of"))
    return f"{shown} ({tried:.1f} of {of:g})" if tried < of else shown


def draw(results: Results, stem: Path) -> None:
    """Critical differences by each measure, as SVG and PNG."""
    plt = import_pyplot()
    height = 0.25 * len(results.systems) + 2.0
    drawing, axes = plt.subplots(len(MEASURES), 1, figsize=(10, height * len(MEASURES)), layout="constrained")
    for ax, (measure, kind) in zip(axes, MEASURES.items(), strict=True):
        CriticalDifferenceDisplay(results.compare(measure, results.systems), title=kind.title).plot(ax=ax)
    save_figure(drawing, stem)


def report(args: argparse.Namespace) -> None:
    results = Results(Store(args.results), args)
    missing = [name for name in args.systems if name not in results.systems]
    ours = next(name for name in results.systems if name in OURS)
    sizes = ", ".join(f"{data} {len(cells)}" for data, cells in results.cells.items())
    decodings = [
        [name, *(results.decodings[name, measure] for measure in MEASURES)] for name in results.systems if name in PEERS
    ]
    seconds = [[name, *(tell_cost(results, data, name) for data in results.data)] for name in results.systems]
    lines = [
        "# Against every other system",
        "",
        "Made by `python benchmarks/win_every_column.py`. `KFold(10, shuffle=True, random_state=seed)`; all "
        f"systems have the same folds, so many of all seeds together: {sizes}. Every system is decoded for each "
        "measure. ± is the standard error over the examples; an example that was tested several times counts once, "
        "with its mean. Names in bold are settings of pyboomer; everything else about them is as it is by default.",
        "",
        "; ".join(f"{key} {value}" for key, value in describe_machine(["xgboost", "catboost", "mlrl-boomer"]).items()),
        "",
        "## Does it win every column?",
        "",
        "Each setting of pyboomer alone among the other systems:",
        "",
        rank_alone(results),
        "",
        "Behind label powerset? The difference example by example, in points; above 0 means worse, bold means worse by "
        "more than a standard error:",
        "",
        compare_powerset(results),
        "",
        "## All systems",
    ]
    for measure in MEASURES:
        lines += ["", tabulate(results, measure), "", test_significance(results, measure, ours)]
    if args.write:
        stem = args.write.with_name(f"{args.write.stem}-ranks")
        draw(results, stem)
        lines += ["", f"![Critical differences]({stem.name}.svg)"]
    lines += [
        "",
        "## What was done",
        "",
        *(f"- {name}: {text}." for name, text in WHAT.items()),
        "",
        "Settings are tuned on a fifth of the training examples, for each measure on its own, until "
        f"{LIMIT:g} CPU seconds are over; what is best is fitted to all of them. No booster learns for more than "
        f"{LIMIT:g} CPU seconds ({LIMIT / 2:g} of those tuned), which cuts LP short where label vectors are many. The "
        "peers are decoded in every way that pyboomer knows, from their probabilities of labels or of label vectors (a "
        "forest's are those in its leaves, a chain's are those of draws), and the table has the decoding that was best "
        "on average over all data sets, in hindsight; pyboomer is decoded by `decode=` for the measure, without any "
        "such choice. Codes of nominal features are taken as numbers by the peers but mlrl-boomer.",
        "",
        format_table(["decoding of", *(kind.title for kind in MEASURES.values())], decodings),
        "",
        "CPU seconds per model, learning (all settings tried included) and predicting. A star says that a limit of "
        "time has ended some boosters; in brackets, how many settings were tried if not all were:",
        "",
        format_table(["CPU seconds", *results.data], seconds),
    ]
    if missing:
        lines += ["", f"Not finished, and left out: {', '.join(missing)}."]
    publish(lines, args.write)


def main() -> None:
    """Run the study, or report on what is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument("--results", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=[*SYSTEMS])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--folds", nargs="+", type=int, choices=range(10), default=range(10))
    parser.add_argument("--least", type=int, default=1, help="folds of each data set that a reported system must have")
    parser.add_argument("--write", type=Path, metavar="PAGE")
    args = parser.parse_args()
    (run if args.what == "run" else report)(args)


if __name__ == "__main__":
    main()
