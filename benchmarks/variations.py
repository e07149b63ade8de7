"""Do pruning of rules, beam search or learning rules again in the context of all others predict better?

Ten-fold, KFold(10, shuffle=True, random_state=1), on the data sets of the paper, multi-label heads, default settings
and decoding; the losses of each fold are compared with those of the rules as they are, learned from the same draws.

    python benchmarks/variations.py --json variations.json --write docs/results/variations.md

Begun anew with the same file, it goes on where it ended. First of all it checks that the variations do what they say.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common import LOSSES, begin, describe_machine, format_table, make_parser, print_head, print_row
from scipy.stats import t as student
from sklearn.model_selection import KFold
from varied import CORRECT, PRUNED_BY_LAST_HEAD, PRUNED_BY_OWN_HEADS, REFIT, Variation
from varied_booster import begin_model, check_variations, learn, learn_again, prepare, take_rules

from pyboomer.datasets import load_dataset
from pyboomer.editing import replace_rules
from pyboomer.engine.booster import Booster
from pyboomer.metrics import example_f1, hamming_loss, subset_zero_one_loss

DATA = ("emotions", "birds", "scene", "yeast", "medical", "slashdot", "enron", "llog")
MEASURES: dict[str, Callable[[Any, Any], float]] = {
    "Hamming": hamming_loss,
    "subset 0/1": subset_zero_one_loss,
    "1 - F1": lambda Y, labels: 1 - example_f1(Y, labels),
}
PLAIN = "as they are"
MEANINGS = {
    "pruned": "incremental reduced error pruning: the last conditions go as long as the examples outside the sample do "
    "not lose by it, judged by the head that the sample gives to the whole body",
    "pruned, own heads": "the same, each shorter body judged by the head that the sample gives to it",
    "beam of 4": "the four best partial rules are kept at each step, and the best of all is taken in the end",
    "relearned": "sequential post-optimisation: each rule in turn is taken out, another one is learned from a new "
    "sample in the context of all others, and takes its place",
    "relearned twice": "two such passes",
    "heads refitted": "the cheaper form: each rule in turn is taken out, and put back with a new head",
    "heads corrected": "each rule in turn stays, and one more step, shrunk by the learning rate, is added to its head",
    "2 conditions": "nothing new, for comparison: `max_conditions=2`",
    "5 conditions": "the same with `max_conditions=5`",
    "learning rate 0.2": "nothing new, for comparison: twice the default",
    "3 x the rules": "nothing new, for comparison: `n_rules` times three, in about the time of two passes",
}
RIVALS = ("beam of 4", "heads corrected")  # what helps must also beat ...
SIMPLER = ("learning rate 0.2", "3 x the rules")  # ... what everyone can do already
FOLDS = 10
MARK = "## Figures"  # what stands above it on the page is written by hand


# --- Measuring --------------------------------------------------------------------------------------------------------


def learn_all(
    make_booster: Callable[..., Booster], n_rules: int, wanted: set[str]
) -> Iterator[tuple[str, Booster, float]]:
    """Learn in all ways that are wanted; the seconds on the processor are those of the loops over rules."""

    def timed(call: Callable[[], Booster], before: float = 0.0) -> tuple[Booster, float]:
        start = time.process_time()
        booster = call()
        return booster, before + time.process_time() - start

    plain, seconds = timed(partial(learn, make_booster, n_rules))
    yield PLAIN, plain, seconds
    for name, call in {
        "pruned": partial(learn, make_booster, n_rules, Variation(pruning=PRUNED_BY_LAST_HEAD)),
        "pruned, own heads": partial(learn, make_booster, n_rules, Variation(pruning=PRUNED_BY_OWN_HEADS)),
        "beam of 4": partial(learn, make_booster, n_rules, Variation(beam_width=4)),
        "2 conditions": partial(learn, make_booster, n_rules, max_conditions=2),
        "5 conditions": partial(learn, make_booster, n_rules, max_conditions=5),
        "learning rate 0.2": partial(learn, make_booster, n_rules, learning_rate=0.2),
        "3 x the rules": partial(learn, make_booster, 3 * n_rules),
    }.items():
        if name in wanted:
            yield name, *timed(call)
    for name, again in {"heads refitted": REFIT, "heads corrected": CORRECT}.items():
        if name in wanted:
            yield name, *timed(partial(learn_again, plain, Variation(again=again)), seconds)
    if wanted & {"relearned", "relearned twice"}:
        once, seconds = timed(partial(learn_again, plain, Variation()), seconds)
        yield "relearned", once, seconds
        if "relearned twice" in wanted:
            yield "relearned twice", *timed(partial(learn_again, once, Variation()), seconds)


def measure(name: str, loss: str, seed: int, n_rules: int, wanted: set[str]) -> Iterator[dict[str, Any]]:
    """For each variation, the figures of all folds."""
    data = load_dataset(name)
    Y = np.asarray(data.Y)
    figures: dict[str, dict[str, list[float]]] = {}
    for train, test in KFold(FOLDS, shuffle=True, random_state=1).split(Y):
        model = begin_model(loss, data.X[train], Y[train], data.nominal_features, seed)
        for variation, booster, seconds in learn_all(prepare(model, data.X[train], Y[train]), n_rules, wanted):
            rules = take_rules(booster, model)
            labels = replace_rules(model, rules).predict(data.X[test])
            fold = {measure: 100 * loss(Y[test], labels) for measure, loss in MEASURES.items()}
            fold["conditions"] = len(rules.condition_features) / (len(rules) - 1)
            fold["seconds"] = seconds
            fold["training loss"] = booster.training_loss()
            fold["examples"] = len(test)
            for key, value in fold.items():
                figures.setdefault(variation, {}).setdefault(key, []).append(value)
    for variation, folds in figures.items():
        if variation in wanted:
            yield {"data": name, "loss": loss, "seed": seed, "n_rules": n_rules, "variation": variation, "folds": folds}


# --- Showing ----------------------------------------------------------------------------------------------------------


class Results:
    """The figures of some number of rules: data sets of which all is measured, variations that are on all of these."""

    def __init__(self, rows: Sequence[dict[str, Any]], n_rules: int) -> None:
        self.rows = [row for row in rows if row["n_rules"] == n_rules]
        self.seeds = sorted({row["seed"] for row in self.rows})
        there = {(row["data"], row["variation"], row["loss"], row["seed"]) for row in self.rows}

        def is_complete(name: str, variation: str) -> bool:
            return all((name, variation, loss, seed) in there for loss in LOSSES for seed in self.seeds)

        self.data = [name for name in DATA if is_complete(name, PLAIN)]
        self.variations = [v for v in MEANINGS if all(is_complete(name, v) for name in self.data)]

    def get(self, loss: str, name: str, variation: str, figure: str) -> np.ndarray:
        """Of each fold, the mean over seeds."""
        wanted = (loss, name, variation)
        found = [r["folds"][figure] for r in self.rows if (r["loss"], r["data"], r["variation"]) == wanted]
        return np.mean(found, axis=0)

    def mean(self, loss: str, name: str, variation: str, figure: str) -> float:
        """Of all examples: folds count by their sizes."""
        sizes = self.get(loss, name, variation, "examples")
        return float(np.average(self.get(loss, name, variation, figure), weights=sizes))

    def difference(self, loss: str, name: str, variation: str, figure: str, base: str = PLAIN) -> tuple[float, float]:
        """The difference from a base, and its standard error over the folds."""
        change = self.get(loss, name, variation, figure) - self.get(loss, name, base, figure)
        mean = self.mean(loss, name, variation, figure) - self.mean(loss, name, base, figure)
        return mean, float(change.std(ddof=1) / np.sqrt(len(change)))

    def ratios(self, loss: str, variation: str, figure: str, base: str = PLAIN) -> np.ndarray:
        """To a base, for all data sets."""
        means = [[self.mean(loss, name, each, figure) for each in (variation, base)] for name in self.data]
        return np.divide(*np.transpose(means))


def find_limit(n: int) -> float:
    """How many standard errors of n differences are beyond noise: two-sided 5 % of Student's t."""
    return float(student.ppf(0.975, n - 1))


