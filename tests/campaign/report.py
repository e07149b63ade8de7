"""A report is the log of a campaign as a page: what was tried how often, and what failed."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

TITLES = {
    "fits": "Fits on random data with random parameters",
    "options": "The command line and the library",
    "files": "Hostile files",
    "kills": "Kills",
    "places": "Caches, disks, threads, memory",
    "growth": "Time when the input grows",
}
ABOUT = {
    "fits": "The engine learns the same rules as the slow reference. The order of rows, the number of threads, "
    "the container of the data and the like change nothing.",
    "options": "The command line trains and stores the same model that the library fits.",
    "files": "A damaged file either works or gives one clear error, within two seconds and 1 GiB.",
    "kills": "A signal (INT, TERM or KILL) ends the process at a random moment. Each file is then the old one or "
    "the new one, and experiments go on.",
    "places": "Caches are cold, shared, damaged or read-only; disks are full; HOME is missing; eight threads fit "
    "at once; one process fits for long.",
    "growth": "Eight times the input takes about eight times as long.",
}


def read_log(path: Path) -> list[dict[str, Any]]:
    """The lines of a log; the last one may have been cut off."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def write_report(log: Path, output: Path) -> None:
    """Write the page."""
    lines = read_log(log)
    parts: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        parts[line["part"]].append(line)
    cases = sum(line["cases"] for line in lines if line["what"] == "batch")
    n_failures = sum(line["what"] == "failure" for line in lines)
    pages = [
        "# Reliability",
        f"What breaks pyboomer? A campaign tries random data, random parameters, damaged files and sudden ends: "
        f"{cases:,} cases so far, and {n_failures:,} failures.",
        "Repeat it with `python tests/campaign long`; `python tests/campaign report` then writes this page. A seed and "
        "a number make each case. Each failure comes with the command that repeats it.",
    ]
    pages += [write_part(part, parts[part]) for part in TITLES if part in parts] or ["There is no run in the log yet."]
    output.write_text("\n\n".join(pages) + "\n", encoding="utf-8")
    print(f"wrote {output}")


def write_part(part: str, lines: list[dict[str, Any]]) -> str:
    """A section: when and where, how many of which checks, and the failures by kind."""
    runs = [line for line in lines if line["what"] == "run"]
    batches = [line for line in lines if line["what"] == "batch"]
    failures = [line for line in lines if line["what"] == "failure"]
    counts: Counter[str] = Counter()
    for batch in batches:
        counts.update(batch["counts"])
    cases, seconds = sum(batch["cases"] for batch in batches), sum(batch["seconds"] for batch in batches)
    seeds = ", ".join(map(str, sorted({line["seed"] for line in lines})))
    places = sorted({f"{run['commit']} (Python {run['python']}, {run['machine']})" for run in runs})
    checked = " Some with bounds checks in compiled code." if any(run["bounds"] for run in runs) else ""
    rows = [f"| {name} | {number:,} |" for name, number in counts.most_common()]
    text = [
        f"## {TITLES[part]}",
        ABOUT[part],
        f"{cases:,} cases, seeds {seeds}, {seconds / 60:,.0f} minutes of all processes, "
        f"commit {', '.join(places)}.{checked}",
        "\n".join(["| check | times |", "|---|--:|", *rows]),
    ]
    if not failures:
        return "\n\n".join([*text, "Nothing failed."])
    kinds = Counter(failure["signature"] for failure in failures)
    first = {failure["signature"]: failure for failure in reversed(failures)}
    listed = [
        f"- {number:,} x `{signature}`, first with seed {first[signature]['seed']}, case {first[signature]['case']}"
        for signature, number in kinds.most_common()
    ]
    return "\n\n".join([*text, "Failures:", "\n".join(listed)])
