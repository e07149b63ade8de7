"""Is it worth knowing, in decoding only, which label vectors are frequent? Or does the joint loss do that better?

An ordinary model is decoded for subset 0/1 loss with b_v = beta (log(n_v / N) - sum_k log p_k(v_k)) added to the score
of each label vector v that n_v of N training examples have; p_k(v_k) is the frequency of its value of label k. beta is
1/2, or tuned: for each fold the best on all other folds of the same seed.

    python benchmarks/win_every_column.py run --results FOLDER --systems joint example-wise label-wise
    python benchmarks/frequencies.py --results FOLDER --write docs/results/frequencies.md
"""

import argparse
from pathlib import Path

import numpy as np
from common import REPEAT, describe_machine, format_table, publish
from win_every_column import BETAS, DATA, OWN, Cell, Results, describe, split

from pyboomer.experiments.store import Store

JOINT = "joint"
MODELS = ("example-wise", "label-wise", JOINT)


def list_candidates(results: Results, data: str, system: str, cell: Cell) -> np.ndarray:
    """The losses of a cell, by beta and example; the first beta is 0."""
    losses = results.losses[data, system][cell]
    return np.stack([losses["subset", name] for name in (OWN, *(f"beta={beta:g}" for beta in BETAS))])


def choose(results: Results, data: str, system: str) -> tuple[dict[str, dict[Cell, np.ndarray]], float]:
    """Losses of each cell for beta 0, 1/2 and tuned; and the mean of the betas that were chosen."""
    cells = results.cells[data]
    found = {cell: list_candidates(results, data, system, cell) for cell in cells}
    betas = (0.0, *BETAS)
    chosen = {}
    for cell in cells:
        others = [found[other].mean(axis=1) for other in cells if other[0] == cell[0] and other != cell]
        chosen[cell] = int(np.mean(others, axis=0).argmin()) if others else betas.index(0.5)
    losses = {
        "0": {cell: found[cell][0] for cell in cells},
        "1/2": {cell: found[cell][betas.index(0.5)] for cell in cells},
        "tuned": {cell: found[cell][chosen[cell]] for cell in cells},
    }
    return losses, float(np.mean([betas[i] for i in chosen.values()]))


def rate(data: str, losses: dict[Cell, np.ndarray]) -> np.ndarray:
    """The mean loss in percent of each example, over the seeds it was tested with."""
    tested = np.concatenate([split(data, *cell).test for cell in losses])
    _, who, times = np.unique(tested, return_inverse=True, return_counts=True)
    return 100 * np.bincount(who, weights=np.concatenate([*losses.values()])) / times


def main() -> None:
    """Print the tables, and write them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--folds", nargs="+", type=int, choices=range(10), default=range(10))
    parser.add_argument("--write", type=Path, metavar="PAGE")
    args = parser.parse_args()
    args.systems, args.least = MODELS, 1
    results = Results(Store(args.results), args)
    rows, differences = [], []
    for data in results.data:
        joint = results.rate(data, JOINT, "subset")
        cells, gains, behind = [], [], []
        for system in MODELS:
            losses, mean_beta = choose(results, data, system)
            rated = {name: rate(data, each) for name, each in losses.items()}
            cells.append(" / ".join(f"{values.mean():.1f}" for values in rated.values()) + f" ({mean_beta:.2f})")
            gains.append(show(rated["tuned"] - rated["0"]))
            behind.append(show(rated["tuned"] - joint))
        rows.append([data, *cells])
        differences.append([data, *gains, *behind[:-1]])
    sizes = ", ".join(f"{data} {len(cells)}" for data, cells in results.cells.items())
    seeds, folds = " ".join(map(str, args.seeds)), " ".join(map(str, args.folds))
    lines = [
        "# Decoding by the frequency of label vectors",
        "",
        f"{REPEAT}`python benchmarks/frequencies.py --results FOLDER --seeds {seeds} --folds {folds}`.",
        "",
        "- Decoding adds b_v = beta (log(n_v / N) - sum_k log p_k(v_k)) to the score of each label vector v. n_v of N "
        "training examples have that vector; p_k(v_k) is the frequency of its value of label k.",
        "- *Tuned*: beta is one of 0, 0.1, ..., 1; for each fold, the best on the other folds of the same seed.",
        "- The joint loss (default rule `newton`) has such a term of its own; beta comes on top.",
        "- Models have 2000 rules. Predictions are pooled over folds of `KFold(10, shuffle=True, random_state=seed)`, "
        f"counted over all seeds: {sizes}.",
        "",
        "; ".join(f"{key} {value}" for key, value in describe_machine().items()),
        "",
        "Subset 0/1 loss in percent for beta 0 / 1/2 / tuned, and the mean tuned beta in brackets:",
        "",
        format_table(["data", *MODELS], rows),
        "",
        "Differences in points, with standard errors over the examples. Below 0, the tuned decoding is better:",
        "",
        format_table(
            [
                "data",
                *(f"{system}, tuned - 0" for system in MODELS),
                *(f"{system}, tuned - {JOINT}, 0" for system in MODELS[:-1]),
            ],
            differences,
        ),
    ]
    publish(lines, args.write)


def show(differences: np.ndarray) -> str:
    mean, error = describe(differences)
    return f"{mean:+.1f} ± {error:.1f}"


if __name__ == "__main__":
    main()
