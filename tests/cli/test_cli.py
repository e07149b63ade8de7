"""The command line: what its commands print and write, and how they fail."""

import builtins
import gzip
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from pyboomer import BoomerClassifier, BoomerRegressor, __version__, load_model
from pyboomer.cli import main
from pyboomer.cli.group import boomer
from pyboomer.cli.options import NOT_OPTIONS, LearnerCommand, parse_value
from pyboomer.cli.reports import draw_segments
from pyboomer.datasets import load_dataset, load_mulan, load_table
from pyboomer.metrics import METRICS, RANKINGS, average_precision, evaluate, macro_f1
from pyboomer.parameters import PARAMETERS

QUICK = ("--n-rules", "10", "--random-state", "1")


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command in an empty folder, with no data sets but those built in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PYBOOMER_DATA", raising=False)

    def run_command(*arguments: str) -> Outcome:
        capsys.readouterr()
        code = main(arguments)
        return Outcome(code, *capsys.readouterr())

    return run_command


@pytest.fixture
def frame() -> pd.DataFrame:
    """Sixty songs with numbers, words, and two labels, one for each."""
    rng = np.random.default_rng(1)
    tempo, style = rng.normal(size=60), rng.choice(["jazz", "rock"], 60)
    fast, loud = (tempo > 0).astype(int), (style == "rock").astype(int)
    return pd.DataFrame({"tempo": tempo, "is_fast": fast, "style": style, "is_loud": loud})


def fails_in_one_line(outcome: Outcome) -> bool:
    is_one_line = outcome.err.startswith("boomer: error: ") and outcome.err.count("\n") == 1
    return outcome.code == 2 and outcome.out == "" and is_one_line


# --- Options ----------------------------------------------------------------------------------------------------------


def test_every_parameter_is_an_option_or_left_out_for_a_reason() -> None:
    command = boomer.commands["evaluate"]
    assert isinstance(command, LearnerCommand)
    options = {option.name for option in command.list_options()}
    assert options | set(NOT_OPTIONS) == {parameter.name for parameter in PARAMETERS}
    assert not options & set(NOT_OPTIONS)


@pytest.mark.parametrize("name", sorted(set(boomer.commands)))
def test_every_command_has_help_with_an_example(run: Run, name: str) -> None:
    for flag in ("-h", "--help"):
        outcome = run(name, flag)
        assert outcome.code == 0
        assert "Example" in outcome.out
        assert f"  boomer {name}" in outcome.out


@pytest.mark.parametrize("page", ["README.md", "docs/reference/command-line.md", "docs/how-to/experiments.md"])
def test_commands_in_the_documentation_are_accepted(page: str) -> None:
    text = (Path(__file__).parent.parent.parent / page).read_text(encoding="utf-8")
    lines = re.findall(r"^\$ (?:.*&& )?boomer (.*)$", text, flags=re.MULTILINE)
    assert lines
    for line in lines:
        name, *arguments = shlex.split(line, comments=True)
        boomer.commands[name].make_context(name, arguments)


def test_help_gives_meaning_and_default_of_parameters(run: Run) -> None:
    text = " ".join(run("train", "--help").out.split()).replace("- ", "-")
    for parameter in PARAMETERS:
        if parameter.name not in NOT_OPTIONS:
            assert "--" + parameter.name.replace("_", "-") in text
    assert "[default: auto]" in text
    assert "--bootstrap / --no-bootstrap" in text


def test_without_arguments_the_help_is_shown(run: Run) -> None:
    assert run() == run("--help")
    assert "demo" in run().out


def test_version_is_that_of_the_package(run: Run) -> None:
    assert run("--version") == (0, f"pyboomer {__version__}\n", "")


def test_values_are_read_as_the_plainest_thing_they_can_be() -> None:
    assert [parse_value(text) for text in ("7", "0.5", "none", "log2", "True")] == [7, 0.5, None, "log2", True]
    assert [parse_value(text) for text in ("[0.2, 0.5]", "{1: 5}", '{"1": 5}')] == [[0.2, 0.5], {1: 5}, {"1": 5}]
    assert [parse_value(text) for text in ("{1: ", "[exit()]", "{[]: 1}")] == ["{1: ", "[exit()]", "{[]: 1}"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--learning-rate", "3.0"], 'learning_rate must be "auto" or in (0, 1], got 3.0'),
        (["--n-rules", "ten"], "n_rules must be \"auto\" or a whole number of at least 1, got 'ten'"),
        (
            ["--head", "none"],
            'head must be "multi", "single", a whole number',
        ),
        (["--no-such-option"], "No such option"),
        (["--categorical-features", "pixel_9_9"], "there is no feature 'pixel_9_9'"),
        (["--folds", "1"], "1 is not in the range x>=2"),
        (["--folds", "2", "--test-size", "0.5"], "exclude each other"),
        (["--sep", ";;"], "--sep must be one character or `tab`, got ';;'"),
        (["--sep", ";"], "digits7: --sep goes with a CSV"),
    ],
)
def test_bad_options_are_refused_in_one_line(run: Run, options: list[str], message: str) -> None:
    outcome = run("evaluate", "digits7", *options)
    assert fails_in_one_line(outcome)
    assert message in outcome.err


def test_an_unknown_command_is_refused_in_one_line(run: Run) -> None:
    assert fails_in_one_line(run("trian"))


# --- Train, rules, predict --------------------------------------------------------------------------------------------


def test_a_model_learned_from_a_data_set_names_features_and_labels(run: Run) -> None:
    outcome = run("train", "digits7", "-o", "model.json", *QUICK)
    assert outcome.code == 0
    assert outcome.err == ""  # no progress bar where nobody looks
    assert "1,797 examples, 64 features, 7 labels" in outcome.out
    text = run("rules", "model.json").out
    assert "IF pixel_" in text
    assert "DEFAULT a -" in text
    assert len(text.splitlines()) == 11


