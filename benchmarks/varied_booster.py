"""A varied booster learns with a variation: boosters for a classifier, and a check that they do what they say."""

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from common import LOSSES
from scipy.sparse import csr_matrix
from varied import (
    CORRECT,
    NO_RULES,
    PRUNED_BY_LAST_HEAD,
    PRUNED_BY_OWN_HEADS,
    REFIT,
    RELEARN,
    Variation,
    learn_varied_rules,
)

from pyboomer import BoomerClassifier
from pyboomer.columns.features import sort_columns
from pyboomer.data.tables import read_training_table
from pyboomer.datasets import load_dataset
from pyboomer.engine.booster import Booster
from pyboomer.engine.sampling import count_features, draw_examples
from pyboomer.engine.statistics import OUTER_GRADIENT
from pyboomer.losses import find_loss
from pyboomer.predicting.scores import add_scores
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.operators import AT_MOST

MakeBooster = Callable[..., Booster]


def begin_model(loss: str, X: Any, Y: np.ndarray, nominal: Sequence[int], seed: int) -> BoomerClassifier:
    """A classifier that has the default rule only, to be given others."""
    return BoomerClassifier(
        LOSSES[loss], n_rules=1, categorical_features=list(nominal) or None, random_state=seed, n_jobs=1
    ).fit(X, Y)


def prepare(model: BoomerClassifier, X: Any, Y: np.ndarray) -> MakeBooster:
    """What makes a booster with the settings of a classifier, or some others."""
    table = read_training_table(copy(model), X, model.categorical_features)
    return partial(
        Booster,
        sort_columns(table.matrix, table.schema.nominal),
        np.where(Y == 1, 1, -1).astype(np.int8),
        np.ones(len(Y)),
        loss=find_loss(model.loss),
        head=model.head,
        search=model.search,
        learning_rate=model.learning_rate,
        l2=model.l2,
        n_samples=len(Y),
        n_drawn_features=count_features(model.max_features, X.shape[1]),
        max_conditions=None,
        min_coverage=0.0,
        seed=model.training_facts_["seed"],
    )


def learn(
    make_booster: MakeBooster, n_rules: int, variation: Variation | None = None, first: int = 1, **settings: Any
) -> Booster:
    """Learn rules as the package does, or in another way; draws are those for the rule number `first` and on."""
    booster = make_booster(**settings)
    if variation is not None:
        learn_rules = lambda *arguments: learn_varied_rules(*arguments, NO_RULES, variation)  # noqa: E731
        booster.steps = booster.steps._replace(learn_rules=learn_rules)
    booster.n_rules = first
    booster.learn(n_rules - 1)
    return booster


def learn_again(booster: Booster, variation: Variation) -> Booster:
    """Replace all rules but the default rule, one after another, in a copy of a booster."""
    other = copy(booster)
    other.scores, other.statistics = booster.scores.copy(), booster.statistics.copy()
    default, old = booster.chunks
    learned_from = other.columns, other.fixed_features, other.truth, other.sample_weight, other.strata
    state = *learned_from, other.scores, other.statistics
    new, _ = learn_varied_rules(*state, other.settings, other.n_rules, len(old.gain), old, variation)
    other.chunks = [default, new]
    other.n_rules += len(old.gain)  # the draws of the next pass are others
    return other


def take_rules(booster: Booster, model: BoomerClassifier) -> RuleEnsemble:
    """The rules of a booster, which keeps them."""
    rules = model.rules_
    return copy(booster).take_rules(rules.schema, rules.label_names)


# --- Checking ---------------------------------------------------------------------------------------------------------


def check_variations() -> None:
    """With nothing varied, the rules must be those of the package; and each variation must do what it says."""
    data = load_dataset("digits7")
    Y = np.asarray(data.Y)[:400]
    for X in (data.X[:400], csr_matrix(data.X[:400])):
        for loss in LOSSES:
            package = BoomerClassifier(LOSSES[loss], n_rules=40, random_state=7, n_jobs=1).fit(X, Y).rules_
            model = begin_model(loss, X, Y, (), 7)
            make_booster = prepare(model, X, Y)
            plain = learn(make_booster, 40)
            for variation in (None, Variation(), Variation(beam_width=1)):
                rules = take_rules(learn(make_booster, 40, variation), model)
                assert rules == package, f"{loss}: {variation} differs from the package"
            check_pruning(make_booster)
            check_beam(make_booster)
            for again in (RELEARN, REFIT, CORRECT):
                check_scores(learn_again(plain, Variation(again=again)), model, X)
            check_only_rule(make_booster)
    print("Checked: with nothing varied, the rules are those of the package; the variations do what they say.\n")


