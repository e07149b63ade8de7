"""The joint logistic loss is about whole label vectors: its definition, its compiled twin, and what rules it gives."""

import pickle
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit, logsumexp, softmax

from pyboomer import BoomerClassifier, load_model
from pyboomer.compiling.simd import pad
from pyboomer.editing import refit_heads
from pyboomer.engine.cpu.threads import Threads
from pyboomer.losses import Loss, find_loss, joint_logistic, label_wise_logistic
from pyboomer.losses.compiled import sum_values, tell_truth, update
from pyboomer.losses.truth import pad_signs
from pyboomer.metrics import example_f1
from pyboomer.predicting.decoding import add_incomplete, joint_probabilities

Array = NDArray[np.float64]

KINDS = ["known", "unseen", "incomplete"]


def make_case(kind: str, seed: int = 1, n: int = 21, K: int = 5, V: int = 11) -> tuple[Loss, Array, Array]:
    """A prepared loss, labels (0 for an unknown one) and scores."""
    rng = np.random.default_rng(seed)
    vectors = np.unique(rng.integers(0, 2, size=(V, K), dtype=np.uint8), axis=0)
    loss = joint_logistic().prepare(vectors, rng.integers(1, 9, size=len(vectors)).astype(float))  # type: ignore[misc]
    Y = 2.0 * vectors[rng.integers(len(vectors), size=n)] - 1
    if kind == "unseen":
        Y = rng.choice([-1.0, 1.0], size=Y.shape)
    elif kind == "incomplete":
        Y[rng.random(Y.shape) < 0.3] = 0.0
    return loss, Y, rng.normal(scale=2.0, size=Y.shape)


def differences(function: Any, F: Array, step: float = 1e-5) -> Array:
    steps = step * np.eye(F.shape[1])
    return np.stack([(function(F + s) - function(F - s)) / (2 * step) for s in steps], axis=-1)


# --- The definition ---------------------------------------------------------------------------------------------------


def test_the_loss_is_minus_the_logarithm_of_the_probability_of_the_example_s_own_vector() -> None:
    vectors, counts = np.array([[0, 0], [1, 0], [1, 1]], dtype=np.uint8), np.array([1.0, 2.0, 5.0])
    loss = joint_logistic(alpha=1.0).prepare(vectors, counts)  # type: ignore[misc]
    np.testing.assert_allclose(np.exp(-loss.value(2.0 * vectors - 1, np.zeros((3, 2)))), counts / 8)
    F = np.array([[0.7, -1.3]])
    v = 2.0 * vectors - 1
    s = (v @ F[0]) / 2 + np.log(counts / 8)  # as with signs: what all vectors share does not matter
    np.testing.assert_allclose(loss.value(v[[1]], F), logsumexp(s) - s[1])


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_agree_with_differences_of_the_loss(kind: str) -> None:
    loss, Y, F = make_case(kind)
    np.testing.assert_allclose(loss.derivatives(Y, F)[0], differences(lambda F: loss.value(Y, F), F), atol=1e-8)


def test_the_curvature_is_the_diagonal_of_the_hessian() -> None:
    loss, Y, F = make_case("known")
    H = differences(lambda F: loss.derivatives(Y, F)[0], F)
    np.testing.assert_allclose(loss.derivatives(Y, F)[1], np.diagonal(H, axis1=1, axis2=2), atol=1e-8)


@pytest.mark.parametrize("kind", ["unseen", "incomplete"])
def test_the_curvature_of_what_is_not_known_is_not_below_that_of_the_loss(kind: str) -> None:
    loss, Y, F = make_case(kind)
    H = differences(lambda F: loss.derivatives(Y, F)[0], F)
    assert (loss.derivatives(Y, F)[1] >= np.diagonal(H, axis1=1, axis2=2) - 1e-8).all()


def test_unknown_labels_are_marginalised() -> None:
    loss, Y, F = make_case("incomplete")
    known = loss.known
    assert known is not None
    signs = 2.0 * known.vectors - 1
    each = np.stack([loss.value(np.tile(v, (len(F), 1)), F) for v in signs], axis=1)
    agree = ((Y[:, None] == 0) | (Y[:, None] == signs)).all(axis=2)
    some = agree.any(axis=1)
    assert some.sum() > 10
    expected = -np.log((np.exp(-each) * agree)[some].sum(axis=1))
    np.testing.assert_allclose(loss.value(Y, F)[some], expected)
    weight = (Y != 0).astype(float)
    np.testing.assert_allclose(loss.weighted_value(np.where(Y == 0, -1.0, Y), F, weight), loss.value(Y, F))