def test_options_reach_the_classifier(run: Run) -> None:
    options = [
        "--loss",
        "label-wise-logistic",
        "--head",
        "single",
        "--no-bootstrap",
        "--max-features",
        "0.5",
        "--l2",
        "2",
    ]
    run("train", "digits7", "-o", "model.json", *QUICK, *options)
    model = load_model("model.json")
    assert (model.loss, model.head, model.bootstrap) == ("label-wise-logistic", "single", False)
    assert (model.max_features, model.l2, model.n_rules) == (0.5, 2, 10)


def test_a_gpu_that_is_not_there_is_told_with_the_cure(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    outcome = run("train", "digits7", "-o", "model.json", "--device", "cuda")
    assert outcome.code == 2
    assert outcome.err.startswith('boomer: error: device="cuda" needs CuPy')


def test_predictions_are_those_of_the_classifier(run: Run) -> None:
    run("train", "digits7", "-o", "model.json", *QUICK)
    ds = load_dataset("digits7")
    clf = BoomerClassifier(n_rules=10, random_state=1).fit(ds.X, ds.Y)
    for options, expected in [
        ([], clf.predict(ds.X)),
        (["--proba"], clf.predict_proba(ds.X)),
        (["--scores"], clf.decision_function(ds.X)),
        (["--decode", "hamming"], clf.set_params(decode="hamming").predict(ds.X)),
    ]:
        assert run("predict", "model.json", "digits7", "-o", "out.csv", *options) == (0, "", "")
        written = pd.read_csv("out.csv")
        assert list(written.columns) == list("abcdefg")
        np.testing.assert_allclose(written, expected, rtol=1e-5)


def test_tables_find_labels_by_pattern_and_features_by_name(run: Run, frame: pd.DataFrame) -> None:
    frame.to_csv("songs.csv", index=False)
    frame.to_parquet("songs.parquet")
    for data in ("songs.csv", "songs.parquet"):
        assert run("train", data, "--labels", "is_*", "-o", "model.json", *QUICK).code == 0
        model = load_model("model.json")
        assert model.label_names_ == ("is_fast", "is_loud")
        assert list(model.feature_names_in_) == ["tempo", "style"]
        assert "style == rock" in (text := run("rules", "model.json").out) or "style != " in text
    frame[["style", "tempo"]].to_csv("new.csv", index=False)  # other order, no labels
    expected = run("predict", "model.json", "songs.csv").out
    assert expected.startswith("is_fast,is_loud\n")
    for data in ("new.csv", "songs.parquet"):
        assert run("predict", "model.json", data).out == expected


def test_labels_may_be_repeated_or_separated_by_commas(run: Run, frame: pd.DataFrame) -> None:
    frame.to_csv("songs.csv", index=False)
    for labels in (["--labels", "is_loud,is_fast"], ["--labels", "is_loud", "--labels", "is_fast"]):
        run("train", "songs.csv", *labels, "-o", "model.json", *QUICK)
        assert load_model("model.json").label_names_ == ("is_loud", "is_fast")


def test_columns_can_be_ignored(run: Run, frame: pd.DataFrame) -> None:
    songs = frame.assign(song=[f"S{n:02}" for n in range(60)], year=1990, is_good=1)
    songs.to_csv("songs.csv", index=False)
    frame.to_csv("plain.csv", index=False)
    with pytest.warns(UserWarning, match="feature 'song' is nominal, and different in nearly .*: --ignore song"):
        BoomerClassifier(n_rules=1).fit(songs[["tempo", "style", "song"]], songs[["is_fast", "is_loud"]])
    chosen = ["--labels", "is_*", "--ignore", "song,ye*", "--ignore", "is_good"]
    assert run("train", "songs.csv", *chosen, "-o", "model.json", *QUICK).err == ""
    run("train", "plain.csv", "--labels", "is_*", "-o", "plain.json", *QUICK)
    model, plain = load_model("model.json"), load_model("plain.json")
    assert model.label_names_ == plain.label_names_
    assert model.rules_ == plain.rules_
    measured = [
        run("evaluate", name, "--labels", "is_fast,is_loud", *options, "--json", *QUICK).out
        for name, options in (("songs.csv", ["--ignore", "song,year,is_good"]), ("plain.csv", []))
    ]
    assert len({str(json.loads(text)["metrics"]) for text in measured}) == 1
    # a model finds its features among other columns by itself
    assert run("predict", "model.json", "songs.csv").out == run("predict", "plain.json", "plain.csv").out
    assert run("evaluate", "songs.csv", "--model", "model.json").code == 0
    assert run("distil", "model.json", "songs.csv", "-o", "small.json", "--n-rules", "3").code == 0
    assert fails_in_one_line(outcome := run("train", "songs.csv", *chosen, "--ignore", "singer", "-o", "model.json"))
    assert "songs.csv: --ignore: there is no column 'singer'" in outcome.err


def test_columns_of_text_can_be_ordinal(run: Run, frame: pd.DataFrame) -> None:
    frame.assign(style=frame["style"].where(frame["tempo"] < 1)).to_csv("songs.csv", index=False)
    chosen = ["songs.csv", "--labels", "is_*", "-o", "model.json", *QUICK]
    assert run("train", *chosen, "--ordinal", "style=rock,pop,jazz").code == 0
    schema = load_model("model.json").rules_.schema
    assert (schema.ordinal, schema.categories) == ((1,), {1: ("rock", "pop", "jazz")})
    assert "style <= " in (text := run("rules", "model.json").out) or "style > " in text
    assert run("evaluate", "songs.csv", "--model", "model.json").code == 0
    for ordinal, message in (
        ("style=rock,pop", "songs.csv: --ordinal: 'jazz' is no level of 'style'"),
        ("mode=a,b", "songs.csv: --ordinal: there is no column 'mode'"),
        ("style", "--ordinal must be as in size=small,medium,large, got 'style'"),
        ("style=a,a", "--ordinal must be as in"),
    ):
        assert fails_in_one_line(outcome := run("train", *chosen, "--ordinal", ordinal))
        assert message in outcome.err


def test_features_of_a_data_set_can_be_ignored(run: Run) -> None:
    run("train", "digits7", "--ignore", "pixel_0_*", "-o", "model.json", "--n-rules", "2")
    assert load_model("model.json").rules_.feature_names[0] == "pixel_1_0"


def test_numbers_can_be_declared_nominal(run: Run, frame: pd.DataFrame) -> None:
    frame.assign(style=frame["style"].map({"jazz": 3, "rock": 7})).to_csv("songs.csv", index=False)
    run("train", "songs.csv", "--labels", "is_*", "-o", "model.json", "--categorical-features", "style", *QUICK)
    assert load_model("model.json").rules_.categories == {1: (3, 7)}


def test_words_that_look_like_numbers_stay_words_in_new_data(run: Run, frame: pd.DataFrame) -> None:
    frame["style"] = frame["style"].map({"jazz": "1", "rock": "2"})
    frame.loc[0, "style"] = "other"
    frame.to_csv("songs.csv", index=False)
    run("train", "songs.csv", "--labels", "is_*", "-o", "model.json", *QUICK)
    frame[1:].to_csv("new.csv", index=False)
    frame[1:].assign(style=frame["style"][1:].astype(int)).to_parquet("new.parquet")
    expected = run("predict", "model.json", "songs.csv", "--scores").out.splitlines()
    predicted = load_model("model.json").predict(frame[["tempo", "style"]][1:])
    measured = evaluate(frame[["is_fast", "is_loud"]][1:], predicted)
    for data in ("new.csv", "new.parquet"):
        lines = run("predict", "model.json", data, "--scores").out.splitlines()
        assert lines == expected[:1] + expected[2:]
        metrics = json.loads(run("evaluate", data, "--model", "model.json", "--json").out)["metrics"]
        assert {name: metric["mean"] for name, metric in metrics.items()} == measured


DENSE = """@relation 'songs: -C 1'
@attribute loud {0,1}
@attribute tempo numeric
@attribute style {jazz,'hard rock'}
@data
0,1.5,jazz
1,2.5,'hard rock'
0,0.5,jazz
1,?,'hard rock'
"""
SPARSE = """@relation 'songs: -C 2'
@attribute loud {0,1}
@attribute fast {0,1}
@attribute guitar {0,1}
@attribute tempo numeric
@data
{1 1, 3 9}
{0 1, 2 1}
{}
{0 1, 1 1, 2 1, 3 8}
"""


@pytest.mark.parametrize(("content", "condition"), [(DENSE, "style "), (SPARSE, "guitar ")])
def test_arff_files_keep_their_names_in_rules(run: Run, content: str, condition: str) -> None:
    Path("songs.arff").write_text(content)
    options = ["--max-features", "none", "--no-bootstrap", "--l2", "0.1"]
    assert run("train", "songs.arff", "-o", "model.json", *QUICK, *options).code == 0
    text = run("rules", "model.json").out
    assert f"IF {condition}" in text
    assert "loud +" in text
    labels = load_mulan("songs.arff").Y
    predicted = json.loads(run("predict", "model.json", "songs.arff", "--json").out)["predictions"]
    np.testing.assert_array_equal(predicted, labels)
    result = json.loads(run("evaluate", "songs.arff", "--model", "model.json", "--json").out)
    assert result["metrics"]["hamming_loss"]["mean"] == 0


@pytest.mark.parametrize("content", [DENSE, SPARSE])
def test_features_of_arff_files_are_known_by_name_in_python_too(run: Run, content: str) -> None:
    Path("songs.arff").write_text(content)
    run("train", "songs.arff", "-o", "model.json", *QUICK)
    model, frame = load_model("model.json"), load_mulan("songs.arff").to_frame()
    scores = [list(row) for row in model.decision_function(frame)]
    assert json.loads(run("predict", "model.json", "songs.arff", "--scores", "--json").out)["predictions"] == scores
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[frame.columns[::-1]])


