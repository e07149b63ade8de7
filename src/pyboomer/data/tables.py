"""A table is what users pass as X: an array, a sparse matrix or a DataFrame, read into numbers with its faults named.

DataFrames are those of pandas and polars; neither is imported here. Columns of numbers and booleans are numeric, those
of categories and strings nominal, and those of objects numeric unless they hold text. Dates, and whatever else is
neither, are refused unless `categorical_features` names them: their categories are then the values as text. None, NaN,
NA, null and what is masked all stand for a missing value, which meets no condition; a category that was not seen in
training meets every ``!=`` and no ``==``.

Ordered categories of pandas are ordinal: their levels are compared by position, and what is no level is missing. If
they are ascending numbers, the column is numeric.

A DataFrame of pandas with sparse columns (`pandas.SparseDtype`, whose fill value is 0) becomes a sparse matrix.

An array in the memory of a GPU stays there, see `columns.device`; all its features are numeric.

Nominal features become category codes. Those of a dense table do so here, at once; a sparse one keeps its values, since
the zeros it does not store must keep meaning zero, and is encoded where it is sorted or made dense.
"""

import shlex
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from sys import float_info
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_n_features, check_array, validate_data

from pyboomer.arrays import Array, Matrix, is_missing
from pyboomer.columns.categories import encode, find_categories
from pyboomer.columns.device import DeviceMatrix, is_on_device, read_device_matrix
from pyboomer.data.alerts import alert
from pyboomer.data.soundness import check_sparse, unmask
from pyboomer.rules.schema import Schema

# kinds of dtypes in a DataFrame
NUMBERS, CATEGORIES, LEVELS, OBJECTS, OTHERS = "numbers", "categories", "levels", "objects", "others"
# a nominal feature with so many categories per example names the examples; of few examples, nobody can tell
NAMING, ENOUGH = 0.9, 20
MUCH = 2**28  # bytes that sparse columns are not made dense for without a word
SKLEARN_READS_POLARS = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)


class Features(NamedTuple):
    """What scikit-learn keeps of the features of the training data, to check further data against."""

    owner: str  # the class of the estimator, which messages name
    n: int = 0
    names: NDArray[Any] | None = None  # if users gave any
    given: bool = False  # whether they gave them to `fit` beside X


class Table(NamedTuple):
    """The features of the training data: their values as numbers, and what they are."""

    matrix: Matrix  # None if it is elsewhere
    schema: Schema
    features: Features


class Column(NamedTuple):
    """A column of a DataFrame."""

    feature: int
    name: str
    series: Any  # of pandas or polars
    kind: str


def read_training_table(owner: str, X: Any, categorical_features: Any, feature_names: Any = None) -> Table:
    """Read X for `fit` of an estimator of the class `owner`."""
    checker = _make_checker(Features(owner))
    if _is_frame(X):
        columns = _list_columns(checker, X, reset=True)
        features = _note_features(checker)
        names = tuple(column.name for column in columns)
        check_feature_names(feature_names, names)
        if _is_sparse_frame(columns):
            matrix: Matrix = _read_sparse_columns(columns)
            _check_finite(matrix, names)
            nominal = _find_nominal(categorical_features, names, columns)
            return Table(matrix, Schema(names, find_categories(matrix, nominal)), features)
        _warn_of_dense(columns)
        by_dtype = categorical_features is None or isinstance(categorical_features, str)
        levels = {c.feature: _find_levels(c) for c in columns if by_dtype and c.kind == LEVELS}
        nominal = _find_nominal(categorical_features, names, columns)
        categories = levels | {int(f): _find_column_categories(columns[f]) for f in np.flatnonzero(nominal)}
        schema = Schema(names, categories, tuple(levels))
        cure = "; name it in categorical_features, or turn it into numbers"
        return Table(_read_columns(columns, schema, cure), schema, features)
    matrix = _read_matrix(checker, X, reset=True)
    features = _note_features(checker)
    names = _number_names(matrix.shape[1]) if features.names is None else tuple(features.names)
    if feature_names is not None:
        names = _read_feature_names(feature_names, matrix.shape[1])
        features = features._replace(names=np.array(names, dtype=object), given=True)
    nominal = _find_nominal(categorical_features, names, ())
    _check_finite(matrix, names)
    if isinstance(matrix, DeviceMatrix):
        if nominal.any():
            raise ValueError("categorical_features must be None if X is on a GPU: copy it to the host")
        return Table(matrix, Schema(names, {}), features)
    schema = Schema(names, find_categories(matrix, nominal))
    return Table(matrix if sp.issparse(matrix) else encode(matrix, schema.categories), schema, features)


