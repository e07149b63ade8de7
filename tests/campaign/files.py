"""Files: damaged models, tables, labels, rules and arrays do no harm.

Whatever is in a file, it is read and works, or is refused by one clear error of an expected type: no other exception,
no crash, no memory that it merely claims, no long wait.
"""

import io
import json
import os
import resource
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from campaign.damage import damage, damage_json
from campaign.draw import choose
from campaign.running import Plan, Tally, name_code, require
from pyboomer import BoomerClassifier, BoomerRegressor, load_model
from pyboomer.cli import main
from pyboomer.datasets.mulan import load_mulan
from pyboomer.experiments.store import Outcome, Store
from pyboomer.rules.parsing import parse_rule, write_rule

SECONDS = 2.0  # of the processor, for any file
BYTES = 2**30  # of memory, besides what the process has when it is ready
LONGEST = 2_000  # characters of a message
GOOD: dict[str, list[bytes]] = {}


# --- Good files -------------------------------------------------------------------------------------------------------

ARFF = (
    """@relation 'songs: -C 2'
@attribute loud {0,1}
@attribute fast {0,1}
@attribute tempo numeric
@attribute style {jazz,'hard rock',"a, b"}
@attribute '100%' {2,10,1}
@data
0,1,1.5,jazz,2
1,0,-2.5e3,'hard rock',10
% a comment
0,0,?,"a, b",1
1,1,.5,jazz,?
""",
    """@RELATION "songs: -C -1"
@ATTRIBUTE a REAL
@ATTRIBUTE b {x,y}
@ATTRIBUTE c INTEGER
@ATTRIBUTE d {0,1}

@DATA
{0 1.5, 1 y, 3 1}
{}
{2 -7, 3 1}
{0 ?, 1 x}
1,y,3,0
""",
    "@relation r\n" + "".join(f"@attribute x{i} numeric\n" for i in range(30)) + "@attribute l1 {0,1}\n@data\n"
    + "".join(",".join(str((7 * i + j) % 11 / 4) for j in range(30)) + f",{i % 2}\n" for i in range(20)),
)  # fmt: skip
XML = (
    '<?xml version="1.0" encoding="utf-8"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">\n'
    '<label name="loud"><label name="fast"></label></label>\n</labels>\n',
    "<labels>\n<!-- all -->\n<label name='d'/>\n</labels>",
    '<labels><label name="l1"></label></labels>',
)
CSV = (b"x1;style\n1;a\n", b'"y1","y,2",x\n1,0,"a\nb"\n0,,c\n1,1,"""q"""\n')
RULES = (
    "IF x1 <= 0.3 AND style == hard rock THEN beach +0.8, sea -0.25",
    'IF 1.5 < tempo <= 3e2 AND "salt, pepper" != "a \\" b" THEN "y, 0" +1',
    "DEFAULT a +0.1, b -0.2, c 0.5",
    "IF a > 1 THEN nothing",
    "IF " + " AND ".join(f"x{i} > {i}" for i in range(40)) + " THEN y -1",
)


def make_models() -> list[bytes]:
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(24, 3)), 1)
    Y = (X + 0.3 * rng.normal(size=(24, 3)) > 0).astype(int)
    kind = np.array(["Übel", 'quo"te', "x"])[Y[:, 0] + Y[:, 1]]
    frame = pd.DataFrame({"a": X[:, 0], "kind": kind, "n": Y.sum(axis=1)})
    levels = pd.Categorical(kind, categories=["x", "Übel", 'quo"te'], ordered=True)
    problems: list[tuple[Any, dict[str, Any], Any, Any]] = [
        (BoomerClassifier, {}, X, Y),
        (BoomerClassifier, {"categorical_features": ["kind", "n"], "decode": "subset"}, frame, Y),
        (BoomerClassifier, {}, frame.assign(kind=levels), Y),
        (BoomerClassifier, {"loss": "label-wise-logistic", "head": "single"}, X, Y.astype(np.float32)),
        (BoomerClassifier, {"categorical_features": ["kind"]}, frame, np.array([*"pqrs"])[Y.sum(axis=1)]),
        (BoomerClassifier, {}, X, Y[:, 0] * 10),
        (BoomerClassifier, {"calibration": "isotonic", "decode": "hamming"}, X, sp.csr_array(Y.astype(np.int8))),
        (BoomerRegressor, {}, X, 3 * X[:, 0] + X[:, 1]),
        (BoomerRegressor, {"categorical_features": ["kind"]}, frame, pd.DataFrame(X)),
    ]
    found = []
    for estimator, options, table, labels in problems:
        estimator(**{"n_rules": 5, "random_state": 1, **options}).fit(table, labels).save("model.json")
        found.append(Path("model.json").read_bytes())
    return found