def test_a_file_gives_the_model_that_it_gives_in_python(run: Run, frame: pd.DataFrame) -> None:
    frame["size"] = pd.Categorical(frame["tempo"].round().clip(-1, 1).map({-1: "S", 0: "M", 1: "L"}), list("SML"), True)
    frame["year"] = np.where(frame["is_loud"] == 1, 7, 3)
    frame.to_parquet("songs.parquet")
    options = ["--labels", "is_*", "-o", "model.json", "--max-features", "none", "--calibration", "isotonic", *QUICK]
    assert run("train", "songs.parquet", *options).code == 0
    labels = ["is_fast", "is_loud"]
    clf = BoomerClassifier(n_rules=10, random_state=1, max_features=None, calibration="isotonic")
    X = load_table("songs.parquet").drop(columns=labels)
    clf.fit(X, frame[labels])
    loaded = load_model("model.json")
    assert loaded.rules_ == clf.rules_
    assert loaded.rules_.schema.ordinal == (2,)
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    assert run("train", "songs.parquet", *options, "--categorical-features", "year").code == 0
    schema = load_model("model.json").rules_.schema
    assert (schema.ordinal, schema.categories) == ((2,), {1: ("jazz", "rock"), 2: ("S", "M", "L"), 3: (3, 7)})

    frame.assign(day=pd.Timestamp("2026-01-01")).to_parquet("songs.parquet")
    outcome = run("train", "songs.parquet", *options)
    assert fails_in_one_line(outcome)
    assert "column 'day' of X is not numeric (dtype datetime64" in outcome.err
    assert run("train", "songs.parquet", *options, "--categorical-features", "day").code == 0


def test_a_model_with_words_for_categories_finds_them_in_a_file_where_all_are_numbers(run: Run) -> None:
    Path("songs.arff").write_text(DENSE.replace("hard rock", "2").replace("jazz", "1").replace("{1,", "{other,1,"))
    run("train", "songs.arff", "-o", "model.json", *QUICK)
    expected = run("predict", "model.json", "songs.arff", "--scores")
    Path("songs.arff").write_text(DENSE.replace("hard rock", "2").replace("jazz", "1"))
    assert run("predict", "model.json", "songs.arff", "--scores") == expected


