"""
An additive model of several labels
===================================

With one condition per rule, a model is a sum of steps: one curve per feature and label, and nothing else. You can draw
and understand it as a whole.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from pyboomer import BoomerClassifier
from pyboomer.explore.displays import ShapeDisplay
from pyboomer.metrics import subset_zero_one_loss

# %%
# Songs and their moods. Here we know what makes a song calm, sad or fit for a party; the rules have to find it.
rng = np.random.default_rng(1)
n = 1200
songs = pd.DataFrame(
    {"tempo": rng.normal(115, 25, n), "loudness": rng.normal(-9, 4, n), "mode": rng.choice(["major", "minor"], n)}
)
songs["year"] = rng.integers(1960, 2025, n)
slow, loud = 115 - songs["tempo"], songs["loudness"] + 9
odds = {
    "calm": 0.06 * slow - 0.3 * loud,
    "party": -1 + 2 * (np.abs(songs["tempo"] - 125) < 15) + 0.2 * loud,  # neither slow nor fast
    "sad": -1 + 0.03 * slow + 1.5 * (songs["mode"] == "minor"),
}
moods = pd.DataFrame({name: rng.random(n) < 1 / (1 + np.exp(-2 * logit)) for name, logit in odds.items()}).astype(int)
songs.loc[rng.random(n) < 0.1, "loudness"] = np.nan
X, X_test, Y, Y_test = songs[:800], songs[800:], moods[:800], moods[800:]

clf = BoomerClassifier("joint-logistic", n_rules=300, max_conditions=1, random_state=1).fit(X, Y)
loss = subset_zero_one_loss(Y_test, clf.predict(X_test))
guess = subset_zero_one_loss(Y_test, np.tile(Y.mode().to_numpy()[0], (len(Y_test), 1)))
print(f"songs with a wrong mood: {loss:.0%}; if all are felt as most: {guess:.0%}")

# %%
# The shapes add up to the scores: nothing of the model is left out.
shapes = clf.shape_functions(X)
print(shapes)
print(shapes.to_frame().round(2).to_string())
total = shapes.intercept + sum(shape(X_test[shape.name]) for shape in shapes.features)
np.testing.assert_allclose(total, clf.decision_function(X_test), atol=1e-9)

# %%
# All of it in a picture. A tempo between 110 and 140 speaks for *party*; *sad* goes by the mode; the year has nothing
# to do with moods and stays near zero. Shades at the bottom show where the songs are.
ShapeDisplay.from_shapes(shapes)
ShapeDisplay.from_shapes(shapes, label="party")
plt.show()
