"""An edit is a change of a model's rules by hand: rules are written, inserted, dropped, refitted or merged.

Everything here takes values and gives new ones; no ensemble and no model is changed. To drop, keep or reorder rules,
index the ensemble: ``rules[:100]``, ``rules[[0, 5, 3]]``, ``rules[rules.coverage > 20]``. `replace_rules` makes a model
of the result.
"""

from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pyboomer.data.class_weight import weigh_classes
from pyboomer.data.examples import Examples
from pyboomer.engine.cpu.default_rule import find_default_head
from pyboomer.engine.cpu.state import ExampleState
from pyboomer.engine.cpu.threads import Threads
from pyboomer.engine.heads import Penalty
from pyboomer.engine.protocol import Task
from pyboomer.estimator import RuleEstimator
from pyboomer.learning.fitted import FittedModel
from pyboomer.learning.sizing import find_known_vectors, make_settings
from pyboomer.learning.training import find_scales, take_targets
from pyboomer.predicting.scores import find_covered
from pyboomer.rules.ensemble import RuleEnsemble, join_rules
from pyboomer.rules.names import find_name, suggest
from pyboomer.rules.rule import Condition, Rule
from pyboomer.rules.schema import Category, Schema

Model = TypeVar("Model", bound=RuleEstimator)

# --- Inserting and replacing ------------------------------------------------------------------------------------------


def insert_rule(rules: RuleEnsemble, rule: Rule, position: int | None = None) -> RuleEnsemble:
    """Return the rules with one more at the index `position`, by default at the end.

    Features, labels and categories are found by name. A category may be of another type ("3" and 3).

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer import Rule
    >>> from pyboomer.datasets import load_dataset
    >>> from pyboomer.editing import insert_rule, replace_rules
    >>> digits = load_dataset("digits7")
    >>> X, Y = digits.to_frame(), digits.labels_frame()
    >>> clf = BoomerClassifier(n_rules=50, random_state=1).fit(X, Y)
    >>> rule = Rule.parse("IF pixel_2_4 <= 3 THEN a +0.5, g -0.4")
    >>> edited = replace_rules(clf, insert_rule(clf.rules_, rule))
    >>> print(edited.rules_[-1])
    IF pixel_2_4 <= 3 THEN a +0.5, g -0.4
    """
    last = len(rules)
    position = last if position is None else position
    if not 0 <= position <= last:
        raise ValueError(f"position must be from 0 to {last}, the number of rules, got {position}")
    body = tuple(_resolve(condition, rules.schema) for condition in rule.body)
    named = zip(rule.labels, rule.label_names, strict=True)
    labels = [find_name("label", name, rules.label_names, label) for label, name in named]
    if len(set(labels)) < len(labels):
        raise ValueError(f"a label may have one score only, got {rule.head_text(None)}")
    head = sorted(zip(labels, rule.scores, rule.label_names, strict=True))
    ascending, scores, names = zip(*head, strict=True) if head else ((), (), ())
    resolved = replace(rule, body=body, labels=ascending, scores=scores, label_names=names)
    return join_rules([rules[:position], collect_rules([resolved], rules), rules[position:]])


def collect_rules(chosen: Sequence[Rule], rules: RuleEnsemble) -> RuleEnsemble:
    """Some rules about the features and labels of others."""
    return RuleEnsemble.from_rules(chosen, rules.schema, rules.label_names)


def _resolve(condition: Condition, schema: Schema) -> Condition:
    """Find the feature and, of a nominal one, the category that a condition names."""
    name = condition.name
    feature = schema.find(name, condition.feature)
    if feature not in schema.categories:
        if condition.is_nominal:
            raise ValueError(f"{condition}: feature {name!r} is numeric and tested by <= or >")
        if isinstance(condition.value, str):
            raise ValueError(f"{condition}: feature {name!r} is numeric and compared with numbers")
        return replace(condition, feature=feature, value=float(condition.value))
    categories, levels = schema.categories[feature], schema.get_levels(feature)
    wanted = condition.value
    if schema.is_ordinal(feature):
        if condition.is_nominal:
            raise ValueError(f"{condition}: feature {name!r} is ordinal and tested by <= or >")
        if condition.value_text() not in levels:
            hint = suggest(condition.value_text(), list(levels))
            raise ValueError(f"{condition}: feature {name!r} has no level {condition.value_text()!r}{hint}")
        return replace(condition, feature=feature, value=float(levels.index(condition.value_text())), levels=levels)
    if not condition.is_nominal:
        raise ValueError(f"{condition}: feature {name!r} is nominal and tested by == or !=")
    found = [c for c in categories if str(c) == str(wanted)] or [c for c in categories if _is_same_number(c, wanted)]
    if not found:
        hint = suggest(str(wanted), list(map(str, categories)))
        raise ValueError(f"{condition}: feature {name!r} has no category {str(wanted)!r}{hint}")
    return replace(condition, feature=feature, value=min(found, key=lambda c: type(c) is not type(wanted)))


def _is_same_number(category: Category, wanted: Category) -> bool:
    with suppress(ValueError, OverflowError):
        return not isinstance(category, str) and category == float(wanted)
    return False


