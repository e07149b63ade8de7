"""Explanations add up to the scores, name the runner-up, and find the smallest change that matters."""

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from pyboomer import BoomerClassifier, BoomerRegressor
from pyboomer.datasets import Dataset
from pyboomer.editing import replace_rules
from pyboomer.explore.explanation import Explanation

pd = pytest.importorskip("pandas")

DECODES = ["loss", "subset", "hamming", "f1", "top-2", 0.3, [0.2, 0.4, 0.6]]


def make_songs(n: int = 200, seed: int = 0) -> tuple[Any, Any]:
    """Numeric and nominal features, with missing values, and three labels that depend on each other."""
    rng = np.random.default_rng(seed)
    tempo = rng.normal(120, 25, n).round(1)
    style = rng.choice(["jazz", "rock", "folk"], n)
    songs = pd.DataFrame({"tempo": tempo, "style": style, "live": rng.random(n) < 0.3, "noise": rng.random(n)})
    calm = (tempo < 115) | (style == "folk")
    moods = pd.DataFrame({"calm": calm, "party": ~calm & (tempo > 125), "raw": songs["live"] & (style == "rock")})
    moods = (moods != (rng.random(moods.shape) < 0.05)).astype(int)
    songs.loc[rng.random(n) < 0.1, "tempo"] = np.nan
    songs.loc[rng.random(n) < 0.1, "style"] = None
    return songs, moods


SONGS, MOODS = make_songs()


def fit(X: Any = SONGS, Y: Any = MOODS, **options: Any) -> BoomerClassifier:
    return BoomerClassifier(**{"n_rules": 40, "learning_rate": 0.3, "random_state": 1, **options}).fit(X, Y)


def change_value(X: Any, n: int, explanation: Explanation) -> Any:
    """The example with the change that its explanation proposes, in the form of X."""
    change = explanation.change
    assert change is not None
    if isinstance(X, pd.DataFrame):
        row = X.iloc[[n]].copy()
        row.isetitem(change.feature, pd.Series([change.value], index=row.index))
        return row
    row = X[[n]].toarray() if sp.issparse(X) else X[[n]].copy()
    row[0, change.feature] = change.value
    return sp.csr_array(row) if sp.issparse(X) else row


def check(clf: BoomerClassifier, X: Any, decode: Any = None) -> tuple[Explanation, ...]:
    """What holds for all explanations of any classifier."""
    explanations = clf.explain(X, decode=decode)
    scores = clf.decision_function(X).reshape(X.shape[0], -1)
    predicted = clf.predict(X, decode=decode)
    predicted = predicted.toarray() if sp.issparse(predicted) else predicted
    changed = 0
    for n, explanation in enumerate(explanations):
        assert explanation.example == n
        np.testing.assert_allclose(explanation.contributions.sum(axis=0), scores[n], rtol=0, atol=1e-10)
        np.testing.assert_array_equal(explanation.scores, scores[n])
        assert explanation.rules.order[0] == 0  # the default rule counts
        if clf.get_fitted().label_format.classes is None:
            np.testing.assert_array_equal(explanation.prediction, predicted[n])
        if explanation.runner_up is not None:
            differ = explanation.prediction != explanation.runner_up.vector
            assert differ.any()
            assert explanation.runner_up.margin >= 0
            towards = np.where(explanation.prediction == 1, 1, -1)[differ]
            np.testing.assert_allclose(explanation.pushes.sum(), towards @ scores[n][differ], atol=1e-10)
        if explanation.change is not None:
            then = clf.explain(change_value(X, n, explanation), decode=decode, change=False)[0]
            assert then.prediction.tolist() == explanation.change.prediction.tolist()
            assert then.prediction.tolist() != explanation.prediction.tolist()
            changed += 1
    assert changed > 0
    return explanations


@pytest.mark.parametrize("decode", DECODES, ids=str)
@pytest.mark.parametrize("loss", ["label-wise-logistic", "example-wise-logistic"])
def test_explanations_of_any_decoding(loss: str, decode: Any) -> None:
    check(fit(loss=loss), SONGS[:25], decode)


