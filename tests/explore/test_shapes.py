"""Shapes add up to the scores exactly, whatever the features are, and say what rules say of each."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from pyboomer import BoomerClassifier, BoomerRegressor, Condition, Rule, RuleEnsemble
from pyboomer.datasets import Dataset
from pyboomer.editing import replace_rules
from pyboomer.explore.shapes.functions import FeatureShape, PairShape, ShapeFunctions
from pyboomer.explore.shapes.sums import count_tested, find_shapes
from pyboomer.predicting.scores import add_scores
from pyboomer.rules.schema import Schema

LEVELS = ["short", "middling", "long"]


def make_songs(n: int = 90) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Numbers, categories, levels and missing values, and three labels that depend on them."""
    rng = np.random.default_rng(1)
    songs = pd.DataFrame({"tempo": rng.normal(120, 25, n), "style": rng.choice(["jazz", "rock", "folk"], n)})
    songs["live"] = rng.random(n) < 0.3
    songs["length"] = pd.Categorical(rng.choice(LEVELS, n), LEVELS, ordered=True)
    calm, raw = songs["tempo"] < 115, songs["live"] & (songs["style"] == "rock")
    party = ~calm & (songs["length"] != "long")
    moods = pd.DataFrame({"calm": calm, "party": party, "raw": raw}).astype(int)
    for name in ("tempo", "style", "length"):
        songs.loc[rng.random(n) < 0.2, name] = None
    return songs, moods


SONGS, MOODS = make_songs()


@pytest.fixture(scope="module", params=[1, 2, None])
def clf(request: pytest.FixtureRequest) -> BoomerClassifier:
    return BoomerClassifier(n_rules=120, max_conditions=request.param, random_state=1).fit(SONGS, MOODS)


def add_up(shapes: ShapeFunctions, model: Any, X: Any, column: Callable[[int], Any]) -> np.ndarray:
    """The scores by the shapes, called with columns as people have them; the rest by its rules."""
    scores = np.tile(shapes.intercept, (X.shape[0], 1))
    for shape in shapes.features:
        scores += shape(column(shape.steps.feature))
    for pair in shapes.pairs:
        scores += pair(*(column(steps.feature) for steps in pair.steps))
    if len(shapes.rest):
        add_scores(shapes.rest, model.get_fitted().read_matrix(X), scores)
    return scores


# --- The sums are the scores ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [None, SONGS])
def test_shapes_add_up_to_the_scores(clf: BoomerClassifier, given: Any) -> None:
    unseen = SONGS.copy()
    unseen.loc[unseen["style"] == "folk", "style"] = "polka"
    unseen["tempo"] *= 1.1
    shapes = clf.shape_functions(given)
    for X in (SONGS, unseen):
        scores = add_up(shapes, clf, X, lambda f, X=X: X.iloc[:, f])
        np.testing.assert_allclose(scores, clf.decision_function(X), rtol=0, atol=1e-9)
    assert (len(shapes.rest) > 0) == (clf.max_conditions is None)
    assert (len(shapes.pairs) > 0) == (clf.max_conditions != 1)
    assert sum(shapes.shares.values()) == pytest.approx(1)


@pytest.mark.parametrize("conditions", [1, 2])
def test_sparse_data_with_nominal_features_add_up(conditions: int) -> None:
    rng = np.random.default_rng(2)
    X = sp.random_array((60, 12), density=0.3, rng=rng, format="csr")
    X.data = np.ceil(X.data * 4) - 1  # some of the zeros are stored
    X.data[::7] = np.nan
    Y = np.asarray((X[:, [0, 1]].toarray() > 1) | (X[:, [2, 3]].toarray() == 2)).astype(int)
    model = BoomerClassifier(n_rules=40, max_conditions=conditions, categorical_features=[0, 2, 5], random_state=1)
    model.fit(X, Y)
    dense = X.toarray()
    for given in (None, X, dense):
        scores = add_up(model.shape_functions(given), model, X, lambda f: dense[:, f])
        np.testing.assert_allclose(scores, model.decision_function(X), rtol=0, atol=1e-9)


def test_binned_data_and_numbers_to_predict_add_up() -> None:
    X, y = SONGS[["tempo", "live"]].astype(float).to_numpy(), MOODS.to_numpy() @ np.array([3.0, -20.0, 100.0])
    binned = BoomerClassifier(n_rules=20, max_conditions=1, max_bins=16, random_state=2).fit(X, MOODS)
    scores = add_up(binned.shape_functions(X), binned, X, lambda f: X[:, f])
    np.testing.assert_allclose(scores, binned.decision_function(X), rtol=0, atol=1e-9)
    model = BoomerRegressor(n_rules=40, max_conditions=1, random_state=1).fit(X, y)
    predicted = add_up(model.shape_functions(X), model, X, lambda f: X[:, f])[:, 0]
    np.testing.assert_allclose(predicted, model.predict(X), rtol=1e-12, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["birds", "emotions", "enron", "llog", "medical", "scene", "slashdot", "yeast"])