def test_predictions_are_written_with_ids_in_the_format_of_the_ending(run: Run, frame: pd.DataFrame) -> None:
    frame["song"] = [f"{n:03d}" for n in range(60)]
    frame.loc[3, "song"] = "NA"
    frame["part"] = range(60)
    labels = ["is_fast", "is_loud"]
    BoomerClassifier(n_rules=10, random_state=1).fit(frame[["tempo", "style"]], frame[labels]).save("model.json")
    predicted = load_model("model.json").predict_proba(frame[["tempo", "style"]])
    for sep, ending in (",", ".csv"), ("\t", ".tsv"), (",", ".csv.gz"), ("\t", ".TSV.GZ"):
        for options, given in ([], sep), (["--sep", ";"], ";"):
            frame.to_csv("new" + ending, index=False, sep=given)
            arguments = ["new" + ending, "--proba", "--id", "song,part", *options]
            assert run("predict", "model.json", *arguments, "-o", "out" + ending) == (0, "", "")
            written = pd.read_csv("out" + ending, sep=given, dtype={"song": str}, keep_default_na=False)
            assert list(written.columns) == ["song", "part", *labels]
            assert list(written["song"]) == list(frame["song"])
            np.testing.assert_allclose(written[labels], predicted, rtol=1e-5)
    assert run("predict", "model.json", *arguments, "-o", "out.parquet").code == 0
    written = pd.read_parquet("out.parquet")
    assert list(written["song"]) == list(frame["song"])
    np.testing.assert_array_equal(written[labels], predicted)
    assert run("predict", "model.json", *arguments, "-o", "out.json.gz").code == 0
    with gzip.open("out.json.gz") as file:
        content = json.load(file)
    assert content["ids"]["song"] == list(frame["song"])
    assert content["predictions"] == predicted.tolist()


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-20], lambda data: data[:30] + b"xx" + data[32:], lambda _: b"x"]
)
def test_a_damaged_gzip_file_is_named(run: Run, frame: pd.DataFrame, damage: Callable[[bytes], bytes]) -> None:
    Path("new.csv.gz").write_bytes(damage(gzip.compress(frame.to_csv().encode())))
    outcome = run("train", "new.csv.gz", "--labels", "is_*", "-o", "model.json")
    assert outcome.code == 2
    assert outcome.err.startswith("boomer: error: new.csv.gz: a damaged gzip file: ")


def test_ids_keep_all_their_digits(run: Run, frame: pd.DataFrame) -> None:
    BoomerClassifier(n_rules=10, random_state=1).fit(frame[["tempo", "style"]], frame[["is_fast"]]).save("model.json")
    ids = [123456789.0, None, 0.123456789, *range(57)]
    frame.assign(song=ids).to_parquet("new.parquet")  # with a gap among them, numbers are floats
    lines = run("predict", "model.json", "new.parquet", "--id", "song").out.splitlines()
    assert [line.split(",")[0] for line in lines[1:5]] == ["123456789", "", "0.123456789", "0"]


def test_ids_are_copied_even_if_they_are_features(run: Run, frame: pd.DataFrame) -> None:
    frame["song"] = [f"{n:03d}" for n in range(60)]
    frame["number"] = 1234567.0 + np.arange(60)
    frame["time"] = 0.1 + np.arange(60)
    frame["rank"] = pd.array([2**60 + 1, None] * 30, dtype="Int64")
    columns = ["song", "number", "time", "rank"]
    frame.drop(columns="rank").to_csv("new.csv", index=False)
    assert run("train", "new.csv", "--labels", "is_*", "-o", "model.json", "--n-rules", "5", "--quiet").code == 0
    lines = run("predict", "model.json", "new.csv", "--id", "song,number,time").out.splitlines()
    assert [line.rsplit(",", 2)[0] for line in lines[1:3]] == ["000,1234567.0,0.1", "001,1234568.0,1.1"]

    BoomerClassifier(n_rules=5).fit(frame[["tempo"]], frame[["is_fast", "is_loud"]]).save("model.json")
    frame.to_parquet("new.parquet")
    lines = run("predict", "model.json", "new.parquet", "--id", ",".join(columns)).out.splitlines()
    assert [line.rsplit(",", 2)[0] for line in lines[1:3]] == [f"000,1234567,0.1,{2**60 + 1}", "001,1234568,1.1,"]
    assert run("predict", "model.json", "new.parquet", "--id", ",".join(columns), "-o", "out.parquet").code == 0
    pd.testing.assert_frame_equal(pd.read_parquet("out.parquet")[columns], frame[columns])


def test_columns_of_the_same_name_are_refused(run: Run) -> None:
    Path("new.csv").write_text("a,hit,hit\n1,0,0\n2,1,1\n3,1,1\n")
    code, _, err = run("train", "new.csv", "--labels", "hit", "-o", "model.json")
    assert (code, err) == (2, "boomer: error: new.csv: two columns have the same name, 'hit'\n")


def test_a_long_message_leaves_out_its_middle(run: Run) -> None:
    Path("new.csv").write_text(f"a,hit\n1,0\n2,{'9' * 5000}\n")
    err = run("train", "new.csv", "--labels", "hit", "-o", "model.json").err
    assert " ... " in err
    assert len(err) < 1600


def test_rows_longer_than_the_header_are_refused(run: Run, frame: pd.DataFrame) -> None:
    text = frame.to_csv(index=False)
    Path("new.csv").write_text(text.replace("\n", ",\n").replace(",\n", "\n", 1))  # a comma ends each row
    code, _, err = run("train", "new.csv", "--labels", "is_*", "-o", "model.json")
    assert code == 2
    assert err.startswith("boomer: error: new.csv: rows have more cells than the header has names")