@pytest.mark.parametrize("options", [{"head": "single"}, {"known_vectors": False}, {"decode": "f1"}], ids=str)
def test_explanations_of_other_models(options: dict[str, Any]) -> None:
    check(fit(**options), SONGS[:25])


@pytest.mark.parametrize("decode", ["loss", "hamming", "subset", "f1"])
def test_explanations_of_calibrated_models(decode: str) -> None:
    check(fit(calibration="isotonic", decode=decode), SONGS[:25])


def test_explanations_of_one_column_of_classes() -> None:
    several = fit(SONGS, SONGS["style"].fillna("none"))
    explanations = check(several, SONGS[:30])
    assert [e.describe(e.prediction) for e in explanations] == several.predict(SONGS[:30]).tolist()
    two = fit(SONGS, np.where(MOODS["calm"], "yes", "no"))
    explanations = check(two, SONGS[:30])
    assert [e.describe(e.prediction) for e in explanations] == two.predict(SONGS[:30]).tolist()
    assert {e.describe(e.runner_up.vector) for e in explanations} == {"yes", "no"}


def test_explanations_of_sparse_data_are_those_of_dense_data() -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((150, 8)) < 0.6, 0.0, rng.integers(1, 5, (150, 8)))
    Y = np.column_stack([X[:, 0] > 1, X[:, 1] == 2, X[:, 2] > X[:, 3]]).astype(int)
    X[rng.random(X.shape) < 0.05] = np.nan
    clf = fit(sp.csr_matrix(X), sp.csr_matrix(Y), categorical_features=[1])
    sparse, dense = check(clf, sp.csr_matrix(X[:30])), check(clf, X[:30])
    assert list(map(str, sparse)) == list(map(str, dense))


def test_explanations_of_a_regressor_add_up_to_its_predictions() -> None:
    Y = pd.DataFrame({"energy": SONGS["tempo"].fillna(0) / 50, "length": 3.0 + SONGS["live"]})
    reg = BoomerRegressor(n_rules=50, random_state=1).fit(SONGS, Y)
    explanations = reg.explain(SONGS[:20])
    np.testing.assert_allclose([e.contributions.sum(axis=0) for e in explanations], reg.predict(SONGS[:20]))
    assert (explanations[0].prediction, explanations[0].runner_up, explanations[0].change) == (None, None, None)
    assert str(explanations[0]).startswith("Example 0: energy ")
    assert "Runner-up" not in explanations[0]._repr_html_()


def test_the_rules_of_an_explanation_are_those_that_cover_the_example() -> None:
    clf = fit()
    for n, explanation in enumerate(clf.explain(SONGS[:20], change=False)):
        covering = [
            t
            for t, rule in enumerate(clf.rules_)
            if all(c.covers(SONGS[c.name].iloc[[n]].to_numpy(dtype=object))[0] for c in rule.body)
        ]
        assert explanation.rules.order.tolist() == covering


# --- The runner-up


@pytest.mark.parametrize("decode", ["loss", "subset"])
@pytest.mark.parametrize("loss", ["joint-logistic", "example-wise-logistic"])
def test_without_the_winner_the_runner_up_wins(loss: str, decode: str) -> None:
    clf = fit(loss=loss, decode=decode)
    values = clf.loss_.prepare(clf.label_vectors_, clf.label_vector_counts_) if clf.loss_.prepare else clf.loss_
    for n, explanation in enumerate(clf.explain(SONGS[:20], change=False)):
        rest = copy(clf)
        is_winner = (clf.label_vectors_ == explanation.prediction).all(axis=1)
        rest.label_vectors_ = clf.label_vectors_[~is_winner]
        rest.label_vector_counts_ = clf.label_vector_counts_[~is_winner]
        assert rest.predict(SONGS[n : n + 1])[0].tolist() == explanation.runner_up.vector.tolist()
        if decode == "loss" or loss == "joint-logistic":
            signs = 2.0 * np.stack([explanation.runner_up.vector, explanation.prediction]) - 1
            losses = values.value(signs, np.tile(explanation.scores, (2, 1)))
            assert explanation.runner_up.margin == pytest.approx(losses[0] - losses[1], abs=1e-9)


