"""Data sets: multi-label data read from files, generated, or fetched by name."""

from pyboomer.datasets.catalog import list_datasets, load_dataset
from pyboomer.datasets.dataset import Dataset
from pyboomer.datasets.mulan import load_meka, load_mulan
from pyboomer.datasets.synthetic import make_synthetic
from pyboomer.datasets.tables import load_table

__all__ = ["Dataset", "list_datasets", "load_dataset", "load_meka", "load_mulan", "load_table", "make_synthetic"]