def test_a_damaged_compressed_table_is_named(run: Run, frame: pd.DataFrame) -> None:
    frame.to_csv("whole.csv.gz", index=False)
    data = Path("whole.csv.gz").read_bytes()
    damages = {"plain": b"tempo,style\n", "short": data[:-20], "flipped": data[:20] + b"\xff\xff" + data[22:]}
    for name, content in damages.items():
        Path(f"{name}.csv.gz").write_bytes(content)
        code, out, err = run("train", f"{name}.csv.gz", "--labels", "is_*", "-o", "model.json")
        assert (code, out) == (2, "")
        assert err.startswith(f"boomer: error: {name}.csv.gz: ")


def test_no_cell_of_a_table_is_a_formula(run: Run, frame: pd.DataFrame) -> None:
    labels = ["=cmd|' /C calc'!A0", "@loud"]
    frame = frame.set_axis(["tempo", labels[0], "style", labels[1]], axis=1).assign(song="+1", phone="+SUM(A1)")
    BoomerClassifier(n_rules=10, random_state=1).fit(frame[["tempo", "style"]], frame[labels]).save("model.json")
    frame.to_csv("new.csv", index=False)
    lines = run("predict", "model.json", "new.csv", "--scores", "--id", "song,phone").out.splitlines()
    assert lines[0] == "song,phone,'=cmd|' /C calc'!A0,'@loud"
    assert all(line.startswith("+1,'+SUM(A1),") for line in lines[1:])
    assert any(",-" in line for line in lines)  # a number stays one
    names = json.loads(run("predict", "model.json", "new.csv", "--json").out)["labels"]
    assert names == labels