def find_sums(booster: Booster, rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the gradients and Hessians of some examples, in plain NumPy."""
    k, width = booster.settings.n_labels, booster.scores.shape[1]
    G, A = booster.statistics[rows, :k], booster.statistics[rows, width : width + k]
    H = np.diag(weights @ A)
    return weights @ G, H - (G.T * weights) @ G if booster.settings.layout == OUTER_GRADIENT else H


def cover(booster: Booster, body: np.ndarray) -> np.ndarray:
    """Which examples meet all conditions, told value by value."""
    columns = booster.columns
    covered = np.ones(len(booster.scores), dtype=bool)
    for feature, operator, value in body:
        f = int(feature)
        own = slice(columns.start[f], columns.start[f + 1])
        x = np.full(len(covered), columns.fill[f])
        x[columns.example[own]] = columns.value[own]
        covered &= x <= value if operator == AT_MOST else x > value
    return covered


def draw(booster: Booster, number: int) -> np.ndarray:
    """How often each example is in the sample of a rule."""
    counts = np.empty(len(booster.scores))
    draw_examples(booster.settings.seed, number, len(counts), booster.strata, counts)
    return counts


def check_pruning(make_booster: MakeBooster) -> None:
    """Rules keep as many conditions as a plain NumPy computation says; some lose a condition, some do not."""
    start = make_booster()  # the state in which a first rule is learned
    eye = np.eye(start.settings.n_labels)
    for kind in (PRUNED_BY_LAST_HEAD, PRUNED_BY_OWN_HEADS):
        lost = []
        for number in range(1, 21):
            body = learn(make_booster, 2, first=number).chunks[1].conditions
            counts = draw(start, number)
            qualities = []
            for size in range(len(body), 0, -1):
                covered = cover(start, body[:size])
                if size == len(body) or kind == PRUNED_BY_OWN_HEADS:
                    rows = np.flatnonzero(covered & (counts > 0))
                    g, H = find_sums(start, rows, counts[rows])
                    head = -np.linalg.solve(H + eye, g)
                rows = np.flatnonzero(covered & (counts == 0))
                g, H = find_sums(start, rows, np.ones(len(rows)))
                qualities.append(-(g @ head + head @ (H + eye) @ head / 2))
            lost.append(max(i for i, quality in enumerate(qualities) if quality >= max(qualities) - 1e-9))
            pruned = learn(make_booster, 2, Variation(pruning=kind), first=number).chunks[1]
            assert np.array_equal(pruned.conditions, body[: len(body) - lost[-1]]), f"pruning {kind}: another body"
        assert min(lost) == 0 < max(lost), f"pruning {kind} was not put to the test"


def check_beam(make_booster: MakeBooster) -> None:
    """With two conditions, a beam as wide as features are drawn finds rules of no less gain, and some of more."""
    start = make_booster()
    gains = []
    for number in range(1, 21):
        counts = draw(start, number)
        for width in (0, 8):
            body = learn(make_booster, 2, Variation(beam_width=width), number, max_conditions=2).chunks[1].conditions
            rows = np.flatnonzero(cover(start, body) & (counts > 0))
            k, padded = start.settings.n_labels, start.scores.shape[1]
            g, a = counts[rows] @ start.statistics[rows, :k], counts[rows] @ start.statistics[rows, padded : padded + k]
            q = (g**2 / (a + 1)).sum()
            gains.append(q / (1 - q / counts[rows].sum()) if start.settings.layout == OUTER_GRADIENT else q)
    greedy, wide = np.reshape(gains, (-1, 2)).T
    assert (wide >= greedy * (1 - 1e-9)).all(), "the beam finds worse rules"
    assert (wide > greedy * 1.001).any(), "the beam finds no better rules"


def check_scores(booster: Booster, model: BoomerClassifier, X: Any) -> None:
    """The scores that were kept up to date are those that the rules give."""
    scores = np.zeros((len(booster.scores), booster.settings.n_labels))
    add_scores(take_rules(booster, model), X, scores)
    assert np.allclose(scores, booster.scores[:, : scores.shape[1]], atol=1e-9), "scores and rules differ"


def check_only_rule(make_booster: MakeBooster) -> None:
    """The only rule, taken out and learned again from the same draws, or refitted, is the same as before."""
    booster = learn(make_booster, 2)
    booster.n_rules = 1  # the number that the draws depend on
    rule = booster.chunks[1]
    for again in (RELEARN, REFIT):
        new = learn_again(booster, Variation(again=again)).chunks[1]
        assert np.array_equal(new.conditions, rule.conditions), "the only rule was replaced by another one"
        assert np.allclose(new.scores, rule.scores, atol=1e-9), "the head of the only rule has changed"
