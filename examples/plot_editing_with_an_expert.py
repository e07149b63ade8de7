"""
Editing a model with an expert
==============================

Training data may lack what everybody knows. Here no song of the training data is a lullaby; later, lullabies come.
An expert reads the rules, writes one in plain text, and the model takes it.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from pyboomer import BoomerClassifier, Rule
from pyboomer.editing import insert_rule, replace_rules
from pyboomer.metrics import subset_zero_one_loss

# %%
# Songs by tempo and loudness, with the moods that people hear. The label-wise loss decides on each mood by itself. So a
# prediction may combine moods as no song of the training data did: calm, neither sad nor for a party.
rng = np.random.default_rng(0)


def make_songs(n, lullabies):
    """Some songs; a share of them are lullabies, which are calm and not sad, however slow they are."""
    songs = pd.DataFrame({"tempo": rng.normal(115, 30, n).round(), "loudness": rng.normal(-10, 4, n).round(1)})
    songs["lullaby"] = rng.random(n) < lullabies
    lullaby, slow = songs["lullaby"], songs["tempo"] < 105
    moods = {"calm": lullaby | (songs["loudness"] < -11), "sad": slow & ~lullaby, "party": ~slow & ~lullaby}
    return songs, pd.DataFrame(moods).astype(int)


X, Y = make_songs(500, lullabies=0.0)
X_new, Y_new = make_songs(300, lullabies=0.3)
clf = BoomerClassifier("label-wise-logistic", n_rules=200, learning_rate=0.2, random_state=1).fit(X, Y)
print(clf.rules_.by_gain()[:4])

# %%
# The expert's rule has to outvote the others, so its scores are large. It is read as it would be printed.
rule = Rule.parse("IF lullaby > 0 THEN calm +20, sad -20, party -20")
edited = replace_rules(clf, insert_rule(clf.rules_, rule))
print(edited.rules_[-1])

# %%
# New songs, before and after: the other songs are as they were.
is_lullaby = X_new["lullaby"].to_numpy()
losses = {
    name: [subset_zero_one_loss(Y_new[part], model.predict(X_new[part])) for part in (~is_lullaby, is_lullaby)]
    for name, model in {"as learned": clf, "with the expert's rule": edited}.items()
}
print(losses)

figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for offset, (name, values), color in zip((-0.2, 0.2), losses.items(), ("#999999", "#0072B2"), strict=True):
    bars = ax.bar(np.arange(2) + offset, np.array(values) * 100, 0.4, label=name, color=color)
    ax.bar_label(bars, fmt="%.0f %%", padding=2)
ax.set(xticks=(0, 1), xticklabels=("other songs", "lullabies"), ylabel="songs with a wrong mood (%)", ylim=(0, 119))
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
