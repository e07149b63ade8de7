"""
A model small enough to read
============================

Hundreds of rules predict well, and nobody reads them. `distil` picks the few that matter and fits their heads together.
You say how many conditions you are willing to read.
"""

import matplotlib.pyplot as plt

from pyboomer import BoomerClassifier, distil
from pyboomer.datasets import load_dataset
from pyboomer.editing import size_curve
from pyboomer.explore.displays import SizeCurveDisplay

digits = load_dataset("digits7")
features, labels = digits.to_frame(), digits.labels_frame()
X, Y, X_test, Y_test = features[:500], labels[:500], features[1000:], labels[1000:]
clf = BoomerClassifier(n_rules=100, random_state=1).fit(X, Y)

# %%
# Forty conditions instead of hundreds, and they predict better: their heads are fitted together, which makes up for the
# few rules of this model.
small = distil(clf, X, Y, n_conditions=40)
scores = {}
for name, model in {"whole": clf, "distilled": small}.items():
    scores[name] = model.score(X_test, Y_test)
    print(f"{name:9} {len(model.rules_.condition_features):4} conditions: {scores[name]:.1%} of the displays are right")
print(small.rules_[:5].to_text(max_labels=3))

# %%
# Other ways to a small model are worse: the first rules as they are (cut), or with heads learned again (refitted).
curve = size_curve(clf, X, Y, X_test, Y_test, n_conditions=[10, 20, 40, 80])
SizeCurveDisplay.from_curve(curve)
plt.show()