@lru_cache(maxsize=8)
def _name_checker(owner: str) -> type[BaseEstimator]:
    return type(owner, (BaseEstimator,), {})


def _make_checker(features: Features) -> BaseEstimator:
    """An estimator that scikit-learn checks X for, and writes down its features in."""
    checker = _name_checker(features.owner)()
    checker.n_features_in_ = features.n
    if features.names is not None:
        checker.feature_names_in_ = features.names
    return checker


def _note_features(checker: BaseEstimator) -> Features:
    return Features(type(checker).__name__, checker.n_features_in_, getattr(checker, "feature_names_in_", None))


@lru_cache(maxsize=8)
def _number_names(n: int) -> tuple[str, ...]:
    """The names of features that have none: x0, x1, ..."""
    return tuple(f"x{i}" for i in range(n))


def _read_feature_names(feature_names: Any, n_features: int) -> tuple[str, ...]:
    """The names that features were given, or those that a function gives them."""
    given = feature_names() if callable(feature_names) else feature_names
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(f"feature_names must be a list of names, or a function that returns one, got {given!r:.50}")
    names = list(given)
    if len(names) != n_features:
        raise ValueError(f"feature_names has {len(names)} names, but X has {n_features} features")
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"feature_names must be text, got {name!r:.50}")
    if len(set(names)) < len(names):
        raise ValueError(f"feature_names must be distinct, got {max(names, key=names.count)!r:.50} twice")
    return tuple(map(str, names))


def check_feature_names(feature_names: Any, names: tuple[str, ...]) -> None:
    """Refuse names, if any are given, that are not those that the features have already."""
    if feature_names is not None:
        for given, known in zip(_read_feature_names(feature_names, len(names)), names, strict=True):
            if given != known:
                raise ValueError(f"feature_names has {given!r:.50} where the feature is called {known!r:.50} already")


def read_table(X: Any, schema: Schema, features: Features) -> Matrix:
    """Read X for predictions by a fitted estimator, whose features are those of the training data."""
    if features.owner.startswith("Dask") and type(X).__module__.startswith("dask."):
        raise TypeError("X must be data of this machine here; compute a part of it, such as X.blocks[0].compute()")
    checker = _make_checker(features)
    if _is_frame(X):
        columns = _list_columns(checker, X, reset=False)
        if _is_sparse_frame(columns) and not schema.with_text:
            matrix = _read_sparse_columns(columns).tocsr()
            _check_finite(matrix, schema.names)
            return matrix
        return _read_columns(columns, schema, ", but was in training")
    if schema.with_text:
        name = schema.names[min(schema.with_text)]
        raise ValueError(f"X must be a DataFrame: feature {name!r} has categories that are strings")
    matrix = _read_matrix(checker, X, reset=False, names_given=features.given)
    _check_finite(matrix, schema.names)
    if isinstance(matrix, DeviceMatrix) and schema.categories:
        raise ValueError("X is on a GPU, but the model has nominal features: copy it to the host")
    return matrix if sp.issparse(matrix) or isinstance(matrix, DeviceMatrix) else encode(matrix, schema.categories)


def refuse_lazy(name: str, data: Any) -> None:
    """Refuse a LazyFrame at once, since it even warns when asked for its columns; and a DataFrame of Dask."""
    if type(data).__name__ == "LazyFrame":
        raise TypeError(f"{name} is a LazyFrame, which has no values yet; call {name}.collect() and pass the DataFrame")
    if type(data).__module__.startswith("dask.dataframe"):
        raise TypeError(f"{name} is a DataFrame of Dask: pass {name}.compute(), or take an estimator of pyboomer.dask")


def warn_of_identifiers(schema: Schema, n_examples: int) -> None:
    """Warn of nominal features that are different in nearly every example, such as the number of a patient."""
    if n_examples < ENOUGH or max(map(len, schema.nominal.values()), default=0) < NAMING * n_examples:
        return
    for f, categories in schema.nominal.items():
        if len(categories) >= NAMING * n_examples:
            name = schema.names[f]
            alert(
                f"feature {name!r} is nominal, and different in nearly every example: rules cannot generalise from "
                f"it. Drop the column (on the command line: --ignore {shlex.quote(name)})"
            )