def replace_rules(model: Model, rules: RuleEnsemble) -> Model:
    """Return a copy of a fitted model with other rules about the same features and labels.

    The copy's `training_facts_` are marked as edited. It has no training loss and no calibration of probabilities: they
    belonged to the scores of the old rules.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> from pyboomer.editing import replace_rules
    >>> digits = load_dataset("digits7")
    >>> clf = BoomerClassifier(n_rules=50, random_state=1).fit(digits.X, digits.Y)
    >>> first = replace_rules(clf, clf.rules_[:20])
    >>> len(first.rules_), len(clf.rules_)
    (20, 50)
    """
    fitted = model.get_fitted()
    if not isinstance(rules, RuleEnsemble):
        raise TypeError(f"rules must be a RuleEnsemble, got {type(rules).__name__}")
    if len(rules) == 0:
        raise ValueError("a model must have at least one rule")
    for name in ("feature_names", "label_names", "categories", "ordinal"):
        if repr(getattr(rules, name)) != repr(getattr(fitted.rules, name)):  # 1, 1.0 and True are not the same
            raise ValueError(f"the rules must have the {name} of the model")
    return _store(model, replace(fitted, rules=rules, calibration=None), loss=None)


def _store(model: Model, fitted: FittedModel, **facts: Any) -> Model:
    """A copy of a model with other rules; a validation curve would be about those before."""
    rules = fitted.rules.renumber()
    known = {**fitted.training_facts, "rules": len(rules), **facts, "edited": True}
    return copy(model).set_fitted(replace(fitted, rules=rules, training_facts=known, validation_curve=None))


# --- Refitting --------------------------------------------------------------------------------------------------------


def refit_heads(model: Model, X: Any, y: Any, sample_weight: Any = None) -> Model:
    """Return a copy of a fitted model whose rules keep their bodies and learn their heads again, from the data given.

    These are the steps of Algorithm 1 without the search for a body: rule by rule, the head is solved exactly on all
    covered examples and shrunk by `learning_rate` (except the default rule). A head keeps its labels: one, some or all.
    Coverage, gain and `label_vectors_` become those of the data. A calibration of probabilities is dropped. A rule that
    covers no example gets scores of zero.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> from pyboomer.editing import refit_heads, replace_rules
    >>> digits = load_dataset("digits7")
    >>> clf = BoomerClassifier(n_rules=50, random_state=1).fit(digits.X, digits.Y)
    >>> half = replace_rules(clf, clf.rules_[::2])
    >>> refitted = refit_heads(half, digits.X, digits.Y)
    >>> len(refitted.rules_)
    25
    """
    examples = read_for(model, X, y, sample_weight)
    fitted = model.get_fitted()
    if examples.hold_labels:
        vectors, counts = find_known_vectors(fitted.params["known_vectors"], examples, fitted.loss)
        fitted = replace(fitted, label_vectors=vectors, label_vector_counts=counts, calibration=None)
    rules, settings = fitted.rules, make_settings(fitted, examples, seed=0)
    scale, loss_scale = find_scales(examples.Y, settings.loss)
    state = ExampleState(Task(None, *take_targets(examples, scale)), settings.loss, single=False, threads=Threads())
    state.write()
    head_scores = np.zeros(len(rules.head_scores))
    gain, coverage = np.zeros(len(rules)), np.zeros(len(rules))
    sizes = np.diff(rules.condition_offsets)
    for t, rows in enumerate(find_covered(rules, examples.matrix)):
        own = slice(rules.head_offsets[t], rules.head_offsets[t + 1])
        labels = rules.head_labels[own].astype(np.int64)
        coverage[t] = examples.weight[rows].sum()
        if len(rows) == 0 or len(labels) == 0:
            continue
        is_default = t == 0 and sizes[t] == 0
        l2, rate = (settings.default_l2, 1.0) if is_default else (settings.l2, settings.learning_rate)
        if is_default and len(labels) == state.n_labels:
            head, gain[t] = find_default_head(state, settings)
        else:
            head, gain[t] = state.fit_head(rows, labels, Penalty(float(settings.l1), float(l2)))
        head_scores[own] = rate * head
        state.apply(rows, labels, head_scores[own])
    refitted = replace(rules, head_scores=scale * head_scores, gain=loss_scale * gain, coverage=coverage)
    fitted = replace(fitted, rules=refitted)
    return _store(model, fitted, examples=len(examples.Y), loss=fitted.measure(examples))


def read_for(model: RuleEstimator, X: Any, y: Any, sample_weight: Any = None) -> Examples:
    """The examples as a fitted model would learn from them."""
    fitted = model.get_fitted()
    examples = fitted.read_examples(X, y, sample_weight)
    return weigh_classes(examples, fitted.params.get("class_weight"), fitted.label_format)


# --- Smaller models ---------------------------------------------------------------------------------------------------