def test_an_unseen_vector_counts_as_the_nearest_known_ones() -> None:
    vectors = np.array([[0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1]], dtype=np.uint8)
    loss = joint_logistic().prepare(vectors, np.ones(3))  # type: ignore[misc]
    F = np.array([[0.3, -0.2, 0.9, 0.4]])
    seen = np.exp(-loss.value(2.0 * vectors - 1, np.tile(F, (3, 1))))
    np.testing.assert_allclose(np.exp(-loss.value(np.array([[1.0, -1.0, -1.0, -1.0]]), F)), seen[:2].sum())
    np.testing.assert_allclose(np.exp(-loss.value(np.array([[-1.0, 1.0, 1.0, 1.0]]), F)), seen[2])


def test_with_all_vectors_alike_it_is_the_label_wise_loss() -> None:
    vectors = np.array(list(product([0, 1], repeat=4)), dtype=np.uint8)
    all_known = joint_logistic().prepare(vectors, np.ones(16))  # type: ignore[misc]
    rng = np.random.default_rng(1)
    Y, F = rng.choice([-1.0, 1.0], size=(30, 4)), rng.normal(scale=3.0, size=(30, 4))
    for loss in (all_known, joint_logistic(), find_loss("joint-logistic")):  # or with none known yet
        np.testing.assert_allclose(loss.value(Y, F), label_wise_logistic.value(Y, F))
        for a, b in zip(loss.derivatives(Y, F), label_wise_logistic.derivatives(Y, F), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-14)
        np.testing.assert_allclose(loss.log_odds(F), F, rtol=1e-9)


def test_log_odds_are_those_of_the_labels_among_the_known_vectors() -> None:
    vectors = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0]], dtype=np.uint8)
    loss = joint_logistic(alpha=1.0).prepare(vectors, np.array([1.0, 2.0, 5.0]))  # type: ignore[misc]
    log_odds = loss.log_odds(np.zeros((1, 3)))
    np.testing.assert_allclose(log_odds[0, :2], [np.log(7), np.log(5 / 3)])
    assert log_odds[0, 2] < -600  # no known vector has it


@pytest.mark.parametrize("size", [1e2, 1e3, 1e6, 1e300])
def test_labels_are_as_probable_as_the_vectors_that_have_them_for_scores_of_any_size(size: float) -> None:
    loss, _, F = make_case("known")
    known = loss.known
    assert known is not None
    joint = joint_probabilities(F * size, known.vectors, known.bias)
    np.testing.assert_allclose(expit(loss.log_odds(F * size)), joint @ known.vectors, atol=1e-12)


def test_it_does_not_decompose_though_its_curvature_is_diagonal() -> None:
    assert joint_logistic().shape == "diagonal"
    assert not joint_logistic().decomposable


def test_losses_of_the_same_alpha_are_the_same_also_if_pickled() -> None:
    assert joint_logistic() == find_loss("joint-logistic") == pickle.loads(pickle.dumps(joint_logistic()))
    assert joint_logistic(0.25) != joint_logistic()
    assert joint_logistic(0.25).name == "joint-logistic(alpha=0.25)"
    for alpha in (-0.1, 1.1, "a", True):
        with pytest.raises(ValueError, match="alpha must be a number from 0 to 1, got"):
            joint_logistic(alpha)  # type: ignore[arg-type]


def test_weights_of_labels_other_than_0_and_1_are_refused() -> None:
    loss, Y, F = make_case("known")
    with pytest.raises(ValueError, match="cannot weigh their labels"):
        loss.weighted_derivatives(Y, F, np.full(Y.shape, 0.5))


# --- The twin ---------------------------------------------------------------------------------------------------------


