"""Growth: eight times the input takes about eight times as long, for whatever reads, parses, writes or decodes."""

import json
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from campaign.files import command
from campaign.running import Plan, Tally, require
from pyboomer import BoomerClassifier, load_model
from pyboomer.data.stratification import hold_out
from pyboomer.datasets.arff import read_arff
from pyboomer.datasets.mulan import read_label_names
from pyboomer.losses import example_wise_logistic
from pyboomer.metrics import evaluate
from pyboomer.predicting.calibration import calibrate
from pyboomer.predicting.decoding import decode_by_f1, decode_by_loss, decode_by_marginals, decode_by_probability
from pyboomer.rules.parsing import parse_rule
from pyboomer.rules.storage import PER_CONDITION, PER_RULE, PER_SCORE

FACTOR = 8
MOST = 20.0  # times as long; 64, if it grew by the square
ENOUGH = 0.05  # seconds, of the larger input: less is noise
LONGEST = 100.0  # seconds: no need to look further

Act = Callable[[], Any]
RNG = np.random.default_rng(0)


def write_arff(rows: list[str], header: str) -> Act:
    Path("grown.arff").write_text(header + "@data\n" + "\n".join(rows) + "\n")

    def read() -> None:
        with suppress(ValueError):
            read_arff("grown.arff")

    return read


def read_xml(text: str) -> Act:
    Path("grown.xml").write_text(text)

    def read() -> None:
        with suppress(ValueError):
            read_label_names("grown.xml")

    return read


def parse(text: str) -> Act:
    def read() -> None:
        with suppress(ValueError):
            parse_rule(text)

    return read


def grow_model(n_rules: int) -> Path:
    """The file of a model of so many rules, with little learning: the same rules again and again."""
    path = Path(f"grown-{n_rules}.json")
    if not path.exists():
        rng = np.random.default_rng(0)
        X = rng.normal(size=(30, 4))
        BoomerClassifier(n_rules=50, random_state=0).fit(X, (X[:, :3] > 0).astype(int)).save("base.json")
        content = json.loads(Path("base.json").read_text())
        rules = content["rules"]
        times = n_rules // 50
        for name in ("condition_offsets", "head_offsets"):
            ends = rules[name]
            rules[name] = [0, *(t * ends[-1] + end for t in range(times) for end in ends[1:])]
        for name in (*PER_CONDITION, *PER_SCORE, *PER_RULE):
            rules[name] = rules[name] * times
        path.write_text(json.dumps(content))
    return path


def apply_to_model(n_rules: int, function: Callable[[Any], Any]) -> Act:
    model = load_model(grow_model(n_rules))
    return lambda: function(model)


def load_text(content: str) -> Act:
    path = Path("other.json")
    path.write_text(content)

    def read() -> None:
        with suppress(ValueError):
            load_model(path)

    return read


def decode(function: Callable[..., Any], n: int, n_vectors: int, *more: Any, n_labels: int = 20) -> Act:
    scores = RNG.normal(size=(n, n_labels))
    share = min(0.5, 10 / n_labels)
    vectors = np.unique((RNG.random((2 * n_vectors, n_labels)) < share).astype(np.uint8), axis=0)[:n_vectors]
    return lambda: function(scores, vectors, *more)


def train_from_csv(n: int) -> Act:
    rows = RNG.normal(size=(n, 5)).round(3)
    lines = ["a,b,c,d,y", *(",".join(map(str, row[:4])) + f",{int(row[0] > 0)}" for row in rows.tolist())]
    Path("grown.csv").write_text("\n".join(lines))
    options = ("--labels", "y", "-o", "grown-out.json", "--n-rules", "2", "--max-bins", "none", "--quiet")
    return lambda: command("train", "grown.csv", *options)


def fit(n: int, **options: Any) -> Act:
    X = RNG.normal(size=(n, 5))
    Y = (X[:, :3] > 0).astype(int)
    return lambda: BoomerClassifier(n_rules=3, random_state=0, max_bins=None, **options).fit(X, Y)


def name_all(pattern: str, n: int, between: str = ",") -> str:
    return between.join(pattern.format(i) for i in range(n))


def toss(n: int, kind: Any) -> np.ndarray:
    return RNG.integers(0, 2, size=(n, 3)).astype(kind)


