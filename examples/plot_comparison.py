"""
Rules for all labels against BR, LP and CC
==========================================

There are three classical ways from one label to several. Binary relevance (BR) learns one model per label. The label
powerset (LP) takes each label vector for a class. A classifier chain (CC) passes the predictions for earlier labels on
as features. Here all of them use the same rule learner, beside two losses that learn all labels at once.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier

from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset
from pyboomer.metrics import example_f1, hamming_loss, subset_zero_one_loss

digits = load_dataset("digits7")
X, X_test, Y, Y_test = train_test_split(digits.X, digits.Y, test_size=0.5, random_state=1)
settings = {"loss": "label-wise-logistic", "learning_rate": 0.2, "random_state": 1}
budget = 1400  # rules for all labels together


def fit_powerset(X, Y):
    """Label vectors as classes; a prediction is turned back into its label vector."""
    vectors, classes = np.unique(Y, axis=0, return_inverse=True)
    model = BoomerClassifier(n_rules=budget, **settings).fit(X, classes.ravel())
    return lambda X: vectors[model.predict(X)]


of_one_label = BoomerClassifier(n_rules=budget // Y.shape[1], **settings)
of_all_labels = BoomerClassifier(n_rules=budget, **settings)
methods = {
    "BR": lambda: MultiOutputClassifier(of_one_label).fit(X, Y).predict,
    "CC": lambda: ClassifierChain(of_one_label, random_state=1).fit(X, Y).predict,
    "LP": lambda: fit_powerset(X, Y),
    "label-wise": lambda: of_all_labels.fit(X, Y).predict,
    "example-wise": lambda: clone(of_all_labels).set_params(loss="example-wise-logistic").fit(X, Y).predict,
}

# %%
# All methods get the same number of rules: BR and CC a seventh of them for each of their seven models.
results = {}
for name, fit in methods.items():
    start = time.perf_counter()
    predict = fit()
    seconds = time.perf_counter() - start
    predicted = predict(X_test).astype(int)
    results[name] = [measure(Y_test, predicted) for measure in (hamming_loss, subset_zero_one_loss, example_f1)]
    print(f"{name:13}", "  ".join(f"{value:6.2%}" for value in results[name]), f"  {seconds:.1f} s")

# %%
# Rules for all labels at once win by every measure. Where whole label vectors count (in the middle), it pays to know
# how labels depend on each other: CC is ahead of BR, and the example-wise loss ahead of the label-wise one. LP is at
# its best here: there are only ten label vectors, each with many examples.
figure, axes = plt.subplots(1, 3, figsize=(9, 2.8), layout="constrained", sharey=True)
titles = ("Hamming loss", "subset 0/1 loss", "F1 per example (higher is better)")
for ax, title, values in zip(axes, titles, zip(*results.values(), strict=True), strict=True):
    bars = ax.barh(list(results), [100 * value for value in values], color=["#999999"] * 3 + ["#B34700", "#0072B2"])
    ax.bar_label(bars, fmt="%.1f", padding=2, fontsize="small")
    ax.set(title=title, xlabel="%")
    ax.set_xlim(90 if "F1" in title else 0, 100.5 if "F1" in title else 120 * max(values))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].invert_yaxis()
plt.show()