def test_of_labels_decided_one_by_one_the_nearest_flips() -> None:
    clf = fit(loss="label-wise-logistic")
    for explanation in clf.explain(SONGS[:20], change=False):
        flipped = np.flatnonzero(explanation.prediction != explanation.runner_up.vector)
        assert flipped.tolist() == [np.abs(explanation.scores).argmin()]


def test_the_last_of_the_best_labels_makes_room_for_the_next() -> None:
    explanation = fit().explain(SONGS[:1], decode="top-2", change=False)[0]
    best = np.argsort(-explanation.scores)
    assert np.flatnonzero(explanation.runner_up.vector).tolist() == sorted(best[[0, 2]].tolist())
    assert fit().explain(SONGS[:1], decode="top-3", change=False)[0].runner_up is None


def test_the_runner_up_by_expected_f_measure_is_the_best_neighbour() -> None:
    clf = fit(decode="f1")
    vectors, joint = clf.label_vectors_, clf.predict_joint(SONGS[:20])

    def expected(h: Any, p: Any) -> float:
        both, sizes = vectors @ h, vectors.sum(axis=1) + h.sum()
        return float(p @ np.where(sizes == 0, 1.0, 2 * both / np.maximum(sizes, 1)))

    for explanation, p in zip(clf.explain(SONGS[:20], change=False), joint, strict=True):
        neighbours = explanation.prediction ^ np.eye(3, dtype=np.uint8)
        values = [expected(h, p) for h in neighbours]
        assert expected(explanation.runner_up.vector, p) == pytest.approx(max(values))
        lost = expected(explanation.prediction, p) - max(values)
        assert explanation.runner_up.margin == pytest.approx(lost, abs=1e-9)


def test_a_model_of_one_label_vector_has_no_runner_up() -> None:
    clf = fit(SONGS, np.tile([1, 0, 1], (len(SONGS), 1)), n_rules=3)
    explanation = clf.explain(SONGS[:1])[0]
    assert (explanation.runner_up, explanation.change) == (None, None)
    assert str(explanation).endswith("No change of a single feature changes the prediction.")


# --- The smallest change


def list_all_changes(clf: BoomerClassifier, row: Any) -> list[tuple[str, Any, float]]:
    """All other values of single features that can make a difference, each with its size."""
    changes = []
    conditions = [c for rule in clf.rules_ for c in rule.body]
    for name in row.columns:
        own = [c for c in conditions if c.name == name]
        thresholds = {float(c.value) for c in own if not c.is_nominal}
        values = [*thresholds, *(np.nextafter(t, np.inf) for t in thresholds)]
        values += list({c.value for c in own if c.is_nominal} | {"jazz", "rock", "folk"}) if name == "style" else []
        for value in values:
            pair = [np.array([v], dtype=object) for v in (row[name].iloc[0], value)]
            flips = [c.covers(pair[0])[0] != c.covers(pair[1])[0] for c in own]
            changes.append((name, value, float(np.mean(flips))))
    return changes


@pytest.mark.parametrize("seed", range(4))
def test_no_smaller_change_of_a_single_feature_does_it(seed: int) -> None:
    X, Y = make_songs(100, seed)
    X["live"] = X["live"].astype(float)
    clf = fit(X, Y, n_rules=15)
    for n, explanation in enumerate(clf.explain(X[:12])):
        found = np.inf if explanation.change is None else explanation.change.size
        changes = list_all_changes(clf, X.iloc[[n]])
        rows = X.iloc[[n] * len(changes)].reset_index(drop=True)
        for i, (name, value, _) in enumerate(changes):
            rows.loc[i, name] = value
        matters = (clf.predict(rows) != explanation.prediction).any(axis=1)
        sizes = [size for (_, _, size), flips in zip(changes, matters, strict=True) if flips]
        assert found == pytest.approx(min(sizes, default=np.inf))