def pad_scores(F: Array) -> Array:
    scores = np.zeros((len(F), pad(F.shape[1])))
    scores[:, : F.shape[1]] = F
    return scores


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "K", "V"), [(21, 5, 11), (8, 8, 200), (3, 1, 2), (50, 19, 40), (9, 4, 1)])
@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0])
def test_statistics_and_sums_equal_the_definition_of_the_loss(kind: str, n: int, K: int, V: int, scale: float) -> None:
    loss, Y, F = make_case(kind, n, n, K, V)
    F = scale * F
    truth = tell_truth(loss, True, pad_signs(Y.astype(np.int8), None), np.zeros((0, pad(K))))
    rows = np.flatnonzero(np.arange(n) % 5 < 4).astype(np.uint32)
    statistics = np.full((n, 2 * pad(K)), np.nan)
    update(truth, pad_scores(F), rows, statistics, 0, 1)
    g, h = loss.derivatives(Y, F)
    np.testing.assert_allclose(statistics[rows, :K], g[rows], rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(statistics[rows, pad(K) : pad(K) + K], h[rows], rtol=1e-10, atol=1e-14)
    assert np.isnan(np.delete(statistics, rows, axis=0)).all()
    for section in (statistics[rows, K : pad(K)], statistics[rows, pad(K) + K :]):
        assert (section == 0).all()
    weight = np.arange(1.0, n + 1)
    found = sum_values(truth, pad_scores(F), weight)
    assert found == pytest.approx(loss.value(Y, F) @ weight, rel=1e-11, abs=1e-11)


def test_statistics_are_finite_at_extreme_scores() -> None:
    loss, Y, _ = make_case("incomplete")
    F = np.random.default_rng(1).choice([1e308, -1e308, 1e15, 0.0], size=Y.shape)
    truth = tell_truth(loss, True, pad_signs(Y.astype(np.int8), None), np.zeros((0, 8)))
    statistics = np.zeros((len(Y), 16))
    update(truth, pad_scores(F), np.arange(len(Y), dtype=np.uint32), statistics, 0, 5)
    assert (np.abs(statistics) <= 1 + 1e-12).all()
    assert np.isfinite(loss.value(Y, F)).all()


def test_threads_have_room_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyboomer.engine.cpu.threads.ENOUGH", 1)
    loss, Y, F = make_case("incomplete", n=4000)
    truth = tell_truth(loss, True, pad_signs(Y.astype(np.int8), None), np.zeros((0, 8)))
    rows, results = np.arange(4000, dtype=np.uint32), []
    for n_threads in (1, 4):
        threads, statistics = Threads(n_threads), np.zeros((4000, 16))
        threads.update(truth, pad_scores(F), rows, statistics, 0, 5)
        threads.close()
        results.append(statistics)
    np.testing.assert_array_equal(*results)


# --- Rules ------------------------------------------------------------------------------------------------------------


def make_data(n: int = 80) -> tuple[Array, NDArray[np.int8], Loss]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 4))
    Y = np.where(X @ rng.normal(size=(4, 4)) + rng.normal(size=(n, 4)) > 0, 1, -1).astype(np.int8)
    vectors, counts = np.unique(Y > 0, axis=0, return_counts=True)
    return X, Y, joint_logistic().prepare(vectors.astype(np.uint8), counts.astype(float))  # type: ignore[misc]


