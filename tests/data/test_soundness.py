"""What is not sound is refused, or made sound, before compiled code sees it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from pyboomer import BoomerClassifier, BoomerRegressor

RNG = np.random.default_rng(3)
X = RNG.normal(size=(30, 6)) * (RNG.random((30, 6)) < 0.5)
Y = (X[:, :3] > 0).astype(int)


@pytest.fixture(scope="module")
def model() -> BoomerClassifier:
    return BoomerClassifier(n_rules=5, random_state=1).fit(sp.csr_array(X), Y)


# --- Sparse matrices --------------------------------------------------------------------------------------------------


def change(attribute: str, position: int, value: int) -> Callable[[Any], Any]:
    """Make a sparse matrix point elsewhere."""

    def damage(matrix: Any) -> Any:
        getattr(matrix, attribute)[position] = value
        return matrix

    return damage


def shorten(attribute: str) -> Callable[[Any], Any]:
    def damage(matrix: Any) -> Any:
        setattr(matrix, attribute, getattr(matrix, attribute)[:-3])
        return matrix

    return damage


def retype(attribute: str, dtype: type) -> Callable[[Any], Any]:
    def damage(matrix: Any) -> Any:
        setattr(matrix, attribute, getattr(matrix, attribute).astype(dtype))
        return matrix

    return damage


def move_first_row(matrix: Any) -> Any:
    matrix.rows[0], matrix.data[0] = [2**30], [1.0]
    return matrix


def add_entry(matrix: Any) -> Any:
    matrix._dict[0, 2**30] = 1.0
    return matrix


def empty_first_row(matrix: Any) -> Any:
    matrix.data[0] = []
    return matrix


def flatten_blocks(matrix: Any) -> Any:
    matrix.data = matrix.data[:, 0]
    return matrix


def empty_blocks(matrix: Any) -> Any:
    matrix.data = matrix.data[:, :, :0]
    return matrix


COMPRESSED = {
    "an index beyond the end": (change("indices", 2, 2**30), "(row|column) indices go from 0 to 1073741824"),
    "a negative index": (change("indices", 2, -3), "(row|column) indices go from -3 to"),
    "a start beyond the end": (change("indptr", 3, 2**30), "indptr must be"),
    "a negative start": (change("indptr", 3, -(2**30)), "indptr must be"),
    "an end so negative that differences are not": (change("indptr", -1, -(2**31)), "indptr must be"),
    "starts that descend": (change("indptr", 2, 0), "indptr must be"),
    "another first start": (change("indptr", 0, 1), "indptr must be"),
    "too large an end": (change("indptr", -1, 2**30), "indptr must be"),
    "too few starts": (shorten("indptr"), "indptr must be"),
    "too few indices": (shorten("indices"), "indptr must be"),
    "too few values": (shorten("data"), "indptr must be"),
    "starts without signs": (retype("indptr", np.uint32), "must both be int32 or int64"),  # differences would have none
    "starts that are no integers": (retype("indptr", float), "must both be int32 or int64"),
    "indices of another size": (retype("indices", np.int8), "must both be int32 or int64"),
}
DAMAGES = {
    **{f"{form}: {name}": (form, *what) for form in ("csr", "csc", "bsr") for name, what in COMPRESSED.items()},
    "coo: a row beyond the end": ("coo", change("row", 2, 2**30), "row indices go from 0 to 1073741824"),
    "coo: a negative column": ("coo", change("col", 2, -3), "column indices go from -3 to"),
    "coo: too few values": ("coo", shorten("data"), "row and"),
    "lil: a column beyond the end": ("lil", move_first_row, "1073741824"),
    "dok: a column beyond the end": ("dok", add_entry, "1073741824"),
    "lil: too few values": ("lil", empty_first_row, "more values than indices"),
    "dia: too few offsets": ("dia", shorten("offsets"), "diagonals, but"),
    "dia: too few values": ("dia", shorten("data"), "diagonals, but"),
    "bsr: no blocks": ("bsr", flatten_blocks, "its blocks have the shape"),
    "bsr: empty blocks": ("bsr", empty_blocks, "its blocks have the shape"),
}


@pytest.mark.parametrize(("form", "damage", "message"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_sparse_matrix_is_refused(
    form: str, damage: Callable[[Any], Any], message: str, model: BoomerClassifier
) -> None:
    bad_X = damage(sp.coo_matrix(np.where(X == 0, 0, 1.0)).asformat(form))
    bad_Y = damage(sp.coo_array(np.ones(Y.shape)).asformat(form))
    for use in (model.predict, model.decision_function, model.explain, lambda X: BoomerClassifier().fit(X, Y)):
        with pytest.raises(ValueError, match=f"^X is a damaged sparse matrix: .*{message}"):
            use(bad_X)
    for use in (lambda Y: BoomerClassifier().fit(X, Y), lambda Y: model.score(X, Y)):
        with pytest.raises(ValueError, match=f"^Y is a damaged sparse matrix: .*{message}"):
            use(bad_Y)
    with pytest.raises(ValueError, match=r"^eval_set: Y is a damaged sparse matrix"):
        BoomerClassifier().fit(X, Y, eval_set=(X, bad_Y))


def test_a_damaged_file_is_refused(tmp_path: Path, model: BoomerClassifier) -> None:
    sp.save_npz(tmp_path / "X.npz", change("indptr", 3, 2**30)(sp.csr_array(X)))
    with pytest.raises(ValueError, match="X is a damaged sparse matrix: its indptr must be 31 numbers"):
        model.predict(sp.load_npz(tmp_path / "X.npz"))


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_a_sound_matrix_of_any_form_is_welcome(form: str, model: BoomerClassifier) -> None:
    np.testing.assert_array_equal(model.predict(sp.coo_array(X).asformat(form)), model.predict(sp.csr_array(X)))
    again = BoomerClassifier(n_rules=5, random_state=1).fit(sp.csr_array(X), sp.coo_array(Y).asformat(form))
    assert again.rules_ == model.rules_
    assert BoomerClassifier(n_rules=5, random_state=1).fit(sp.coo_matrix(X).asformat(form), Y).rules_ == model.rules_


def test_room_that_a_matrix_does_not_use_may_hold_anything(model: BoomerClassifier) -> None:
    roomy = sp.csr_array(X)
    roomy.indices, roomy.data = np.append(roomy.indices, -1).astype(np.int32), np.append(roomy.data, np.inf)
    np.testing.assert_array_equal(model.predict(roomy), model.predict(sp.csr_array(X)))


# --- Masks ------------------------------------------------------------------------------------------------------------

MASK = RNG.random(Y.shape) < 0.2
UNKNOWN = np.where(MASK, np.nan, Y)
LOSS = "label-wise-logistic"


@pytest.mark.parametrize("rows", [np.ma.asarray, list], ids=["array", "list of rows"])
def test_what_is_masked_in_y_is_unknown(rows: Any) -> None:
    masked = rows(np.ma.array(Y, mask=MASK))
    for estimator in (BoomerClassifier(LOSS, n_rules=5, random_state=1), BoomerRegressor(n_rules=5, random_state=1)):
        expected = estimator.fit(X, UNKNOWN)
        rules, score = expected.rules_, expected.score(X, UNKNOWN)
        assert estimator.fit(X, masked).rules_ == rules
        assert estimator.score(X, masked) == score


def test_what_is_masked_in_x_is_missing() -> None:
    mask = RNG.random(X.shape) < 0.2
    masked, missing = np.ma.array(X, mask=mask), np.where(mask, np.nan, X)
    model = BoomerClassifier(n_rules=5, random_state=1).fit(masked, Y)
    assert model.rules_ == BoomerClassifier(n_rules=5, random_state=1).fit(missing, Y).rules_
    np.testing.assert_array_equal(model.predict(masked), model.predict(missing))


def test_a_mask_that_masks_nothing_changes_nothing() -> None:
    model = BoomerClassifier(n_rules=5, random_state=1).fit(X, Y[:, 0], sample_weight=np.ones(30))
    again = BoomerClassifier(n_rules=5, random_state=1).fit(
        np.ma.array(X), np.ma.array(Y[:, 0]), sample_weight=np.ma.ones(30)
    )
    assert again.rules_ == model.rules_
    assert again.predict(X).dtype == model.predict(X).dtype


@pytest.mark.parametrize("estimator", [BoomerClassifier(), BoomerRegressor()], ids=repr)
def test_what_is_masked_is_refused_where_nothing_may_be_unknown(estimator: Any) -> None:
    with pytest.raises(ValueError, match="y contains NaN"):
        estimator.fit(X, np.ma.array(Y[:, 0], mask=MASK[:, 0]))
    weight = np.ma.ones(30)
    weight[4] = np.ma.masked
    with pytest.raises(ValueError, match="sample_weight must not be masked, as that of example 4 is"):
        estimator.fit(X, Y, sample_weight=weight)