def test_a_table_in_a_terminal_has_no_control_characters(
    run: Run, frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = frame.rename(columns={"is_loud": "is_loud\x1b[2J"})
    labels = frame[["is_fast", "is_loud\x1b[2J"]]
    BoomerClassifier(n_rules=10, random_state=1).fit(frame[["tempo", "style"]], labels).save("model.json")
    frame.to_csv("new.csv", index=False)
    assert run("predict", "model.json", "new.csv").out.startswith("is_fast,is_loud\x1b[2J\n")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert run("predict", "model.json", "new.csv").out.startswith("is_fast,is_loud\\x1b[2J\n")


def test_an_arff_file_without_labels_can_be_predicted(run: Run) -> None:
    Path("songs.arff").write_text(DENSE)
    run("train", "songs.arff", "-o", "model.json", *QUICK)
    lines = [line for line in DENSE.splitlines() if "loud" not in line]
    Path("new.arff").write_text("\n".join(line[2:] if line[0] in "01" else line for line in lines))
    assert run("predict", "model.json", "new.arff") == run("predict", "model.json", "songs.arff")


def test_an_xml_file_names_the_labels(run: Run) -> None:
    Path("songs.arff").write_text(DENSE.replace(": -C 1", ""))
    Path("labels.xml").write_text('<labels><label name="loud"></label></labels>')
    assert fails_in_one_line(run("train", "songs.arff", "-o", "model.json", *QUICK))
    assert run("train", "songs.arff", "--xml", "labels.xml", "-o", "model.json", *QUICK).code == 0


def test_rules_can_be_filtered(run: Run) -> None:
    run("train", "digits7", "-o", "model.json", "--head", "single", *QUICK)
    every = json.loads(run("rules", "model.json", "--json").out)
    assert [rule["rule"] for rule in every] == list(range(10))
    some = json.loads(run("rules", "model.json", "--label", "g", "--json").out)
    assert [rule["rule"] for rule in some] == [rule["rule"] for rule in every if rule["scores"].get("g")]
    assert all(list(rule["scores"]) == ["g"] for rule in some)
    name = every[1]["conditions"][0][0]
    named = json.loads(run("rules", "model.json", "--feature", name, "--json").out)
    assert {rule["rule"] for rule in named} == {
        rule["rule"] for rule in every if name in [condition[0] for condition in rule["conditions"]]
    }
    best = json.loads(run("rules", "model.json", "--top", "3", "--json").out)
    assert [rule["gain"] for rule in best] == sorted((rule["gain"] for rule in every), reverse=True)[:3]
    most = json.loads(run("rules", "model.json", "--label", "g", "--top", "60%", "--json").out)
    gains = sorted((rule["gain"] for rule in some), reverse=True)
    assert [rule["gain"] for rule in most] == gains[: len(most)]
    assert sum(gains[: len(most) - 1]) < 0.6 * sum(gains) <= sum(gains[: len(most)])
    assert "g " in run("rules", "model.json", "--label", "g", "--top", "60%").out
    for wrong in ("0", "101%", "ten"):
        assert f"{wrong!r} is neither a number of rules" in run("rules", "model.json", "--top", wrong).err


def test_names_cannot_fake_lines_or_speak_to_the_terminal(run: Run, frame: pd.DataFrame) -> None:
    labels = ["is_fast\n  9  100  99.00%  DEFAULT is_loud +9", "is_loud\x1b[2J\u202e"]
    frame = frame.set_axis(["tempo\r", labels[0], "style\x9b", labels[1]], axis=1)
    X, Y = frame[["tempo\r", "style\x9b"]], frame[labels]
    model = BoomerClassifier(n_rules=10, random_state=1).fit(X.replace("rock", "rock\nroll"), Y)
    model.save("model.json")
    text = run("rules", "model.json").out
    assert len(text.splitlines()) == 11
    assert "is_fast\\n  9  100  99.00%  DEFAULT is_loud +9 " in text
    assert "is_loud\\x1b[2J\\u202e" in text
    refused = run("rules", "model.json", "--feature", "\x1b").err
    for shown in (text, refused, str(model.rules_), str(model.explain(X[:1])[0])):
        assert all(line.isprintable() for line in shown.splitlines())
    assert len(str(model.rules_).splitlines()) == 11
    conditions = [c for rule in json.loads(run("rules", "model.json", "--json").out) for c in rule["conditions"]]
    assert {name for name, *_ in conditions} == set(X.columns)  # a program sees what is there


def test_json_is_all_there_is_on_the_output(run: Run, frame: pd.DataFrame) -> None:
    frame.to_csv("songs.csv", index=False)
    trained = json.loads(run("train", "songs.csv", "--labels", "is_*", "-o", "model.json", "--json", *QUICK).out)
    assert (trained["rules"], trained["labels"], trained["parameters"]["l2"]) == (10, ["is_fast", "is_loud"], 1.0)
    predicted = json.loads(run("predict", "model.json", "songs.csv", "--json").out)
    assert predicted["labels"] == ["is_fast", "is_loud"]
    assert np.shape(predicted["predictions"]) == (60, 2)


# --- Evaluate, datasets, demo -----------------------------------------------------------------------------------------


def test_holding_out_gives_all_metrics(run: Run) -> None:
    result = json.loads(run("evaluate", "digits7", "--json", *QUICK).out)
    assert list(result["metrics"]) == list(METRICS)
    assert result["test_size"] == pytest.approx(1 / 3)
    assert result["metrics"]["hamming_loss"]["std"] is None
    text = run("evaluate", "digits7", *QUICK).out
    assert "Trained on 1,198, tested on 599" in text
    assert f"{result['metrics']['hamming_loss']['mean']:.4f}" in text  # the same seed, the same result


def test_measures_can_be_chosen_and_say_what_nothing_counts(run: Run, frame: pd.DataFrame) -> None:
    frame = frame.assign(is_never=0)
    labels = ["is_fast", "is_loud", "is_never"]
    clf = BoomerClassifier(n_rules=10, random_state=1).fit(frame[["tempo", "style"]], frame[labels])
    clf.save("model.json")
    frame.to_csv("songs.csv", index=False)
    command = ["evaluate", "songs.csv", "--model", "model.json"]
    X, Y = frame[["tempo", "style"]], frame[labels]
    for zero_division in (1, 0):
        options = ["--metric", "macro_f1,average_*", "--zero-division", str(zero_division)]
        result = json.loads(run(*command, *options, "--json").out)
        assert {name: metric["mean"] for name, metric in result["metrics"].items()} == {
            "macro_f1": macro_f1(Y, clf.predict(X), zero_division=zero_division),
            "average_precision": average_precision(Y, clf.decision_function(X)),
        }
        assert f"0/0 counts as {zero_division}" in run(*command, *options).out
    assert "0/0" not in run(*command, "--metric", "hamming_loss").out
    assert list(json.loads(run(*command, "--metric", "*", "--json").out)["metrics"]) == [*METRICS, *RANKINGS]
    outcome = run(*command, "--metric", "accuracy")
    assert fails_in_one_line(outcome)
    assert "--metric: there is no measure 'accuracy'" in outcome.err


def test_folds_give_mean_and_spread(run: Run) -> None:
    result = json.loads(run("evaluate", "digits7", "--folds", "3", "--json", *QUICK).out)
    metric = result["metrics"]["subset_zero_one_loss"]
    assert len(metric["values"]) == 3
    assert metric["mean"] == pytest.approx(np.mean(metric["values"]))
    assert metric["std"] == pytest.approx(np.std(metric["values"], ddof=1))
    assert "3-fold cross validation" in run("evaluate", "digits7", "--folds", "3", *QUICK).out


def test_a_saved_model_is_evaluated_as_it_is(run: Run, frame: pd.DataFrame) -> None:
    frame.to_csv("songs.csv", index=False)
    run("train", "songs.csv", "--labels", "is_*", "-o", "model.json", *QUICK)
    result = json.loads(run("evaluate", "songs.csv", "--model", "model.json", "--json").out)
    predicted = pd.DataFrame(
        load_model("model.json").predict(frame[["tempo", "style"]]), columns=["is_fast", "is_loud"]
    )
    expected = (predicted != frame[["is_fast", "is_loud"]]).to_numpy().mean()
    assert result["metrics"]["hamming_loss"]["mean"] == pytest.approx(expected)
    assert fails_in_one_line(run("evaluate", "songs.csv", "--model", "model.json", "--l2", "2"))


def test_data_sets_are_listed_and_described(run: Run) -> None:
    listed = run("datasets").out
    assert "digits7" in listed
    assert "built in" in listed
    assert {"name": "digits7", "place": "built in"} in json.loads(run("datasets", "--json").out)
    described = json.loads(run("datasets", "digits7", "--json").out)
    assert (described["examples"], described["features"], described["labels"]) == (1797, 64, 7)
    assert described["distinct_label_vectors"] == 10
    assert described["label_counts"]["e"] == 710
    assert "39.5%" in run("datasets", "digits7").out


def test_the_demo_shows_rules_a_drawing_and_test_results(run: Run) -> None:
    outcome = run("demo", "--quiet")
    assert outcome.code == 0
    for part in ("IF pixel_", "-> a +", "shows ", "Hamming loss", "subset 0/1 loss", "label-wise", "boomer train"):
        assert part in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 100


def test_a_display_shows_its_segments() -> None:
    assert draw_segments([1, 1, 0, 1, 1, 0, 1]) == [" ___", "    |", " ___|", "|", "|___"]


# --- Failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "digits7", "-o", "no/model.json"], "there is no folder no"),
        (["train", "digits7", "-o", "."], "is a folder"),
        (["train", "digits7"], "Missing option"),
        (["train", "digits8", "-o", "m.json"], "Did you mean 'digits7'?"),
        (["train", "digits7", "-o", "m.json", "--labels", "a"], "--labels goes with a CSV or Parquet file"),
        (["train", "digits7", "-o", "m.json", "--xml", "a"], "--xml goes with an ARFF file"),
        (["train", "gone.arff", "-o", "m.json"], "gone.arff: No such file"),
        (["train", "gone.csv", "-o", "m.json"], "gone.csv: No such file"),
        (["train", "gone.parquet", "-o", "m.json"], "gone.parquet: No such file"),
        (["train", "some/where", "-o", "m.json"], "some/where: there is no such file"),
        (["train", "songs.txt", "-o", "m.json"], "what format is this?"),
        (["train", "bad.arff", "-o", "m.json"], "bad.arff"),
        (["train", "bad.csv", "-o", "m.json", "--labels", "y"], "bad.csv"),
        (["train", "bad.parquet", "-o", "m.json", "--labels", "y"], "bad.parquet"),
        (["train", "songs.csv", "-o", "m.json"], "which columns are labels?"),
        (["train", "songs.csv", "-o", "m.json", "--labels", "mood*"], "there is no column 'mood*'"),
        (["train", "songs.csv", "-o", "m.json", "--labels", "style"], "label 'style' is"),
        (["rules", "gone.json"], "gone.json: No such file"),
        (["rules", "songs.csv"], "not a pyboomer model"),
        (["rules", "model.json", "--label", "zebra"], "there is no label 'zebra'"),
        (["predict", "model.json", "songs.csv"], "missing columns: 'pixel_0_0', 'pixel_0_1'"),
        (["evaluate", "songs.csv", "--model", "model.json", "--labels", "is_*"], "missing labels: 'a'"),
    ],
)
def test_what_goes_wrong_is_told_in_one_line(run: Run, frame: pd.DataFrame, arguments: list[str], message: str) -> None:
    frame.to_csv("songs.csv", index=False)
    Path("songs.txt").write_text("tempo\n1\n")
    Path("bad.arff").write_text("@relation x\n@attribute a numeric\n@data\nfast\n")
    Path("bad.csv").write_bytes(b"a,y\n1,0\n1,0,3,4\n")
    Path("bad.parquet").write_bytes(b"no such thing")
    if "model.json" in arguments:
        run("train", "digits7", "-o", "model.json", *QUICK)
    outcome = run(*arguments)
    assert fails_in_one_line(outcome), outcome
    assert message in outcome.err


