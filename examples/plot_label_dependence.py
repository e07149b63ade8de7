"""
Label dependence
================

Which labels does a model predict together, and which exclude each other? The correlation of their probabilities shows
it. The heads of the rules show it, too, without any examples but less exactly.
"""

import matplotlib.pyplot as plt
import numpy as np

from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset
from pyboomer.explore.dependence import label_dependence
from pyboomer.explore.displays import LabelDependenceDisplay

digits = load_dataset("digits7")
clf = BoomerClassifier(n_rules=300, learning_rate=0.2, random_state=1).fit(digits.to_frame(), digits.labels_frame())

# %%
# The strongest dependencies: a and d, top and bottom, which a 1 and a 4 both lack; and b against f, the upper right and
# the upper left: a 2 and a 3 have b, a 5 and a 6 have f.
dependence = label_dependence(clf, digits.to_frame())
print(dependence.list_pairs().head(6).to_string(index=False, float_format="{:+.2f}".format))

# %%
# All of them as a map, beside the correlations of the labels in the data.
correlation = np.corrcoef(digits.Y.T)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.3), layout="constrained")
LabelDependenceDisplay.from_dependence(dependence, ax=left)
for j, k in zip(*np.triu_indices(len(correlation), 1), strict=True):
    name = digits.label_names[j] + digits.label_names[k]
    right.text(correlation[j, k], dependence.matrix[j, k], name, ha="center", va="center")
right.axline((0, 0), slope=1, color="grey", linewidth=0.8, linestyle=":")
right.axhline(0, color="grey", linewidth=0.8)
right.axvline(0, color="grey", linewidth=0.8)
right.set(xlim=(-1, 1), ylim=(-1, 1), xlabel="correlation in the data", ylabel="dependence in the predictions")
plt.show()
