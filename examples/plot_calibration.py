"""
Calibrated probabilities and thresholds
=======================================

A model of few rules is too shy: its probabilities stay too close to 1/2. Isotonic calibration learns the curve from
scores to probabilities, on examples that the rules have not seen. Thresholds per label are another way to better
decisions. They need no other fit.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve

from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset
from pyboomer.metrics import macro_f1
from pyboomer.predicting.decoding import tune_thresholds

digits = load_dataset("digits7")
train, held_out, test = slice(0, 800), slice(800, 1200), slice(1200, None)
settings = {"n_rules": 60, "random_state": 1}
plain = BoomerClassifier("label-wise-logistic", **settings)
models = {"as learned": plain, "isotonic": BoomerClassifier("label-wise-logistic", calibration="isotonic", **settings)}

# %%
# On the diagonal, labels occur as often as the model says.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
gaps = {}
for (name, clf), style in zip(models.items(), ("s--", "o-"), strict=True):
    clf.fit(digits.X[train], digits.Y[train])
    P, Y = clf.predict_proba(digits.X[test]), digits.Y[test]
    observed, said = calibration_curve(Y.ravel(), P.ravel(), n_bins=10)
    left.plot(said, observed, style, label=name)
    gaps[name] = float(np.abs(observed - said).mean())
    print(f"{name:10} mean gap {gaps[name]:.3f}")
left.axline((0, 0), slope=1, color="grey", linestyle=":")
left.set(xlabel="probability the model gives", ylabel="share of labels that are on", title="Reliability")
left.legend(frameon=False)

# %%
# Thresholds tuned on held-out examples, for the F-measure of each label.
clf = models["as learned"]
thresholds = tune_thresholds(digits.Y[held_out], clf.predict_proba(digits.X[held_out]))
f1 = {
    "1/2 for all": macro_f1(digits.Y[test], clf.predict(digits.X[test], decode=0.5)),
    "tuned": macro_f1(digits.Y[test], clf.predict(digits.X[test], decode=thresholds)),
}
print(dict(zip(digits.label_names, thresholds.round(2).tolist(), strict=True)), f1)
right.bar(digits.label_names, thresholds, color="#0072B2")
right.axhline(0.5, color="grey", linestyle=":")
right.set(ylim=(0, 1), title=f"Thresholds: macro F1 {f1['1/2 for all']:.1%} → {f1['tuned']:.1%}", xlabel="label")
plt.show()
