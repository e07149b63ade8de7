"""Keeping makes a fitted model of what was learned: the best part of it, with facts, and calibrated if asked for."""

import time
from dataclasses import replace

import numpy as np

import pyboomer
from pyboomer.arrays import Array
from pyboomer.data.alerts import alert
from pyboomer.data.examples import Examples
from pyboomer.engine.promise import Settings
from pyboomer.learning.fitted import FittedModel
from pyboomer.learning.interrupt import DeferredInterrupt
from pyboomer.learning.reading import TrainingData
from pyboomer.learning.training import Monitor, Trained, train
from pyboomer.predicting.calibration import FOLDS, calibrate
from pyboomer.predicting.decoding import joint_probabilities

RISE = 0.01  # of the training loss, relative to the one before all rules, that users are told of


def keep(model: FittedModel, trained: Trained, examples: Examples, settings: Settings, begin: float) -> FittedModel:
    """The model with what was learned, or the best part of it."""
    rules, loss, history, validation, _ = trained
    params = model.params
    if params["l1"] > 0 and len(rules) > 1 and not rules.head_scores[rules.head_offsets[1] :].any():
        alert(f"l1={params['l1']} makes every score zero: choose a smaller one")
    if not loss <= min(history) + RISE * abs(history[0]):
        alert(
            f"the training loss has risen from {min(history):.4g} to {loss:.4g}: steps are too long; choose a "
            f"larger l2 (it is {params['l2']}) or a smaller learning_rate (it is {settings.learning_rate})"
        )
    curve = None if validation is None else validation.curve
    if validation is not None and curve and params["early_stopping"] and validation.best.n_rules < len(rules):
        rules = rules[: validation.best.n_rules].renumber()
        known = validation.losses.get(len(rules))
        loss = model.mean_loss(examples, model.score(examples.matrix, rules)) if known is None else known
    facts = {
        "pyboomer": pyboomer.__version__,
        "examples": examples.size,
        "features": model.features.n,
        "labels": examples.Y.shape[1],
        "rules": len(rules),
        "objective": model.loss.name,
        "loss": loss,
        "seconds": round(time.perf_counter() - begin, 3),
        "seed": settings.seed,
    }
    return replace(model, rules=rules, training_facts=facts, validation_curve=curve)


def calibrate_model(
    model: FittedModel, data: TrainingData, settings: Settings, interrupt: DeferredInterrupt
) -> FittedModel:
    """The model with calibrated probabilities: by examples held out, or else by cross-fitting."""
    examples = data.held_out
    if examples is None:
        examples = data.examples
        scores = _score_unseen(model, data, settings, interrupt)
    else:
        scores = model.score(examples.matrix)
    if interrupt.pending:
        alert("interrupted before the calibration: probabilities are not calibrated")
        return model
    Y = examples.Y.astype(np.float64)
    if examples.label_weight is not None:
        Y[examples.label_weight == 0] = np.nan
    loss, vectors = model.objective, model.label_vectors
    joint = None if loss.known is None else joint_probabilities(scores, vectors, model.decision.bias)
    return replace(model, calibration=calibrate(loss.log_odds(scores), Y, vectors, joint))


def _score_unseen(model: FittedModel, data: TrainingData, settings: Settings, interrupt: DeferredInterrupt) -> Array:
    """The score of each example by rules that were learned from others (cross-fitting)."""
    examples, settings = data.examples, replace(settings, n_rules=len(model.rules))
    scores = np.zeros(examples.Y.shape)
    fold = np.random.default_rng(data.seed).permutation(len(scores)) % FOLDS
    for i in range(FOLDS):
        if interrupt.pending:
            break
        others, own = np.flatnonzero(fold != i), np.flatnonzero(fold == i)
        rules = train(data._replace(examples=examples.take(others)), settings, Monitor(interrupt)).rules
        scores[own] = model.score(examples.take(own).matrix, rules)
    return scores