def refuse_new_categories(matrix: Matrix, schema: Schema) -> None:
    """Refuse categories that a model does not know, where rules about them would be learned."""
    categories = schema.categories
    if sp.issparse(matrix) and categories:
        used = list(categories)
        matrix = encode(matrix[:, used].tocsc(), schema.pick_categories(used))
        columns = {f: matrix[:, [i]].data for i, f in enumerate(used)}
    else:
        columns = {f: matrix[:, f] for f in categories}
    for f, codes in columns.items():
        if (codes >= len(categories[f])).any():
            name = schema.names[f]
            raise ValueError(f"feature {name!r} has a category that the model does not know")


def _read_matrix(checker: BaseEstimator, X: Any, reset: bool, names_given: bool = False) -> Matrix:
    if is_on_device(X):
        matrix = read_device_matrix(X)
        _check_n_features(checker, matrix, reset=reset)
        return matrix
    if getattr(getattr(X, "dtype", None), "kind", None) in ("m", "M"):
        raise ValueError(f"X holds dates or times (dtype {X.dtype}); turn them into numbers")
    X = check_sparse("X", X) if sp.issparse(X) else unmask(X)
    try:
        options: dict[str, Any] = {
            "accept_sparse": "csc" if reset else "csr",  # columns are learned from, rows are predicted for
            "dtype": np.float64,
            "ensure_all_finite": False,
            "order": "C",
        }
        if names_given:  # scikit-learn would miss the names in X
            matrix = check_array(X, input_name="X", estimator=checker, **options)
            _check_n_features(checker, matrix, reset=reset)
        else:
            matrix = validate_data(checker, X, reset=reset, **options)
    except ValueError as error:
        if "could not convert string to float" in str(error):
            raise ValueError(f"X holds text, which only a DataFrame can have as categories: {error}") from None
        raise
    except OverflowError:  # an integer of Python's may be of any size
        raise ValueError("X holds an integer that is too large for a floating-point number") from None
    if sp.issparse(matrix):
        matrix = (sp.csc_array if reset else sp.csr_array)(matrix)
        if not (matrix.has_canonical_format and matrix.data.all()):
            matrix = matrix.copy()  # it may still be the user's own
            matrix.sum_duplicates()
            matrix.eliminate_zeros()
    return matrix


def _check_finite(matrix: Matrix, names: tuple[str, ...]) -> None:
    if isinstance(matrix, DeviceMatrix):
        column = matrix.find_infinite()
        if column is not None:
            raise ValueError(f"X contains infinity in column {column} ({names[column]!r})")
        return
    values = matrix.data if sp.issparse(matrix) else matrix
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()  # one cheap pass settles the common case
    if not np.isfinite(total):
        bad = np.isinf(values)
        if bad.any():
            column = int(matrix.tocoo().col[bad.argmax()]) if sp.issparse(matrix) else int(bad.any(axis=0).argmax())
            raise ValueError(f"X contains infinity in column {column} ({names[column]!r})")


def _find_nominal(categorical_features: Any, names: tuple[str, ...], columns: Sequence[Column]) -> NDArray[np.bool_]:
    """Which features are nominal, as a mask; only a DataFrame has columns that tell."""
    if categorical_features is None or isinstance(categorical_features, str):
        mask = np.zeros(len(names), dtype=bool)
        if categorical_features not in (None, "from_dtype"):
            raise ValueError(
                'categorical_features must be None, "from_dtype", a mask, indices or names, '
                f"got {categorical_features!r}"
            )
        for column in columns:
            mask[column.feature] = column.kind == CATEGORIES or (
                column.kind == OBJECTS and (categorical_features == "from_dtype" or _holds_text(column))
            )
        return mask
    return find_features("categorical_features", categorical_features, names)


def list_nominal(X: Any) -> list[str]:
    """The columns of a DataFrame of pandas that are nominal unless told otherwise."""
    columns = [Column(f, str(name), X.iloc[:, f], _find_kind(X.dtypes.iloc[f])) for f, name in enumerate(X.columns)]
    names = tuple(column.name for column in columns)
    return [names[f] for f in np.flatnonzero(_find_nominal(None, names, columns))]


