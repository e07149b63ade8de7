"""Is pyboomer faster than gradient boosted trees at the same Hamming loss?

First table: fit seconds and test losses of XGBoost's ways to learn several labels (BR: a model per label, LP: a class
per label vector, CC: a chain, and trees with a vector in each leaf), of LightGBM, CatBoost and pyboomer, on one split.
Second table, the answer: pyboomer's label-wise loss with multi-label heads and learning rate 0.3 until its Hamming
loss is within 0.3 points of what XGBoost BR ends with, means over five splits. The number of rules is found from the
staged predictions of one longer fit per split, then fits with exactly that number are timed, in turn with XGBoost.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from common import (
    Split,
    begin,
    is_installed,
    load_split,
    make_ours,
    make_parser,
    print_head,
    print_row,
    race,
)
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier

from pyboomer.engine.sampling import count_features
from pyboomer.metrics import hamming_loss

DATA = ("emotions", "yeast", "scene")
TOLERANCE = 0.3  # points of Hamming loss, in percent
Predictor = Callable[[Any], Any]


def make_xgboost(n_features: int, rounds: int, **settings: Any) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(
        n_estimators=rounds,
        learning_rate=0.3,
        subsample=0.66,
        colsample_bynode=count_features("log2", n_features) / n_features,
        n_jobs=1,
        random_state=1,
        **settings,
    )


def fit_xgboost(split: Split, rounds: int, **settings: Any) -> Predictor:
    """BR, or with multi_strategy="multi_output_tree" trees with a vector in each leaf."""
    return make_xgboost(split.X.shape[1], rounds, **settings).fit(split.X, split.Y).predict


def fit_powerset(split: Split, rounds: int) -> Predictor:
    vectors, classes = np.unique(split.Y, axis=0, return_inverse=True)
    model = make_xgboost(split.X.shape[1], rounds).fit(split.X, classes.ravel())
    return lambda X: vectors[model.predict(X)]


def fit_chain(split: Split, rounds: int) -> Predictor:
    chain = ClassifierChain(make_xgboost(split.X.shape[1], rounds), order="random", random_state=1)
    return chain.fit(split.X, split.Y).predict


def fit_lightgbm(split: Split, rounds: int) -> Predictor:
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(
        n_estimators=rounds,
        learning_rate=0.3,
        subsample=0.66,
        subsample_freq=1,
        feature_fraction_bynode=count_features("log2", split.X.shape[1]) / split.X.shape[1],
        n_jobs=1,
        random_state=1,
        verbosity=-1,
    )
    return MultiOutputClassifier(model).fit(split.X, split.Y).predict


def fit_catboost(split: Split, rounds: int) -> Predictor:
    from catboost import CatBoostClassifier

    model = CatBoostClassifier(
        iterations=rounds,
        learning_rate=0.3,
        loss_function="MultiLogloss",
        bootstrap_type="Bernoulli",
        subsample=0.66,
        rsm=count_features("log2", split.X.shape[1]) / split.X.shape[1],
        thread_count=1,
        random_seed=1,
        verbose=False,
        allow_writing_files=False,
    )
    return model.fit(split.X, split.Y).predict


def fit_ours(split: Split, loss: str, n_rules: int) -> Predictor:
    return make_ours(loss, "multi", n_rules).fit(split.X, split.Y).predict


def list_contenders(args: Any) -> dict[str, Callable[[Split], Predictor]]:
    """What is installed, as functions of a split."""
    contenders: dict[str, Callable[[Split], Predictor]] = {}
    rounds = args.rounds
    if is_installed("xgboost"):
        contenders["XGBoost BR"] = partial(fit_xgboost, rounds=rounds)
        contenders["XGBoost LP"] = partial(fit_powerset, rounds=rounds)
        contenders["XGBoost CC"] = partial(fit_chain, rounds=rounds)
        contenders["XGBoost vector-leaf trees"] = partial(
            fit_xgboost, rounds=rounds, multi_strategy="multi_output_tree"
        )
    if is_installed("lightgbm"):
        contenders["LightGBM BR"] = partial(fit_lightgbm, rounds=rounds)
    if is_installed("catboost"):
        contenders["CatBoost MultiLogloss"] = partial(fit_catboost, rounds=rounds)
    for n_rules in args.rules:
        for loss in ("label-wise", "example-wise"):
            contenders[f"pyboomer {loss} multi, {n_rules} rules"] = partial(fit_ours, loss=loss, n_rules=n_rules)
    return contenders


def report_side_by_side(args: Any, store: Any) -> None:
    contenders = list_contenders(args)
    print(f"### Side by side: {args.rounds} rounds, learning rate 0.3, one thread, one split\n")
    for name in args.data:
        split = load_split(name, seed=1)
        fit_ours(split, "label-wise", 2), fit_ours(split, "example-wise", 2)  # compiles
        print_head((name, "fit seconds", "CPU seconds", "Hamming %", "subset 0/1 %"))
        for title, fit in contenders.items():
            repeats = 1 if "vector-leaf" in title else args.repeats  # half a minute each
            best, models = race({"fit": partial(fit, split)}, repeats)
            losses = split.measure(models["fit"](split.X_test))
            store.add(kind="side by side", data=name, learner=title, seconds=best["fit"]._asdict(), losses=losses)
            print_row(
                title,
                f"{best['fit'].wall:.3f}",
                f"{best['fit'].cpu:.3f}",
                f"{losses['hamming']:.2f}",
                f"{losses['subset']:.1f}",
            )
        print()


def trace_hamming(split: Split, counts: list[int]) -> list[float]:
    """Hamming loss in percent after each number of rules."""
    model = make_ours("label-wise", "multi", counts[-1]).fit(split.X, split.Y)
    return [100 * hamming_loss(split.Y_test, labels) for labels in model.staged_predict(split.X_test, at=counts)]


def report_race(args: Any, store: Any) -> None:
    if not is_installed("xgboost"):
        return
    counts = list(range(10, args.max_rules + 1, 10))
    print(f"### Time to XGBoost BR's Hamming loss + {TOLERANCE} points, means over {args.splits} splits\n")
    print_head(("data", "Hamming %: pyboomer / XGBoost", "rules", "seconds: pyboomer / XGBoost", "ratio", "ratio, CPU"))
    won = []
    for name in args.data:
        splits = [load_split(name, seed) for seed in range(1, args.splits + 1)]
        goals = [100 * hamming_loss(split.Y_test, fit_xgboost(split, args.rounds)(split.X_test)) for split in splits]
        curve = np.mean([trace_hamming(split, counts) for split in splits], axis=0)
        goal = np.mean(goals) + TOLERANCE
        if not (curve <= goal).any():
            print_row(name, f"{curve.min():.2f} / {np.mean(goals):.2f}", f"not with {counts[-1]}", "", "", "")
            store.add(kind="race", data=name, goals=goals, curve=list(curve), counts=counts, n_rules=None)
            won.append(False)
            continue
        at = int((curve <= goal).argmax())
        n_rules = counts[at]
        measured = [
            race(
                {
                    "ours": partial(fit_ours, split, "label-wise", n_rules),
                    "theirs": partial(fit_xgboost, split, args.rounds),
                },
                args.repeats,
            )[0]
            for split in splits
        ]
        means = {who: np.mean([best[who] for best in measured], axis=0) for who in ("ours", "theirs")}
        ratio = means["theirs"] / means["ours"]
        won.append(bool(ratio[0] > 1))
        print_row(
            name,
            f"{curve[at]:.2f} / {np.mean(goals):.2f}",
            n_rules,
            f"{means['ours'][0]:.3f} / {means['theirs'][0]:.3f}",
            f"{ratio[0]:.1f}",
            f"{ratio[1]:.1f}",
        )
        store.add(
            kind="race",
            data=name,
            goals=goals,
            curve=list(curve),
            counts=counts,
            n_rules=n_rules,
            seconds=[{who: best[who]._asdict() for who in best} for best in measured],
            ratio={"wall": ratio[0], "cpu": ratio[1]},
        )
    print(f"\npyboomer is faster on {sum(won)} of {len(won)}; the target is all of them.\n")


def main() -> None:
    parser = make_parser(__doc__, repeats=3)
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--rounds", type=int, default=100, help="of the trees (100)")
    parser.add_argument("--rules", type=int, nargs="+", default=[300, 1000], help="of pyboomer, side by side")
    parser.add_argument("--max-rules", type=int, default=2000, help="where the race is given up (2000)")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--skip-side-by-side", action="store_true")
    args = parser.parse_args()
    store = begin("pyboomer and gradient boosted trees", args, ["xgboost", "lightgbm", "catboost"])
    if args.quick:
        args.repeats, args.rounds, args.rules, args.max_rules, args.splits = 1, 5, [50], 200, 2
    if not args.skip_side_by_side:
        report_side_by_side(args, store)
    report_race(args, store)


if __name__ == "__main__":
    main()
