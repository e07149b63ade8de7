"""
Labels that are not known
=========================

Nobody looked at some labels of some examples: NaN in Y. Unknown does not mean "no", and an example with an unknown
label still has the others. pyboomer learns from whatever is known.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset
from pyboomer.metrics import hamming_loss

digits = load_dataset("digits7")
X, X_test, Y, Y_test = train_test_split(digits.X, digits.Y.astype(float), test_size=0.5, random_state=1)


def learn(X, Y):
    """Label by label, since with many unknown labels few label vectors are complete."""
    return BoomerClassifier("label-wise-logistic", n_rules=150, learning_rate=0.3, random_state=1).fit(X, Y)


# %%
# Three ways to deal with a growing share of unknown labels: say so, take them for "no", or drop the examples.
rng = np.random.default_rng(0)
shares = [0.0, 0.2, 0.4, 0.6, 0.8]
losses = {"left unknown": [], "taken for no": [], "example dropped": []}
for share in shares:
    unknown = rng.random(Y.shape) < share
    complete = ~unknown.any(axis=1)
    models = {
        "left unknown": learn(X, np.where(unknown, np.nan, Y)),
        "taken for no": learn(X, np.where(unknown, 0, Y)),
        "example dropped": learn(X[complete], Y[complete]) if complete.sum() >= 10 else None,
    }
    for name, model in models.items():
        losses[name].append(np.nan if model is None else hamming_loss(Y_test, model.predict(X_test)))

# %%
# With four labels in five unknown, what is known still makes a good model. By then, hardly any example is complete: if
# incomplete ones are dropped, there is nothing left to learn from.
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for (name, values), style in zip(losses.items(), ("o-", "s--", "^:"), strict=True):
    ax.plot(np.array(shares) * 100, np.array(values) * 100, style, label=name)
    print(f"{name:16}", "  ".join("  none" if np.isnan(value) else f"{value:6.1%}" for value in values))
ax.set(xlabel="unknown labels (%)", ylabel="Hamming loss, test (%)", title="Unknown labels are ...")
ax.legend(frameon=False)
plt.show()
