"""
Rules for all labels against BR, LP and CC
==========================================

There are three classical ways from one label to several. Binary relevance (BR) learns one model per label. The label
powerset (LP) takes each label vector for a class. A classifier chain (CC) passes the predictions for earlier labels on
as features. Here all of them use the same rule learner. Beside them are three losses that learn all labels at once, and
XGBoost with a model per label.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from xgboost import XGBClassifier

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
    "XGBoost": lambda: MultiOutputClassifier(XGBClassifier(random_state=1, n_jobs=1)).fit(X, Y).predict,
    "BR": lambda: MultiOutputClassifier(of_one_label).fit(X, Y).predict,
    "CC": lambda: ClassifierChain(of_one_label, random_state=1).fit(X, Y).predict,
    "LP": lambda: fit_powerset(X, Y),
    "label-wise": lambda: of_all_labels.fit(X, Y).predict,
    "example-wise": lambda: clone(of_all_labels).set_params(loss="example-wise-logistic").fit(X, Y).predict,
    "joint": lambda: clone(of_all_labels).set_params(loss="joint-logistic").fit(X, Y).predict,
}

# %%
# All rule learners get the same number of rules: BR and CC a seventh of them for each of their seven models. XGBoost
# has its own defaults, 100 trees per label.
results = {}
for name, fit in methods.items():
    predicted = fit()(X_test).astype(int)
    results[name] = [measure(Y_test, predicted) for measure in (hamming_loss, subset_zero_one_loss, example_f1)]
    print(f"{name:13}", "  ".join(f"{value:6.2%}" for value in results[name]))

# %%
# Rules for all labels at once beat a model per label by every measure, whether it has rules or trees. Where whole
# label vectors count (in the middle), it pays to know how labels depend on each other: CC is ahead of BR, and the
# example-wise loss ahead of the label-wise one. LP and the joint loss know the label vectors themselves. Here there are
# only ten of them, each with many examples: that suits them best.
figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained", sharey=True)
colors = ["#555555", *["#999999"] * 3, "#B34700", "#0072B2", "#009E73"]
titles = ("Hamming loss", "subset 0/1 loss", "F1 per example (higher is better)")
for ax, title, values in zip(axes, titles, zip(*results.values(), strict=True), strict=True):
    bars = ax.barh(list(results), [100 * value for value in values], color=colors)
    ax.bar_label(bars, fmt="%.1f", padding=2, fontsize="small")
    ax.set(title=title, xlabel="%")
    ax.set_xlim(90 if "F1" in title else 0, 100.5 if "F1" in title else 120 * max(values))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].invert_yaxis()
plt.show()