@pytest.mark.parametrize("head", ["multi", "single", pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("unknown", [False, True])
def test_the_rules_are_those_of_the_reference(head: Any, unknown: bool, check_oracle: Callable[..., Any]) -> None:
    X, Y, loss = make_data()
    known = (np.random.default_rng(4).random(Y.shape) > 0.2).astype(float) if unknown else None
    signs = Y if known is None else np.where(known > 0, Y, 0)
    rules = check_oracle(X, signs, n_rules=20, loss=loss, head=head, label_weight=known)
    assert len({rule.body for rule in rules}) > 10


def test_with_all_vectors_alike_the_rules_are_those_of_the_label_wise_loss(
    learn: Callable[..., Any], assert_same_rules: Callable[..., None]
) -> None:
    X, Y, _ = make_data()
    vectors = np.array(list(product([0, 1], repeat=4)), dtype=np.uint8)
    loss = joint_logistic().prepare(vectors, np.ones(16))  # type: ignore[misc]
    assert_same_rules(learn(X, Y, n_rules=20, loss=loss), learn(X, Y, n_rules=20, loss=label_wise_logistic))


def test_a_loss_of_the_user_s_own_may_be_prepared_as_well() -> None:
    X, Y, _ = make_data()
    given = []

    def prepare(vectors: Any, counts: Any) -> Loss:
        given.append((vectors, counts))
        return Loss("mine", "diagonal", *functions, prepare=prepare)

    functions = label_wise_logistic.value, label_wise_logistic.derivatives
    models = [
        BoomerClassifier(loss, n_rules=10, random_state=1).fit(X, Y > 0)
        for loss in (Loss("mine", "diagonal", *functions, prepare=prepare), Loss("mine", "diagonal", *functions))
    ]
    assert models[0].rules_ == models[1].rules_
    assert len(given[0][0]) == len(np.unique(Y, axis=0))
    assert given[0][1].sum() == len(Y)


# --- Models -----------------------------------------------------------------------------------------------------------

X, SIGNS, _ = make_data(120)
Y = (SIGNS > 0).astype(int)


def classifier(**parameters: Any) -> BoomerClassifier:
    return BoomerClassifier(**{"loss": "joint-logistic", "n_rules": 30, "random_state": 1, **parameters})


@pytest.fixture(scope="module")
def model() -> BoomerClassifier:
    return classifier().fit(X, Y)


def test_the_joint_probabilities_are_what_the_loss_is_about(model: BoomerClassifier) -> None:
    vectors, counts = model.label_vectors_, model.label_vector_counts_
    assert [(vector == Y).all(axis=1).sum() for vector in vectors] == counts.tolist()
    joint = model.predict_joint(X)
    bias = 0.5 * np.log(counts / len(Y))
    np.testing.assert_allclose(joint, softmax(model.decision_function(X) @ vectors.T + bias, axis=1))
    own = joint[(vectors == Y[:, None]).all(axis=2)]
    assert -np.log(own).mean() == pytest.approx(model.training_facts_["loss"])
    np.testing.assert_allclose(model.predict_proba(X), joint @ vectors)


def test_every_decoding_follows_from_the_joint_probabilities(model: BoomerClassifier) -> None:
    joint, vectors, P = model.predict_joint(X), model.label_vectors_, model.predict_proba(X)
    for decode in ("loss", "subset"):
        np.testing.assert_array_equal(model.predict(X, decode=decode), vectors[joint.argmax(axis=1)])
    np.testing.assert_array_equal(model.predict(X, decode="hamming"), P > 0.5)
    np.testing.assert_array_equal(model.predict(X, decode=[0.1, 0.3, 0.5, 0.7]), P > [0.1, 0.3, 0.5, 0.7])
    np.testing.assert_array_equal(model.predict(X, decode="top-1").argmax(axis=1), P.argmax(axis=1))
    every = np.array(list(product([0, 1], repeat=4)))
    F1 = np.array([[example_f1(v[None], h[None]) for h in every] for v in vectors])
    expected = joint @ F1
    chosen = [int(row @ [8, 4, 2, 1]) for row in model.predict(X, decode="f1")]
    np.testing.assert_allclose(expected[np.arange(len(X)), chosen], expected.max(axis=1))


def test_a_model_can_be_pickled_and_saved(model: BoomerClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "model.json")
    for other in (pickle.loads(pickle.dumps(model)), load_model(tmp_path / "model.json")):
        np.testing.assert_array_equal(other.label_vector_counts_, model.label_vector_counts_)
        np.testing.assert_array_equal(other.predict_joint(X), model.predict_joint(X))
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
    text = (tmp_path / "model.json").read_text()
    for damaged in (text.replace('counts": [', 'counts": [0, '), text.replace('"version": 3', '"version": 2')):
        (tmp_path / "damaged.json").write_text(damaged)
        with pytest.raises(ValueError, match="damaged model: 'label_vector_counts' must be"):
            load_model(tmp_path / "damaged.json")


def test_another_alpha_is_told_when_a_model_is_loaded(tmp_path: Path) -> None:
    model = classifier(loss=joint_logistic(1.0), n_rules=5).fit(X, Y)
    model.save(tmp_path / "model.json")
    with pytest.raises(ValueError, match=r"loss 'joint-logistic\(alpha=1\)': pass it"):
        load_model(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json", loss=joint_logistic(1.0))
    np.testing.assert_array_equal(loaded.predict_joint(X), model.predict_joint(X))


def test_rules_that_are_added_go_on_with_the_loss_they_began_with(model: BoomerClassifier) -> None:
    begun = classifier(n_rules=12, warm_start=True).fit(X, Y)
    vectors = begun.label_vectors_
    begun.set_params(n_rules=30).fit(X, Y)
    assert begun.rules_ == model.rules_
    unseen = np.array([v for v in product([0, 1], repeat=4) if v not in set(map(tuple, vectors.tolist()))])
    if len(unseen) == 0:
        begun = classifier(n_rules=12, warm_start=True).fit(X[Y[:, 0] == 1], Y[Y[:, 0] == 1])
        vectors = begun.label_vectors_
    begun.set_params(n_rules=40).fit(X, Y)
    np.testing.assert_array_equal(begun.label_vectors_, vectors)


def test_early_stopping_judges_by_the_loss_also_of_vectors_that_are_not_known() -> None:
    held_out = X[:40], 1 - Y[:40]  # some of these are not known
    model = classifier(early_stopping=True).fit(X[40:], Y[40:], eval_set=held_out)
    loss = model.get_fitted().objective
    expected = -loss.value(2.0 * held_out[1] - 1, model.decision_function(X[:40])).mean()
    assert max(score for _, score in model.validation_curve_) == pytest.approx(expected)


def test_heads_refitted_to_the_same_data_are_the_same(model: BoomerClassifier) -> None:
    refitted = refit_heads(model, X, Y)
    np.testing.assert_allclose(refitted.rules_.head_scores, model.rules_.head_scores, rtol=1e-9)
    other = refit_heads(model, X[:20], Y[:20])
    assert other.label_vector_counts_.sum() == 20
    assert other.training_facts_["loss"] == pytest.approx(
        -np.log(other.predict_joint(X[:20])[(other.label_vectors_ == Y[:20, None]).all(axis=2)]).mean()
    )


def test_classes_are_learned_as_by_multinomial_regression() -> None:
    y = np.array(["c", "a", "b"])[np.argmax(X[:, :3], axis=1)]
    model = classifier(n_rules=100).fit(X, y)
    P = model.predict_proba(X)
    np.testing.assert_allclose(P, softmax(model.decision_function(X), axis=1))
    np.testing.assert_array_equal(model.predict(X), model.classes_[P.argmax(axis=1)])
    assert model.score(X, y) > 0.9
    seen = classifier().fit(X, y, sample_weight=(y != "c").astype(float))
    assert set(seen.predict(X)) == {"a", "b"}
    assert (seen.predict_proba(X)[:, 2] < 0.2).all()
    assert seen.predict_joint(X).shape == (len(X), 2)
    calibrated = classifier(calibration="isotonic").fit(X, y, sample_weight=(y != "c").astype(float))
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)
    two = classifier().fit(X, y == "a")
    label_wise = classifier(loss="label-wise-logistic").fit(X, y == "a")
    np.testing.assert_allclose(two.predict_proba(X), label_wise.predict_proba(X), rtol=1e-6)


def test_a_calibrated_model_has_probabilities_of_labels_and_vectors() -> None:
    model = classifier(calibration="isotonic", n_rules=15).fit(X, Y)
    np.testing.assert_allclose(model.predict_joint(X).sum(axis=1), 1)
    P = model.predict_proba(X)
    plain = classifier(n_rules=15).fit(X, Y).predict_proba(X)
    assert not np.allclose(P, plain, atol=0.01)
    for k in range(4):
        order = np.argsort(plain[:, k])
        assert (np.diff(P[order, k]) >= -1e-12).all()
    np.testing.assert_array_equal(model.predict(X, decode="hamming"), P > 0.5)


def test_incomplete_examples_are_learned_from_and_add_vectors_of_their_own() -> None:
    masked = np.where(np.random.default_rng(5).random(Y.shape) < 0.3, np.nan, Y)
    model = classifier(n_rules=60).fit(X, masked)
    complete = ~np.isnan(masked).any(axis=1)
    vectors = model.label_vectors_
    assert len(vectors) > len(np.unique(masked[complete], axis=0))
    agree = (np.isnan(masked)[:, None] | (masked[:, None] == vectors)).all(axis=2)
    assert agree.any(axis=1).all()
    own = (model.predict_joint(X) * agree).sum(axis=1)[~np.isnan(masked).all(axis=1)]
    assert -np.log(own).mean() == pytest.approx(model.training_facts_["loss"])
    assert (model.predict(X) == Y).mean() > 0.8


def test_a_vector_is_completed_from_the_nearest_one() -> None:
    vectors, counts = np.array([[0, 0, 0, 0], [1, 1, 0, 1]], dtype=np.uint8), np.array([3.0, 2.0])
    rows = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 0]], dtype=np.uint8)
    known = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0], [0, 1, 1, 0]], dtype=bool)
    more, more_counts = add_incomplete(vectors, counts, rows, known, np.array([1.0, 4.0, 0.5, 7.0]))
    assert more.tolist() == [[0, 0, 0, 0], [1, 1, 0, 1], [1, 1, 1, 1]]  # all but the second and third agree with one
    assert more_counts.tolist() == [3.0, 2.0, 4.5]


