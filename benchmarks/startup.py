"""How long does a user wait before anything is learned? Import, first process (compiles), second process (does not).

Every figure is the wall time of a whole fresh process. The compiled code is kept in a temporary folder, so that the
first process really is a first one, and the user's own cache stays as it is.
"""

import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from common import begin, make_parser, print_head, print_row

FIT = """
import time
begin = time.perf_counter()
from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset
imported = time.perf_counter()
data = load_dataset("emotions")
loaded = time.perf_counter()
BoomerClassifier(n_rules=100, random_state=1).fit(data.X, data.Y)
print(imported - begin, loaded - imported, time.perf_counter() - loaded)
"""
IMPORTS = {"scikit-learn": "import sklearn", "numba": "import sklearn, numba", "pyboomer": "import pyboomer"}


def run(code: str, cache: str) -> tuple[float, list[float]]:
    """Seconds of a whole fresh process, and the numbers it prints."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return time.perf_counter() - begin, [float(word) for word in done.stdout.split()]


def report_imports(cache: str, repeats: int, store: Any) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in IMPORTS}
    for _ in range(repeats + 1):  # the first round fills the disk's cache and writes bytecode
        for name, code in IMPORTS.items():
            seconds[name].append(run(code, cache)[0])
    best = {name: min(values[1:]) for name, values in seconds.items()}
    print_head(("import", "seconds", "over scikit-learn"))
    for name, value in best.items():
        print_row(name, f"{value:.3f}", f"{value - best['scikit-learn']:+.3f}")
    over = best["pyboomer"] - best["scikit-learn"]
    store.add(kind="import", seconds=seconds, over=over)
    print(f"\n`import pyboomer` takes {over:.3f} s more than scikit-learn alone; target <= 0.3 s.\n")


def report_processes(cache: str, repeats: int, store: Any) -> None:
    print_head(("100 rules on emotions", "whole process", "import", "load", "fit"))
    first, parts = run(FIT, cache)
    print_row("first process, compiles", *(f"{value:.2f}" for value in (first, *parts)))
    later = [run(FIT, cache) for _ in range(repeats)]
    second, second_parts = min(later)
    print_row("a later process", *(f"{value:.2f}" for value in (second, *second_parts)))
    store.add(kind="process", first=[first, *parts], later=[[whole, *each] for whole, each in later])
    print(f"\nCompiling costs the first process {first - second:.1f} s.")
    print(f"A later one takes {second:.2f} s; target <= 2.5 s.\n")


def main() -> None:
    args = make_parser(__doc__, repeats=5).parse_args()
    store = begin("Startup", args)
    if args.quick:
        args.repeats = 1
    with tempfile.TemporaryDirectory() as cache:
        report_imports(cache, args.repeats, store)
        report_processes(cache, args.repeats, store)


if __name__ == "__main__":
    main()
