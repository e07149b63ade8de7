"""The code in the documentation runs as printed, and prints what stands below it."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
NAMES = (
    *("how-to-add-a-loss", "joint-loss", "everyday-use", "editing", "distilling"),
    *("looking-at-a-model", "additive-models"),
)
PAGES = ["README.md", *(f"docs/{name}.md" for name in NAMES)]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```\n(.*?)^```)?", flags=re.MULTILINE | re.DOTALL)  # and its output


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs_from_top_to_bottom(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # models are saved
    monkeypatch.setenv("MPLBACKEND", "Agg")  # pictures open no windows
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {}
    for code, printed in blocks:
        exec(compile(code, page, "exec"), namespace)
        assert capsys.readouterr().out.endswith(printed)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    assert bool(list(tmp_path.glob("*.json"))) == any(".save(" in code for code, _ in blocks)
    assert namespace


def test_pictures_are_where_pages_say() -> None:
    for page in [ROOT / "README.md", *ROOT.glob("docs/*.md")]:
        for path in re.findall(r"!\[[^\]]*\]\(([^)]*)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / path).is_file(), f"{page.name}: {path}"
