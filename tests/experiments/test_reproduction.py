"""The reproduction of the paper's evaluation: plans, baselines, results, claims, reports, pictures, the command."""

import csv
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from pyboomer import BoomerClassifier
from pyboomer.cli import main
from pyboomer.datasets import load_dataset
from pyboomer.experiments.baselines import (
    Boosting,
    predict_chain,
    predict_forest,
    predict_powerset,
    predict_relevance,
    prepare_features,
)
from pyboomer.experiments.measures import MEASURES
from pyboomer.experiments.paper import figure1, published, table1
from pyboomer.experiments.paper.budgets import (
    BUDGETS,
    DATA,
    FULL,
    MARKS,
    PAPER_GRID,
    QUICK,
    STANDARD,
    SYNTHETIC,
    Budget,
    guess_seconds,
    list_cuts,
    list_settings,
    plan_figure,
    plan_table,
    plan_unsampled,
)
from pyboomer.experiments.paper.claims import MARGINAL, check_figure, check_table, format_claims
from pyboomer.experiments.paper.figure1 import Figure, Trajectory
from pyboomer.experiments.paper.reproduction import find_commit, measure_union, reproduce_figure1, reproduce_table1
from pyboomer.experiments.paper.table1 import Cell, Table
from pyboomer.experiments.plots import CriticalDifferenceDisplay, TrajectoryDisplay, plot_ranks, save_figure
from pyboomer.experiments.reports import PAPER, WITH_STOPPING, table_to_latex, table_to_markdown
from pyboomer.experiments.store import Outcome, Store
from pyboomer.experiments.tasks import APPROACHES, FIXED, FOREST, RULES, STOPPED, split_folds
from pyboomer.metrics import subset_zero_one_loss

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

TINY = Budget(
    name="quick",
    n_folds=2,
    rule_pairs=((0.5, 1.0), (0.3, 1.0)),
    n_rules=100,
    boosting_pairs=((0.3, 1.0),),
    n_rounds=3,
    max_rounds=4,
    max_rounds_powerset=2,
    n_orders=2,
    n_trees=5,
    figure_pairs=((0.5, 1.0),),
)


