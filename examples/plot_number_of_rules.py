"""
How many rules? Tuning without refitting
========================================

The first rules of a model are the model as it was when it had no more. So one fit is enough to find the number of rules
that is best by any measure, and to cut the model there.
"""

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from pyboomer import BoomerClassifier
from pyboomer.datasets import make_synthetic
from pyboomer.editing import replace_rules
from pyboomer.explore.curves import training_curve
from pyboomer.explore.displays import TrainingCurveDisplay
from pyboomer.metrics import hamming_loss

data = make_synthetic("marginal-independence", n=3000, seed=1)
X, X_rest, Y, Y_rest = train_test_split(data.X, data.Y, test_size=0.8, random_state=1)
X_valid, X_test, Y_valid, Y_test = train_test_split(X_rest, Y_rest, test_size=0.5, random_state=1)

# %%
# The labels are noisy and the learning rate is large: the model overfits.
clf = BoomerClassifier("label-wise-logistic", head="single", n_rules=2000, learning_rate=0.3, random_state=1).fit(X, Y)
curve = training_curve(clf, X, Y, X_valid, Y_valid)
TrainingCurveDisplay.from_curve(curve)

# %%
# Each measure has a best number of rules of its own. The first so many rules are the model to keep.
best = {measure: curve.find_best(measure) for measure in curve.larger_is_better}
print(best)
short = replace_rules(clf, clf.rules_[: best["hamming_loss"]])

# %%
# Examples that had no part in the choice tell what it was worth.
losses = {len(model.rules_): hamming_loss(Y_test, model.predict(X_test)) for model in (clf, short)}
for n_rules, loss in losses.items():
    print(f"{n_rules:4} rules: Hamming loss {loss:.1%}")
plt.show()
