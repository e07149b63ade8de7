"""One decision tells all who turn scores into labels how that is done, so that they agree."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit, softmax

from pyboomer import BoomerClassifier, BoomerRegressor, Loss
from pyboomer.explore.page.summary import summarise
from pyboomer.export.scorer import write_scorer
from pyboomer.losses import FOR_LABELS, example_wise_logistic, find_loss
from pyboomer.predicting.decision import Decision, find_decision

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
Y = (X + RNG.normal(size=(40, 4)) > 0.3).astype(int)
DECODES = ("loss", "hamming", "subset", "f1", "top-1", "top-3", 0.3, [0.2, 0.4, 0.6, 0.8])


def square(Y: Any, F: Any) -> Any:
    return ((Y - F) ** 2).sum(axis=1)


def derive_square(Y: Any, F: Any) -> Any:
    return 2 * (F - Y), np.full(F.shape, 2.0)


def stretch(F: Any) -> Any:
    """Log-odds that are of another sign than some scores."""
    return 2 * F - 0.3


JOINT = example_wise_logistic.shape, example_wise_logistic.value, example_wise_logistic.derivatives
OWN = {
    "own, label-wise": Loss("own", "diagonal", square, derive_square),
    "own, label-wise, odds": Loss("own", "diagonal", square, derive_square, stretch),
    "own, joint": Loss("own", *JOINT),
    "own, joint, odds": Loss("own", *JOINT, stretch),
}
LOSSES = {**FOR_LABELS, **OWN}
OUTPUTS = ("labels", "probabilities")


CALIBRATED = ("label-wise-logistic", "example-wise-logistic", "joint-logistic", "own, joint, odds")
FITS = [
    pytest.param(
        (name, calibration),
        marks=[pytest.mark.slow] * (calibration is not None and name not in CALIBRATED),
        id=f"{name}, {calibration}",
    )
    for name, calibration in product(LOSSES, [None, "isotonic"])
]


@pytest.fixture(scope="module", params=FITS)
def model(request: pytest.FixtureRequest) -> BoomerClassifier:
    """A classifier of each loss, calibrated or not, that will decode in many ways."""
    name, calibration = request.param
    options = {"n_rules": 15, "learning_rate": 0.3, "random_state": 1, "calibration": calibration}
    return BoomerClassifier(LOSSES[name], **options).fit(X, Y)


def vary(model: BoomerClassifier) -> Iterator[BoomerClassifier]:
    """The model with all decodings, one after another."""
    about_vectors = find_loss(model.loss).prepare is not None and model.get_fitted().label_format.classes is None
    for decode, known_vectors in product(DECODES, [True] if about_vectors else [True, False]):
        yield model.set_params(decode=decode, known_vectors=known_vectors)


def needs_odds(model: BoomerClassifier) -> bool:
    """Whether predictions depend on log-odds that only the model can compute."""
    plain = model.loss.log_odds is Loss.log_odds and model.calibration_ is None
    return not plain and not (isinstance(model.decode, str) and model.decode == "loss")


def needs_loss(model: BoomerClassifier) -> bool:
    """Whether predictions depend on the values of the loss."""
    return model.decode == "loss" and model.known_vectors and not model.loss.decomposable


# --- All who read a decision agree ------------------------------------------------------------------------------------


def test_whoever_predicts_in_python_agrees(model: BoomerClassifier) -> None:
    scores = model.decision_function(X)
    for varied in vary(model):
        predicted = varied.predict(X)
        decision = varied.get_fitted().decision
        np.testing.assert_array_equal(decision.decide(scores), predicted)
        np.testing.assert_array_equal(decision.probabilities(scores), varied.predict_proba(X))
        np.testing.assert_array_equal(next(varied.staged_predict(X, [len(varied.rules_)])), predicted)
        assert varied.score(X, Y) == (predicted == Y).all(axis=1).mean()
        decode = varied.decode
        np.testing.assert_array_equal(varied.set_params(decode="loss").predict(X, decode=decode), predicted)


def test_the_runner_up_is_not_the_winner(model: BoomerClassifier) -> None:
    for varied in vary(model):
        for n, explanation in enumerate(varied.explain(X[:10], change=False)):
            np.testing.assert_array_equal(explanation.prediction, varied.predict(X[n : n + 1])[0])
            runner_up = explanation.runner_up
            assert runner_up is not None
            assert (runner_up.vector != explanation.prediction).any()
            assert runner_up.margin >= 0


def test_a_python_file_predicts_as_the_model_does_or_tells_that_it_does_not(model: BoomerClassifier) -> None:
    for varied in vary(model):
        scorer: dict[str, Any] = {}
        exec(export(varied, write_scorer, set(OUTPUTS), "the Python file has no function"), scorer)
        assert ("predict" in scorer) == ("labels" not in find_lacking(varied))
        assert ("probabilities" in scorer) == ("probabilities" not in find_lacking(varied))
        if "predict" in scorer:
            predicted = [list(scorer["predict"](x).values()) for x in X.tolist()]
            np.testing.assert_array_equal(predicted, varied.predict(X))
        if "probabilities" in scorer:
            found = [list(scorer["probabilities"](x).values()) for x in X[:10].tolist()]
            np.testing.assert_allclose(found, varied.predict_proba(X[:10]), rtol=0, atol=1e-12)


def find_lacking(model: BoomerClassifier) -> set[str]:
    """What no other program can compute: all that a function of the user's own is for."""
    own_odds, own_loss = model.loss.log_odds is stretch, model.loss in OWN.values()
    by_loss = isinstance(model.decode, str) and model.decode == "loss"
    labels = own_loss and needs_loss(model) if by_loss else own_odds
    return {what for what, lacks in (("labels", labels), ("probabilities", own_odds)) if lacks}


