"""How many times faster than mlrl-boomer, the official C++ implementation, does pyboomer learn and predict?

Both run in this process, in turn, on one thread, with the same split and settings, each on data in the form it learns
from (by columns; the official learner in float32). pyboomer is compiled before the clock starts. Compared are seconds
per rule actually learned, since the official learner may end early. Where the official learner would exceed the budget
of a cell it learns fewer rules; "same count" compares with as few of ours.
"""

from functools import partial
from typing import Any

from common import (
    Seconds,
    Split,
    begin,
    clock,
    count_official_conditions,
    fit_official,
    for_official_fit,
    for_official_predict,
    for_our_fit,
    geometric_mean,
    is_installed,
    load_split,
    make_official,
    make_ours,
    make_parser,
    print_head,
    print_row,
    race,
)
from scipy.sparse import issparse

RULES = {
    **dict.fromkeys(("emotions", "scene", "yeast", "birds", "cal500"), 300),
    **dict.fromkeys(("enron", "medical", "slashdot", "llog"), 100),
}
# name: loss, head, the official learner's label binning, the geometric mean we want
VARIANTS = {
    "label-wise single": ("label-wise", "single", False, 5),
    "label-wise multi": ("label-wise", "multi", False, 10),
    "example-wise single": ("example-wise", "single", False, 5),
    "example-wise multi, exact": ("example-wise", "multi", False, 100),
    "example-wise multi, its label binning": ("example-wise", "multi", True, 40),
}
COLUMNS = (
    "data",
    "rules",
    "conditions per rule",
    "ms per rule",
    "Hamming %",
    "subset 0/1 %",
    "ratio",
    "ratio, CPU",
    "same count",
)
PROBE_RULES = 3  # enough to guess the official learner's pace


def round_down(count: float) -> int:
    """1, 2, 5, 10, 20, ...: noise in the guessed pace should not change the number of rules."""
    return max((m * 10**e for e in range(7) for m in (1, 2, 5) if m * 10**e <= count), default=1)


def compare_fits(split: Split, variant: str, n_rules: int, form: str, args: Any) -> dict[str, Any]:
    """One row: a variant on a data set."""
    loss, head, binned, _ = VARIANTS[variant]
    X, our_X, nominal = for_official_fit(split.X, form), for_our_fit(split.X), split.nominal
    Y = split.Y.astype("uint8")

    def fit_ours(n_rules: int) -> Any:
        return make_ours(loss, head, n_rules, nominal=nominal, random_state=args.seed, default_rule="newton").fit(
            our_X, split.Y
        )

    def fit_theirs(n_rules: int) -> Any:
        learner = make_official(loss, head, n_rules, len(Y), binned=binned, seed=args.seed)
        return fit_official(learner, X, Y, nominal)

    fit_ours(PROBE_RULES)  # compiles
    fit_theirs(1)  # imports
    probe, _ = clock(partial(fit_theirs, PROBE_RULES))
    affordable = PROBE_RULES * args.budget_seconds / args.repeats / probe.wall
    asked = n_rules if affordable >= n_rules else min(n_rules, max(PROBE_RULES, round_down(affordable)))
    seconds, models = race({"ours": partial(fit_ours, n_rules), "theirs": partial(fit_theirs, asked)}, args.repeats)
    learned = models["theirs"].model_.get_num_used_rules()
    few = seconds["ours"]
    if learned != n_rules:
        few = race({"ours": partial(fit_ours, learned)}, args.repeats)[0]["ours"]
    ours = split.measure(models["ours"].predict(split.X_test))
    ours_few = split.measure(next(models["ours"].staged_predict(split.X_test, at=[min(learned, n_rules)])))
    theirs = split.measure(models["theirs"].predict(for_official_predict(split.X_test, form)))
    return {
        "kind": "fit",
        "variant": variant,
        "data": split.name,
        "official_input": form,
        "rules": {"ours": len(models["ours"].rules_), "theirs": learned, "theirs_asked": asked},
        "conditions": {
            "ours": sum(len(rule.body) for rule in models["ours"].rules_) / max(1, len(models["ours"].rules_) - 1),
            "theirs": count_official_conditions(models["theirs"]),
        },
        "seconds": {"ours": seconds["ours"]._asdict(), "theirs": seconds["theirs"]._asdict()},
        "seconds_same_count": few._asdict(),
        "losses": {"ours": ours, "ours_same_count": ours_few, "theirs": theirs},
        "ratio": _divide(seconds["theirs"], learned, seconds["ours"], n_rules),
        "ratio_same_count": _divide(seconds["theirs"], learned, few, learned),
    }


def _divide(theirs: Seconds, their_rules: int, ours: Seconds, our_rules: int) -> dict[str, float]:
    """How many times as long they took per rule."""
    return {
        "wall": (theirs.wall / their_rules) / (ours.wall / our_rules),
        "cpu": (theirs.cpu / their_rules) / (ours.cpu / our_rules),
    }


