"""An explanation says why a model predicts what it does for an example: the rules that cover it and what each adds.

The scores of an example are the sums of the heads of these rules, the default rule among them, and of nothing else; so
their contributions add up to `decision_function`. Besides, an explanation has the label vector that came second, with
the rules that separate the two, and the smallest change of one feature that would change the prediction.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.explore.change import Change, find_change, list_demands, read_rows
from pyboomer.explore.outcome import describe_outcome, name_classes
from pyboomer.explore.runnerup import RunnerUp, find_runner_up
from pyboomer.predicting.scores import find_covered
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.frames import import_pandas
from pyboomer.rules.rule import Rule
from pyboomer.rules.text import (
    FEW,
    describe_head,
    format_count,
    format_score,
    render_body,
    render_score,
    render_scores,
    render_table,
    show_line,
)

if TYPE_CHECKING:
    from pyboomer.estimator import RuleEstimator

Vector = NDArray[np.uint8]

SHOWN = 5  # rules in a text
SHOWN_IN_HTML = 10
SHOWN_UNKNOWN = 5  # features


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why a model predicts what it does for one example: print it, show it in a notebook, or see `to_frame`.

    Attributes
    ----------
    example : int
        The row of X, counted from 0.
    name : str
        The name of the example: its index in a DataFrame of pandas, else the number of its row.
    rules : RuleEnsemble
        The rules that cover the example; `rules.order` has their numbers in the model.
    scores : array of shape (K,)
        The scores of the labels: the sums of the columns of `contributions`.
    prediction : array of shape (K,), or None
        The label vector predicted; None for a regressor, whose scores are the prediction.
    runner_up : RunnerUp or None
        The label vector that came second, if there is another one.
    change : Change or None
        The smallest change of one feature that would change the prediction, if there is one.
    searched : bool
        Whether such a change was looked for.
    n_rules : int
        How many rules the model has.
    classes : tuple of str, or None
        Names of the two outcomes, if one score stands for two classes.
    probabilities : array of shape (K,), or None
        The probabilities of the labels, or classes; None for a regressor.
    unknown : mapping of str to int
        The features that the example has no value of, and how many rules are about each; these do not apply.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> digits = load_dataset("digits7")
    >>> X, Y = digits.to_frame(), digits.labels_frame()
    >>> clf = BoomerClassifier(n_rules=50, random_state=1).fit(X, Y)
    >>> (explanation,) = clf.explain(X[3:4])
    >>> explanation
    <Explanation of example 3: a, b, c, d, g>
    >>> explanation.describe(explanation.runner_up.vector)
    'a, b, d, e, g'
    >>> explanation.contributions.shape
    (9, 7)
    """

    example: int
    name: str
    rules: RuleEnsemble
    scores: Array
    prediction: Vector | None
    runner_up: RunnerUp | None
    change: Change | None
    searched: bool
    n_rules: int
    classes: tuple[str, ...] | None = None
    probabilities: Array | None = None
    unknown: Mapping[str, int] = field(default_factory=dict)

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names of the labels, or targets."""
        return self.rules.label_names

    @property
    def contributions(self) -> Array:
        """What each of the rules adds to each score, shape (rules, K)."""
        return self.rules.head_matrix()

    @property
    def pushes(self) -> Array:
        """How far each rule pushes towards the winner and away from the runner-up, in scores.

        A push is what the rule adds to labels that only the winner has, minus what it adds to labels that only the
        runner-up has. Without a runner-up, pushes are zero.
        """
        if self.prediction is None or self.runner_up is None:
            return np.zeros(len(self.rules))
        return self.contributions @ (self.prediction.astype(np.float64) - self.runner_up.vector)

    def to_frame(self) -> Any:
        """Return the contributions as a pandas DataFrame: a row per rule, a column per label."""
        pd = import_pandas("to_frame")
        bodies = [_describe_body(rule, None) for rule in self.rules]
        index = pd.MultiIndex.from_arrays([self.rules.order.copy(), bodies], names=["rule", "body"])
        return pd.DataFrame(self.contributions, index=index, columns=list(self.label_names))

    def __repr__(self) -> str:
        return show_line(f"<Explanation of example {self.name}: {self._outcome()}>")

    def __str__(self) -> str:
        return self.to_text()

    def _outcome(self) -> str:
        if self.prediction is None:
            return ", ".join(f"{name} {score:.4g}" for name, score in zip(self.label_names, self.scores, strict=True))
        return self.describe(self.prediction)

    def describe(self, vector: Vector) -> str:
        """The labels of a vector by name, or the class."""
        return describe_outcome(vector, self.label_names, self.classes)

    # --- Text ---------------------------------------------------------------------------------------------------------

    def to_text(self, max_rules: int = SHOWN, max_labels: int | None = 8) -> str:
        """Return the explanation as text.

        It shows the rules that add, or separate, most. If there are more than `max_labels` labels, it shows those of
        the winner and the runner-up, then those with the highest scores.
        """
        adds = self._select_labels(max_labels)
        shown, hidden = _split(np.abs(self.contributions[:, adds]).sum(axis=1), max_rules)
        lines = [
            f"Example {self.name}: {self._outcome()}",
            f"{self._score_title()}: {self._describe_result(adds)}",
            *([self._list_unknown()] if self.unknown else []),
            f"It is covered by {self._count()}; those that add most:",
            *self._list(
                shown,
                [
                    f"{_describe_body(rule)}: {self._describe_scores(added, adds)}"
                    for rule, added in zip(self.rules[shown], self.contributions[shown], strict=True)
                ],
            ),
        ]
        if len(hidden):
            total = self._describe_scores(self.contributions[hidden].sum(axis=0), adds)
            lines.append(f"... and {format_count(len(hidden), 'more rule')}: {total}")
        if self.runner_up is not None:
            pushes = self.pushes
            most, _ = _split(np.abs(pushes), max_rules)
            lines += [f"Runner-up: {self._margin()}", "Rules that separate the two, + for the winner:"]
            lines += self._list(most, [f"{_describe_body(self.rules[i])}: {format_score(pushes[i])}" for i in most])
            if self.runner_up.head_start:
                lines.append(f"{'':>6}  ({self._head_start()}): {format_score(self.runner_up.head_start)}")
        return "\n".join(map(show_line, [*lines, *([self._change()] if self.searched else [])]))

    def _select_labels(self, max_labels: int | None) -> NDArray[np.int64]:
        K = len(self.scores)
        if max_labels is None or max_labels >= K:
            return np.arange(K)
        first = np.zeros(K, dtype=bool)
        if self.prediction is not None:
            first = self.prediction == 1
            if self.runner_up is not None:
                first = first | (self.runner_up.vector == 1)
        return np.sort(np.lexsort((-self.scores, ~first))[:max_labels])

    def _describe_scores(self, scores: Array, labels: NDArray[np.int64]) -> str:
        names = [self.label_names[k] for k in labels]
        hidden = np.count_nonzero(np.delete(scores, labels))
        return describe_head(names, scores[labels].tolist(), None) + (f" (+{hidden} more)" if hidden else "")

    def _score_title(self) -> str:
        return "scores" if self.probabilities is None else "scores and probabilities"

    def _describe_result(self, labels: NDArray[np.int64]) -> str:
        """The scores of the example and, where there are any, its probabilities."""
        if self.probabilities is None:
            return self._describe_scores(self.scores, labels)
        parts = [
            f"{self.label_names[k]} {format_score(self.scores[k])} ({_format_share(self.probabilities[k])})"
            for k in labels
        ]
        hidden = len(self.scores) - len(labels)
        return ", ".join(parts) + (f" (+{hidden} more)" if hidden else "")

    def _list_unknown(self) -> str:
        shown = [f"{name} ({format_count(n, 'rule')})" for name, n in list(self.unknown.items())[:SHOWN_UNKNOWN]]
        hidden = len(self.unknown) - len(shown)
        more = f" and {format_count(hidden, 'more feature')}" if hidden else ""
        it = "it" if len(self.unknown) == 1 else "them"
        return f"Not known, so that rules about {it} do not apply: {', '.join(shown)}{more}"

    def _head_start(self) -> str:
        assert self.runner_up is not None
        return f"the winner is {'more frequent' if self.runner_up.head_start > 0 else 'rarer'} in the training data"

    def _count(self) -> str:
        return f"{len(self.rules)} of {format_count(self.n_rules, 'rule')}"

    def _list(self, chosen: NDArray[np.int64], texts: Sequence[str]) -> Iterator[str]:
        return (f"{number:>6}  {text}" for number, text in zip(self.rules.order[chosen].tolist(), texts, strict=True))

    def _margin(self) -> str:
        assert self.runner_up is not None
        measure, margin = self.runner_up.measure, self.runner_up.margin
        if measure == "log-probability":
            text = f"{_format_share(np.exp(-margin))} as probable"
        else:
            text = f"{measure} larger by {margin:.3g}" if measure == "loss" else f"{measure} {margin:.3g} behind"
        return f"{self.describe(self.runner_up.vector)} ({text})"

    def _change(self) -> str:
        if self.change is None:
            return "No change of a single feature changes the prediction."
        return f"Smallest change: {self.change} the prediction would be {self.describe(self.change.prediction)}"

    # --- HTML ---------------------------------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        adds = self._select_labels(8)
        shown, hidden = _split(np.abs(self.contributions[:, adds]).sum(axis=1), SHOWN_IN_HTML)
        rows = [
            (str(number), render_body(rule), self._render_scores(added, adds))
            for number, rule, added in zip(
                self.rules.order[shown], self.rules[shown], self.contributions[shown], strict=True
            )
        ]
        if len(hidden):
            rest = self._render_scores(self.contributions[hidden].sum(axis=0), adds)
            rows.append(("", f"<em>{format_count(len(hidden), 'more rule')}</em>", rest))
        parts = [
            f"<p><strong>Example {escape(self.name)}: {escape(self._outcome())}</strong></p>",
            f"<p>{self._score_title().capitalize()}: {self._render_result(adds)}</p>",
            *([f"<p>{escape(self._list_unknown())}</p>"] if self.unknown else []),
            f"<p>It is covered by {self._count()}; those that add most:</p>",
            render_table(("rule", "if", "it adds"), rows, n_numbers=1),
        ]
        if self.runner_up is not None:
            pushes = self.pushes
            most, _ = _split(np.abs(pushes), SHOWN)
            rows = [(str(self.rules.order[i]), render_score(pushes[i]), render_body(self.rules[i])) for i in most]
            if self.runner_up.head_start:
                rows.append(("", render_score(self.runner_up.head_start), f"<em>{self._head_start()}</em>"))
            parts.append(f"<p>Runner-up: {escape(self._margin())}. Rules that separate the two, + for the winner:</p>")
            parts.append(render_table(("rule", "push", "if"), rows, n_numbers=2))
        return "".join([*parts, *([f"<p>{escape(self._change())}</p>"] if self.searched else [])])

    def _render_result(self, labels: NDArray[np.int64]) -> str:
        if self.probabilities is None:
            return self._render_scores(self.scores, labels)
        shares = (escape(_format_share(self.probabilities[k])) for k in labels)
        scored = (f"{escape(self.label_names[k])}&nbsp;{render_score(self.scores[k])}" for k in labels)
        return ", ".join(f"{text}&nbsp;({share})" for text, share in zip(scored, shares, strict=True))

    def _render_scores(self, scores: Array, labels: NDArray[np.int64]) -> str:
        return render_scores([self.label_names[k] for k in labels], scores[labels].tolist(), None)


def _describe_body(rule: Rule, max_conditions: int | None = FEW) -> str:
    return rule.body_text(max_conditions) or "(always)"


def _format_share(share: float) -> str:
    """A probability in percent; what is not certain is not printed as if it were."""
    return "<1%" if 0 < share < 0.005 else ">99%" if 0.995 <= share < 1 else f"{share:.0%}"


def _split(weight: Array, most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rules of largest weight, the largest first, and the others."""
    order = np.argsort(-weight, kind="stable")
    return order[:most], order[most:]


