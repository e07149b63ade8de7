"""The demonstration: both losses on the built-in data, and what their rules say."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np
from sklearn.model_selection import train_test_split

from pyboomer.classifier import BoomerClassifier
from pyboomer.cli.inputs import Input, fit_model
from pyboomer.cli.reports import draw_pixels, draw_segments, format_table, join_drawings, spell_out_rule
from pyboomer.datasets import load_dataset
from pyboomer.datasets.digits import SEGMENTS
from pyboomer.metrics import METRICS

LOSSES = ("label-wise-logistic", "example-wise-logistic")
SETTINGS: dict[str, Any] = {"n_rules": 1000, "learning_rate": 0.2, "max_conditions": 3, "random_state": 1}
SHOWN_RULES = 8
SHOWN_METRICS = {
    "hamming_loss": "Hamming loss (wrong segments)",
    "subset_zero_one_loss": "subset 0/1 loss (wrong displays)",
    "example_f1": "F1 per example",
    "micro_f1": "micro F1",
}


def show_demo(output: str) -> None:
    """Learn from the built-in digits with both losses, print rules, an example and test results, and write a page."""
    ds = load_dataset("digits7")
    X, X_test, Y, Y_test = train_test_split(ds.X, ds.Y, test_size=1 / 3, random_state=1)
    train = Input(ds.name, X, Y, ds.feature_names, ds.label_names)
    click.echo(
        f"DATA  {len(ds.Y):,} handwritten digits, 8 x 8 pixels each (pixel_row_column, ink from 0 to 16).\n"
        "Their labels are the segments a to g that a seven-segment display lights for them:\n"
        "a on top, then clockwise to f, and g in the middle.\n"
        f"Two models learn from {len(Y):,} of the digits and are tested on the other {len(Y_test):,}."
    )
    models, seconds = {}, {}
    for loss in LOSSES:
        BoomerClassifier(loss, n_rules=2).fit(X[:50], Y[:50]).predict(X[:1])  # compiled now, so that it is not timed
        start = time.perf_counter()
        models[loss] = fit_model(BoomerClassifier(loss, **SETTINGS), train)
        seconds[loss] = time.perf_counter() - start
    predicted = {loss: model.predict(X_test) for loss, model in models.items()}

    rules = models["example-wise-logistic"].rules_
    click.echo(f"\nRULES  The first {SHOWN_RULES} of {len(rules):,} learned with the example-wise loss:\n")
    for number, rule in enumerate(rules[:SHOWN_RULES]):
        click.echo(spell_out_rule(number, rule) + _name_digit(rule.head))
    click.echo("\nA digit gets the scores of all rules whose conditions it meets; their sums decide.")

    n = _find_telling_example(Y_test, *predicted.values(), vectors=models["example-wise-logistic"].label_vectors_)
    drawings = {"a test digit": draw_pixels(X_test[n]), "truth": draw_segments(Y_test[n])}
    drawings |= {loss.removesuffix("-logistic"): draw_segments(Y_pred[n]) for loss, Y_pred in predicted.items()}
    click.echo(
        "\nPREDICTION  The label-wise loss looks at each segment by itself, and may light what is not a\n"
        "digit at all; the example-wise loss wants the whole display right.\n\n" + join_drawings(drawings)
    )

    rows = [
        [title, *(f"{METRICS[name](Y_test, Y_pred):.2%}" for Y_pred in predicted.values())]
        for name, title in SHOWN_METRICS.items()
    ]
    rows.append(["seconds to learn", *(f"{seconds[loss]:.2f}" for loss in LOSSES)])
    click.echo("\nTEST RESULTS  Lower losses and higher F1 are better.\n")
    click.echo(format_table(["", *(loss.removesuffix("-logistic") for loss in LOSSES)], rows))
    page = Path(output).absolute()
    best = models["example-wise-logistic"]
    best.to_html(page, X=X_test, y=Y_test, title="Handwritten digits on a seven-segment display")
    click.echo(f"\nPAGE  All rules, drawn on the pixels, and the test digits: open this file in a browser.\n\n  {page}")
    click.echo(
        "\nTRY NEXT\n"
        "  boomer train digits7 -o model.json && boomer rules model.json --top 10 --label g\n"
        "  boomer explore model.json --data digits7 -o model.html\n"
        "  boomer evaluate digits7 --folds 5 --loss label-wise-logistic"
    )


def _name_digit(head: Mapping[str, float]) -> str:
    """Tell which digit, if any, the segments with positive scores show."""
    lit = "".join(segment for segment, score in head.items() if score > 0)
    return f"   shows {SEGMENTS.index(lit)}" if lit in SEGMENTS else ""


def _find_telling_example(Y: np.ndarray, alone: np.ndarray, together: np.ndarray, *, vectors: np.ndarray) -> int:
    """An example on which the label-wise model predicts what is no digit and the example-wise one is right."""
    known = {tuple(vector) for vector in vectors.tolist()}
    is_strange = np.array([tuple(vector) not in known for vector in alone.tolist()])
    return int(np.argmax(is_strange & (together == Y).all(axis=1)))  # the first test digit if there is none
