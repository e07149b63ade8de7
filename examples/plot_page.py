"""
A page to look at a model
=========================

`clf.to_html("page.html", X=X, y=y)` writes a model as one HTML file. It needs no server and no network. Below is such a
page: click on *Rules*, *Labels*, *Features* and *Examples*.
"""

import html

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from pyboomer import BoomerClassifier

# %%
# The wines of three cultivars in Italy, by chemical analysis: real measurements that scikit-learn ships.
wines = load_wine(as_frame=True)
y = wines.target.map(dict(enumerate(["Barolo", "Grignolino", "Barbera"])))
X, X_test, y, y_test = wines.data[::2], wines.data[1::2], y[::2], y[1::2]
clf = BoomerClassifier(n_rules=60, learning_rate=0.2, max_conditions=2, random_state=1).fit(X, y)
accuracy = clf.score(X_test, y_test)
print(f"{accuracy:.1%} of the wines are told right")


# %%
# In a notebook, the page can be shown in a frame.
class Frame:
    """A page within a page."""

    def __init__(self, page):
        self.page = page

    def _repr_html_(self):
        return f'<iframe class="live" title="A model of wines" srcdoc="{html.escape(self.page)}"></iframe>'


page = clf.to_html(X=X_test, y=y_test, title="Three cultivars")
Frame(page)

# %%
# The two features that matter most already part the three cultivars.
order = clf.feature_importances_.argsort()[::-1][:2]
first, second = (X.columns[feature] for feature in order)
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for (name, own), marker in zip(X.groupby(y), "os^", strict=True):
    ax.scatter(own[first], own[second], marker=marker, label=name, alpha=0.8)
for rule in clf.rules_:
    for condition in rule.body:
        draw = {first: ax.axvline, second: ax.axhline}.get(condition.name)
        if draw:
            draw(condition.value, color="grey", alpha=0.1)
ax.set(xlabel=first, ylabel=second, title="Lines are thresholds of rules")
ax.legend(frameon=False)
plt.show()