def test_held_out_examples_may_be_incomplete() -> None:
    held_out = np.where(np.random.default_rng(5).random((40, 4)) < 0.3, np.nan, Y[:40])
    model = classifier().fit(X[40:], Y[40:], eval_set=(X[:40], held_out))
    some = ~np.isnan(held_out).all(axis=1)
    signs = np.nan_to_num(2 * held_out - 1)[some]
    expected = -model.get_fitted().objective.value(signs, model.decision_function(X[:40][some])).mean()
    assert model.validation_curve_[-1].score == pytest.approx(expected)


def test_without_a_complete_example_it_is_the_label_wise_loss() -> None:
    masked = np.where(np.arange(4) == np.arange(len(Y))[:, None] % 4, np.nan, Y)
    with pytest.warns(UserWarning, match="no example has all its labels known"):
        model = classifier(n_rules=10).fit(X, masked)
    label_wise = classifier(loss="label-wise-logistic", n_rules=10).fit(X, masked)
    np.testing.assert_array_equal(model.predict_proba(X), label_wise.predict_proba(X))
    np.testing.assert_array_equal(model.predict(X), expit(model.decision_function(X)) > 0.5)


def test_a_label_that_never_occurs_is_learned_without_regularisation() -> None:
    model = classifier(l2=0.0, n_rules=10).fit(X, np.column_stack([Y, np.zeros(len(Y), dtype=int)]))
    assert (model.decision_function(X)[:, 4] == 0).all()
    assert (model.predict_proba(X)[:, 4] < 1e-200).all()