def make_table() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {"x1": rng.normal(size=12).round(2), "x 2": rng.integers(0, 4, 12), "style": list("abcabcabcxyz")}
    )
    return table.assign(y1=rng.integers(0, 2, 12), y2=(table["x1"] > 0).astype(int))


def make_arrays() -> list[bytes]:
    """Sparse matrices and outcomes of experiments, as NumPy stores them."""
    X = np.where(np.random.default_rng(1).random((12, 4)) < 0.5, 0, 1.5)
    found = []
    for matrix in (sp.csr_array(X), sp.csc_array(X), sp.coo_array(X)):
        buffer = io.BytesIO()
        sp.save_npz(buffer, matrix, compressed=False)
        found.append(buffer.getvalue())
    return found


def make_outcomes() -> list[bytes]:
    store = Store(Path("store"))
    store.write("a", Outcome(np.random.default_rng(1).random((3, 5, 4)) < 0.5, {"seconds": 1.5, "who": "ü"}))
    return [store.locate("a").read_bytes()]


def prepare(plan: Plan) -> None:  # noqa: ARG001
    """Make the good files, use each once, and then set the limits."""
    warnings.simplefilter("ignore")
    table = make_table()
    table.to_csv("good.csv", index=False)
    table.to_parquet("good.parquet")
    GOOD.update(
        {
            "model": make_models(),
            "ARFF": [text.encode() for text in ARFF],
            "XML": [text.encode() for text in XML],
            "CSV": [
                Path("good.csv").read_bytes(),
                b"x1;style\n1;a\n",
                b'"y1","y,2",x\n1,0,"a\nb"\n0,,c\n1,1,"""q"""\n',
            ],
            "Parquet": [Path("good.parquet").read_bytes()],
            "rule": [text.encode() for text in RULES],
            "stored array": make_arrays(),
            "outcome": make_outcomes(),
        }
    )
    for kind, contents in GOOD.items():
        for content in contents:
            KINDS[kind][1](content)
    for _ in range(3):
        use_array(np.random.default_rng(0), harmless=True)
    limit = read_size() + BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def read_size() -> int:
    """The memory that this process has addresses for."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


# --- Using a file -----------------------------------------------------------------------------------------------------


def run_case(case: int, rng: np.random.Generator, tally: Tally) -> None:  # noqa: ARG001
    """Damage a file and use it."""
    names = list(KINDS)
    shares = np.array([share for share, _ in KINDS.values()])
    kind = names[rng.choice(len(names), p=shares / shares.sum())]
    tally.begin(kind)
    tally.counts["files"] += 1
    if kind == "array":
        outcome = apart(lambda: use_array(rng))
    else:
        good = GOOD[kind][rng.integers(len(GOOD[kind]))]
        if kind == "model" and rng.random() < 0.6:
            content = damage_json(good, rng)
        else:
            content = damage(good, GOOD[kind], rng)
        outcome = (apart if kind == "stored array" else measure)(lambda: KINDS[kind][1](content))
    tally.counts["refused" if outcome else "read"] += 1


def measure(use: Callable[[], str]) -> str:
    """Use a file within the time that any file may take; what is said against it, if anything."""
    begin = time.process_time()
    message = use()
    seconds = time.process_time() - begin
    require(seconds < SECONDS, f"took {seconds:.1f} s of the processor")
    require(len(message) < LONGEST, f"a message of {len(message)} characters: {message[:300]}")
    return message


def apart(use: Callable[[], str]) -> str:
    """Use it in a copy of this process: one that is cheap to lose."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            message, status = measure(use), 0
        except BaseException as error:
            message = f"{type(error).__name__}: {error}"
        os.write(sender, message.encode("utf-8", "replace")[:4_000])
        os._exit(status)
    os.close(sender)
    with os.fdopen(receiver, "rb") as file:
        message = file.read().decode("utf-8", "replace")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    require(code >= 0, f"died with {name_code(code)}")
    require(code == 0, message)
    return message