def show_difference(mean: float, error: float, n: int, digits: int) -> str:
    text = f"{mean:+.{digits}f} ± {error:.{digits}f}"
    return f"**{text}**" if abs(mean) > find_limit(n) * error else text


def summarize(results: Results, loss: str) -> str:
    """A table of all variations: the change over all data sets, and on how many of them it is beyond noise."""
    pairs = [(variation, PLAIN) for variation in results.variations]
    pairs += [(v, base) for v, base in product(RIVALS, SIMPLER) if {v, base} <= set(results.variations)]
    rows = []
    for variation, base in pairs:
        cells = [variation if base == PLAIN else f"{variation}, against {base}"]
        for measure in MEASURES:
            change = 100 * (results.ratios(loss, variation, measure, base) - 1)
            error = change.std(ddof=1) / np.sqrt(len(change))
            differences = [results.difference(loss, name, variation, measure, base) for name in results.data]
            better = sum(mean < -find_limit(FOLDS) * noise for mean, noise in differences)
            worse = sum(mean > find_limit(FOLDS) * noise for mean, noise in differences)
            cells.append(f"{show_difference(change.mean(), error, len(change), 1)} ({better}/{worse})")
        for figure in ("conditions", "seconds", "training loss"):
            cells.append(f"{np.exp(np.log(results.ratios(loss, variation, figure, base)).mean()):.2f}")
        rows.append(cells)
    return format_table(("variation", *MEASURES, "conditions", "time", "training loss"), rows)


