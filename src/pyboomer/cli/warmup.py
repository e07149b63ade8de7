"""Warming up is compiling ahead: what learning will need is compiled and kept, before anybody has to wait for it."""

from __future__ import annotations

import time
from typing import Any

import click

from pyboomer.cli.group import boomer, quiet_option
from pyboomer.cli.options import LearnerCommand, list_given

COMPILED = ("loss", "head", "search", "max_bins", "max_labels", "sampling", "rules_per_round", "device")


@boomer.command(cls=LearnerCommand, only=COMPILED)
@click.option("--sparse", is_flag=True, help="For sparse features.")
@click.option("--regression", is_flag=True, help="For numbers instead of labels.")
@quiet_option
@click.pass_context
def warmup(ctx: click.Context, sparse: bool, regression: bool, quiet: bool, **parameters: Any) -> None:
    """Compile ahead what a model of these parameters needs, and keep it.

    Other values of the parameters that are not listed here need no other code. Compiled code is kept in the folder that
    the environment variable NUMBA_CACHE_DIR names, if there is one, else beside the package or in the user's cache. It
    is for the processor of this machine.

    \b
    Examples:
      boomer warmup
      boomer warmup --loss label-wise-logistic --head single --sparse
      boomer warmup --max-bins 255 --n-jobs 2
    """
    import numpy as np
    import scipy.sparse as sp

    from pyboomer.classifier import BoomerClassifier
    from pyboomer.regressor import BoomerRegressor

    start = time.perf_counter()
    estimator = BoomerRegressor if regression else BoomerClassifier
    given = list_given(ctx, parameters)
    if unknown := sorted(given.keys() - set(estimator().get_params())):
        raise click.UsageError(f"--{unknown[0].replace('_', '-')} does not go with --regression")
    rng = np.random.default_rng(1)
    X = rng.random((6000, 8)) * (rng.random((6000, 8)) < 0.5)  # large enough for threads to share
    Y = (X[:, :3] + 0.1 * rng.random((6000, 3)) > 0.3).astype(np.float64 if regression else np.int64)
    for size, copies in ((6000, 14), (60, 14), (60, 1)):  # many labels are dealt
        table = sp.csr_array(X[:size]) if sparse else X[:size]
        model = estimator(n_rules=5, random_state=1, **given).fit(table, np.tile(Y[:size], copies))
        model.predict(table)
        if isinstance(model, BoomerClassifier):
            model.predict(table[:1], decode="f1")
    if not sparse:  # many examples: rounds of several rules, learned from small samples
        many: dict[str, Any] = {"rules_per_round": 2, "max_samples": 2000, "max_bins": 255} | given
        if not regression:
            many.setdefault("loss", "label-wise-logistic")
        estimator(n_rules=60, random_state=1, **many).fit(X, Y)
    if not quiet:
        click.echo(f"boomer: compiled and kept in {time.perf_counter() - start:.0f} seconds", err=True)
