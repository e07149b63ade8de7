"""
Stop in time
============

More rules always fit the training data better. Examples that the model does not learn from tell when to stop:
`early_stopping=True` holds some out, or takes yours by `eval_set=`, and keeps the best number of rules.
"""

import matplotlib.pyplot as plt
import numpy as np

from pyboomer import BoomerClassifier
from pyboomer.datasets import make_synthetic

data = make_synthetic("marginal-independence", n=1600, seed=1)  # one label in ten is noise
train, held_out, test = slice(0, 400), slice(400, 800), slice(800, None)
clf = BoomerClassifier(
    "label-wise-logistic", n_rules=3000, learning_rate=0.2, early_stopping=True, n_iter_no_change=200, random_state=1
)
clf.fit(data.X[train], data.Y[train], eval_set=(data.X[held_out], data.Y[held_out]))
print(f"{len(clf.rules_)} rules are kept of {clf.validation_curve_[-1].n_rules} that were learned")

# %%
# Had training gone on, the model would have learned the noise.
on = BoomerClassifier("label-wise-logistic", n_rules=1000, learning_rate=0.2, random_state=1)
on.fit(data.X[train], data.Y[train])
losses = {}
for name, part in {"training": train, "test": test}.items():
    Y = np.where(data.Y[part] == 1, 1.0, -1.0)
    at = np.unique(np.geomspace(1, 1000, 40).astype(int)).tolist()
    stages = on.staged_decision_function(data.X[part], at=at)
    losses[name] = [float(on.loss_.value(Y, scores).mean()) for scores in stages]

figure, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
for (name, values), style in zip(losses.items(), ("--", "-"), strict=True):
    ax.semilogx(at, values, style, label=name)
curve = np.array([(point.n_rules, -point.score) for point in clf.validation_curve_])
ax.semilogx(*curve.T, ".", color="#009E73", markersize=3, label="held out, while learning")
ax.axvline(len(clf.rules_), color="grey", linestyle=":")
ax.text(len(clf.rules_) * 1.05, max(losses["training"]) * 0.97, "stopped here", color="grey", va="top")
ax.set(xlabel="number of rules", ylabel="mean loss")
ax.legend(frameon=False)
plt.show()
