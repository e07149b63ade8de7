"""
Quick start
===========

Learn rules for several labels at once, look at them, and see on the pixels what they look at.

The data are handwritten digits of 8 x 8 pixels. The labels are the segments, a to g, that a seven-segment display
lights to show the digit: seven labels that depend on each other, since only ten of the 128 label vectors are digits.
"""

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset
from pyboomer.explore.importance import feature_importance

digits = load_dataset("digits7")
X, X_test, Y, Y_test = train_test_split(digits.to_frame(), digits.labels_frame(), random_state=1)

# %%
# Fit it like any other model of scikit-learn, and print what it has learned.
clf = BoomerClassifier(n_rules=500, learning_rate=0.2, max_conditions=3, random_state=1).fit(X, Y)
accuracy = clf.score(X_test, Y_test)
print(f"{accuracy:.1%} of the displays are right in every segment\n")
print(clf.rules_.to_text(max_rules=5))

# %%
# The features are pixels, so the importance of the features is a picture: one for each segment.
importance = feature_importance(clf)
figure, axes = plt.subplots(2, 4, figsize=(8, 4.4), layout="constrained")
maps = {"all segments": importance.overall, **dict(zip(digits.label_names, importance.per_label.T, strict=True))}
for ax, (name, values) in zip(axes.flat, maps.items(), strict=True):
    ax.imshow(values.reshape(8, 8), cmap="Blues")
    ax.set_title(name)
    ax.set_axis_off()
figure.suptitle("Where rules look to decide on a segment (importance by gain)")
plt.show()