def test_a_change_is_stated_in_words() -> None:
    X, y = np.arange(20.0)[:, None] / 7, np.column_stack([np.arange(20) >= 10, np.arange(20) >= 0])
    clf = fit(X, y.astype(int), n_rules=5, max_conditions=1, bootstrap=False, learning_rate=1.0)
    below, above = clf.explain(X[[3, 15]])
    assert str(below.change) == "if x0 were > 1.357 (is 0.428571)"
    assert str(above.change) == "if x0 were <= 1.357 (is 2.14286)"
    assert str(above).endswith("Smallest change: if x0 were <= 1.357 (is 2.14286) the prediction would be y1")
    assert below.change.size == 1.0


def test_a_change_of_a_category_is_stated_in_words() -> None:
    X = pd.DataFrame({"style": ["jazz", "rock", "folk", None] * 10})
    Y = pd.DataFrame({"calm": (X["style"] == "folk").astype(int), "loud": (X["style"] == "rock").astype(int)})
    clf = fit(X, Y, learning_rate=1.0)
    explanations = clf.explain(X[:4])
    assert str(explanations[0].change) in ("if style were folk (is jazz)", "if style were rock (is jazz)")
    assert explanations[3].change.current_text == "missing"
    unknown = clf.explain(pd.DataFrame({"style": ["polka"]}))[0]
    assert unknown.change.current_text == "another category"


def test_values_are_told_apart_from_the_thresholds_they_are_beyond() -> None:
    X = np.array([1.0, 1.0 + 2e-9] * 20)[:, None]
    Y = np.tile([[1, 0], [0, 1]], (20, 1))
    explanation = fit(X, Y, learning_rate=1.0).explain(X[:1])[0]
    threshold, current = explanation.change.wanted.removeprefix("> "), explanation.change.current_text
    assert float(current) <= float(threshold) < explanation.change.value


# --- Forms


def test_the_frame_adds_up_to_the_scores() -> None:
    clf = fit()
    explanation = clf.explain(SONGS[:1])[0]
    frame = explanation.to_frame()
    np.testing.assert_allclose(frame.sum(), clf.decision_function(SONGS[:1])[0])
    assert list(frame.columns) == ["calm", "party", "raw"]
    assert frame.index.names == ["rule", "body"]
    assert frame.index[0] == (0, "(always)")


def test_the_text_shows_what_matters_and_sums_up_the_rest() -> None:
    clf, song = fit(), SONGS.dropna()[:1]
    (explanation,) = clf.explain(song)
    lines = explanation.to_text(max_rules=2).splitlines()
    assert lines[0].startswith(f"Example {song.index[0]}: ")
    (p,) = clf.predict_proba(song)[:, 0]
    assert lines[1].startswith(f"scores and probabilities: calm {explanation.scores[0]:+.3g} ({p:.0%}), party ")
    assert lines[2] == f"It is covered by {len(explanation.rules)} of 40 rules; those that add most:"
    assert lines[5].startswith(f"... and {len(explanation.rules) - 2} more rules: calm ")
    assert lines[6].startswith("Runner-up: ")
    assert repr(explanation).startswith(f"<Explanation of example {song.index[0]}: ")


def test_the_text_begins_with_the_rules_that_add_most() -> None:
    (explanation,) = fit().explain(SONGS.dropna()[:1], change=False)
    listed = [int(line.split()[0]) for line in explanation.to_text(max_rules=6).splitlines()[3:9]]
    places = [explanation.rules.order.tolist().index(number) for number in listed]
    sizes = np.abs(explanation.contributions).sum(axis=1)
    assert sizes[places].tolist() == sorted(sizes, reverse=True)[:6]


def test_features_that_are_not_known_are_told_with_the_rules_that_do_not_apply() -> None:
    clf = fit()
    song = SONGS.dropna()[:1]
    known, unknown = clf.explain(pd.concat([song, song.assign(tempo=np.nan)]), change=False)
    about = sum(any(c.name == "tempo" for c in rule.body) for rule in clf.rules_)
    assert known.unknown == {}
    assert unknown.unknown["tempo"] == about
    assert "Not known" not in str(known)
    for text in (str(unknown), unknown._repr_html_()):
        assert f"Not known, so that rules about it do not apply: tempo ({about} rules)" in text


