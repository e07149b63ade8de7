"""Does another version of pyboomer learn and predict as fast as this one?

Each version, given as the folder of its checkout, runs in a process of its own. The rows are those of `vs_official.py`:
nine data sets, four variants, and prediction. The two processes take turns, row by row, several times; the best times
are compared. Less than 1: this version is faster.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from common import begin, clock, for_our_fit, geometric_mean, load_split, make_ours, make_parser, print_head, print_row
from vs_official import RULES

from pyboomer import BoomerClassifier

VARIANTS = {f"{loss} {head}": (loss, head) for loss in ("label-wise", "example-wise") for head in ("single", "multi")}
PREDICTION = ("yeast", "slashdot")


def make_row(kind: str, data: str, variant: str, quick: bool) -> Callable[[], Any]:
    """What a row measures; it has been done once, so that everything is compiled."""
    loss, head = VARIANTS[variant]
    split = load_split(data, 1)
    X = for_our_fit(split.X)
    same = {"default_rule": "newton"} if "default_rule" in BoomerClassifier().get_params() else {}
    if kind == "predict":
        model = make_ours(loss, head, 100 if quick else 1000, nominal=split.nominal, **same).fit(X, split.Y)
        call: Callable[[], Any] = partial(model.predict, split.X)
    else:
        model = make_ours(loss, head, 20 if quick else RULES[data], nominal=split.nominal, **same)
        call = partial(model.fit, X, split.Y)
    call()
    return call


def answer() -> None:
    """Measure what is asked for on standard input, line by line; called in the process of a version."""
    rows: dict[str, Callable[[], Any]] = {}
    for line in sys.stdin:
        kind, data, variant, quick, repeats = json.loads(line)
        if line not in rows:
            rows.clear()
            rows[line] = make_row(kind, data, variant, quick)
        print(min(clock(rows[line])[0].cpu for _ in range(repeats)), flush=True)


def start(checkout: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve() / "src")}
    command = [sys.executable, __file__, "--answer"]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(process: subprocess.Popen[str], question: list[Any]) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    print(json.dumps(question), file=process.stdin, flush=True)
    return float(process.stdout.readline())


def main() -> None:
    if "--answer" in sys.argv:
        answer()
        return
    parser = make_parser(__doc__, repeats=10)
    parser.add_argument("before", type=Path, help="the folder of a checkout to compare with")
    parser.add_argument("--rounds", type=int, default=5, help="how often the two take turns (%(default)s)")
    parser.add_argument("--data", nargs="+", choices=RULES, default=list(RULES))
    args = parser.parse_args()
    store = begin("This version and another", args)
    processes = {"before": start(args.before), "after": start(Path(__file__).parent.parent)}
    rows = [("fit", data, variant) for data in args.data for variant in VARIANTS]
    rows += [("predict", data, variant) for data in PREDICTION if data in args.data for variant in VARIANTS]
    print_head(("what", "before, ms", "after, ms", "ratio"))
    ratios = {}
    for row in rows:
        question = [*row, args.quick, 1 if args.quick else args.repeats]
        seconds: dict[str, list[float]] = {name: [] for name in processes}
        for _ in range(args.rounds):
            for name, process in processes.items():
                seconds[name].append(ask(process, question))
        before, after = (min(seconds[name]) for name in ("before", "after"))
        ratios[row] = after / before
        store.add(row=row, seconds=seconds, ratio=ratios[row])
        print_row(", ".join(row), f"{1000 * before:.2f}", f"{1000 * after:.2f}", f"{ratios[row]:.3f}")
    worst = max(ratios, key=lambda row: ratios[row])
    print(f"\nGeometric mean {geometric_mean(list(ratios.values())):.3f}; the worst is {', '.join(worst)}: ", end="")
    print(f"{ratios[worst]:.3f}.\n")


if __name__ == "__main__":
    main()