def explain_examples(
    model: "RuleEstimator", X: Any, decode: Any = None, change: bool = True
) -> tuple[Explanation, ...]:
    """Explain the prediction for each row of X; see `BoomerClassifier.explain`."""
    fitted = model.get_fitted(decode)
    matrix, rules, decision = fitted.read_matrix(X), fitted.rules, fitted.decision
    scores = fitted.score(matrix)
    covering = [rules[own] for own in _list_covering(rules, matrix)]
    names = map(str, X.index if hasattr(X, "columns") and hasattr(X, "index") else range(len(scores)))
    scores.flags.writeable = False
    rows, tested = read_rows(matrix, rules), _count_tests(rules)
    if decision.rule == "numbers":
        return tuple(
            Explanation(
                n, name, own, scores[n], None, None, None, False, len(rules), unknown=_find_unknown(row, tested)
            )
            for n, (name, own, row) in enumerate(zip(names, covering, rows, strict=True))
        )
    winners, classes = decision.decide(scores), name_classes(decision)
    probabilities = decision.probabilities(scores)[:, -scores.shape[1] :]  # of two classes, the score is the second's
    winners.flags.writeable = probabilities.flags.writeable = False
    told = (list_demands(rules), rules.head_matrix()) if change else None  # once for all examples
    return tuple(
        Explanation(
            n,
            name,
            own,
            scores[n],
            winners[n],
            find_runner_up(decision, scores[n], winners[n]),
            find_change(rules, *told, row, scores[n], winners[n], decision.decide) if told else None,
            change,
            len(rules),
            classes,
            probabilities[n],
            _find_unknown(row, tested),
        )
        for n, (name, own, row) in enumerate(zip(names, covering, rows, strict=True))
    )


def _count_tests(rules: RuleEnsemble) -> dict[int, tuple[str, int]]:
    """The features that rules test, those of most rules first: their names, and the numbers of these rules."""
    rule = np.repeat(np.arange(len(rules)), np.diff(rules.condition_offsets))
    n_features = len(rules.feature_names)
    once = np.unique(rule * n_features + rules.condition_features) % n_features
    counts = np.bincount(once, minlength=n_features)
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    return {f: (rules.feature_names[f], int(counts[f])) for f in order.tolist()}


def _find_unknown(row: Array, tested: Mapping[int, tuple[str, int]]) -> dict[str, int]:
    return dict(tested[f] for f in tested if np.isnan(row[f]))


def _list_covering(rules: RuleEnsemble, matrix: Any) -> Iterator[NDArray[np.int64]]:
    """The rules that cover each example."""
    rows = list(find_covered(rules, matrix))
    rule = np.repeat(np.arange(len(rows)), [len(covered) for covered in rows])
    example = np.concatenate(rows) if rows else np.empty(0, dtype=np.int32)
    order = np.argsort(example, kind="stable")
    ends = np.cumsum(np.bincount(example, minlength=matrix.shape[0]))
    return iter(np.split(rule[order], ends[:-1]))