NUMERIC = "@relation 'r: -C 1'\n@attribute y {0,1}\n@attribute a numeric\n@attribute b numeric\n"
NOMINAL = "@relation 'r: -C 1'\n@attribute y {0,1}\n@attribute a {'b c',d}\n"
CASES: dict[str, tuple[int, Callable[[int], Act]]] = {
    "ARFF, rows of numbers": (4_000, lambda n: write_arff(["0,1.5,2"] * n, NUMERIC)),
    "ARFF, sparse rows": (4_000, lambda n: write_arff(["{0 1, 2 7}"] * n, NUMERIC)),
    "ARFF, rows of words": (2_000, lambda n: write_arff(["0,'b c'"] * n, NOMINAL)),
    "ARFF, one long row": (2_000, lambda n: write_arff([",".join(["0"] + ["1"] * n)], wide_header(n))),
    "ARFF, one long sparse row": (2_000, lambda n: write_arff([f"{{{name_all('{} 1', n)}}}"], wide_header(n))),
    "ARFF, many attributes": (1_000, lambda n: write_arff(["{}"], wide_header(n))),
    "ARFF, many categories": (1_000, lambda n: write_arff(["0,1,1,c1"], declare(name_all("c{}", n)))),
    "ARFF, a category twice": (1_000, lambda n: write_arff(["0,1,1,c1"], declare(name_all("c{}", n), "c1"))),
    "ARFF, open quotes": (1_000, lambda n: write_arff(["0," + "'" + "a " * n], NOMINAL)),
    "ARFF, many quotes": (1_000, lambda n: write_arff(["0," + "'a' " * n], NOMINAL)),
    "ARFF, backslashes": (1_000, lambda n: write_arff(["0,'" + "\\" * n], NOMINAL)),
    "ARFF, per cent signs": (1_000, lambda n: write_arff(["0," + "a% '" * n], NOMINAL)),
    "ARFF, blanks": (1_000, lambda n: write_arff(["0" + " " * n + "x" + " " * n + ",d"], NOMINAL)),
    "ARFF, lines without data": (4_000, lambda n: write_arff([], NUMERIC + "\n% x" * n + "\n")),
    "XML, many labels": (2_000, lambda n: read_xml("<a>" + name_all("<label name='l{}'/>", n) + "</a>")),
    "XML, nested labels": (2_000, lambda n: read_xml('<label name="a">' * n + "</label>" * n)),
    "XML, a long name": (20_000, lambda n: read_xml("<label name='" + "a&amp;" * n + "'/>")),
    "rule, many conditions": (300, lambda n: parse(f"IF {name_all('x{} > 1', n, ' AND ')} THEN y +1")),
    "rule, many labels": (300, lambda n: parse(f"DEFAULT {name_all('y{} +1', n)}")),
    "rule, quotes": (300, lambda n: parse('IF "' + '\\"' * n + '" > 1 THEN y +1')),
    "rule, open quotes": (300, lambda n: parse("IF " + ', "a' * n + " > 1 THEN y +1")),
    "rule, blanks": (300, lambda n: parse("IF a" + " " * n + "b > 1 THEN y" + " " * n + "+1" + " " * n + "x")),
    "rule, digits": (300, lambda n: parse("IF a > " + "1" * n + " THEN y +" + "1" * n + "x")),
    "rule, signs": (300, lambda n: parse("DEFAULT y " + "+ " * n)),
    "model, load": (1_000, lambda n: apply_to_model(n, lambda model: load_model(grow_model(len(model.rules_))))),
    "model, save": (1_000, lambda n: apply_to_model(n, lambda model: model.save("saved.json"))),
    "model, text": (1_000, lambda n: apply_to_model(n, lambda model: [str(rule) for rule in model.rules_])),
    "model, Python file": (400, lambda n: apply_to_model(n, lambda model: model.to_python())),
    "model, ONNX": (200, lambda n: apply_to_model(n, lambda model: model.to_onnx())),
    "model, page": (200, lambda n: apply_to_model(n, lambda model: model.to_html())),
    "model, brackets": (2_000, lambda n: load_text('{"a":' + "[" * n)),
    "model, text in a string": (20_000, lambda n: load_text('{"format": "' + "\\u00fc" * n + '"}')),
    "model, digits": (500, lambda n: load_text('{"format": 1.' + "1" * n + "}")),
    "decoding by loss, examples": (500, lambda n: decode(decode_by_loss, n, 200, example_wise_logistic)),
    "decoding by loss, vectors": (100, lambda n: decode(decode_by_loss, 1_000, n, example_wise_logistic)),
    "decoding by probability, vectors": (100, lambda n: decode(decode_by_probability, 1_000, n)),
    "decoding by marginals, vectors": (100, lambda n: decode(decode_by_marginals, 1_000, n)),
    "decoding by F-measure, examples": (50, lambda n: decode(decode_by_f1, n, 100)),
    "decoding by F-measure, vectors": (50, lambda n: decode(decode_by_f1, 200, n)),
    "decoding by F-measure, labels": (50, lambda n: decode(decode_by_f1, 50, 100, n_labels=n)),
    "calibration": (2_000, lambda n: lambda: calibrate(RNG.normal(size=(n, 3)), toss(n, float), toss(3, np.uint8))),
    "holding out": (500, lambda n: lambda: hold_out(toss(n, np.uint8), 0.2, 0)),
    "metrics": (5_000, lambda n: lambda: evaluate(toss(n, int), toss(n, int))),
    "CSV, trained from": (2_000, train_from_csv),
    "fit, label-wise": (2_000, lambda n: fit(n, loss="label-wise-logistic")),
    "fit, example-wise": (2_000, fit),
}  # fmt: skip


def declare(*categories: str) -> str:
    return NUMERIC + "@attribute c {" + ",".join(categories) + "}\n"


def wide_header(n: int) -> str:
    return "@relation 'r: -C 1'\n@attribute y {0,1}\n" + "".join(f"@attribute a{i} numeric\n" for i in range(n))


def prepare(plan: Plan) -> None:  # noqa: ARG001
    """Nothing is prepared: what compiles does so on the smaller input."""
    warnings.simplefilter("ignore")


def run_case(case: int, rng: np.random.Generator, tally: Tally) -> None:  # noqa: ARG001
    """One case in turn: the smaller input, the larger one, and if that was too quick to tell, both larger still."""
    name = list(CASES)[case % len(CASES)]
    tally.begin(name)
    size, make = CASES[name]
    make(size)()  # compiles
    suspected = False
    while True:
        small, large = take_time(make(size)), take_time(make(size * FACTOR))
        if large > ENOUGH or size > 10**6:
            if large < MOST * small:
                return
            message = f"{FACTOR} times the input ({size * FACTOR}) takes {large:.3f} s instead of {small:.3f} s"
            require(not suspected and large < 1, message)
            suspected = True  # a busy machine may be the reason; with more input it shows
        size *= 2


def take_time(act: Act) -> float:
    """The shortest time of the processor that it takes, of a few tries."""
    best = LONGEST
    for _ in range(3):
        begin = time.process_time()
        act()
        best = min(best, time.process_time() - begin)
        if best > 3:
            break
    return best
