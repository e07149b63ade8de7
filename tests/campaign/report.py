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
    "fits": "The engine and the reference learn the same rules; what must not matter does not.",
    "options": "A model trained by the command line and loaded again is the one that the library fits.",
    "files": "A damaged file is read and works, or is refused by one clear error, within two seconds and 1 GiB.",
    "kills": "After INT, TERM or KILL at a random moment, each file is the old one or the new one; experiments go on.",
    "places": "Cold, shared, damaged and read-only caches, full disks, no HOME, eight threads, a long life.",
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
    pages = [
        "# Reliability",
        "What the campaign in `tests/campaign` has tried, and what came of it. `python tests/campaign long` runs all "
        "of it, `python tests/campaign report` writes this page from its log. Each case is made by its seed and its "
        "number; a failure comes with the command that repeats it.",
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
        f"{cases:,} cases, seeds {seeds}, {seconds / 60:,.0f} minutes of workers, at {', '.join(places)}.{checked}",
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