def test_bins_and_threads_give_the_same_rules() -> None:
    plain = classifier(bootstrap=False).fit(X, Y).rules_
    binned = [classifier(bootstrap=False, max_bins=200, n_jobs=n).fit(X, Y).rules_ for n in (1, 2)]
    assert binned[0] == binned[1]
    np.testing.assert_allclose(binned[0].head_scores, plain.head_scores, rtol=1e-9)


def test_an_explanation_tells_what_separates_the_two_most_probable_vectors(model: BoomerClassifier) -> None:
    joint = model.predict_joint(X[:10])
    for n, explanation in enumerate(model.explain(X[:10], change=False)):
        first, second = np.argsort(-joint[n])[:2]
        runner_up = explanation.runner_up
        assert runner_up is not None
        np.testing.assert_array_equal(explanation.prediction, model.label_vectors_[first])
        np.testing.assert_array_equal(runner_up.vector, model.label_vectors_[second])
        assert runner_up.margin == pytest.approx(np.log(joint[n, first] / joint[n, second]))
        assert runner_up.margin == pytest.approx(explanation.pushes.sum() + runner_up.head_start)
        assert ("in the training data" in explanation.to_text()) == (runner_up.head_start != 0)
        assert ("in the training data" in explanation._repr_html_()) == (runner_up.head_start != 0)


def test_many_label_vectors_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyboomer.learning.sizing.COSTLY", 10)
    with pytest.warns(UserWarning, match=r"there are \d+ known label vectors: .* does not depend on it") as told:
        classifier(n_rules=2).fit(X, Y)
    assert told[0].filename == __file__


def test_what_has_no_meaning_for_it_is_refused() -> None:
    with pytest.raises(
        ValueError, match='known_vectors must not be False: over all label vectors, it would be loss="label'
    ):
        classifier(known_vectors=False).fit(X, Y)
    with pytest.raises(ValueError, match="cannot weigh their labels"):
        classifier().fit(X, Y, sample_weight=np.full(Y.shape, 0.5))
    with pytest.raises(ValueError, match="cannot weigh their labels"):
        classifier(class_weight="balanced").fit(X, Y)
    classifier(n_rules=2).fit(X, Y, sample_weight=np.ones(Y.shape))