def export(model: BoomerClassifier, write: Callable[[Any], Any], outputs: set[str], message: str) -> Any:
    """The model in another form; what it lacks, and nothing else, is told."""
    lacking = find_lacking(model) & outputs
    with pytest.warns(UserWarning, match=message) if lacking else nullcontext() as told:
        result = write(model)
    if lacking:
        assert all(what in str(told[0].message) for what in lacking)
        assert "the loss 'own', which are your own code" in str(told[0].message)
    return result


def test_an_onnx_graph_predicts_as_the_model_does_or_tells_that_it_does_not(model: BoomerClassifier) -> None:
    pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    for varied in vary(model):
        graph = export(varied, BoomerClassifier.to_onnx, set(OUTPUTS), "the ONNX graph has no").SerializeToString()
        session = runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        results = dict(zip(names, session.run(names, {"X": X}), strict=True))
        assert set(OUTPUTS) - set(results) == find_lacking(varied)
        if "labels" in results:
            np.testing.assert_array_equal(results["labels"], varied.predict(X))
        if "probabilities" in results:
            np.testing.assert_allclose(results["probabilities"], varied.predict_proba(X), rtol=1e-9, atol=1e-12)


def test_a_page_predicts_as_the_model_does_or_tells_that_it_does_not(model: BoomerClassifier) -> None:
    scores = model.decision_function(X)
    for varied in vary(model):
        recipe = summarise(varied)["decoding"]
        assert (recipe["note"] is None) == can_be_shown(varied)
        if recipe["note"] is None:
            np.testing.assert_array_equal(follow(recipe, scores, varied), varied.predict(X))
        elif needs_loss(varied.set_params(decode="loss")) and varied.loss in OWN.values():
            assert recipe["kind"] == "sign"
            assert "code of its own" in recipe["note"]
        else:
            np.testing.assert_array_equal(follow(recipe, scores, varied), varied.predict(X, decode="loss"))


def can_be_shown(model: BoomerClassifier) -> bool:
    if needs_loss(model):
        return model.loss in FOR_LABELS.values()
    if model.loss.prepare is not None:
        return model.calibration_ is None or model.decode == "subset"
    return not needs_odds(model) and (model.decode != "f1" or model.known_vectors)


def follow(recipe: dict[str, Any], scores: Any, model: BoomerClassifier) -> Any:
    """What the script of a page makes of scores; it has the known label vectors, in the order of the model."""
    vectors = model.label_vectors_
    sums = scores @ vectors.T.astype(float) + model.get_fitted().decision.bias
    joint = softmax(sums, axis=1)
    if recipe["kind"] == "loss":
        losses = [model.loss.value(np.tile(2.0 * y - 1, (len(scores), 1)), scores) for y in vectors]
        return vectors[np.argmin(losses, axis=0)]
    if recipe["kind"] == "sum":
        return vectors[sums.argmax(axis=1)]
    if recipe["kind"] == "f1":
        every = np.array(list(product([0, 1], repeat=4)))
        sizes = every.sum(axis=1)[:, None] + vectors.sum(axis=1)
        worth = np.where(sizes == 0, 1.0, 2.0 * (every @ vectors.T.astype(int)) / np.maximum(sizes, 1))
        return every[(joint @ worth.T).argmax(axis=1)]
    if recipe["kind"] == "mean":
        return (expit(scores) + joint @ vectors) / 2 > 0.5
    scores = logit(joint @ vectors) if "bias" in recipe else scores
    if recipe["kind"] == "rank":
        return (np.argsort(np.argsort(-scores, axis=1), axis=1) < recipe["count"]).astype(int)
    if recipe["kind"] == "cuts":
        return expit(scores) > np.broadcast_to(0.5 if model.decode == "hamming" else model.decode, 4)
    assert recipe["kind"] == "sign"
    return scores > 0


@pytest.mark.filterwarnings("ignore:the Python file has no function probabilities")
@pytest.mark.parametrize("classes", [["only"], ["a", "b"], ["a", "b", "c"]], ids=len)
@pytest.mark.parametrize("loss", [*FOR_LABELS, OWN["own, joint, odds"]], ids=lambda loss: getattr(loss, "name", loss))
def test_all_decodings_of_classes_agree(loss: Any, classes: list[str]) -> None:
    y = np.array(classes)[np.minimum(Y[:, 0] + Y[:, 1], len(classes) - 1)]
    clf = BoomerClassifier(loss, n_rules=15, random_state=1).fit(X, y)
    predicted = clf.predict(X).tolist()
    for varied in vary(clf):
        assert varied.get_fitted().decision.rule == "class"
        assert varied.predict(X).tolist() == predicted
        assert [e.describe(e.prediction) for e in varied.explain(X, change=False)] == predicted
        scorer: dict[str, Any] = {}
        exec(write_scorer(varied), scorer)
        assert [scorer["predict"](x) for x in X.tolist()] == predicted
        recipe = summarise(varied)["decoding"]
        assert (recipe["kind"], recipe["note"]) == ("classes", None)


