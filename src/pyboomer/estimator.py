"""An estimator learns rules from tables and applies them to tables, in the way of scikit-learn.

What a classifier and a regressor have in common: reading data, Algorithm 1 chunk by chunk with progress, callbacks,
Ctrl-C and early stopping, scores after any number of rules, and giving the model away.
"""

import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

import pyboomer
from pyboomer.arrays import Array, Matrix
from pyboomer.columns.device import copy_to_host
from pyboomer.data.examples import Examples, read_examples, warn_of_unknown
from pyboomer.data.labels import Labels
from pyboomer.data.tables import (
    Table,
    check_feature_names,
    find_features,
    read_table,
    read_training_table,
    refuse_lazy,
    refuse_new_categories,
    warn_of_identifiers,
)
from pyboomer.data.targets import Targets
from pyboomer.engine.promise import MANY, Settings, count_threads
from pyboomer.engine.sampling import NO_STRATA, Strata
from pyboomer.export.modelfile import save_model
from pyboomer.files import write_file
from pyboomer.learning.interrupt import DeferredInterrupt
from pyboomer.learning.sizing import (
    count_drawn,
    find_learning_rate,
    find_max_features,
    find_max_labels,
    find_max_samples,
    find_n_rules,
    find_rules_per_round,
)
from pyboomer.learning.stopping import Validation, validate_by_loss, validate_by_scorer
from pyboomer.learning.training import Lesson, Trained, Watch, train
from pyboomer.losses import Loss, find_loss
from pyboomer.losses.catalog import DEGREE
from pyboomer.parameters import Parameter
from pyboomer.predicting.decision import Decision
from pyboomer.predicting.scores import WORTHWHILE, add_scores
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.schema import Schema

if TYPE_CHECKING:
    from pyboomer.explore.shapes.functions import ShapeFunctions

LARGEST_SEED = np.iinfo(np.int32).max
RISE = 0.01  # of the training loss, relative to the one before all rules, that users are told of


