"""The campaign itself works: its cases repeat, its faults are found, its log becomes a page."""

import json
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from campaign import files, fits, growth
from campaign.damage import damage, damage_json
from campaign.draw import draw_problem
from campaign.report import write_report
from campaign.running import Plan, Tally, draw_for, require, run_parts

from pyboomer.rules.ensemble import RuleEnsemble

PLAN = Plan(seed=1, seconds=60, jobs=1, few=True, bounds=False, log=Path(os.devnull))


def test_a_case_is_made_by_its_seed_and_number_alone() -> None:
    first, again, other = (draw_problem(draw_for(1, case), few=True) for case in (5, 5, 6))
    np.testing.assert_array_equal(first.X, again.X)
    assert first.parameters == again.parameters
    assert first.parameters != other.parameters
    good = [b'{"a": [1, 2.5], "b": {"c": "d"}}', b"x,y\n1,2\n"]
    assert damage(good[0], good, draw_for(1, 2)) == damage(good[0], good, draw_for(1, 2))
    assert len({damage_json(good[0], draw_for(1, case)) for case in range(30)}) > 10


def test_good_rules_are_read_and_damaged_ones_do_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(files.use_rule(text.encode()) == "" for text in files.RULES)
    monkeypatch.setattr(files, "KINDS", {"rule": files.KINDS["rule"]})
    monkeypatch.setitem(files.GOOD, "rule", [text.encode() for text in files.RULES])
    tally = Tally()
    for case in range(30):
        files.run_case(case, draw_for(1, case), tally)
    assert tally.counts["read"] + tally.counts["refused"] == 30


def test_rules_that_differ_by_one_threshold_are_told_apart() -> None:
    X = np.arange(12.0)[:, None]
    rules = fits.BoomerClassifier(n_rules=4, random_state=1).fit(X, (X > 5).astype(int)).rules_
    changed = rules.to_dict()
    changed["condition_values"][-1] += 1
    fits.assert_same(rules, rules)
    with pytest.raises(AssertionError, match="condition_values"):
        fits.assert_same(RuleEnsemble.from_dict(changed), rules)


def test_time_that_grows_by_the_square_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def multiply(n: int) -> growth.Act:
        return lambda: sum(1 for _ in range(n) for _ in range(n))

    monkeypatch.setattr(growth, "CASES", {"squares": (100, multiply)})
    monkeypatch.setattr(growth, "ENOUGH", 0.01)
    with pytest.raises(AssertionError, match="8 times the input"):
        growth.run_case(0, draw_for(1, 0), Tally())


def test_a_log_becomes_a_page_that_tells_failures(tmp_path: Path) -> None:
    stamp = {"part": "files", "seed": 7, "few": False, "bounds": False}
    lines = [
        {"what": "run", "commit": "abc", "python": "3.11", "machine": "x86_64"},
        {"what": "batch", "cases": 1234, "counts": Counter(model=1000), "seconds": 5.0},
        {"what": "failure", "case": 17, "check": "model", "signature": "model: KeyError", "message": "x"},
    ]
    log, page = tmp_path / "log.jsonl", tmp_path / "page.md"
    log.write_text("".join(json.dumps({**stamp, **line}) + "\n" for line in lines) + '{"cut of')
    write_report(log, page)
    text = page.read_text()
    assert "1,234 cases, seeds 7" in text
    assert "| model | 1,000 |" in text
    assert "1 x `model: KeyError`, first with seed 7, case 17" in text


def test_what_dies_in_a_worker_is_a_failure_with_its_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part that dies in its second case of three, and is begun again after it."""
    monkeypatch.setattr("campaign.running.write_command", lambda *_: ["-c", DYING])
    monkeypatch.setenv("CAMPAIGN_MARK", str(tmp_path / "mark"))
    monkeypatch.setattr("campaign.running.signal.signal", lambda *_: None)  # that of this process stays as it is
    log = tmp_path / "log.jsonl"
    assert run_parts({"files": 3}, Plan(1, 60, 1, True, False, log)) == 1
    assert "died with SIGKILL" in capsys.readouterr().out
    found = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["case"] for line in found if line["what"] == "failure"] == [1]


# a worker that is told nothing, and dies in case 1 if it has not been there before
DYING = """
import os, pathlib, signal
mark = pathlib.Path(os.environ["CAMPAIGN_MARK"])
if not mark.exists():
    mark.write_text("")
    pathlib.Path(os.environ["CAMPAIGN_FOLDER"], "progress").write_text("1")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_is_required_must_be_so() -> None:
    require(True, "fine")
    with pytest.raises(AssertionError, match="not so"):
        require(False, "not so")