def test_the_decision_of_a_regressor_is_to_leave_the_scores_as_they_are() -> None:
    decision = BoomerRegressor(n_rules=3).fit(X, X[:, 0]).get_fitted().decision
    scores = RNG.normal(size=(3, 1))
    assert decision.rule == "numbers"
    assert decision.decide(scores) is scores


# --- What a decision is -----------------------------------------------------------------------------------------------


def find(decode: Any, loss: Loss, vectors: Any = Y[:3], calibration: Any = None) -> Decision:
    return find_decision(decode, loss, None, np.asarray(vectors, dtype=np.uint8), calibration)


@pytest.mark.parametrize("name", LOSSES)
def test_each_decoding_comes_to_a_rule(name: str) -> None:
    loss, none = LOSSES[name], np.empty((0, 4))
    joint = not loss.decomposable
    assert find("loss", loss).rule == ("loss" if joint else "sign")
    assert find("hamming", loss).rule == ("hamming" if joint else "odds")
    assert find("subset", loss).rule == "subset"
    assert [find(decode, loss, none).rule for decode in ("loss", "hamming", "subset")] == ["sign", "odds", "odds"]
    for vectors in (Y[:3], none):
        assert [find(decode, loss, vectors).rule for decode in DECODES[3:]] == [
            "f1",
            *["rank"] * 2,
            *["thresholds"] * 2,
        ]
    assert find("top-3", loss).count == 3


def test_only_functions_of_a_loss_and_calibration_keep_scores_from_being_log_odds(model: BoomerClassifier) -> None:
    given = model.loss.log_odds in (stretch, FOR_LABELS["label-wise-squared-error"].log_odds)
    given = given or model.loss.prepare is not None
    assert model.get_fitted().decision.plain_odds == (not given and model.calibration is None)


def test_only_functions_of_the_users_own_are_out_of_reach() -> None:
    own, odds = OWN["own, joint"], OWN["own, joint, odds"]
    assert find("loss", example_wise_logistic).out_of_reach == ()
    assert find("loss", own).out_of_reach == ("labels",)
    assert find("subset", own).out_of_reach == ()
    assert find("subset", odds).out_of_reach == ("labels", "probabilities")
    assert find("loss", OWN["own, label-wise, odds"]).out_of_reach == ("probabilities",)


def test_a_wrong_number_of_thresholds_is_told(model: BoomerClassifier) -> None:
    model.set_params(decode=[0.1, 0.2], known_vectors=True)
    for ask in (model.predict, lambda _: model.to_python(), lambda _: model.to_html()):
        with pytest.raises(ValueError, match="decode has 2 thresholds, but there are 4 labels"):
            ask(X)


def test_parameters_set_since_are_checked() -> None:
    clf = BoomerClassifier(n_rules=3, random_state=1).fit(X, Y).set_params(decode="top")
    for ask in (clf.predict, clf.explain, lambda _: clf.to_python(), lambda _: clf.to_html()):
        with pytest.raises(ValueError, match="decode must be"):
            ask(X)


# --- Who imports whom -------------------------------------------------------------------------------------------------

LIGHT = ("export.scorer", "export.onnxgraph", "export.modelfile", "predicting.decision", "predicting.decoding")
EXPLORE = tuple(f"explore.{name}" for name in ("displays", "explanation", "importance", "page.html", "page.summary"))


FIND_IMPORTS = """
import importlib, sys
for module in sys.argv[1:]:
    for name in [name for name in sys.modules if name.startswith("pyboomer")]:
        del sys.modules[name]
    importlib.import_module(f"pyboomer.{module}")
    print(module, *(name for name in sys.modules if name == "numba" or name.startswith("pyboomer.")))
"""


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """What each module imports of pyboomer and Numba; one process imports all, those first that need no Numba."""
    modules = [*(name for name in LIGHT if name != "export.onnxgraph" or find_spec("onnx")), *EXPLORE]
    done = subprocess.run([sys.executable, "-c", FIND_IMPORTS, *modules], capture_output=True, text=True, check=True)
    return {name: set(found) for name, *found in map(str.split, done.stdout.splitlines())}


@pytest.mark.parametrize("module", LIGHT + EXPLORE)
def test_who_reads_decisions_needs_no_estimator_and_who_exports_no_compiler(
    module: str, imports: dict[str, set[str]]
) -> None:
    if module == "export.onnxgraph":
        pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
    refused = {f"pyboomer.{name}" for name in ("classifier", "regressor", "estimator", "loading")}
    refused |= {"numba"} if module in LIGHT else set()
    assert f"pyboomer.{module}" in imports[module]
    assert not refused & imports[module]