def show_measure(results: Results, loss: str, measure: str) -> str:
    digits = 2 if measure == "Hamming" else 1
    plain = [f"{results.mean(loss, name, PLAIN, measure):.{digits}f}" for name in results.data]
    rows = [(PLAIN, *plain)]
    for variation in results.variations:
        pairs = [results.difference(loss, name, variation, measure) for name in results.data]
        rows.append((variation, *(show_difference(*pair, FOLDS, digits) for pair in pairs)))
    return format_table((f"{measure}, %", *results.data), rows)


def show_size(results: Results, loss: str) -> str:
    rows = []
    for variation in (PLAIN, *results.variations):
        cells = [variation]
        for name in results.data:
            conditions = results.mean(loss, name, variation, "conditions")
            cells.append(f"{conditions:.1f} / {results.mean(loss, name, variation, 'seconds'):.2f}")
        rows.append(cells)
    return format_table(("conditions per rule / seconds", *results.data), rows)


def write_figures(rows: Sequence[dict[str, Any]]) -> str:
    """The part of the page that is made from the figures."""
    parts = [
        MARK,
        f"`KFold({FOLDS}, shuffle=True, random_state=1)`, out-of-fold predictions pooled; multi-label heads, learning "
        "rate 0.1, l2 = 1, bootstrap, log2 features, default decoding; the default rule is counted among the rules. "
        "All measures are losses: less is better. Bold is beyond noise: two-sided 5 % of Student's t, over folds "
        f"({find_limit(FOLDS):.2f} standard errors) or data sets; one figure in twenty is so by chance.",
        "\n".join(f"- *{name}*: {meaning}" for name, meaning in MEANINGS.items()),
    ]
    for n_rules, loss in product(sorted({row["n_rules"] for row in rows}), LOSSES):
        results = Results(rows, n_rules)
        seeds = f"{len(results.seeds)} seed{'s' * (len(results.seeds) > 1)}"
        parts += [
            f"### {n_rules} rules, {loss} logistic loss",
            f"Means over {seeds}. The change of each loss in percent of what it is for the rules as they are: the mean "
            "over the data sets and its standard error, and on how many data sets the loss is smaller/larger beyond "
            "noise. Conditions per rule, learning time on the processor and training loss are ratios, geometric means.",
            summarize(results, loss),
            "Each data set: the loss of the rules as they are, and differences from it in points, with their standard "
            "errors over the folds.",
            *(show_measure(results, loss, measure) for measure in MEASURES),
            show_size(results, loss),
        ]
    return "\n\n".join(parts)


def write_page(path: Path, figures: str) -> None:
    """Write the figures; the words above them stay."""
    words = path.read_text(encoding="utf-8").split(MARK)[0] if path.exists() else "# Variations\n\n"
    machine = "; ".join(f"{name} {value}" for name, value in describe_machine().items())
    path.write_text(f"{words}{figures}\n\nMade by `python benchmarks/variations.py`: {machine}.\n", encoding="utf-8")
    print(f"\nWritten to {path}.\n")


def main() -> None:
    parser = make_parser(__doc__, repeats=1)
    parser.add_argument("--data", nargs="+", default=DATA)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--n-rules", type=int, default=500)
    parser.add_argument("--variations", nargs="+", choices=MEANINGS, default=tuple(MEANINGS))
    parser.add_argument("--write", type=Path, metavar="PAGE", help="e.g. docs/results/variations.md")
    args = parser.parse_args()
    n_rules = 20 if args.quick else args.n_rules
    store = begin("Variations of the search for rules", args)
    if args.json and args.json.exists():
        store.content["rows"] = json.loads(args.json.read_text())["rows"]
    rows = store.content["rows"]
    jobs = []
    for key in product(args.seeds, args.data, LOSSES):
        done = {r["variation"] for r in rows if (r["seed"], r["data"], r["loss"], r["n_rules"]) == (*key, n_rules)}
        if wanted := {PLAIN, *args.variations} - done:
            jobs.append((*key, wanted))
    if jobs:
        check_variations()
        print_head(("seed, data, loss, rules, variation", *MEASURES, "conditions", "seconds"))
    for seed, name, loss, wanted in jobs:
        for row in measure(name, loss, seed, n_rules, wanted):
            store.add(**row)
            means = [np.mean(row["folds"][figure]) for figure in (*MEASURES, "conditions", "seconds")]
            label = f"{seed}, {name}, {loss}, {n_rules}, {row['variation']}"
            print_row(label, *(f"{mean:.3f}" for mean in means))
    figures = write_figures(rows)
    print(f"\n{figures}")
    if args.write:
        write_page(args.write, figures)


if __name__ == "__main__":
    main()
