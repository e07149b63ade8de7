"""The code in the documentation runs as printed."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ["docs/how-to-add-a-loss.md", "docs/everyday-use.md", "docs/editing.md", "docs/looking-at-a-model.md"]


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs_from_top_to_bottom(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # models are saved
    monkeypatch.setenv("MPLBACKEND", "Agg")  # pictures open no windows
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    namespace: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), namespace)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    assert "looking" in page or list(tmp_path.glob("*.json"))


def test_pictures_are_where_pages_say() -> None:
    for page in [ROOT / "README.md", *ROOT.glob("docs/*.md")]:
        for path in re.findall(r"!\[[^\]]*\]\(([^)]*)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / path).is_file(), f"{page.name}: {path}"
