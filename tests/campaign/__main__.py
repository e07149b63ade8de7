"""The command of the campaign: `python tests/campaign PART`.

    python tests/campaign short                     all parts, about a minute: what `.ci/check` runs
    python tests/campaign long                      all parts, an hour or two on two cores
    python tests/campaign fits --count 5000         one part: fits, options, files, kills, places or growth
    python tests/campaign fits --seed 1 --case 17   one case again, with the whole traceback
    python tests/campaign report                    the log as docs/results/reliability.md

A case is made by its part, its seed and its number alone. What comes of it is appended to a log of JSON lines as it
comes, so that a run may be stopped at any time.
"""

import argparse
import os
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
sys.path[:0] = [str(FOLDER.parent)]  # `campaign`, and what all tests share

from campaign.report import write_report  # noqa: E402
from campaign.running import PARTS, Plan, repeat_case, run_parts, work  # noqa: E402

SHORT = {"fits": 120, "options": 12, "files": 1_500, "kills": 12, "places": 0, "growth": 0}
# a case of `fits` makes about eleven fits
LONG = {"fits": 12_000, "options": 2_000, "files": 120_000, "kills": 2_000, "places": 26, "growth": 45}


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python tests/campaign", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("part", choices=["short", "long", "report", *PARTS])
    parser.add_argument("--count", type=int, help="cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="run this case only, here, and show all of what goes wrong")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop each part after so long")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--few", action="store_true", help="few compiled kinds, which costs little compiling")
    parser.add_argument("--bounds", action="store_true", help="check indices of arrays in compiled code")
    parser.add_argument("--log", type=Path, default=Path("campaign.jsonl"))
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "results" / "reliability.md")
    parser.add_argument("--worker", nargs=2, type=int, metavar=("FIRST", "STEP"), help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    given = read_arguments()
    if given.bounds and "campaign-bounds" not in os.environ.get("NUMBA_CACHE_DIR", ""):
        os.environ["NUMBA_BOUNDSCHECK"] = "1"
        # code compiled without the checks must not be used, nor the other way round
        os.environ["NUMBA_CACHE_DIR"] = str(Path(os.environ.get("NUMBA_CACHE_DIR", "/tmp")) / "campaign-bounds")
    if given.part == "report":
        write_report(given.log, given.output)
        return 0
    plan = Plan(given.seed, given.seconds, given.jobs, given.few or given.part == "short", given.bounds, given.log)
    if given.worker:
        return work(given.part, plan, given.count, *given.worker)
    if given.case is not None:
        return repeat_case(given.part, plan, given.case)
    counts = {"short": SHORT, "long": LONG}.get(given.part, {given.part: LONG.get(given.part, 0)})
    if given.count is not None:
        counts = dict.fromkeys(counts, given.count)
    return run_parts(counts, plan)


if __name__ == "__main__":
    sys.exit(main())
