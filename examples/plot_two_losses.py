"""
Two losses, two measures
========================

Which loss to minimise depends on the data and on how you are judged. If whole label vectors count (subset 0/1 loss) and
labels depend on each other, the example-wise loss wins: it looks at all labels of an example at once. If each label
counts by itself (Hamming loss) and labels are independent, the label-wise loss is better.
"""

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset, make_synthetic
from pyboomer.explore.curves import training_curve

# %%
# Two data sets: the segments of digits, which depend on each other, and the paper's synthetic labels that do not.
data = {
    "dependent labels (digits)": load_dataset("digits7"),
    "independent labels (synthetic)": make_synthetic("marginal-independence", n=2000, seed=1),
}
measures = ["hamming_loss", "subset_zero_one_loss"]
styles = {"label-wise-logistic": ("#B34700", "--"), "example-wise-logistic": ("#0072B2", "-")}

# %%
# One model for each loss, judged by both measures after any number of rules: nothing is fitted twice.
figure, axes = plt.subplots(2, 2, figsize=(8.5, 5.8), layout="constrained")
final = {}
for row, (title, ds) in zip(axes, data.items(), strict=True):
    X, X_test, Y, Y_test = train_test_split(ds.X, ds.Y, test_size=0.5, random_state=1)
    for loss, (color, style) in styles.items():
        clf = BoomerClassifier(loss, n_rules=600, random_state=1).fit(X, Y)
        curve = training_curve(clf, X, Y, X_test, Y_test, measures=measures, at=range(50, 601, 10))
        for ax, measure in zip(row, measures, strict=True):
            values = curve.values["held out"][measure]
            ax.plot(curve.n_rules, 100 * values, style, color=color, label=loss)
            ax.set(title=title, xlabel="number of rules", ylabel=f"{measure.replace('_', ' ')}, held out (%)")
            final[title, loss, measure] = float(values[-1])
axes[0, 0].legend(frameon=False)

for (title, loss, measure), value in final.items():
    print(f"{title:31}  {loss:21}  {measure.replace('_', ' '):20} {value:6.1%}")
plt.show()
