"""
The same rules on a cluster
===========================

`pyboomer.dask` learns where the data are: on the workers of a Dask cluster. Rows are divided into blocks, and no worker
needs to hold all of them. However they are divided, the rules are the same, bit for bit.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster

from pyboomer.dask import DaskBoomerClassifier
from pyboomer.datasets import make_synthetic

# %%
# 20,000 examples in blocks of different sizes. On a real cluster, they would be files that each worker reads.
data = make_synthetic("conditional-dependence", n=24_000, seed=1)
X_test, Y_test = data.X[20_000:], data.Y[20_000:]
divisions = {"five blocks": (4_000,) * 5, "uneven blocks": (500, 11_500, 8_000)}

# %%
# Two workers within this process stand for a cluster of many machines: ``Client("tcp://host:8786")``. Without
# ``processes=False``, each worker is a process of its own; a script then starts the cluster below
# ``if __name__ == "__main__":``.
models = {}
here = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0")
with here as cluster, Client(cluster) as client:
    for name, blocks in divisions.items():
        X, Y = (da.from_array(part[:20_000], chunks=(blocks, -1)) for part in (data.X, data.Y))
        clf = DaskBoomerClassifier("label-wise-logistic", n_rules=60, learning_rate=0.3, random_state=1, client=client)
        models[name] = clf.fit(X, Y).to_local()  # an ordinary BoomerClassifier
        print(f"{name:13} {clf.rules_[1]}")

same = models["five blocks"].rules_ == models["uneven blocks"].rules_
print(f"the same rules: {same}")

# %%
# The model is like any other. Its lines in the plane are those of the labels: six directions through the middle.
model = models["five blocks"]
side = np.linspace(-1, 1, 120)
grid = np.array([(x, y) for y in side for x in side])
figure, axes = plt.subplots(1, 6, figsize=(10, 2), layout="constrained")
for k, ax in enumerate(axes):
    scores = model.decision_function(grid)[:, k].reshape(120, 120)
    ax.imshow(scores, extent=(-1, 1, -1, 1), origin="lower", cmap="RdBu", vmin=-2, vmax=2)
    ax.set(title=f"label {k}", xticks=(), yticks=())
accuracy = float((model.predict(X_test) == Y_test).mean())
figure.suptitle(f"Scores of the six labels; {accuracy:.0%} of the labels of unseen examples are right (90 % at best)")
plt.show()