def find_features(parameter: str, choice: Any, names: tuple[str, ...]) -> NDArray[np.bool_]:
    """A choice of features, by a mask, indices or names, as a mask; None chooses none."""
    mask = np.zeros(len(names), dtype=bool)
    if isinstance(choice, list | tuple) and len({issubclass(kind, str) for kind in set(map(type, choice))}) > 1:
        raise ValueError(f"{parameter} must be all names or all indices, got {choice!r:.80}")
    chosen = np.asarray(() if choice is None else choice)
    if chosen.size == 0:
        return mask
    if chosen.ndim != 1:
        raise ValueError(f"{parameter} must be one-dimensional, got {chosen.ndim} dimensions")
    if chosen.dtype.kind == "b":
        if len(chosen) != len(names):
            raise ValueError(f"{parameter} is a mask of length {len(chosen)}, but X has {len(names)} features")
        return chosen.copy()
    if chosen.dtype.kind in "iu":
        if chosen.min() < -len(names) or chosen.max() >= len(names):
            bad = chosen[(chosen < -len(names)) | (chosen >= len(names))][0]
            raise ValueError(f"{parameter} has index {bad}, but X has {len(names)} features")
        mask[chosen] = True
        return mask
    for name in chosen.tolist():
        if name not in names:
            raise ValueError(f"{parameter} has {name!r}, which is not a column of X")
        mask[names.index(name)] = True
    return mask


# --- DataFrames -------------------------------------------------------------------------------------------------------


class _Header(NamedTuple):
    """The names and the shape of a polars DataFrame, in the only form that scikit-learn before 1.9 can read."""

    names: list[str]
    shape: tuple[int, int]

    def __dataframe__(self) -> "_Header":
        return self

    def column_names(self) -> list[str]:
        return self.names


def _is_frame(X: Any) -> bool:
    """Whether X is a DataFrame."""
    refuse_lazy("X", X)
    return hasattr(X, "columns") and (hasattr(X, "iloc") or hasattr(X, "to_series"))


def _list_columns(checker: BaseEstimator, X: Any, reset: bool) -> list[Column]:
    """The columns of a DataFrame; their names are recorded in the checker or, without `reset`, compared to those."""
    names = list(X.columns)
    if len(set(names)) < len(names):
        raise ValueError(f"columns of X must have distinct names, got {max(names, key=names.count)!r} twice")
    of_pandas = hasattr(X, "iloc")
    header = X if of_pandas or SKLEARN_READS_POLARS else _Header(names, X.shape)
    validate_data(checker, header, skip_check_array=True, reset=reset)
    for size, what in zip(X.shape, ("sample", "feature"), strict=True):
        if size == 0:
            raise ValueError(f"Found array with 0 {what}(s) (shape={X.shape}) while a minimum of 1 is required.")
    series = [column for _, column in X.items()] if of_pandas else X.get_columns()
    return [Column(f, str(names[f]), s, _find_kind(s.dtype)) for f, s in enumerate(series)]


def _find_kind(dtype: Any) -> str:
    """What a column of this dtype holds; read from its name, for want of anything else that all of them have."""
    if getattr(dtype, "ordered", False):
        values = dtype.categories.tolist()
        ascend = all(isinstance(value, int | float) for value in values) and values == sorted(values)
        return NUMBERS if ascend else LEVELS
    name = str(dtype).lower()
    is_numeric = dtype.is_numeric() if hasattr(dtype, "is_numeric") else dtype.kind in "buif"
    if is_numeric or name.startswith(("bool", "decimal", "null")):
        return NUMBERS
    if name == "str" or name.startswith(("categor", "enum", "dictionary", "string", "large_string")):
        return CATEGORIES
    return OBJECTS if name == "object" else OTHERS


def _read_columns(columns: list[Column], schema: Schema, remark: str) -> Array:
    """The matrix of a DataFrame; `remark` ends the complaint about a column that is not numeric."""
    matrix = np.empty((len(columns[0].series), len(columns)), order="C")
    for column in columns:
        f = column.feature
        if f in schema.categories:
            categories = schema.categories[f]
            matrix[:, f] = _encode_column(column, categories, np.nan if schema.is_ordinal(f) else len(categories))
        elif column.kind == NUMBERS:
            matrix[:, f] = _read_numbers(column)
        elif column.kind == OBJECTS:
            matrix[:, f] = _read_objects(column, remark)
        else:
            raise ValueError(f"column {column.name!r} of X is not numeric (dtype {column.series.dtype}){remark}")
    return matrix


def _is_sparse_frame(columns: list[Column]) -> bool:
    """Whether a DataFrame holds nothing but numbers, and at least half of its columns store no zeros."""
    return all(column.kind == NUMBERS for column in columns) and _are_mostly_sparse(columns)


def _are_mostly_sparse(columns: list[Column]) -> bool:
    return 2 * sum(map(_is_sparse, columns)) >= len(columns)