def compact(model: Model) -> Model:
    """Return a copy of a fitted model with fewer rules and conditions, and the same scores up to rounding.

    Only the tightest of several conditions on a feature remain. Rules with the same body become one: it stands where
    the first did, with the sum of their heads and gains. Rules that cover nothing, or whose scores are all zero, are
    dropped.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> from pyboomer.editing import compact
    >>> digits = load_dataset("digits7")
    >>> clf = BoomerClassifier(n_rules=200, max_conditions=1, random_state=1).fit(digits.X, digits.Y)
    >>> smaller = compact(clf)
    >>> len(clf.rules_) > len(smaller.rules_)
    True
    >>> (smaller.predict(digits.X) == clf.predict(digits.X)).all()
    np.True_
    """
    fitted = model.get_fitted()
    rules = fitted.rules
    merged: dict[frozenset[Condition], Rule] = {}
    for rule in rules:
        body = tighten(rule.body)
        if body is not None:
            same = merged.get(frozenset(body))
            merged[frozenset(body)] = replace(rule, body=body) if same is None else _add(same, rule)
    kept = [rule for rule in merged.values() if any(rule.scores)] or list(merged.values())[:1]
    kept_rules = collect_rules(kept, rules) if kept else rules[:1]  # one remains, though it says nothing
    return _store(model, replace(fitted, rules=kept_rules))


def tighten(body: Sequence[Condition]) -> tuple[Condition, ...] | None:
    """The conditions that imply the others; None if no example can meet them all."""
    by_test: dict[tuple[int, str], list[Any]] = {}
    for c in body:
        by_test.setdefault((c.feature, c.operator), []).append(c.value)
    tight: dict[Condition, None] = {}
    for c in body:
        upper, lower, equal, unequal = (by_test.get((c.feature, operator), []) for operator in ("<=", ">", "==", "!="))
        if (upper and lower and min(upper) <= max(lower)) or len(set(equal)) > 1 or set(equal) & set(unequal):
            return None
        if c.operator == "!=" and equal:
            continue
        if not c.is_nominal:
            limit = min(upper) if c.operator == "<=" else max(lower)
            c = next(o for o in body if (o.feature, o.operator, o.value) == (c.feature, c.operator, limit))
        tight[c] = None
    return tuple(tight)


def _add(rule: Rule, other: Rule) -> Rule:
    """A rule with the heads of two."""
    names = dict(zip((*rule.labels, *other.labels), (*rule.label_names, *other.label_names), strict=True))
    scores = dict.fromkeys(sorted(names), 0.0)
    for one in (rule, other):
        for label, score in zip(one.labels, one.scores, strict=True):
            scores[label] += score
    return replace(
        rule,
        labels=tuple(scores),
        scores=tuple(scores.values()),
        label_names=tuple(names[label] for label in scores),
        gain=rule.gain + other.gain,
    )


def drop_redundant_conditions(model: Model, X: Any) -> Model:
    """Return a copy of a fitted model without the conditions that are redundant on X, with the same scores on X.

    A condition is redundant if it excludes no row of X that the conditions kept before it and all conditions after it
    cover: `x <= 5` if `x <= 3` follows, and often a condition on another feature. A rule keeps at least one condition.
    The share of a dropped condition is added to that of the first later condition that makes it redundant.

    Pass the training data as X: the training loss, the coverage of rules and a calibration of probabilities are kept.
    Scores on X stay the same, bit for bit. A rule may cover more rows of other data.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> from pyboomer.editing import drop_redundant_conditions
    >>> digits = load_dataset("digits7")
    >>> clf = BoomerClassifier(n_rules=50, max_conditions=None, random_state=1).fit(digits.X, digits.Y)
    >>> shorter = drop_redundant_conditions(clf, digits.X)
    >>> len(clf.rules_.condition_features) > len(shorter.rules_.condition_features)
    True
    >>> (shorter.decision_function(digits.X) == clf.decision_function(digits.X)).all()
    np.True_
    """
    fitted = model.get_fitted()
    rules, matrix = fitted.rules, fitted.read_matrix(X)
    single = collect_rules([Rule((condition,), (), (), ()) for rule in rules for condition in rule.body], rules)
    rows_by_condition = find_covered(single, matrix)
    shorter = []
    for rule in rules:
        met = np.zeros((len(rule.body), matrix.shape[0]), dtype=bool)
        for own in met:
            own[next(rows_by_condition)] = True
        shorter.append(replace(rule, body=_drop_redundant(rule.body, met)))
    return _store(model, replace(fitted, rules=collect_rules(shorter, rules)))


def _drop_redundant(body: Sequence[Condition], met: NDArray[np.bool_]) -> tuple[Condition, ...]:
    """The conditions of a body that are not redundant; each has a row that tells which examples meet it."""
    shares = [condition.share for condition in body]
    kept: list[int] = []
    covered = np.ones(met.shape[1], dtype=bool)  # by the conditions kept
    for c in range(len(body)):
        excluded = covered & ~met[c]  # by no condition other than c, so far
        for later in range(c + 1, len(body)):
            excluded &= met[later]
            if not excluded.any():
                shares[later] += shares[c]
                break
        else:
            if excluded.any() or not kept:
                kept.append(c)
                covered &= met[c]
            else:  # the last condition
                shares[kept[-1]] += shares[c]
    return tuple(replace(body[c], share=shares[c]) for c in kept)
