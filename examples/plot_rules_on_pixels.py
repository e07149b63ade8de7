"""
Rules drawn on pixels
=====================

A rule about a picture can be drawn. Pixels that must have more ink than a threshold are filled; pixels that must have
less are crossed out. Below stands the head of the rule: blue segments are voted on, orange ones off.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle

from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset

digits = load_dataset("digits7")  # labels: the segments a to g of a display that shows the digit
clf = BoomerClassifier(n_rules=300, learning_rate=0.2, max_conditions=3, random_state=1)
clf.fit(digits.to_frame(), digits.labels_frame())
best = clf.rules_[1:].by_gain()[:8]  # without the default rule, which has no conditions
print(best)

# %%
# A condition knows its feature, its operator and its threshold. Behind each rule is the mean of the digits it covers.
segments = {"a": (1, 9, 4, 1), "b": (5, 5.5, 1, 3.5), "c": (5, 1, 1, 3.5), "d": (1, 0, 4, 1)}
segments |= {"e": (0, 1, 1, 3.5), "f": (0, 5.5, 1, 3.5), "g": (1, 4.5, 4, 1)}
figure, axes = plt.subplots(2, 8, figsize=(10, 3), layout="constrained", height_ratios=(2, 1))
for rule, number, (top, bottom) in zip(best, best.order, axes.T, strict=True):
    covered = np.ones(len(digits.X), dtype=bool)
    for condition in rule.body:
        covered &= condition.covers(digits.X[:, condition.feature])
    top.imshow(digits.X[covered].mean(axis=0).reshape(8, 8), cmap="Greys", vmax=40)
    for condition in rule.body:
        row, column = divmod(condition.feature, 8)
        style = {"facecolor": "#333333"} if condition.operator == ">" else {"fill": False, "hatch": "xx"}
        top.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, edgecolor="black", **style))
    top.set_title(f"rule {number}", fontsize="medium")
    strongest = max(abs(score) for score in rule.scores)
    for name, (x, y, width, height) in segments.items():
        score = rule.head[name] / strongest
        color = "#0072B2" if score > 0 else "#D55E00"
        bottom.add_patch(Rectangle((x, y), width, height, color=color, alpha=abs(score) ** 0.7))
    bottom.set(xlim=(-4, 10), ylim=(-1, 11))
    top.set_axis_off()
    bottom.set_axis_off()
figure.suptitle("Eight rules of largest gain: what must be inked or blank, and the segments they vote for")
plt.show()