def test_of_many_labels_those_that_matter_are_shown() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((100, 5))
    Y = (rng.random((100, 30)) < 0.2).astype(int)
    Y[:, 20] = X[:, 0] > 0.5
    explanation = fit(X, Y).explain(X[X[:, 0] > 0.6][:1], change=False)[0]
    assert explanation.to_text(max_labels=3).splitlines()[1].count("y") == 3
    assert "(+27 more)" in explanation.to_text(max_labels=3)
    assert "y20 +" in explanation.to_text(max_labels=3).splitlines()[1]


def test_an_example_is_called_by_its_index() -> None:
    model, named = fit(), SONGS.set_axis([f"song {n}" for n in range(len(SONGS))])
    for table, name in ((named[3:5], "song 4"), (SONGS[3:5], "4"), (SONGS[3:5].reset_index(drop=True), "1")):
        explanation = model.explain(table, change=False)[1]
        assert (explanation.example, explanation.name) == (1, name)
        assert str(explanation).startswith(f"Example {name}: ")
        assert repr(explanation).startswith(f"<Explanation of example {name}: ")
        assert f"Example {name}: " in explanation._repr_html_()
    X = SONGS[["tempo", "noise"]].to_numpy()
    (explanation,) = BoomerRegressor(n_rules=5, random_state=1).fit(X, X[:, 1]).explain(X[7:8])
    assert explanation.name == "0"


def test_names_are_text_in_html() -> None:
    evil = "<script>alert('x')</script>"
    X = pd.DataFrame({evil: [evil, "b"] * 20}, index=[evil] * 40)
    Y = pd.DataFrame({evil: [1, 0] * 20, "<b>": [0, 1] * 20})
    html = fit(X, Y, learning_rate=1.0).explain(X[:1])[0]._repr_html_()
    assert "<script" not in html
    assert "<b>" not in html
    assert "Smallest change" in html
    assert "&lt;script&gt;" in html


def test_explanations_cannot_be_changed() -> None:
    explanation = fit().explain(SONGS[:1])[0]
    with pytest.raises(AttributeError):
        explanation.scores = np.zeros(3)  # type: ignore[misc]
    for array in (explanation.scores, explanation.prediction):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_toggled_rules_change_the_scores_by_what_they_contribute() -> None:
    clf = fit()
    explanation = clf.explain(SONGS[:1], change=False)[0]
    for i, t in enumerate(explanation.rules.order[1:4].tolist(), start=1):
        without = replace_rules(clf, clf.rules_[np.delete(np.arange(len(clf.rules_)), t)])
        expected = explanation.scores - explanation.contributions[i]
        np.testing.assert_allclose(without.decision_function(SONGS[:1])[0], expected, atol=1e-12)


def test_faults_are_named() -> None:
    with pytest.raises(ValueError, match="decode must be"):
        fit().explain(SONGS[:1], decode="f2")
    with pytest.raises(ValueError, match="fitted"):
        BoomerClassifier().explain(SONGS)
    with pytest.raises(ValueError, match="feature"):
        fit().explain(SONGS[["tempo"]])


def test_explaining_leaves_the_model_alone() -> None:
    clf = fit()
    before = clf.rules_
    clf.explain(SONGS[:3])
    assert clf.rules_ is before
    assert replace(before) == before


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["label-wise-logistic", "example-wise-logistic"])
@pytest.mark.parametrize("name", ["emotions", "birds", "scene", "yeast", "medical", "slashdot", "enron", "llog"])
def test_explanations_add_up_on_all_data_sets_of_the_paper(name: str, loss: str, benchmark_data: Any) -> None:
    data: Dataset = benchmark_data(name)
    clf = BoomerClassifier(loss, random_state=1, categorical_features=list(data.nominal_features)).fit(data.X, data.Y)
    explanations = clf.explain(data.X, change=False)
    sums = np.array([explanation.contributions.sum(axis=0) for explanation in explanations])
    np.testing.assert_allclose(sums, clf.decision_function(data.X), rtol=0, atol=1e-6)
    for explanation in clf.explain(data.X[:3]):
        if explanation.change is not None:
            row = data.X[[explanation.example]]
            row = row.toarray() if sp.issparse(row) else row.copy()
            row[0, explanation.change.feature] = explanation.change.value
            assert clf.predict(row)[0].tolist() == explanation.change.prediction.tolist()