def test_pandas_is_asked_for_only_where_it_is_needed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("songs.arff").write_text(DENSE)
    plain_import = builtins.__import__

    def import_all_but_pandas(name: str, scope: Any = None, *others: Any) -> Any:
        if name == "pandas" and (scope or {}).get("__name__", "").startswith("pyboomer"):
            raise ImportError(name)
        return plain_import(name, scope, *others)

    monkeypatch.setattr(builtins, "__import__", import_all_but_pandas)
    assert run("train", "digits7", "-o", "model.json", *QUICK).code == 0
    assert run("predict", "model.json", "digits7", "-o", "out.csv").code == 0
    for arguments in (["train", "songs.csv", "--labels", "is_*"], ["train", "songs.arff"]):
        outcome = run(*arguments, "-o", "model.json")
        assert fails_in_one_line(outcome)
        assert "needs pandas: pip install 'pyboomer[pandas]'" in outcome.err


def test_a_missing_label_is_unknown(run: Run, frame: pd.DataFrame) -> None:
    frame["is_loud"] = frame["is_loud"].where(frame.index % 3 > 0)
    frame.to_csv("songs.csv", index=False)
    outcome = run("train", "songs.csv", "-o", "m.json", "--labels", "is_*", *QUICK)
    assert "2 labels; nominal: 'style'; 20 labels unknown\n" in outcome.out
    table, labels = frame[["tempo", "style"]], frame[["is_fast", "is_loud"]]
    model = BoomerClassifier(n_rules=10, random_state=1).fit(table, labels)
    assert load_model("m.json").rules_ == model.rules_
    result = json.loads(run("evaluate", "songs.csv", "--model", "m.json", "--json").out)
    assert {name: metric["mean"] for name, metric in result["metrics"].items()} == evaluate(
        labels, model.predict(table)
    )
    assert run("evaluate", "songs.csv", "--labels", "is_*", "--folds", "2", *QUICK).code == 0
    frame["is_loud"] = frame["is_loud"].replace(1, 2)
    frame.set_index("style").to_parquet("songs.parquet")  # an index is no numbering of rows
    outcome = run("train", "songs.parquet", "-o", "m.json", "--labels", "is_*")
    assert fails_in_one_line(outcome)
    row = int((frame["is_loud"] == 2).to_numpy().argmax()) + 1
    assert f"label 'is_loud' is 2.0 in row {row}," in outcome.err


# --- Signals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "word", "code"), [("SIGINT", "interrupted", 130), ("SIGTERM", "terminated", 143)])
def test_an_interrupted_training_saves_the_rules_learned_beside_what_is_there(
    run: Run, monkeypatch: pytest.MonkeyPatch, number: str, word: str, code: int
) -> None:
    from pyboomer.engine.cpu.engines import HostEngine

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    learn = HostEngine.learn

    def learn_some(self: HostEngine, count: int) -> None:
        learn(self, count)
        if self.n_rules > 3:
            signal.raise_signal(getattr(signal, number))

    monkeypatch.setattr(HostEngine, "learn", learn_some)
    others = ("model-interrupted.json", "model-interrupted-2.json", "model-interrupted-3.json")
    for place, kept in ("model.json", ""), *((other, "; model.json is as it was") for other in others):
        outcome = run("train", "digits7", "-o", "model.json", "--n-rules", "100")
        model = load_model(place)
        assert 3 < len(model.rules_) < 100
        assert model.label_names_ == tuple("abcdefg")
        learned = f"the {len(model.rules_)} rules learned so far are saved in {place}{kept}"
        assert outcome == (code, "", f"boomer: {word}: {learned}\n")
        Path("model.json").write_text("a good model")
    assert Path("model.json").read_text() == "a good model"
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_an_interrupt_elsewhere_is_told_in_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pyboomer.cli.commands.read_input", interrupt)
    assert run("train", "digits7", "-o", "model.json") == (130, "", "boomer: interrupted\n")