@pytest.mark.parametrize("conditions", [1, 2, 3])
def test_shapes_add_up_on_benchmark_data(benchmark_data: Callable[[str], Dataset], name: str, conditions: int) -> None:
    ds = benchmark_data(name)
    settings = {"max_conditions": conditions, "categorical_features": list(ds.nominal_features) or None}
    model = BoomerClassifier("joint-logistic", n_rules=1000, random_state=1, **settings).fit(ds.X, ds.Y)
    dense = ds.X.toarray() if sp.issparse(ds.X) else ds.X
    for given in (None, ds.X):
        scores = add_up(model.shape_functions(given), model, ds.X, lambda f: dense[:, f])
        np.testing.assert_allclose(scores, model.decision_function(ds.X), rtol=0, atol=1e-9)


# --- What shapes say --------------------------------------------------------------------------------------------------


def make_rules(*rules: tuple[list[tuple[int, str, Any]], float], coverage: float = 5.0) -> RuleEnsemble:
    """Rules about one label: conditions on the numbers x and y, the category z and the level w, and a score."""
    schema = Schema(("x", "y", "z", "w"), {2: ("a", "b", "c"), 3: ("low", "mid", "high")}, ordinal=(3,))
    made = [
        Rule(tuple(Condition(f, op, v, schema.names[f]) for f, op, v in body), (0,), (score,), ("L",), coverage)
        for body, score in rules
    ]
    return RuleEnsemble.from_rules([Rule((), (0,), (0.25,), ("L",), 10.0), *made], schema, ("L",))


def feature(shapes: ShapeFunctions, name: str) -> FeatureShape:
    shape = shapes[name]
    assert isinstance(shape, FeatureShape)
    return shape


def test_steps_are_the_sums_of_the_rules_that_cover_them() -> None:
    rules = make_rules(
        ([(0, "<=", 1.0)], 1.0),
        ([(0, ">", 1.0), (0, "<=", 3.0)], 10.0),  # an interval is about one feature
        ([(0, ">", 3.0)], 100.0),
        ([(2, "==", "b")], 2.0),
        ([(2, "!=", "c")], 3.0),
        ([(3, ">", 0.0)], 4.0),
    )
    shapes = find_shapes(rules)
    assert shapes.intercept.tolist() == [0.25]
    assert shapes.shares == {"additive": 1.0, "pairwise": 0.0, "more": 0.0}
    x, z, w = (feature(shapes, name) for name in "xzw")
    assert x.steps.describe() == ("<= 1", "1 to 3", "> 3", "missing")
    assert x.values[:, 0].tolist() == [1, 10, 100, 0]
    assert z.steps.describe() == ("b", "c", "a", "missing")
    assert z.values[:, 0].tolist() == [5, 0, 3, 0]
    assert w.steps.describe() == ("low", "mid to high", "missing")
    assert w.values[:, 0].tolist() == [0, 4, 0]
    assert [shape.n_rules for shape in (x, z, w)] == [3, 2, 1]
    assert [shape.name for shape in shapes.features] == ["x", "z", "w"]
    assert x([0.0, 1.0, 3.0, 3.5, np.nan])[:, 0].tolist() == [1, 1, 10, 100, 0]
    assert z(["a", "b", "unheard of", None])[:, 0].tolist() == [3, 5, 3, 0]
    assert w(["low", "high", "none", None])[:, 0].tolist() == [0, 4, 0, 0]
    # by coverage: half of the examples each
    np.testing.assert_allclose([s.importance[0] for s in (x, z, w)], [55.5, 2.5, 2.0])
    assert count_tested(rules).tolist() == [0, 1, 1, 1, 1, 1, 1]