def _warn_of_dense(columns: list[Column]) -> None:
    """Warn if sparse columns are made dense because of others, and take much memory then."""
    size = 8 * len(columns) * len(columns[0].series)
    if size > MUCH and _are_mostly_sparse(columns):
        other = next(column for column in columns if column.kind != NUMBERS)
        alert(
            f"column {other.name!r} of X has dtype {other.series.dtype}, so the sparse columns are made dense, which "
            f"takes {size / 1e9:.1f} GB: turn it into numbers"
        )


def _is_sparse(column: Column) -> bool:
    """Whether a column of pandas stores no zeros; what others leave out is missing, or another number."""
    dtype = column.series.dtype
    return hasattr(dtype, "fill_value") and bool(dtype.fill_value == 0)


def _read_sparse_columns(columns: list[Column]) -> Any:
    """The matrix of a sparse DataFrame."""
    rows, values = [], []
    for column in columns:
        if _is_sparse(column):
            stored = column.series.array
            rows.append(stored.sp_index.indices)
            values.append(np.asarray(stored.sp_values, dtype=np.float64))
        else:
            numbers = _read_numbers(column)
            rows.append(np.flatnonzero(numbers))
            values.append(numbers[rows[-1]])
    indptr = np.append(0, np.cumsum([len(some) for some in rows]))
    shape = (len(columns[0].series), len(columns))
    matrix = sp.csc_array((np.concatenate(values), np.concatenate(rows), indptr), shape=shape)
    matrix.eliminate_zeros()
    return matrix


def _read_numbers(column: Column) -> Array:
    series = column.series
    of_polars = hasattr(series, "cast")
    numbers = series.cast(float).to_numpy() if of_polars else series.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.isinf(numbers).any():
        raise ValueError(_describe_infinity(column))
    return numbers


def _read_objects(column: Column, remark: str) -> Array:
    """Numbers that are kept as objects."""
    values = column.series.to_list()
    numbers: dict[Any, float] = {}
    for value, plain in _list_distinct(column, values).items():
        if isinstance(plain, str):
            raise ValueError(f"column {column.name!r} of X is not numeric (it holds {value!r:.50}){remark}")
        numbers[value] = np.nan if plain is None else float(plain)
    return np.array([numbers[value] for value in values])


def _find_column_categories(column: Column) -> tuple[Any, ...]:
    distinct = set(_list_distinct(column, column.series.to_list()).values()) - {None}
    try:
        return tuple(sorted(distinct))
    except TypeError:
        raise ValueError(
            f"column {column.name!r} of X mixes categories that cannot be ordered, such as numbers and strings; "
            "turn them all into strings"
        ) from None


def _find_levels(column: Column) -> tuple[str, ...]:
    levels = [_plain(level) for level in column.series.dtype.categories.tolist()]
    if not all(isinstance(level, str) for level in levels):
        raise ValueError(
            f"column {column.name!r} of X has ordered categories that are neither text nor ascending numbers; turn "
            "them into text"
        )
    return tuple(levels)


def _encode_column(column: Column, categories: tuple[Any, ...], unseen: float) -> Array:
    """The codes of a nominal or ordinal column: the positions of its categories; NaN if missing."""
    values = column.series.to_list()
    distinct = _list_distinct(column, values)
    if categories and not isinstance(categories[0], str):
        for value, plain in distinct.items():
            if isinstance(plain, str):
                raise ValueError(f"column {column.name!r} of X holds {value!r:.50}, but only numbers in training")
    codes = {category: float(code) for code, category in enumerate(categories)} | {None: np.nan}
    table = {value: codes.get(plain, unseen) for value, plain in distinct.items()}
    return np.array([table[value] for value in values])


def _list_distinct(column: Column, values: list[Any]) -> dict[Any, Any]:
    """The distinct values of a column, each as a plain value that a model file can hold; None if it is missing."""
    try:
        distinct = {value: None if is_missing(value) else _plain(value) for value in set(values)}
    except TypeError:  # a list or another value that cannot be hashed
        raise ValueError(f"column {column.name!r} of X holds values that are neither numbers nor text") from None
    if any(isinstance(plain, int | float) and abs(plain) > float_info.max for plain in distinct.values()):
        raise ValueError(_describe_infinity(column))
    return distinct


def _describe_infinity(column: Column) -> str:
    return f"X contains infinity in column {column.feature} ({column.name!r})"


def _holds_text(column: Column) -> bool:
    return any(issubclass(kind, str) for kind in set(map(type, column.series.to_list())))


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic) and value.dtype.kind in "buifU":
        value = value.item()
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)  # as people write it: 3, not 3.0
    return value if isinstance(value, str | int | float) else str(value)
