"""The house is as it was planned: one version, modules in their packages, tests beside them, maps that are right."""

from importlib.metadata import PackageNotFoundError, version

import pytest

import pyboomer


def test_the_installed_version_is_that_of_the_source() -> None:
    try:
        installed = version("pyboomer")
    except PackageNotFoundError:
        pytest.skip("pyboomer is imported from its source, not installed")
    assert installed == pyboomer.__version__
