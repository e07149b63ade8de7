"""An estimator learns rules from tables and applies them to tables, in the way of scikit-learn.

It is the face of the pipeline in `learning`: data are read, settings made of parameters, rules learned and kept.
"""

import time
from collections.abc import Iterable, Iterator
from copy import copy
from itertools import pairwise
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from pyboomer.arrays import Array
from pyboomer.data.labels import LabelFormat
from pyboomer.data.tables import Features
from pyboomer.export.modelfile import save_model
from pyboomer.files import write_file
from pyboomer.learning.fitted import FittedModel
from pyboomer.learning.interrupt import DeferredInterrupt
from pyboomer.learning.reading import FitArguments, read
from pyboomer.learning.sizing import begin_model, make_settings
from pyboomer.learning.stopping import make_validation
from pyboomer.learning.training import Monitor, calibrate_model, keep, train
from pyboomer.losses import Loss, find_loss
from pyboomer.parameters import Parameter, check_parameters
from pyboomer.rules.ensemble import RuleEnsemble

if TYPE_CHECKING:
    from pyboomer.explore.shapes.functions import ShapeFunctions


# fields of a `FittedModel` that are attributes, too
LEARNED = ("loss", "rules", "label_vectors", "label_vector_counts", "calibration", "training_facts", "validation_curve")


class RuleEstimator(BaseEstimator):
    """What learns rules; `BoomerClassifier` and `BoomerRegressor` say what from and what for."""

    parameter_table: ClassVar[tuple[Parameter, ...]]

    # parameters that all estimators have, of those that are read here
    loss: str | Loss
    n_rules: int | str
    scoring: Any
    warm_start: bool

    # what `fit` sets
    loss_: Loss
    rules_: RuleEnsemble
    label_names_: tuple[str, ...]
    training_facts_: dict[str, Any]
    n_features_in_: int
    _label_format: Any
    _names_given: bool  # whether the names of the features were given to `fit` beside X

    # --- Learning -----------------------------------------------------------------------------------------------------

    def _fit(self, *passed: Any) -> Self:
        begin = time.perf_counter()
        params, past = self._read_parameters(), self._find_past()
        data = read(params, past, FitArguments(type(self).__name__, *passed))
        model = begin_model(params, data, past)
        with DeferredInterrupt() as interrupt:  # from here on: Numba would swallow it when it loads compiled code
            validation = None
            if data.held_out is not None:
                validation = make_validation(model, data.held_out, copy(self).set_fitted(model))
            settings = make_settings(model, data.examples, data.seed)
            monitor = Monitor(interrupt, params["callbacks"], params["verbose"], begin)
            trained = train(data, settings, monitor, model.rules or None, validation)
            fitted = keep(model, trained, data.examples, settings, begin)
            self.set_fitted(fitted)
            if trained.error is not None:
                raise trained.error
            if params.get("calibration") is not None:
                self.set_fitted(calibrate_model(fitted, data, settings, interrupt))
        return self  # or KeyboardInterrupt, when the context ends

    def _read_parameters(self, decode: Any = None) -> dict[str, Any]:
        """The parameters as they are now, but for `decode` if it is given; they are checked."""
        params = {parameter.name: getattr(self, parameter.name) for parameter in self.parameter_table}
        params |= {} if decode is None else {"decode": decode}
        check_parameters(self.parameter_table, params)
        return params

    def _find_past(self) -> FittedModel | None:
        """The model to go on with, if there is one."""
        if not (self.warm_start and hasattr(self, "rules_")):
            return None
        if not isinstance(self.n_rules, str) and len(self.rules_) > self.n_rules:
            raise ValueError(
                f"n_rules must be at least {len(self.rules_)}, the number of rules learned already (warm_start=True), "
                f"got {self.n_rules}"
            )
        if self.loss != "auto" and find_loss(self.loss).name != self.loss_.name:  # rules that minimise another one
            raise ValueError(
                f"loss must stay {self.loss_.name!r} if warm_start=True, got {find_loss(self.loss).name!r}"
            )
        return self.get_fitted()

    def get_fitted(self, decode: Any = None) -> FittedModel:
        """Return what was learned as one plain value, with the parameters as they are now, or another `decode`."""
        check_is_fitted(self, "rules_")
        names = getattr(self, "feature_names_in_", None)
        features = Features(type(self).__name__, self.n_features_in_, names, self._names_given)
        learned = {name: getattr(self, f"{name}_") for name in LEARNED if hasattr(self, f"{name}_")}
        return FittedModel(self._read_parameters(decode), self._label_format, features, **learned)

    def set_fitted(self, model: FittedModel) -> Self:
        """Take over what another model has learned, as `get_fitted` returns it; parameters stay as they are."""
        self._label_format, self.label_names_ = model.label_format, model.rules.label_names
        _, self.n_features_in_, names, self._names_given = model.features
        learned = {"feature_names_in_": names} | {f"{name}_": getattr(model, name) for name in LEARNED}
        for name, value in learned.items():
            if value is None:
                self.__dict__.pop(name, None)
            else:
                setattr(self, name, value)
        if isinstance(model.label_format, LabelFormat):
            self.classes_, self.calibration_ = model.label_format.list_classes(), model.calibration
        return self

    # --- Scores -------------------------------------------------------------------------------------------------------

    def _stage(self, X: Any, at: Iterable[int] | None) -> tuple[FittedModel, Iterator[Array]]:
        """The model, and the (N, K) scores after each number of rules; the same array every time."""
        model = self.get_fitted()
        last = len(model.rules)
        try:
            counts = [index(n) for n in (range(1, last + 1) if at is None else at)]
        except TypeError:
            raise ValueError(f"at must be a list of whole numbers, got {at!r}") from None
        if any(a > b for a, b in pairwise([0, *counts, last])):
            raise ValueError(f"at must ascend from 0 to at most {last}, the number of rules; got {counts}")
        return model, model.stage_scores(model.read_matrix(X), counts)

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
        save_model(self, path)

    def to_onnx(self, path: str | Path | None = None) -> Any:
        """Return the model as an ONNX graph (an `onnx.ModelProto`); write it to a file if `path` is given.

        Each rule becomes a chain-shaped tree, with thresholds in double precision. Needs the extra `onnx`.
        """
        from pyboomer.export.onnxgraph import build_graph

        graph = build_graph(self)
        if path is not None:
            write_file(path, graph.SerializeToString())
        return graph

    def to_python(self, path: str | Path | None = None) -> str:
        """Return the model as a Python file that imports nothing; write it to a file if `path` is given."""
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