def tell(error: Exception) -> str:
    require(str(error).strip() != "", f"{type(error).__name__} without a message")
    return str(error)


def use_model(content: bytes) -> str:
    Path("bad.json").write_bytes(content)
    try:
        model = load_model("bad.json")
    except ValueError as error:
        require(str(error).startswith("bad.json"), f"the message does not name the file: {str(error)[:200]}")
        return tell(error)
    require(str(model.rules_) != "", "a model without text")
    columns = []
    for feature in range(model.n_features_in_):
        values = model.rules_.categories.get(feature, ())
        columns.append(
            [values[0], values[-1], None, "unseen"] if values and isinstance(values[0], str) else [0.0, 1, None, 1e300]
        )
    names = model.rules_.feature_names
    table = pd.DataFrame({j: pd.Series(column, dtype=object) for j, column in enumerate(columns)})
    if hasattr(model, "feature_names_in_"):
        table = table.set_axis(names, axis=1)
    elif not any(isinstance(column[0], str) for column in columns):
        table = table.to_numpy(dtype=float)
    model.predict(table)
    model.save("again.json")
    require(load_model("again.json").rules_ == model.rules_, "saved again, the rules are others")
    return ""


def use_arff(content: bytes) -> str:
    Path("bad.arff").write_bytes(content)
    Path("bad.xml").unlink(missing_ok=True)
    return use_mulan()


def use_xml(content: bytes) -> str:
    Path("bad.arff").write_text(ARFF[len(content) % len(ARFF)])
    Path("bad.xml").write_bytes(content)
    return use_mulan()


def use_mulan() -> str:
    try:
        data = load_mulan("bad.arff")
    except ValueError as error:
        return tell(error)
    data.describe()
    data.to_frame()
    require(len(data.X.shape) == 2 and data.X.shape[0] == len(data.Y), "X and Y do not fit")
    require(bool(np.isin(data.Y, (0, 1)).all()), "labels other than 0 and 1")
    if data.X.shape[0] <= 200 and data.X.shape[1] <= 200:
        try:
            BoomerClassifier(n_rules=2, random_state=0, categorical_features=list(data.nominal_features)).fit(
                data.X, data.Y
            )
        except ValueError as error:
            return tell(error)
    return ""


