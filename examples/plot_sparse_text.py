"""
Tags for texts: sparse words, many labels
=========================================

Texts become a sparse matrix of words, and stays one: rules are about words that occur, or do not. Here are 2,000
short messages to a help desk with 80 tags. They are generated, so that the script needs no data; the tags overlap as
those of people do.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from pyboomer import BoomerClassifier
from pyboomer.metrics import example_f1, micro_f1

# %%
# Each tag has words of its own and shares some with its neighbours. A message has one to three tags, and small talk.
rng = np.random.default_rng(0)
syllables = ["ba", "do", "fi", "ga", "ku", "lo", "mi", "nu", "po", "ra", "se", "ti", "vo", "wa", "xe", "zu"]
words = sorted({"".join(rng.choice(syllables, 3)) for _ in range(900)})
own = {tag: rng.choice(len(words) - 100, 6, replace=False) for tag in range(80)}
small_talk = np.arange(len(words) - 100, len(words))
texts, Y = [], np.zeros((2000, 80), dtype=int)
for n in range(len(Y)):
    tags = rng.choice(80, rng.integers(1, 4), replace=False, p=np.linspace(2, 0.5, 80) / 100)
    Y[n, tags] = 1
    chosen = [*(word for tag in tags for word in rng.choice(own[tag], 4)), *rng.choice(small_talk, 8)]
    texts.append(" ".join(words[word] for word in chosen))
print(texts[0])

# %%
# `CountVectorizer` gives a sparse matrix; `feature_names` makes the rules speak in words.
vectorizer = CountVectorizer()
X = vectorizer.fit_transform(texts)
names = vectorizer.get_feature_names_out()
print(f"{X.shape[1]} words, {X.nnz / X.shape[0]:.0f} in a text")
clf = BoomerClassifier("label-wise-logistic", n_rules=1200, learning_rate=0.3, max_features=0.2, random_state=1)
clf.fit(X[:1500], Y[:1500], feature_names=names)
f1 = {decode: example_f1(Y[1500:], clf.predict(X[1500:], decode=decode)) for decode in ("hamming", "f1")}
print(f1, micro_f1(Y[1500:], clf.predict(X[1500:], decode="f1")))

# %%
# What speaks for a tag, and what against it? `about` keeps the scores of one label.
print(clf.rules_.about(3).by_gain()[:5])

# %%
# The words of the commonest tags, by how much rules gain with them: the tags have found their own words.
figure, axes = plt.subplots(1, 4, figsize=(10, 2.8), layout="constrained")
found = {}
for tag, ax in zip(range(4), axes, strict=True):
    rules = clf.rules_.about(tag)
    gain = np.bincount(
        rules.condition_features,
        weights=np.repeat(rules.gain, np.diff(rules.condition_offsets)) * rules.condition_shares,
        minlength=len(names),
    )
    top = np.argsort(-gain)[:8]
    mine = {words[word] for word in own[tag]}
    found[tag] = sum(names[word] in mine for word in top[:5])
    ax.barh(names[top], gain[top], color=["#0072B2" if names[word] in mine else "#BBBBBB" for word in top])
    ax.invert_yaxis()
    ax.set(title=f"tag {tag}", xticks=(), xlabel="gain")
figure.suptitle("Words that rules about a tag test; blue: words that the tag was made of")
plt.show()