class RuleEstimator(BaseEstimator, ABC):
    """What learns rules; `BoomerClassifier` and `BoomerRegressor` say what from and what for."""

    parameter_table: ClassVar[tuple[Parameter, ...]]

    # parameters that all estimators have, of those that are read here
    loss: str | Loss
    n_rules: int | str
    rules_per_round: int | str
    learning_rate: str | float
    max_samples: str | int | float | None
    l1: float
    l2: float
    bootstrap: bool
    sampling: str
    fixed_features: Any
    min_coverage: float
    categorical_features: Any
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    scoring: Any
    warm_start: bool
    random_state: Any
    n_jobs: int | str | None
    device: str
    verbose: int
    callbacks: Any

    # what `fit` sets
    loss_: Loss
    rules_: RuleEnsemble
    training_facts_: dict[str, Any]
    n_features_in_: int
    _form: Any
    _names_given: bool = False  # whether the names of the features were given to `fit` beside X

    # --- What the two kinds of estimators differ in -------------------------------------------------------------------

    @abstractmethod
    def _read_labels(self, y: Any, form: Any) -> Labels | Targets:
        """Read y; if a form is given, it must be that."""

    def _weigh(self, examples: Examples, form: Any) -> Examples:  # noqa: ARG002
        """The examples, with what users say about their weights besides `sample_weight`."""
        return examples

    @abstractmethod
    def _hold_out(self, Y: NDArray[Any], seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which examples are learned from, and which are held out."""

    @abstractmethod
    def _find_strata(self, Y: NDArray[Any]) -> Strata:
        """The groups of examples that samples without replacement are drawn from."""

    @abstractmethod
    def _sign(self, Y: NDArray[Any]) -> NDArray[Any]:
        """Labels as losses take them."""

    @abstractmethod
    def _learn_form(self, form: Any, examples: Examples, go_on: bool = False) -> None:
        """Set what predictions need besides the rules, or add to it if these are further examples."""

    @abstractmethod
    def _find_decision(self, decode: Any = None) -> Decision:
        """How scores become predictions, by the parameters as they are now; `decode` is for this time only."""

    def _choose_loss(self, examples: Examples, form: Any) -> Loss:  # noqa: ARG002
        """The loss that the parameter `loss` stands for."""
        return find_loss(self.loss)

    def _find_loss(self) -> Loss:
        """What is minimised."""
        return self.loss_

    def _find_scale(self, Y: NDArray[Any]) -> float:  # noqa: ARG002
        """The unit in which targets are learned: a power of 2, so that no digit depends on it."""
        return 1.0

    def _default_l2(self) -> float:
        """The L2 regularisation of the default rule."""
        return self.l2

    # --- Learning -----------------------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, sample_weight: Any, eval_set: Any, feature_names: Any) -> Self:
        before = self.__dict__.copy()
        past = before.get("rules_")
        try:
            return self._learn(X, y, sample_weight, eval_set, feature_names)
        except BaseException:
            if self.__dict__.get("rules_", past) is past:  # there is no other model yet: keep the one there was
                self.__dict__.clear()
                self.__dict__.update(before)
            raise

    def _learn(self, X: Any, y: Any, sample_weight: Any, eval_set: Any, feature_names: Any) -> Self:
        begin = time.perf_counter()
        past = self._take_past()
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        refuse_lazy("y", y)
        y = copy_to_host(y)
        if past is None:
            table = read_training_table(self, X, self.categorical_features, feature_names)
            warn_of_identifiers(table.schema, table.matrix.shape[0])
        else:
            check_feature_names(feature_names, past.schema.names)
            table = Table(self._read_table(X), past.schema)
            refuse_new_categories(table)
        labels = self._read_labels(y, None if past is None else self._form)
        examples = read_examples(table.matrix, labels, copy_to_host(sample_weight))
        examples = self._weigh(examples, labels.form)
        warn_of_unknown(examples, labels.form.names)
        seed = self._draw_seed(past)
        examples, held_out = self._split(examples, eval_set, labels.form, table, seed)
        if past is None:
            self.loss_ = self._choose_loss(examples, labels.form)
        self._learn_form(labels.form, examples, past is not None)

        with DeferredInterrupt() as interrupt:  # from here on: Numba would swallow it when it loads compiled code
            watch = Watch(interrupt, self._list_callbacks(), bool(self.verbose), begin)
            validation = None if held_out is None else self._make_validation(held_out, past)
            lesson = self._make_lesson(examples, table.schema, labels.form.names)
            settings = self._make_settings(seed, examples, table.schema)
            trained = train(lesson, settings, watch, past, validation)
            self._keep(
                trained,
                settings,
                examples,
                validation,
                watch,
                lambda rules: self._mean_loss(examples, self._score(examples, rules)),
            )
            self._finish(table.schema, examples, held_out, seed, interrupt)
        return self  # or KeyboardInterrupt, when the context ends

    def _take_past(self) -> RuleEnsemble | None:
        """The rules to go on with, if any; the parameters are checked."""
        self._validate_parameters()
        if not (self.warm_start and hasattr(self, "rules_")):
            self.__dict__.pop("rules_", None)
            return None
        if not isinstance(self.n_rules, str) and len(self.rules_) > self.n_rules:
            raise ValueError(
                f"n_rules must be at least {len(self.rules_)}, the number of rules learned already (warm_start=True), "
                f"got {self.n_rules}"
            )
        self._check_objective()
        return self.rules_

    def _list_callbacks(self) -> tuple[Any, ...]:
        callbacks = self.callbacks or ()
        return (callbacks,) if callable(callbacks) else tuple(callbacks)

    def _keep(
        self,
        trained: Trained,
        settings: Settings,
        examples: Examples,
        validation: Validation | None,
        watch: Watch,
        measure: Callable[[RuleEnsemble], float],
    ) -> None:
        """Keep what was learned, or the best part of it, of which `measure` tells the loss; warn of what is odd."""
        rules, loss, course, error = trained
        if self.l1 > 0 and len(rules) > 1 and not rules.head_scores[rules.head_offsets[1] :].any():
            warnings.warn(f"l1={self.l1} makes every score zero: choose a smaller one", UserWarning, stacklevel=4)
        if not loss <= min(course) + RISE * abs(course[0]):
            warnings.warn(
                f"the training loss has risen from {min(course):.4g} to {loss:.4g}: steps are too long; choose a "
                f"larger l2 (it is {self.l2}) or a smaller learning_rate (it is {settings.learning_rate})",
                UserWarning,
                stacklevel=4,
            )
        self.__dict__.pop("validation_curve_", None)
        if validation is not None:
            self.validation_curve_ = validation.curve
            if self.early_stopping and validation.curve and validation.best.n_rules < len(rules):
                rules = rules[: validation.best.n_rules].renumber()
                loss = measure(rules)
        seconds = time.perf_counter() - watch.begin
        self._store(rules, self._list_facts(rules, examples, settings.seed, loss, seconds))
        if error is not None:
            raise error

    def _make_settings(self, seed: int, examples: Examples, schema: Schema) -> Settings:
        """How rules are learned from the examples, by the parameters as they are now."""
        chosen = {name: getattr(self, name) for name in Settings.__dataclass_fields__ if hasattr(self, name)}
        max_labels = find_max_labels(self.max_labels, self.head, examples, schema.categories, self.loss_)
        drawn = count_drawn(max_labels, self.head, examples.Y.shape[1])
        least = self.min_coverage if self.min_coverage > 1 else 0.0  # weights may add up to less than 1
        own = {
            "loss": self._find_loss(),
            "n_rules": find_n_rules(self.n_rules, examples, drawn),
            "rules_per_round": find_rules_per_round(
                self.rules_per_round, examples.size, getattr(self, "search", "bound")
            ),
            "learning_rate": find_learning_rate(self.learning_rate, examples, self.loss_, drawn),
            "max_features": find_max_features(self.max_features, examples.size, len(schema.names)),
            "max_samples": find_max_samples(self.max_samples, examples.size),
            "max_labels": max_labels,
            "n_threads": count_threads(self.n_jobs, examples.size > MANY),
            "default_l2": self._default_l2(),
            "min_coverage": least,
            "seed": seed,
        }
        return Settings(**chosen | own)

    def _make_lesson(self, examples: Examples, schema: Schema, label_names: tuple[str, ...]) -> Lesson:
        """What rules are learned from."""
        scale = self._find_scale(examples.Y)
        put_back = self.sampling == "with-replacement" or not self.bootstrap
        return Lesson(
            matrix=examples.matrix,
            Y=self._sign(examples.Y),
            weight=examples.weight,
            label_weight=examples.label_weight,
            schema=schema,
            label_names=label_names,
            strata=NO_STRATA if put_back else self._find_strata(examples.Y),
            fixed_features=np.flatnonzero(find_features("fixed_features", self.fixed_features, schema.names)),
            scale=scale,
            loss_scale=scale ** DEGREE.get(self.loss_, 0),
        )

    def _finish(
        self, schema: Schema, examples: Examples, held_out: Examples | None, seed: int, interrupt: DeferredInterrupt
    ) -> None:
        """What is left to learn once the rules are there."""

    def _validate_parameters(self) -> None:
        for parameter in self.parameter_table:
            parameter.validate(getattr(self, parameter.name))

    def _check_objective(self) -> None:
        """Rules that minimise one loss cannot go on with another."""
        if self.loss != "auto" and find_loss(self.loss).name != self.loss_.name:
            raise ValueError(
                f"loss must stay {self.loss_.name!r} if warm_start=True, got {find_loss(self.loss).name!r}"
            )

    def _mean_loss(self, examples: Examples, scores: Array) -> float:
        Y = self._sign(examples.Y).astype(np.float64)
        return self._find_loss().mean_value(Y, scores, examples.label_weight, examples.weight)

    def _draw_seed(self, past: RuleEnsemble | None) -> int:
        """The seed of all draws; further rules of a model are drawn as if they had been learned at once."""
        known = None if past is None else self.training_facts_.get("seed")
        if isinstance(known, int) and 0 <= known < LARGEST_SEED:  # a file may say anything
            return known
        return int(check_random_state(self.random_state).randint(LARGEST_SEED))

    def _split(
        self, examples: Examples, eval_set: Any, form: Any, table: Table, seed: int
    ) -> tuple[Examples, Examples | None]:
        """The examples to learn from, and those that tell when to stop."""
        if eval_set is not None:
            try:
                X, y = eval_set[0] if isinstance(eval_set, list) and len(eval_set) == 1 else eval_set
                if X is None or y is None or isinstance(X, tuple):
                    raise ValueError
            except (ValueError, TypeError):
                raise ValueError("eval_set must be a pair (X, y), or a list of one such pair") from None
            try:
                refuse_lazy("y", y)
                matrix = read_table(self, X, table.schema)
                return examples, read_examples(matrix, self._read_labels(copy_to_host(y), form), None)
            except (ValueError, TypeError) as error:
                raise type(error)(f"eval_set: {error}") from None
        if not self.early_stopping:
            return examples, None
        if len(examples.Y) < 2:
            raise ValueError("early_stopping holds out some of the examples, which n_samples = 1 does not allow")
        learned_from, held_out = self._hold_out(examples.Y, seed)
        return examples.take(learned_from), examples.take(held_out)

    def _make_validation(self, held_out: Examples, past: RuleEnsemble | None) -> Validation:
        if self.scoring == "loss":
            validation = validate_by_loss(held_out, self._find_loss(), self._sign(held_out.Y))
        else:
            validation = validate_by_scorer(held_out, self.scoring, self)
        if self.early_stopping:
            validation.patience = int(self.n_iter_no_change)
        if past is not None:
            validation.add(past)
        return validation

    def _list_facts(
        self, rules: RuleEnsemble, examples: Examples, seed: int, loss: float, seconds: float
    ) -> dict[str, Any]:
        return {
            "pyboomer": pyboomer.__version__,
            "examples": examples.size,
            "features": self.n_features_in_,
            "labels": examples.Y.shape[1],
            "rules": len(rules),
            "objective": self.loss_.name,
            "loss": loss,
            "seconds": round(seconds, 3),
            "seed": seed,
        }

    def _store(self, rules: RuleEnsemble, facts: dict[str, Any]) -> Self:
        """Set what makes the estimator a fitted one."""
        self.rules_ = rules
        self.label_names_ = rules.label_names
        self.training_facts_ = facts
        return self

    # --- Scores -------------------------------------------------------------------------------------------------------

    def _read_table(self, X: Any) -> Matrix:
        return read_table(self, X, self.rules_.schema)

    def _score(self, examples: Examples, rules: RuleEnsemble | None = None) -> Array:
        """The (N, K) scores of examples that were read before."""
        scores = np.zeros(examples.Y.shape)
        rules = self.rules_ if rules is None else rules
        self._add_scores(rules, examples.matrix, scores)
        return scores

    def _last_scores(self, X: Any) -> Array:
        check_is_fitted(self, "rules_")
        return next(self._staged_scores(X, [len(self.rules_)]))

    def _staged_scores(self, X: Any, at: Iterable[int] | None) -> Iterator[Array]:
        """The (N, K) scores after each number of rules; the same array every time."""
        check_is_fitted(self, "rules_")
        self._validate_parameters()
        rules = self.rules_
        try:
            counts = [index(n) for n in (range(1, len(rules) + 1) if at is None else at)]
        except TypeError:
            raise ValueError(f"at must be a list of whole numbers, got {at!r}") from None
        if any(a > b for a, b in pairwise([0, *counts, len(rules)])):
            raise ValueError(f"at must ascend from 0 to at most {len(rules)}, the number of rules; got {counts}")
        return self._accumulate(rules, self._read_table(X), counts)

    def _accumulate(self, rules: RuleEnsemble, matrix: Matrix, counts: Sequence[int]) -> Iterator[Array]:
        scores = np.zeros((matrix.shape[0], len(rules.label_names)))
        for first, last in pairwise([0, *counts]):
            part = rules if last - first == len(rules) else rules[first:last]
            self._add_scores(part, matrix, scores)
            yield scores

    def _add_scores(self, rules: RuleEnsemble, matrix: Matrix, scores: Array) -> None:
        n_threads = count_threads(self.n_jobs, len(scores) * len(rules) >= WORTHWHILE)
        add_scores(rules, matrix, scores, n_threads, self.device)

    def _labels(self, scores: Array, decode: Any = None) -> Any:
        """What is predicted, given (N, K) scores, in the form of the training labels."""
        return self._form.restore(self._find_decision(decode).decide(scores))

    @property
    def feature_importances_(self) -> Array:
        """The importance of each feature by gain. They add up to 1; see `pyboomer.explore.importance`."""
        check_is_fitted(self, "rules_")
        from pyboomer.explore.importance import overall_importance

        return overall_importance(self.rules_)

    def shape_functions(self, X: Any = None) -> "ShapeFunctions":
        """Return the model as a sum over features: what each value, and each pair of values, adds to the scores.

        With one condition per rule, the intercept and the shapes of features add up to the scores. Rules on two
        features make shapes of pairs; longer rules are left as they are.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, L), optional
            Examples, best those of the training. They say how often values occur: then shapes are 0 on average, their
            standard deviation is their importance, and the part of a pair about one feature moves to that feature.

        Returns
        -------
        shapes : `pyboomer.explore.shapes.functions.ShapeFunctions`
        """
        from pyboomer.explore.shapes.sums import shape_functions

        return shape_functions(self, X)

    # --- Giving the model away ----------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a JSON file. `pyboomer.load_model` reads it back, with exactly the same scores."""
        check_is_fitted(self, "rules_")
        save_model(self, path)

    def to_onnx(self, path: str | Path | None = None) -> Any:
        """Return the model as an ONNX graph (an `onnx.ModelProto`); write it to a file if `path` is given.

        Each rule becomes a chain-shaped tree, with thresholds in double precision. Needs the extra `onnx`.
        """
        check_is_fitted(self, "rules_")
        from pyboomer.export.onnxgraph import build_graph

        graph = build_graph(self)
        if path is not None:
            write_file(path, graph.SerializeToString())
        return graph

    def to_python(self, path: str | Path | None = None) -> str:
        """Return the model as a Python file that imports nothing; write it to a file if `path` is given."""
        check_is_fitted(self, "rules_")
        from pyboomer.export.scorer import write_scorer

        text = write_scorer(self)
        if path is not None:
            write_file(path, text)
        return text

    def to_html(
        self,
        path: str | Path | None = None,
        *,
        X: Any = None,
        y: Any = None,
        max_examples: int = 200,
        title: str | None = None,
    ) -> str:
        """Return the model as a page for the browser; write it to a file if `path` is given.

        It is one HTML file and needs neither network nor server. It shows all rules, what they say of each label and
        feature and, with examples, how they add up to scores.

        Parameters
        ----------
        path : str or path, optional
        X, y : optional
            Examples, and their labels or targets, NaN for an unknown one.
        max_examples : int, default=200
            How many of the examples, drawn at random, the page holds; fewer if they have very many features.
        title : str, optional
            The heading of the page.
        """
        check_is_fitted(self, "rules_")
        from pyboomer.explore.page.html import write_page
        from pyboomer.explore.page.summary import summarise

        text = write_page(summarise(self, X, y, max_examples=max_examples, title=title))
        if path is not None:
            write_file(path, text)
        return text

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "rules_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.target_tags.multi_output = True
        return tags