def command(*arguments: str) -> str:
    """Run a command: it works, or says in one line what is wrong."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(arguments)
    notes = ("boomer: warning: ", "pyboomer compiles ")
    lines = [line for line in err.getvalue().splitlines() if not line.startswith(notes)]
    if code == 0:
        require(not lines, f"it worked, and complained: {lines}")
        return ""
    require(code == 2, f"code {code}: {err.getvalue()[-500:]}")
    require(len(lines) == 1 and lines[0].startswith("boomer: error: "), f"not one line: {err.getvalue()[-500:]}")
    return lines[0]


def use_csv(content: bytes) -> str:
    Path("bad.csv").write_bytes(content)
    return use_table("bad.csv")


def use_parquet(content: bytes) -> str:
    Path("bad.parquet").write_bytes(content)
    return use_table("bad.parquet")


def use_table(name: str) -> str:
    message = command("train", name, "--labels", "y*", "-o", "out.json", "--n-rules", "2", "--random-state", "1")
    return message or command("predict", "out.json", name, "-o", "out.csv")


def use_rule(content: bytes) -> str:
    text = content.decode("utf-8", "replace")
    try:
        rule = parse_rule(text)
    except ValueError as error:
        tell(error)
        return "refused"  # the message shows the whole rule
    again = parse_rule(write_rule(rule))
    require(again == rule, f"{rule!r:.300}, written and read again, is {again!r:.300}")
    return ""


def use_stored_array(content: bytes) -> str:
    try:
        matrix = sp.load_npz(io.BytesIO(content))
    except MemoryError:
        return "refused"  # by SciPy
    except Exception as error:  # SciPy's and NumPy's own
        return type(error).__name__
    return fit_array(matrix)


def use_outcome(content: bytes) -> str:
    store = Store(Path("store"))
    store.locate("b").write_bytes(content)
    try:
        outcome = store.read("b")
    except ValueError as error:
        require("damaged" in str(error), str(error)[:300])
        return tell(error)
    json.dumps(outcome.facts)
    require(outcome.labels.dtype == bool, "labels that are none")
    return ""


Y12 = (np.arange(24).reshape(12, 2) % 3 == 0).astype(int)
FITTED: list[Any] = []


def fit_array(matrix: Any) -> str:
    """Learn from a sparse matrix, and predict: it works, or is refused."""
    if not FITTED:
        FITTED.append(BoomerClassifier(n_rules=3, random_state=1).fit(np.eye(12, 4), Y12))
    try:
        BoomerClassifier(n_rules=3, random_state=1).fit(matrix, Y12).predict(matrix)
        FITTED[0].predict(matrix)
    except (ValueError, TypeError) as error:
        return tell(error)
    return ""


def use_array(rng: np.random.Generator, harmless: bool = False) -> str:
    """A sparse matrix whose arrays were changed behind its back."""
    X = np.where(rng.random((12, 4)) < 0.5, 0, rng.normal(size=(12, 4)))
    matrix: Any = choose(rng, sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.csc_matrix)(X)
    if harmless:
        return fit_array(matrix)
    if matrix.format == "coo":
        axis = int(rng.integers(2))
        coords = [np.array(each) for each in matrix.coords]
        coords[axis][rng.integers(len(coords[axis]))] = choose(rng, -1, 12, 4, 2**31 - 1, -(2**31))
        matrix.coords = tuple(coords)
        return fit_array(matrix)
    for _ in range(int(rng.integers(1, 3))):
        name = choose(rng, "indptr", "indptr", "indices", "data")
        values = np.array(getattr(matrix, name))
        kind = rng.integers(5)
        if kind == 0:
            values = values[: int(rng.integers(len(values) + 1))]
        elif kind == 1:
            values = np.append(values, values[-3:])
        elif kind == 2 and len(values):
            values = values.astype(choose(rng, values.dtype, np.int64, np.float64, np.int8, np.uint32, object))
        elif len(values):
            places = rng.integers(len(values), size=int(rng.integers(1, 3)))
            with np.errstate(all="ignore"):
                wrong = np.array(choose(rng, -1, 0, 5, 12, 100, 10**6, 2**31 - 1, -(2**31)))
                values[places] = wrong.astype(values.dtype)
        setattr(matrix, name, values)
    if rng.random() < 0.1:
        matrix._shape = choose(rng, (12, 2), (12, 10**6), (3, 4), (10**6, 4), (12, 0))
    return fit_array(matrix)


KINDS: dict[str, tuple[float, Callable[[bytes], str]]] = {
    "model": (0.35, use_model),
    "ARFF": (0.2, use_arff),
    "XML": (0.08, use_xml),
    "CSV": (0.12, use_csv),
    "Parquet": (0.02, use_parquet),
    "rule": (0.1, use_rule),
    "stored array": (0.05, use_stored_array),
    "outcome": (0.05, use_outcome),
    "array": (0.03, lambda _: ""),
}
