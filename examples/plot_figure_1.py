"""
Figure 1 of the paper, in small
===============================

Three synthetic data sets, two losses, two kinds of heads. Each line is a model that grows, from one rule at the top
right to 250 rules. Down is better for single labels (Hamming loss), left for whole label vectors (subset 0/1 loss).

The data sets differ in how labels depend on each other. Where labels are flipped together, it pays to look at all
labels of an example at once: the example-wise loss ends further left.
"""

import matplotlib.pyplot as plt

from pyboomer import BoomerClassifier
from pyboomer.datasets import make_synthetic
from pyboomer.metrics import hamming_loss, subset_zero_one_loss

# %%
# The settings are those of the paper: large steps, rules of any length.
kinds = ["marginal-independence", "marginal-dependence", "conditional-dependence"]
variants = {
    ("label-wise-logistic", "single"): ("#E69F00", ":"),
    ("label-wise-logistic", "multi"): ("#B34700", "--"),
    ("example-wise-logistic", "single"): ("#56B4E9", ":"),
    ("example-wise-logistic", "multi"): ("#0072B2", "-"),
}
at = [1, 2, 3, 5, 8, 12, 20, 35, 60, 100, 160, 250]
n = 500  # examples to learn from; as many to judge by

# %%
# `staged_predict` gives the predictions of the first rules, so each model is fitted once.
figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
final = {}
for ax, kind in zip(axes, kinds, strict=True):
    data = make_synthetic(kind, n=2 * n, seed=1)
    for (loss, head), (color, style) in variants.items():
        clf = BoomerClassifier.paper(loss=loss, head=head, n_rules=at[-1], random_state=1)
        clf.fit(data.X[:n], data.Y[:n])
        predicted = list(clf.staged_predict(data.X[n:], at=at))
        subset, hamming = (
            [100 * measure(data.Y[n:], labels) for labels in predicted]
            for measure in (subset_zero_one_loss, hamming_loss)
        )
        ax.plot(subset, hamming, style, color=color, marker=".", markersize=4, label=f"{loss[:-9]}, {head}")
        ax.plot(subset[-1], hamming[-1], "o", color=color)
        final[kind, loss, head] = subset[-1], hamming[-1]
    ax.set(title=kind.replace("-", " "), xlabel="subset 0/1 loss (%)", xscale="log", yscale="log")
    ticks = [10, 20, 30, 50, 100]
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(ticks, [str(tick) for tick in ticks])
        axis.set_minor_locator(plt.NullLocator())
axes[0].set_ylabel("Hamming loss (%)")
axes[0].legend(frameon=False, fontsize="small")

for (kind, loss, head), (subset, hamming) in final.items():
    print(f"{kind:22}  {loss:21}  {head:6}  subset 0/1 {subset:4.1f} %  Hamming {hamming:4.1f} %")
plt.show()