def read_csv(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


# --- Budgets ----------------------------------------------------------------------------------------------------------


def test_the_full_budget_is_the_grid_of_the_paper() -> None:
    assert list_cuts(FULL) == []
    assert len(PAPER_GRID) == 3 * 6
    assert len(DATA) == 8
    tasks = plan_table(FULL, DATA[:1])
    of_rules = [task for task in tasks if task.approach in RULES]
    assert len(of_rules) == 4 * 18 * 10
    assert of_rules[0].stages == tuple(range(50, 10_001, 50))
    chains = {task.setting for task in tasks if task.approach == "XGBoost CC"}
    assert len(chains) == 18 * 10
    assert len(plan_figure(FULL)) == 3 * 4 * 18 * 10
    assert {task.max_features for task in plan_figure(FULL)} == {None}
    assert {task.max_features for task in tasks} == {"log2"}


@pytest.mark.parametrize("budget", [QUICK, STANDARD])
def test_what_a_budget_leaves_out_is_said(budget: Budget) -> None:
    cuts = " ".join(list_cuts(budget))
    assert f"{len(budget.rule_pairs)} of 18 pairs" in cuts
    assert f"up to {budget.n_rules:,} of them instead of 10,000" in cuts
    assert f"{budget.n_orders} of 10 random orders" in cuts
    assert f"{budget.max_rounds} rounds at most" in cuts
    assert "Figure 1" in cuts
    assert set(budget.rule_pairs) | set(budget.boosting_pairs) | set(budget.figure_pairs) <= set(PAPER_GRID)


@pytest.mark.parametrize("change", [{"n_folds": 5}, {"n_rules": 50}, {"n_orders": 1}, {"max_rounds": 9}])
def test_no_cut_goes_unsaid(change: dict[str, Any]) -> None:
    assert len(list_cuts(replace(FULL, **change))) == 1


@pytest.mark.parametrize("budget", [QUICK, STANDARD])
def test_every_approach_of_the_paper_comes_first_on_every_data_set(budget: Budget) -> None:
    tasks = plan_table(budget)
    assert len({task.key for task in tasks}) == len(tasks)
    first = tasks[: len(DATA) * len(PAPER) * 10]
    assert {(task.data, task.approach) for task in first} == {(name, a) for name in DATA for a in PAPER}
    assert {task.approach for task in tasks} == set(APPROACHES) == {*RULES, *FIXED, *STOPPED, *FOREST}


def test_the_budgets_fit_their_times_on_two_cores() -> None:
    def guess_minutes(budget: Budget) -> float:
        return sum(map(guess_seconds, plan_table(budget) + plan_figure(budget) + plan_unsampled(budget))) / 60 / 2

    assert guess_minutes(QUICK) < 13  # of 15: compilation takes its part
    assert guess_minutes(STANDARD) < 150


# --- Baselines --------------------------------------------------------------------------------------------------------

BASELINES: dict[str, Callable[..., Any]] = {
    "BR": predict_relevance,
    "LP": predict_powerset,
    "CC": lambda X, Y, X_test, how: predict_chain(X, Y, X_test, how=how, order=1),
}


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.parametrize("name", BASELINES)
def test_baselines_learn_the_digits(name: str, early_stopping: bool) -> None:
    pytest.importorskip("xgboost")
    data = load_dataset("digits7")
    X, Y = prepare_features(data.X), data.Y
    Y = np.column_stack([Y, np.ones(len(Y), dtype=Y.dtype)])  # a label that is always relevant
    how = Boosting(0.5, 1.0, 30, early_stopping, 1)
    found = BASELINES[name](X[:500], Y[:500], X[500:700], how=how)
    assert found.labels.shape == (200, 8)
    assert found.labels[:, 7].all()
    assert ((found.labels == Y[500:700]).mean(axis=0) > 0.75).all()
    assert len(found.rounds) == (1 if name == "LP" else 7)
    assert all(0 < kept <= 30 for kept in found.rounds)
    sparse = BASELINES[name](sp.csr_matrix(X[:500]), Y[:500], sp.csr_matrix(X[500:700]), how=how)
    assert (sparse.labels == Y[500:700]).mean() > 0.85


def test_early_stopping_keeps_fewer_rounds_than_it_may() -> None:
    pytest.importorskip("xgboost")
    random = np.random.default_rng(1)
    X, Y = random.normal(size=(200, 5)).astype(np.float32), random.integers(0, 2, (200, 2))  # nothing to learn
    kept = predict_relevance(X, Y, X, how=Boosting(0.5, 1.0, 200, True, 1)).rounds
    assert max(kept) < 100


def test_a_powerset_predicts_known_vectors_only() -> None:
    pytest.importorskip("xgboost")
    data = load_dataset("digits7")
    labels = predict_powerset(data.X[:100], data.Y[:100], data.X[100:], how=Boosting(0.3, 1.0, 5, False, 1)).labels
    known = {tuple(row) for row in data.Y[:100].tolist()}
    assert {tuple(row) for row in labels.astype(int).tolist()} <= known


def test_a_forest_predicts_several_labels_and_a_single_one() -> None:
    data = load_dataset("digits7")
    found = predict_forest(data.X[:500], data.Y[:500], data.X[500:700], n_trees=20, seed=1)
    assert (found.labels == data.Y[500:700]).mean() > 0.9
    assert predict_forest(data.X[:50], data.Y[:50, :1], data.X[:9], n_trees=2, seed=1).labels.shape == (9, 1)


# --- Table 1 ----------------------------------------------------------------------------------------------------------


def make_published_table() -> Table:
    """The published figures as a table of ours."""
    cells = {}
    for measure in MEASURES:
        values = published.list_values(measure)
        for i, name in enumerate(published.TABLE[measure]):
            for j, approach in enumerate(published.APPROACHES):
                v = float(values[i, j])
                cells[measure, name, approach] = Cell(v, v - 1, v + 1, v, v, "none", 1)
    return Table(DATA, published.APPROACHES, cells)


def store_predictions(tasks: Any, store: Store, rate_of: Callable[[Any, int], float]) -> None:
    """Outcomes in which labels are wrong at a given rate."""
    labels_of = {name: load_dataset(name).Y == 1 for name in {task.data for task in tasks}}
    for task in tasks:
        Y = labels_of[task.data]
        test = split_folds(len(Y), task.n_folds)[task.fold][1]
        random = np.random.default_rng(task.fold)
        stages = task.stages or (0,)
        labels = [Y[test] ^ (random.random(Y[test].shape) < rate_of(task, stage)) for stage in stages]
        store.write(task.key, Outcome(np.array(labels), {"cpu": 1.0, "seconds": 1.0}))


def test_a_table_has_the_settings_that_are_complete_and_knows_the_best(tmp_path: Path) -> None:
    store = Store(tmp_path)
    tasks = plan_table(TINY, ["digits7"], ["ex.w.-log. multi", "XGBoost BR"])
    better = TINY.rule_pairs[1]

    def rate_of(task: Any, stage: int) -> float:
        return 0.05 if (task.setting.learning_rate, stage) == (better[0], 100) else 0.2

    done = [task for task in tasks if task.approach != "XGBoost BR" or task.fold > 0]  # one fold is missing
    store_predictions(done, store, rate_of)
    table = table1.summarise(tasks, store)
    assert table.approaches == ("ex.w.-log. multi",)
    cell = table.cells["hamming", "digits7", "ex.w.-log. multi"]
    assert cell.n_settings == 2 * 2  # two pairs, 50 and 100 rules
    assert cell.best == "rate=0.3 l2=1 size=100 rules=100"
    assert cell.uncorrected == pytest.approx(5, abs=0.5)
    assert cell.low < cell.estimate < cell.high
    assert cell.estimate == pytest.approx(5, abs=0.5)
    f1 = table.cells["f1", "digits7", "ex.w.-log. multi"]
    assert f1.estimate > 90
    assert f1.best == cell.best  # F1 is reported for the choice by the loss that is aimed at


def test_all_claims_about_table_1_hold_for_the_published_table() -> None:
    claims = check_table(make_published_table())
    assert len(claims) >= 8
    assert json.dumps(claims)
    assert [claim.text for claim in claims if not claim.holds] == []


def test_claims_about_table_1_fail_for_a_table_that_refutes_them() -> None:
    table = make_published_table()
    cells = dict(table.cells)
    for measure in MEASURES:  # exchange the best with the worst of the four
        for name in DATA:
            first, second = (measure, name, "ex.w.-log. multi"), (measure, name, "l.w.-log. single")
            cells[first], cells[second] = cells[second], cells[first]
    refuted = [claim for claim in check_table(replace(table, cells=cells)) if not claim.holds]
    assert len(refuted) >= 5
    assert "**no**" in format_claims(refuted)


def test_reports_of_the_table_agree_with_it() -> None:
    table = make_published_table()
    page = table_to_markdown(table, ["a note"])
    assert "| birds | 38.7 <sub>2</sub> |" in page
    assert "**38.3** <sub>1</sub>" in page
    assert "| Avg. rank | 5.31 | 5.19 | 3.38 | **1.75** | 5.75 | 2.50 | 4.12 |" in page
    assert "23.0 / 23.0" in page  # side by side
    assert "critical distances 2.91 / 3.18" in page
    latex = table_to_latex(table)
    assert r"\textbf{38.3} {\scriptsize 1}" in latex
    rows = [line for line in latex.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 3 * (1 + 8 + 1)
    assert all(line.count("&") == 7 for line in rows)


# --- Figure 1 ---------------------------------------------------------------------------------------------------------


def make_trajectory(data: str, approach: str, subset: dict[int, float], folds: int = 2) -> Trajectory:
    """A trajectory whose Hamming loss is a fifth of its subset 0/1 loss."""
    counts, losses = np.array(list(subset)), np.array(list(subset.values()))
    return Trajectory(data, approach, "some", counts, losses / 5, losses, np.tile(losses, (folds, 1)), 1)


def make_figure(needed: dict[str, int], finals: dict[str, dict[str, float]]) -> Figure:
    """A figure in which the losses stay at 80 until so many rules are there, and then have their last value."""
    return Figure(
        {
            (name, approach): make_trajectory(
                name,
                approach,
                {n: finals[name][approach] if n >= needed[approach] else 80.0 for n in (1, 2, 7, 30, 1000)},
            )
            for name in SYNTHETIC
            for approach in RULES
        }
    )


NEEDED = dict(zip(RULES, (1000, 30, 7, 2), strict=True))  # as the paper says
FINALS = {
    SYNTHETIC[0]: dict(zip(RULES, (50.0, 51.0, 50.0, 51.0), strict=True)),
    SYNTHETIC[1]: dict.fromkeys(RULES, 47.0),
    SYNTHETIC[2]: dict(zip(RULES, (13.0, 13.0, 11.0, 11.0), strict=True)),
}


def test_all_claims_about_figure_1_hold_for_a_figure_as_the_paper_describes_it() -> None:
    figure = make_figure(NEEDED, FINALS)
    claims = check_figure(figure, figure)
    assert len(claims) == 7
    assert [claim.text for claim in claims if not claim.holds] == []
    assert "2 rules in 2" in format_claims(claims)
    assert json.dumps(claims)


def test_each_claim_about_figure_1_can_fail() -> None:
    slow = dict(zip(RULES, (2, 7, 30, 1000), strict=True))
    turned = {name: dict(zip(RULES, (11.0, 10.0, 14.0, 13.0), strict=True)) for name in SYNTHETIC}
    figure = make_figure(slow, turned)
    assert not any(claim.holds for claim in check_figure(figure, figure))


def test_a_trajectory_settles_when_it_stays_near_its_end() -> None:
    trajectory = make_trajectory(MARGINAL, "ex.w.-log. multi", {1: 70, 2: 46.8, 3: 50, 4: 47.2, 5: 46.9, 6: 47})
    assert trajectory.count_rules_needed(0.5) == 4
    assert trajectory.count_rules_by_fold(10) == [2, 2]
    assert trajectory.at(3) == (10, 50)


def test_figure_1_is_written_from_what_is_stored_with_the_best_setting(tmp_path: Path) -> None:
    budget = replace(TINY, figure_pairs=((0.5, 1.0), (0.1, 1.0)))
    store = Store(tmp_path / "figure1" / "tasks")

    def rate_of(task: Any, stage: int) -> float:
        return (0.1 if task.setting.learning_rate == 0.1 else 0.2) + 0.4 / stage

    store_predictions(plan_figure(budget) + plan_unsampled(budget), store, rate_of)
    found = reproduce_figure1(budget, tmp_path, compute=False)
    assert isinstance(found.result, Figure)
    assert len(found.result.trajectories) == 3 * 4
    assert {each.setting for each in found.result.trajectories.values()} == {"rate=0.1 l2=1 size=1000"}
    assert {path.name for path in found.files} == {f"figure1.{kind}" for kind in ("md", "csv", "json", "svg", "png")}
    assert all(path.stat().st_size > 500 for path in found.files)
    rows = read_csv(next(path for path in found.files if path.suffix == ".csv"))
    last = [float(row["hamming"]) for row in rows if row["n_rules"] == "1000"]
    assert len(last) == 12
    assert last == pytest.approx([10] * 12, abs=1)
    content = json.loads(next(path for path in found.files if path.suffix == ".json").read_text())
    assert content["facts"]["budget"] == "quick"
    assert len(content["trajectories"]) == 12
    assert len(found.claims) == 7


def test_other_data_than_that_of_figure_1_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"Figure 1 is about synthetic-.*, not emotions"):
        reproduce_figure1(TINY, tmp_path, data=["emotions"])


def test_a_figure_of_nothing_is_refused(tmp_path: Path) -> None:
    for function in (reproduce_figure1, reproduce_table1):
        with pytest.raises(ValueError, match="no complete setting yet; run without --report-only"):
            function(TINY, tmp_path, compute=False)


def learn_synthetic(kind: str, approach: str, n_rules: int, learning_rate: float, **options: Any) -> tuple[Any, Any]:
    data = load_dataset(f"synthetic-{kind}")
    parameters = {**APPROACHES[approach].parameters, "learning_rate": learning_rate, "l2": 1.0, "max_features": None}
    train = options.pop("train", slice(None))
    return data, BoomerClassifier(**parameters, n_rules=n_rules, random_state=1, **options).fit(
        data.X[train], data.Y[train]
    )


def trace_subset(model: Any, X: Any, Y: Any, at: list[int]) -> list[float]:
    return [100 * subset_zero_one_loss(Y, labels) for labels in model.staged_predict(X, at=at)]


def test_under_marginal_dependence_two_multi_label_rules_do_what_single_label_rules_need_seven_for() -> None:
    """The default rule and one more, or one per label; learned from all examples, so that no draw decides."""
    data, multi = learn_synthetic("marginal-dependence", "ex.w.-log. multi", 30, 0.3, bootstrap=False)
    first, second, last = trace_subset(multi, data.X, data.Y, [1, 2, 30])
    assert first > 70
    assert second < last + 0.5
    _, single = learn_synthetic("marginal-dependence", "ex.w.-log. single", 30, 0.3, bootstrap=False)
    sixth, seventh, last = trace_subset(single, data.X, data.Y, [6, 7, 30])
    assert sixth > last + 10
    assert seventh < last + 0.5


def test_under_conditional_dependence_the_example_wise_variants_end_below_the_label_wise_ones() -> None:
    losses = {}
    for approach in RULES:
        data, model = learn_synthetic("conditional-dependence", approach, 1000, 0.3, train=slice(5000))
        losses[approach] = trace_subset(model, data.X[5000:], data.Y[5000:], [1000])[0]
    assert losses["ex.w.-log. single"] < losses["l.w.-log. single"]
    assert losses["ex.w.-log. multi"] < losses["l.w.-log. multi"]


# --- Pictures ---------------------------------------------------------------------------------------------------------


def test_a_trajectory_can_be_drawn_from_an_estimator() -> None:
    data = load_dataset("digits7")
    model = BoomerClassifier(n_rules=20, random_state=1).fit(data.X, data.Y)
    display = TrajectoryDisplay.from_estimator(model, data.X, data.Y, name="ours")
    (line,) = (line for line in display.ax_.lines if line.get_label() == "ours")
    assert len(line.get_xdata()) == 6  # 1, 2, 4, 8, 16, 20
    assert line.get_ydata()[-1] == pytest.approx(100 * (1 - model.score(data.X, data.Y)))
    again = TrajectoryDisplay.from_estimator(model, data.X, data.Y, at=[5, 20], ax=display.ax_)
    assert again.figure_ is display.figure_
    matplotlib.pyplot.close("all")


def test_trajectories_have_marks_of_their_own_and_the_optimum() -> None:
    display = TrajectoryDisplay.from_figure(make_figure(NEEDED, FINALS), MARGINAL)
    lines = {line.get_label(): line for line in display.ax_.lines if not line.get_label().startswith("_")}
    assert set(lines) == {*RULES, "Bayes optimum"}
    assert len({(line.get_color(), line.get_marker()) for line in lines.values()}) == 5
    assert lines["Bayes optimum"].get_ydata()[0] == pytest.approx(46.9, abs=0.05)
    matplotlib.pyplot.close("all")


def test_a_critical_difference_diagram_names_all_approaches_with_their_ranks(tmp_path: Path) -> None:
    table = make_published_table()
    display = CriticalDifferenceDisplay.from_table(table, "subset")
    texts = [text.get_text() for text in display.ax_.texts]
    for name, rank in zip(PAPER, published.AVERAGE_RANKS["subset"], strict=True):
        assert any(name in text and re.search(rf"{rank - 0.01:.2f}|{rank:.2f}", text) for text in texts)
    first = [path.read_bytes() for path in save_figure(plot_ranks(table), tmp_path / "a")]
    assert first == [path.read_bytes() for path in save_figure(plot_ranks(table), tmp_path / "b")]
    matplotlib.pyplot.close("all")


# --- The command ------------------------------------------------------------------------------------------------------


def test_the_command_computes_a_table_and_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("xgboost")
    monkeypatch.setitem(BUDGETS, "quick", TINY)
    results = tmp_path / "results"
    arguments = ["reproduce", "table1", "--data", "digits7", "--results", str(results), "--n-jobs", "1"]
    assert main(arguments) == 0
    output = capsys.readouterr()
    assert "Subset 0/1 loss (%)" in output.out
    assert "Reduced from the paper's grid" in output.out
    assert "minutes of CPU time" in output.err
    home = results / "table1" / "quick"
    assert {path.name for path in home.iterdir()} == {
        *(f"table1.{kind}" for kind in ("md", "csv", "tex", "json")),
        *(f"table1-ranks.{kind}" for kind in ("svg", "png")),
    }
    rows = read_csv(home / "table1.csv")
    assert len(rows) == 3 * len(APPROACHES)
    assert {row["approach"] for row in rows} == {*PAPER, *WITH_STOPPING}
    first = {path: path.stat().st_mtime_ns for path in results.rglob("*.npz")}
    assert len(first) == len(plan_table(TINY, ["digits7"]))

    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["facts"]["tasks"] == f"{len(first)} of {len(first)}"
    assert {path: path.stat().st_mtime_ns for path in results.rglob("*.npz")} == first
    assert 0 <= found["facts"]["wall_minutes"] < 5
    matplotlib.pyplot.close("all")


def test_the_command_names_a_data_set_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("PYBOOMER_DATA", raising=False)
    assert main(["reproduce", "table1", "--results", str(tmp_path / "r"), "--data", "nowhere"]) == 2
    assert "there is no data set 'nowhere'" in capsys.readouterr().err
    assert not list(tmp_path.rglob("*.npz"))


def test_the_time_of_running_leaves_out_the_pauses() -> None:
    begins, ends = np.array([7.0, 0.0, 1.0, 20.0]), np.array([8.0, 5.0, 2.0, 21.5])
    assert measure_union(begins, ends) == 5 + 1 + 1.5


def test_the_commit_is_told_in_a_checkout_only(monkeypatch: pytest.MonkeyPatch) -> None:
    commit = find_commit()
    assert commit is None or re.fullmatch(r"[0-9a-f]{12}\+?", commit)
    monkeypatch.setenv("PATH", "")
    assert find_commit() is None


def test_marks_are_those_of_the_figure() -> None:
    assert MARKS == (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
    assert set(MARKS) <= set(plan_figure(QUICK)[0].stages)


def test_pairs_are_tried_in_the_order_of_the_budget() -> None:
    settings = list_settings(STANDARD, "ex.w.-log. multi")
    assert [(each.learning_rate, each.l2) for each in settings] == list(STANDARD.rule_pairs)
    assert figure1.BAYES[SYNTHETIC[2]] == (10.0, 10.0)


def test_the_code_of_the_page_on_experiments_runs() -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "experiments.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    namespace: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), namespace)