def test_a_pair_is_a_grid_and_is_purified_by_examples() -> None:
    rules = make_rules(([(0, "<=", 1.0), (1, "<=", 1.0)], 4.0))
    raw = find_shapes(rules)
    pair = raw["x", "y"]
    assert isinstance(pair, PairShape)
    assert pair.values[:, :, 0].tolist() == [[4, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert raw.features == ()
    assert raw.shares["pairwise"] == 1
    X = np.array([[0, 0, 0, 0], [0, 2, 0, 0], [2, 0, 0, 0], [2, 2, 0, 0]], dtype=float)
    pure = find_shapes(rules, X)
    # 4 = 1 + 1 + 1 + 1: the mean, each feature, and both together
    assert pure.intercept == pytest.approx([1.25])
    np.testing.assert_allclose(feature(pure, "x").values[:2, 0], [1, -1])
    np.testing.assert_allclose(feature(pure, "y").values[:2, 0], [1, -1])
    np.testing.assert_allclose(pure["y", "x"].values[:2, :2, 0], [[1, -1], [-1, 1]])
    np.testing.assert_allclose([pure.shares["additive"], pure.shares["pairwise"]], [2 / 3, 1 / 3])
    assert pure["x", "y"].importance == pytest.approx([1.0])
    assert feature(pure, "x").n_examples.tolist() == [2, 2, 0]  # type: ignore[union-attr]
    assert pure.pairs[0]([0, 2, np.nan], [0, 0, 0])[:, 0] == pytest.approx(
        [1, -1, -feature(pure, "x").values[2, 0] - 2]
    )


def test_of_longer_rules_the_shapes_have_what_is_additive() -> None:
    rules = make_rules(([(0, "<=", 1.0), (1, "<=", 1.0), (3, "<=", 0.0)], 8.0))
    X = np.array([[x, y, 0, w] for x in (0, 2) for y in (0, 2) for w in (0, 1)], dtype=float)
    shapes = find_shapes(rules, X)
    assert shapes.intercept == pytest.approx([1.25])
    for name in "xyw":
        np.testing.assert_allclose(feature(shapes, name).values[:2, 0], [1, -1])
    # 8 = 1 + 3 * 1 + ... : of a variance of 7, each feature has 1
    assert shapes.shares == pytest.approx({"additive": 3 / 7, "pairwise": 0.0, "more": 4 / 7})
    noisy = replace(shapes, shares={**shapes.shares, "pairwise": -1e-17})
    assert repr(noisy) == "<ShapeFunctions of 3 features, 0 pairs: 42.9 % additive, 57.1 % more>"


def test_examples_tell_importance_and_centre_shapes() -> None:
    model = BoomerClassifier(n_rules=40, max_conditions=1, random_state=1).fit(SONGS, MOODS)
    shapes = model.shape_functions(SONGS)
    np.testing.assert_allclose(shapes.intercept, model.decision_function(SONGS).mean(axis=0))
    raw = model.shape_functions()
    for shape in shapes.features:
        column = shape(SONGS.iloc[:, shape.steps.feature])
        np.testing.assert_allclose(column.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(column.std(axis=0), shape.importance)
        assert shape.n_examples is not None
        assert shape.n_examples.sum() == len(SONGS)
        assert shape.n_examples[-1] == SONGS.iloc[:, shape.steps.feature].isna().sum()
        before = feature(raw, shape.name)
        assert (before.importance >= shape.importance - 1e-9).all()
        np.testing.assert_allclose(np.ptp(before.values - shape.values, axis=0), 0, atol=1e-12)
    assert [s.n_rules for s in shapes.rank("raw")] == [feature(raw, s.name).n_rules for s in shapes.rank("raw")]
    frame = shapes.to_frame()
    assert frame.index.tolist() == [shape.name for shape in shapes.features]
    np.testing.assert_allclose(frame["(overall)"], frame[["calm", "party", "raw"]].sum(axis=1))
    steps = feature(shapes, "style").to_frame()
    assert sorted(steps.index)[-2:] == ["missing", "rock"]
    assert steps.columns.tolist() == ["(examples)", "calm", "party", "raw"]
    pair = BoomerClassifier(n_rules=40, max_conditions=2, random_state=1).fit(SONGS, MOODS).shape_functions().pairs[0]
    assert pair.to_frame("raw").shape == (len(pair.steps[0]), len(pair.steps[1]))


def test_a_default_rule_alone_is_additive() -> None:
    model = BoomerClassifier(n_rules=1).fit(SONGS, MOODS)
    for given in (None, SONGS):
        shapes = model.shape_functions(given)
        assert shapes.features == shapes.pairs == ()
        assert shapes.shares["additive"] == 1
        np.testing.assert_allclose(shapes.intercept, model.decision_function(SONGS[:1])[0])
        assert shapes.to_frame().empty


def test_edited_models_have_shapes_too() -> None:
    model = BoomerClassifier(n_rules=40, max_conditions=2, random_state=1).fit(SONGS, MOODS)
    fewer = replace_rules(model, model.rules_[3:20])
    scores = add_up(fewer.shape_functions(SONGS), fewer, SONGS, lambda f: SONGS.iloc[:, f])
    np.testing.assert_allclose(scores, fewer.decision_function(SONGS), rtol=0, atol=1e-9)


def test_what_is_not_there_is_named() -> None:
    shapes = find_shapes(make_rules(([(0, "<=", 1.0)], 1.0)))
    with pytest.raises(ValueError, match="no rule is about feature 'y' alone"):
        shapes["y"]
    with pytest.raises(ValueError, match="no rule is about features 'x' and 'y' and no other"):
        shapes["x", "y"]
    with pytest.raises(ValueError, match="two features make a pair"):
        shapes["x", "x"]
    with pytest.raises(ValueError, match="there is no feature 'v'"):
        shapes["v"]
    with pytest.raises(NotFittedError):
        BoomerClassifier().shape_functions()