def report_fits(splits: dict[str, Split], args: Any, store: Any) -> None:
    summary = []
    for variant in args.variants or VARIANTS:
        print(f"### {variant}\n\nA pair of numbers is pyboomer / mlrl-boomer.\n")
        print_head(COLUMNS)
        ratios: dict[str, list[dict[str, Any]]] = {}
        for name, split in splits.items():
            n_rules = 20 if args.quick else RULES[name]
            forms = [args.official_input] if args.official_input != "both" else ["sparse", "dense"]
            for form in forms if issparse(split.X) else ["dense"]:
                row = compare_fits(split, variant, n_rules, form, args)
                store.add(**row)
                print_row(f"{name} (given {form} to the peer)" if issparse(split.X) else name, *_show(row))
                for group in [form] if issparse(split.X) else forms:
                    ratios.setdefault(group, []).append(row)
        print()
        for form, rows in ratios.items():
            means = [
                geometric_mean([row[key][clock_name] for row in rows])
                for key in ("ratio", "ratio_same_count")
                for clock_name in ("wall", "cpu")
            ]
            least = min(row["ratio"]["wall"] for row in rows)
            store.add(kind="summary", variant=variant, official_input=form, means=means, least=least)
            title = variant if len(ratios) == 1 else f"{variant}; sparse data given {form} to the peer"
            summary.append((title, *(f"{mean:.1f}" for mean in means), f"{least:.1f}", f">= {VARIANTS[variant][3]}"))
    print("### Geometric means: mlrl-boomer's seconds per rule over pyboomer's\n")
    print_head(("variant", "ratio", "ratio, CPU", "same count", "same count, CPU", "lowest row", "target"))
    for line in summary:
        print_row(*line)
    print("\nNo row should be below 2.\n")


def _show(row: dict[str, Any]) -> list[str]:
    rules, seconds, losses = row["rules"], row["seconds"], row["losses"]
    return [
        f"{rules['ours']} / {rules['theirs']}",
        " / ".join(f"{row['conditions'][who]:.1f}" for who in ("ours", "theirs")),
        " / ".join(f"{1000 * seconds[who]['wall'] / rules[who]:.3f}" for who in ("ours", "theirs")),
        " / ".join(f"{losses[who]['hamming']:.2f}" for who in ("ours", "theirs")),
        " / ".join(f"{losses[who]['subset']:.1f}" for who in ("ours", "theirs")),
        f"{row['ratio']['wall']:.1f}",
        f"{row['ratio']['cpu']:.1f}",
        f"{row['ratio_same_count']['wall']:.1f}",
    ]


def report_predictions(args: Any, store: Any) -> None:
    """Models of 1000 rules; whole data sets as queries; the same number of rules on both sides."""
    n_rules = 100 if args.quick else 1000
    print(f"### Prediction, {n_rules} rules, multi-label heads\n\nA pair of numbers is pyboomer / mlrl-boomer.\n")
    print_head(("data, loss, what", "rules", "ms", "ratio", "ratio, CPU"))
    for name in ("yeast", "slashdot"):
        split = load_split(name, args.seed)
        for loss in ("label-wise", "example-wise"):
            theirs = make_official(loss, "multi", n_rules, len(split.Y), binned=True, seed=args.seed)
            fit_official(theirs, for_official_fit(split.X), split.Y.astype("uint8"), split.nominal)
            learned = theirs.model_.get_num_used_rules()
            ours = make_ours(loss, "multi", learned, nominal=split.nominal, default_rule="newton").fit(split.X, split.Y)
            X = for_official_predict(split.X)
            for what, method in (("scores", "decision_function"), ("labels", "predict")):
                calls = {
                    "ours": partial(getattr(ours, method), split.X),
                    "theirs": partial(getattr(theirs, method), X),
                }
                race(calls, 1)  # compiles
                best, _ = race(calls, 3 * args.repeats)
                ratio = {key: getattr(best["theirs"], key) / getattr(best["ours"], key) for key in ("wall", "cpu")}
                seconds = {who: best[who]._asdict() for who in best}
                store.add(kind="predict", data=name, loss=loss, what=what, rules=learned, seconds=seconds, ratio=ratio)
                times = f"{1000 * best['ours'].wall:.2f} / {1000 * best['theirs'].wall:.2f}"
                ratios = (f"{ratio['wall']:.1f}", f"{ratio['cpu']:.1f}")
                print_row(f"{name} ({len(split.Y)} x {split.X.shape[1]}), {loss}, {what}", learned, times, *ratios)
    print("\nTarget: a ratio of at least 5.\n")


def main() -> None:
    parser = make_parser(__doc__, repeats=3)
    parser.add_argument("--data", nargs="+", choices=RULES, default=list(RULES))
    parser.add_argument("--variants", nargs="+", choices=VARIANTS)
    parser.add_argument("--budget-seconds", type=float, default=60, help="for the official learner, per row (60)")
    parser.add_argument(
        "--official-input",
        choices=("sparse", "dense", "both"),
        default="sparse",
        help="how the official learner is given sparse data (sparse, which is faster for it)",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip-fit", action="store_true")
    parser.add_argument("--skip-predict", action="store_true")
    args = parser.parse_args()
    if not is_installed("mlrl-boomer"):
        return
    store = begin("pyboomer and mlrl-boomer", args, ["mlrl-boomer"])
    if args.quick:
        args.repeats, args.budget_seconds = 1, min(args.budget_seconds, 2)
    if not args.skip_fit:
        report_fits({name: load_split(name, args.seed) for name in args.data}, args, store)
    if not args.skip_predict:
        report_predictions(args, store)


if __name__ == "__main__":
    main()
