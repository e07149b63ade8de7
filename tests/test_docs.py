"""The code in the documentation runs as printed, and prints what stands below it; every public name has an example."""

import doctest
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import pyboomer
from pyboomer import datasets, editing, experiments, losses, metrics
from pyboomer.datasets import catalog

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```\n(.*?)^```)?", flags=re.MULTILINE | re.DOTALL)  # and its output
REFERENCE = (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
LISTED = re.compile(r"^\.\. currentmodule:: (\S+)$|^   ([A-Za-z_][\w.]*)$", flags=re.MULTILINE)


def list_pages() -> list[str]:
    """The pages with Python code, the README among them."""
    pages = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    ours = [page for page in pages if "_build" not in page.parts and BLOCK.search(page.read_text(encoding="utf-8"))]
    return [page.relative_to(ROOT).as_posix() for page in ours]


def list_names() -> list[str]:
    """All names that have a page in the reference."""
    names, module = [], ""
    for current, name in LISTED.findall(REFERENCE):
        module = current or module
        names += [f"{module}.{name}"] if name else []
    return names


def resolve(name: str) -> Any:
    """What a dotted name stands for."""
    thing: Any = pyboomer
    for part in name.split(".")[1:]:
        thing = getattr(thing, part) if hasattr(thing, part) else import_module(f"{thing.__name__}.{part}")
    return thing


@pytest.fixture(autouse=True)
def prepare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # models are saved
    monkeypatch.setenv("MPLBACKEND", "Agg")  # pictures open no windows
    monkeypatch.setitem(catalog.BUILT_IN, "digits7", load_digits)


@cache
def load_digits() -> datasets.Dataset:
    from pyboomer.datasets.digits import load_digits7

    return load_digits7()


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cluster of threads of this process, which is what pages join wherever they say that a scheduler is."""
    distributed = pytest.importorskip("distributed")
    import_module("pyboomer.dask")  # which takes the class of clients for a type
    kind = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**kind) as cluster, distributed.Client(cluster) as client:

        class Joined(distributed.Client):
            def __new__(cls, *_: Any, **__: Any) -> Any:
                return client

        monkeypatch.setattr(distributed, "Client", Joined)
        yield


# --- Pages ------------------------------------------------------------------------------------------------------------


def mark(page: str) -> Any:
    """Pages about benchmark data, which are not part of the package, take longer, and so does learning on a cluster."""
    text = (ROOT / page).read_text(encoding="utf-8")
    own = re.findall(r'load_dataset\("(\w+)"\)', text)
    wanted = sorted(set(own) - set(datasets.list_datasets()))
    missing = pytest.mark.skipif(bool(wanted), reason=f"there is no {', '.join(wanted)} in $PYBOOMER_DATA")
    long = bool(set(own) - {"digits7"}) or "import DaskBoomer" in text
    return pytest.param(page, marks=[pytest.mark.slow, missing] if long else [])


@pytest.mark.parametrize("page", [mark(page) for page in list_pages()])
def test_the_code_of_a_page_runs_from_top_to_bottom(
    page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    if "from distributed import Client" in text:
        request.getfixturevalue("cluster")
    blocks = BLOCK.findall(text)
    namespace: dict[str, Any] = {}
    for code, printed in blocks:
        exec(compile(code, page, "exec"), namespace)
        assert capsys.readouterr().out.endswith(printed)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    assert bool(list(tmp_path.glob("*.json"))) == any(".save(" in code for code, _ in blocks)


def test_pictures_are_where_pages_say() -> None:
    for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]:
        for path in re.findall(r"!\[[^\]]*\]\(([^)]*)\)", page.read_text(encoding="utf-8")):
            made = "_made" in path  # when the site is built, by docs/pictures.py
            assert made or (page.parent / path).is_file(), f"{page.name}: {path}"


# --- Docstrings -------------------------------------------------------------------------------------------------------


def test_every_public_name_is_in_the_reference() -> None:
    found = {id(resolve(name)) for name in list_names()}
    for module in (pyboomer, import_module("pyboomer.dask"), datasets, editing, experiments, losses, metrics):
        names = getattr(module, "__all__", None) or [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
        ]
        for name in names:
            value = getattr(module, name)
            if inspect.isroutine(value) or inspect.isclass(value):
                assert id(value) in found, f"{module.__name__}.{name} has no page"
            elif not name.startswith("__"):
                assert name in REFERENCE, f"{module.__name__}.{name} is not mentioned"


@pytest.mark.parametrize("name", list_names())
def test_a_name_of_the_reference_has_an_example_that_runs(name: str) -> None:
    thing = resolve(name)
    assert ">>> " in (thing.__doc__ or ""), "it has no example"
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in doctest.DocTestFinder().find(thing, name, globs={}):
        if test.examples:
            test.globs = {"pyboomer": pyboomer, thing.__name__: thing}
            assert runner.run(test).failed == 0
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
