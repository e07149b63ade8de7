"""
Reading rules
=============

A model is a list of rules. An example gets the scores of all rules whose conditions it meets. Here is how to find the
rules that matter, and how to explain a prediction.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from pyboomer import BoomerClassifier
from pyboomer.explore.displays import ExplanationDisplay

# %%
# Songs have a tempo, a style, and may be recorded live. The labels are moods that people hear in them. Some tempos are
# missing.
rng = np.random.default_rng(0)
n = 600
songs = pd.DataFrame(
    {
        "tempo": rng.normal(120, 25, n).round(1),
        "style": rng.choice(["jazz", "rock", "folk"], n),
        "live": rng.random(n) < 0.3,
    }
)
moods = pd.DataFrame(
    {
        "calm": (songs["tempo"] < 115) | (songs["style"] == "folk"),
        "party": (songs["tempo"] > 125) & (songs["style"] != "folk"),
        "raw": songs["live"] & (songs["style"] == "rock"),
    }
)
moods = (moods != (rng.random(moods.shape) < 0.05)).astype(int)  # people disagree now and then
songs.loc[rng.random(n) < 0.05, "tempo"] = np.nan

clf = BoomerClassifier(n_rules=200, learning_rate=0.2, random_state=1).fit(songs, moods)

# %%
# Each line has the number of the rule, the examples it covers, and its share of the gain. Rules of large gain say most.
# `mentioning` finds rules about a feature or a label. Rules keep their numbers.
print(clf.rules_.by_gain()[:5], "\n")
print(clf.rules_.mentioning(feature="live", label="raw").by_gain()[:3], "\n")

# %%
# The same as a table.
print(clf.rules_.to_frame().query("coverage < 100").nlargest(3, "gain")[["body", "coverage", "share"]], "\n")

# %%
# Why is a song heard as it is? Its rules add up to its scores. The runner-up is the label vector that came second.
song = songs.iloc[[8]]
(explanation,) = clf.explain(song)
print(explanation)

# %%
# The same as a picture, for one label.
ExplanationDisplay.from_explanation(explanation, label="calm", top=8)
plt.show()
