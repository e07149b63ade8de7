"""
How many rules? Tuning without refitting
========================================

The first rules of a model are the model as it was then. So one fit is enough to find the best number of rules by any
measure, and to cut the model there.
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
# Each measure has its own best number of rules. Keep the rules up to there.
best = {measure: curve.find_best(measure) for measure in curve.larger_is_better}
print(best)
short = replace_rules(clf, clf.rules_[: best["hamming_loss"]])

# %%
# Examples that had no part in the choice show what it was worth.
losses = {len(model.rules_): hamming_loss(Y_test, model.predict(X_test)) for model in (clf, short)}
for n_rules, loss in losses.items():
    print(f"{n_rules:4} rules: Hamming loss {loss:.1%}")
plt.show()