def test_no_command_writes_over_what_it_reads(run: Run, frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    frame.to_csv("songs.csv", index=False)
    Path("songs.arff").write_text(DENSE.replace(": -C 1", ""))
    Path("songs.xml").write_text('<labels><label name="loud"></label></labels>')
    Path("model.json").write_bytes((Path(__file__).parent.parent / "export" / "model-v1.json").read_bytes())
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    monkeypatch.setenv("PYBOOMER_DATA", ".")
    for arguments in (
        ["train", "songs.csv", "--labels", "is_*", "-o", "songs.csv"],
        ["train", "songs.arff", "-o", "songs.xml"],
        ["train", "songs", "-o", "songs.arff"],
        ["predict", "model.json", "songs.csv", "-o", "model.json"],
        ["predict", "model.json", "songs.csv", "-o", "./songs.csv"],
        ["export", "model.json", "-o", "model.json"],
        ["explore", "model.json", "--data", "songs.csv", "-o", "songs.csv"],
    ):
        outcome = run(*arguments)
        assert fails_in_one_line(outcome)
        assert "it is read by the same command" in outcome.err
    assert before == {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}


def test_a_defect_is_told_without_a_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyboomer.cli.commands.read_input", lambda *_, **__: 1 / 0)
    outcome = run("train", "digits7", "-o", "model.json")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == "boomer: error: unexpected ZeroDivisionError: division by zero; please report this\n"


def test_a_closed_pipe_ends_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        command = [sys.executable, "-c", "from pyboomer.cli import main; raise SystemExit(main(['datasets']))"]
        ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writer)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_a_progress_bar_is_shown_in_a_terminal_only(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("evaluate", "digits7", "--folds", "2", *QUICK).err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert "Folds" in run("evaluate", "digits7", "--folds", "2", *QUICK).err
    assert "Learning" in run("evaluate", "digits7", *QUICK).err
    assert run("evaluate", "digits7", "--quiet", *QUICK).err == ""


def test_training_may_stop_early(run: Run) -> None:
    options = ("--early-stopping", "--n-iter-no-change", "10", "--scoring", "accuracy", "--learning-rate", "1")
    assert run("train", "digits7", "-o", "model.json", *options, "--random-state", "1").code == 0
    assert len(load_model("model.json").rules_) < 1000
    assert re.search(r"tested on 599, \d{1,3} rules, ", run("evaluate", "digits7", *options).out)
    assert re.search(
        r"cross validation, up to \d{1,3} rules, ", run("evaluate", "digits7", "--folds", "3", *options).out
    )
    assert fails_in_one_line(run("train", "digits7", "-o", "model.json", "--scoring", "hammer"))


def test_a_model_is_exported_as_a_python_file(run: Run) -> None:
    run("train", "digits7", "-o", "model.json", *QUICK)
    assert run("export", "model.json", "-o", "model.py") == (0, "Wrote model.py\n", "")
    assert Path("model.py").read_text(encoding="utf-8") == load_model("model.json").to_python()
    for output in ("model.txt", "model"):
        outcome = run("export", "model.json", "-o", output)
        assert fails_in_one_line(outcome)
        assert "must end in .onnx or .py" in outcome.err


def test_a_model_is_exported_as_onnx(run: Run) -> None:
    onnx = pytest.importorskip("onnx")
    run("train", "digits7", "-o", "model.json", *QUICK)
    assert run("export", "model.json", "-o", "model.onnx").code == 0
    onnx.checker.check_model(onnx.load("model.onnx"))


def test_a_model_is_made_smaller(run: Run) -> None:
    run("train", "digits7", "-o", "model.json", *QUICK)
    model = load_model("model.json")
    outcome = run("distil", "model.json", "digits7", "-o", "small.json", "--n-conditions", "4", "--json")
    small = load_model("small.json").rules_
    assert json.loads(outcome.out)["after"] == {"rules": len(small), "conditions": len(small.condition_features)}
    assert 1 <= len(small.condition_features) <= 4
    assert fails_in_one_line(run("distil", "model.json", "digits7", "-o", "small.json"))
    assert "have become 2 rules" in run("compact", "model.json", "-o", "cut.json", "--n-rules", "2").out
    assert str(load_model("cut.json").rules_[1].head_text()) == str(model.rules_[1].head_text())


def test_a_model_of_numbers_predicts_numbers(run: Run, frame: pd.DataFrame) -> None:
    frame.to_csv("songs.csv", index=False)
    model = BoomerRegressor(n_rules=5, random_state=1).fit(frame[["tempo"]], frame[["is_fast"]] * 2.5)
    model.save("model.json")
    lines = run("predict", "model.json", "songs.csv").out.splitlines()
    assert lines[0] == "is_fast"
    np.testing.assert_allclose([float(line) for line in lines[1:]], model.predict(frame[["tempo"]])[:, 0], rtol=1e-5)
    assert "is_fast" in run("rules", "model.json").out
    for arguments in (
        ["predict", "model.json", "songs.csv", "--proba"],
        ["evaluate", "songs.csv", "--model", "model.json"],
    ):
        outcome = run(*arguments)
        assert fails_in_one_line(outcome)
        assert "predicts numbers" in outcome.err


def test_classes_of_one_column_are_predicted_as_such(run: Run, frame: pd.DataFrame) -> None:
    frame.to_csv("songs.csv", index=False)
    BoomerClassifier(n_rules=5, random_state=1).fit(frame[["tempo"]], frame["style"]).save("model.json")
    lines = run("predict", "model.json", "songs.csv").out.splitlines()
    assert lines[0] == "class"
    assert set(lines[1:]) <= {"jazz", "rock"}
    assert run("predict", "model.json", "songs.csv", "--proba").out.startswith("jazz,rock\n")
    assert run("predict", "model.json", "songs.csv", "--scores").out.startswith("rock\n")
    assert fails_in_one_line(run("evaluate", "songs.csv", "--model", "model.json"))


def test_the_module_is_the_command() -> None:
    for arguments, code in (["--version"], 0), (["rules", "nowhere.json"], 2):
        ended = subprocess.run([sys.executable, "-m", "pyboomer", *arguments], capture_output=True, check=False)
        assert ended.returncode == code
