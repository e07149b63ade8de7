"""The estimators of a cluster: those of one machine, with a client, for Dask's arrays and DataFrames."""

import inspect
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, ClassVar, Self

from pyboomer.classifier import BoomerClassifier
from pyboomer.dask.fitting import (
    CHUNK_SECONDS,
    bin_parts,
    choose_settings,
    find_client,
    learn,
    read,
    refuse,
    start_team,
)
from pyboomer.dask.parts import is_collection
from pyboomer.dask.predicting import predict_lazily
from pyboomer.estimator import RuleEstimator
from pyboomer.learning.interrupt import DeferredInterrupt
from pyboomer.learning.reading import FitArguments
from pyboomer.learning.sizing import begin_model
from pyboomer.learning.training import Monitor
from pyboomer.regressor import BoomerRegressor

CLIENT = """client : distributed.Client, optional
        The client of the cluster to learn on; by default the one that there is. It is not part of a pickle.
"""


def _add_client(local: type[RuleEstimator]) -> Callable[..., None]:
    """The constructor of a local estimator, with one more parameter."""

    def __init__(self: Any, *arguments: Any, client: Any = None, **parameters: Any) -> None:
        local.__init__(self, *arguments, **parameters)
        self.client = client

    signature = inspect.signature(local.__init__)
    client = inspect.Parameter("client", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Any)
    # scikit-learn reads the names of parameters here
    __init__.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), client]
    )
    return __init__


EXAMPLE = """Examples
    --------
    >>> from pyboomer.dask import DaskNAME
    >>> model = DaskNAME(n_rules=500, random_state=1)
    >>> model.fit(X, Y)  # doctest: +SKIP
    >>> model.to_local().save("model.json")  # doctest: +SKIP

    X and Y are arrays or DataFrames of Dask. A client of the cluster must be there: ``Client("tcp://host:8786")``.
    """


def _describe(local: type[RuleEstimator]) -> str:
    """The docstring of a local estimator, with one more parameter and an example of its own."""
    before, after = str(local.__doc__).split("\n    Examples\n")[0].split("\n    Attributes\n")
    title, rest = before.split("\n", 1)
    before = f"{title.rstrip('.')}, learned on a Dask cluster.\n{rest.rstrip()}"
    text = f"{before}\n    {CLIENT}\n    Attributes\n{after}".replace(local.__name__, f"Dask{local.__name__}")
    return f"{text}\n    {EXAMPLE.replace('NAME', local.__name__)}"


class DaskEstimator(RuleEstimator):
    """What the two have in common."""

    local: ClassVar[type[RuleEstimator]]
    client: Any
    client_: Any

    def _fit(self, *passed: Any) -> Self:
        begin = time.perf_counter()
        params, past = self._read_parameters(), self._find_past()
        given = FitArguments(self.local.__name__, *passed)
        refuse(params, given.eval_set)
        client = find_client(self.client)
        data = read(client, params, past, given)
        model = begin_model(params, data.training, past)
        settings = choose_settings(model, data)
        binned = bin_parts(client, data, model, settings)
        with DeferredInterrupt() as interrupt, closing(start_team(client, data, model, settings, binned)) as team:
            monitor = Monitor(interrupt, params["callbacks"], params["verbose"], begin, CHUNK_SECONDS)
            fitted, error = learn(team, data, model, settings, binned, monitor)
            self.set_fitted(fitted).client_ = client
            if error is not None:
                raise error
        return self

    def to_local(self) -> Any:
        """The model as an estimator of one machine, with all that this can do."""
        model = self.get_fitted()
        return self.local(**model.params).set_fitted(model)

    def __sklearn_clone__(self) -> Self:
        return type(self)(**self.get_params(deep=False))  # a client cannot be copied

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("client_", None)
        return state | {"client": None}

    def _apply(self, method: str, X: Any, **options: Any) -> Any:
        """A prediction of the local estimator: at once, or lazily if X is Dask's."""
        local = self.to_local()
        return predict_lazily(local, method, X, options) if is_collection(X) else getattr(local, method)(X, **options)

    def predict(self, X: Any, **options: Any) -> Any:
        """What a local estimator would predict; lazily, if X is a Dask array or DataFrame."""
        return self._apply("predict", X, **options)


class DaskBoomerClassifier(DaskEstimator, BoomerClassifier):
    __doc__ = _describe(BoomerClassifier)
    local = BoomerClassifier
    __init__ = _add_client(BoomerClassifier)

    def predict_proba(self, X: Any) -> Any:
        """The probabilities of labels or classes; lazily, if X is a Dask array or DataFrame."""
        return self._apply("predict_proba", X)

    def decision_function(self, X: Any) -> Any:
        """The scores of the labels; lazily, if X is a Dask array or DataFrame."""
        return self._apply("decision_function", X)


class DaskBoomerRegressor(DaskEstimator, BoomerRegressor):
    __doc__ = _describe(BoomerRegressor)
    local = BoomerRegressor
    __init__ = _add_client(BoomerRegressor)
