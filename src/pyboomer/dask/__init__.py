"""Learning and predicting on a Dask cluster: the estimators, for data that may be larger than any one machine."""

try:
    import dask.array
    import dask.dataframe  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(f"pyboomer.dask needs the extra `dask` ({error}): pip install 'pyboomer[dask]'") from None

from pyboomer.dask.estimators import DaskBoomerClassifier, DaskBoomerRegressor

__all__ = ["DaskBoomerClassifier", "DaskBoomerRegressor"]
