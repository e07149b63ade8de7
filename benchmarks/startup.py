"""How long does a user wait before anything is learned? Import, first process (compiles), second process (does not).

Every figure is of a whole fresh process: seconds on the wall, and on the processor. The compiled code is kept in a
temporary folder, so that the first process really is a first one, and the user's own cache stays as it is. Python's own
bytecode is kept there, too, as it is where the package is installed. With the folder of another checkout, both versions
take turns.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from common import begin, make_parser, print_head, print_row

FIT = """
import time
begin = time.perf_counter()
from pyboomer import {estimator}
from pyboomer.datasets import load_dataset
imported = time.perf_counter()
data = load_dataset({data!r})
loaded, cpu = time.perf_counter(), time.process_time()
{estimator}(n_rules=100, random_state=1, {parameters}).fit(data.X, data.Y)
print(imported - begin, loaded - imported, time.perf_counter() - loaded, time.process_time() - cpu)
"""
DEFAULT = "emotions, default"
CONFIGURATIONS = {
    DEFAULT: ("BoomerClassifier", "emotions", ""),
    "emotions, label-wise": ("BoomerClassifier", "emotions", "loss='label-wise-logistic'"),
    "emotions, single": ("BoomerClassifier", "emotions", "head='single'"),
    "emotions, exact": ("BoomerClassifier", "emotions", "search='exact'"),
    "emotions, two labels": ("BoomerClassifier", "emotions", "head=2"),
    "emotions, two labels, exact": ("BoomerClassifier", "emotions", "head=2, search='exact'"),
    "emotions, three labels drawn": ("BoomerClassifier", "emotions", "max_labels=3"),
    "emotions, l1": ("BoomerClassifier", "emotions", "l1=1.0"),
    "emotions, bins": ("BoomerClassifier", "emotions", "max_bins=32"),
    "emotions, bins, two threads, single": ("BoomerClassifier", "emotions", "max_bins=32, n_jobs=2, head='single'"),
    "emotions, regression": ("BoomerRegressor", "emotions", ""),
    "enron (sparse), default": ("BoomerClassifier", "enron", ""),
    "enron (sparse), single": ("BoomerClassifier", "enron", "head='single'"),
    "enron (sparse), two labels": ("BoomerClassifier", "enron", "head=2"),
}
IMPORTS = {"scikit-learn": "import sklearn", "numba": "import sklearn, numba", "pyboomer": "import pyboomer"}


class Run(NamedTuple):
    """A fresh process: its seconds, and the numbers it prints."""

    seconds: float
    parts: list[float]


def run(code: str, cache: str, checkout: Path | None = None) -> Run:
    """Run code in a fresh process."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": f"{cache}/bytecode"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if checkout is not None:
        environment["PYTHONPATH"] = str(checkout.resolve() / "src")
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return Run(time.perf_counter() - begin, [float(word) for word in done.stdout.split()])


def report_imports(cache: str, repeats: int, store: Any) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in IMPORTS}
    for _ in range(repeats + 1):  # the first round fills the disk's cache and writes bytecode
        for name, code in IMPORTS.items():
            seconds[name].append(run(code, cache).seconds)
    best = {name: min(values[1:]) for name, values in seconds.items()}
    print_head(("import", "seconds", "over scikit-learn"))
    for name, value in best.items():
        print_row(name, f"{value:.3f}", f"{value - best['scikit-learn']:+.3f}")
    over = best["pyboomer"] - best["scikit-learn"]
    store.add(kind="import", seconds=seconds, over=over)
    print(f"\n`import pyboomer` takes {over:.3f} s more than scikit-learn alone; target <= 0.3 s.\n")


def report_processes(versions: dict[str, Path], repeats: int, store: Any) -> None:
    """The default configuration first, from an empty cache; then each of the others, in a cache that has it."""
    caches = {name: tempfile.mkdtemp() for name in versions}
    print_head(("100 rules, version", "first process", "its fit", "its fit, CPU", "a later process"))
    for title, (estimator, data, parameters) in CONFIGURATIONS.items():
        code = FIT.format(estimator=estimator, data=data, parameters=parameters)
        for name, checkout in versions.items():
            first = run(code, caches[name], checkout)
            later = [run(code, caches[name], checkout) for _ in range(repeats)]
            store.add(kind="process", configuration=title, version=name, first=first, later=later)
            times = first.seconds, first.parts[2], first.parts[3], min(later).seconds
            print_row(f"{title}, {name}", *(f"{value:.2f}" for value in times))
    print("\nTargets: 15 s of CPU for the default, 15 s more for any other; 1.5 s for a later process.\n")


def main() -> None:
    parser = make_parser(__doc__, repeats=5)
    parser.add_argument("--before", type=Path, help="the folder of another checkout, to compare with")
    args = parser.parse_args()
    store = begin("Startup", args)
    if args.quick:
        args.repeats = 1
    versions = {"this version": Path(__file__).parent.parent}
    if args.before is not None:
        versions = {"before": args.before, **versions}
    with tempfile.TemporaryDirectory() as cache:
        report_imports(cache, args.repeats, store)
    report_processes(versions, args.repeats, store)


if __name__ == "__main__":
    main()
