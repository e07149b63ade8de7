"""The house is as it was planned: one version, modules in their packages, tests beside them, maps that are right."""

import ast
import importlib
import re
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

import pyboomer
from pyboomer.compiling.store import SOURCES

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "pyboomer"
TESTS = ROOT / "tests"
PACKAGES = sorted(path.parent for path in SOURCE.rglob("__init__.py"))
TOP = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or path in PACKAGES} - {"__init__"}
ABOUT_ALL = {"campaign", "docs", "gallery", "house", "peers", "sklearn"}  # tests of the whole, which stand at the top
TEST_FILES = sorted(TESTS.rglob("test_*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def read_docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def test_the_installed_version_is_that_of_the_source() -> None:
    try:
        installed = version("pyboomer")
    except PackageNotFoundError:
        pytest.skip("pyboomer is imported from its source, not installed")
    assert installed == pyboomer.__version__


# --- Packages and modules ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*sorted(SOURCE.rglob("*.py")), *sorted(TESTS.rglob("*.py"))], ids=name_of)
def test_a_module_begins_with_a_sentence_about_it(path: Path) -> None:
    first = read_docstring(path).split("\n\n")[0].strip()
    assert re.match(r"[A-Z`'].*[.:]$", first, flags=re.DOTALL), first


@pytest.mark.parametrize("package", PACKAGES, ids=name_of)
def test_a_package_tells_its_role_in_one_sentence_on_one_line(package: Path) -> None:
    role = read_docstring(package / "__init__.py").split("\n\n")[0]
    assert role.endswith(".")
    assert "\n" not in role
    assert not re.search(r"[.!?] [A-Z]", role), "more than one sentence"


@pytest.mark.parametrize("package", PACKAGES, ids=name_of)
def test_a_package_has_at_most_twelve_modules(package: Path) -> None:
    modules = [path.name for path in package.glob("*.py") if path.name != "__init__.py"]
    assert len(modules) <= 12, modules


def test_every_folder_of_modules_is_a_package() -> None:
    assert {path.parent for path in SOURCE.rglob("*.py")} == set(PACKAGES)


# --- Tests ------------------------------------------------------------------------------------------------------------


def list_imports(path: Path) -> set[str]:
    """The modules of pyboomer that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("pyboomer.")}


@pytest.mark.parametrize("path", TEST_FILES, ids=name_of)
def test_a_test_stands_in_the_folder_of_the_package_that_it_tests(path: Path) -> None:
    subject = path.stem.removeprefix("test_")
    if path.parent == TESTS:
        assert subject in ABOUT_ALL or (SOURCE / f"{subject}.py").exists(), "neither about a module here nor about all"
    else:
        folder = path.parent.relative_to(TESTS)
        package = SOURCE / folder
        assert package in PACKAGES
        is_named_after_one = any(
            subject == module.stem or subject.startswith(f"{module.stem}_") for module in package.rglob("*.py")
        )
        inside = f"pyboomer.{'.'.join(folder.parts)}"
        imports_one = any(name == inside or name.startswith(f"{inside}.") for name in list_imports(path))
        assert is_named_after_one or imports_one, f"it neither imports {inside} nor is named after one of its modules"


def test_no_two_tests_have_the_same_name() -> None:
    """Folders of tests are no packages, so that modules are known to Python by their last names."""
    assert len({path.name for path in TEST_FILES}) == len(TEST_FILES)


# --- Maps -------------------------------------------------------------------------------------------------------------


def resolve(name: str, start: Any = pyboomer) -> bool:
    """Whether a dotted name leads from a module, through modules, to something in one."""
    thing = start
    for part in name.split("."):
        try:
            thing = importlib.import_module(f"{thing.__name__}.{part}")
        except (ImportError, AttributeError):
            if not hasattr(thing, part):
                return False
            thing = getattr(thing, part)
    return True


def list_code(text: str) -> list[str]:
    """What stands between back-ticks within lines."""
    without_blocks = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`\n]+)`", without_blocks)


def find_lost(page: str) -> list[str]:
    """Paths and dotted names in a page that lead nowhere."""
    text = (ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!http)([^)#]+)", text)
    lost = [link for link in links if not (ROOT / page).parent.joinpath(link).exists()]
    for name in list_code(text):
        if re.fullmatch(r"\.?[\w-]+(/[\w.-]*)+", name):
            lost += [name] * (not (ROOT / name).exists())
        elif re.fullmatch(r"[\w-]+\.(py|md|toml|cff)", name):
            lost += [name] * (not (ROOT / name).exists() and not (SOURCE / name).exists())
        elif re.fullmatch(r"[a-z_]+(\.\w+)+", name):
            lost += [name] * (not resolve(name))
    return lost


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/understanding/algorithm.md"])
def test_what_a_map_names_is_there(page: str) -> None:
    assert find_lost(page) == []


def test_a_name_that_leads_nowhere_is_found() -> None:
    assert resolve("engine.heads.fit_head")
    assert resolve("rules.ensemble.RuleEnsemble.mentioning")
    assert not resolve("engine.heads.fit_tail")
    assert not resolve("machine.heads")


def test_names_without_a_package_in_the_table_of_the_algorithm_are_in_the_reference() -> None:
    text = (ROOT / "docs" / "understanding" / "algorithm.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| (?:Eq\.|Alg\.|lines? |-).*$", text, flags=re.MULTILINE)
    assert len(table) > 20
    reference = importlib.import_module("pyboomer.reference")
    names = [name for row in table for name in list_code(row) if "." not in name]
    assert [name for name in names if not resolve(name, reference)] == []


def test_the_map_lists_every_package_in_the_order_of_imports() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = text.split("| in `src/pyboomer` |")[1].split("\n\n")[0]
    mapped = re.findall(r"^\| `(\w+)` \|", rows, flags=re.MULTILINE)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    order = settings["contracts"][0]
    assert mapped == [name for layer in order["layers"] for name in re.findall(r"\w+", layer)]
    assert sorted(SOURCES) == sorted(mapped[mapped.index("engine") :]), "compiled code may import all from engine down"
    assert {*mapped, *order["exhaustive_ignores"]} == TOP
    assert all(f"`{name}`" in text for name in order["exhaustive_ignores"])
