"""
Several numbers at once
=======================

`BoomerRegressor` learns one or more numbers per example with the same rules. A rule may be about all of them: what
moves one target often moves the others.
"""

import matplotlib.pyplot as plt
import numpy as np

from pyboomer import BoomerRegressor

# %%
# A mass on a spring: position and speed, with noise and a few gross errors.
rng = np.random.default_rng(0)
time = np.sort(rng.uniform(0, 10, 300))
truth = np.column_stack([np.sin(time), np.cos(time)]) * np.exp(-0.1 * time)[:, None]
measured = truth + rng.normal(0, 0.05, truth.shape)
measured[rng.random(len(time)) < 0.05] += rng.normal(0, 3, 2)

# %%
# The absolute error minds outliers less than the squared error.
grid = np.linspace(0, 10, 500)[:, None]
exact = np.column_stack([np.sin(grid), np.cos(grid)]) * np.exp(-0.1 * grid)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharey=True)
errors = {}
for ax, loss in zip(axes, ("squared-error", "absolute-error"), strict=True):
    reg = BoomerRegressor(loss, n_rules=400, random_state=1).fit(time[:, None], measured)
    predicted = reg.predict(grid)
    errors[loss] = float(np.abs(predicted - exact).mean())
    for k, (name, color) in enumerate({"position": "#0072B2", "speed": "#D55E00"}.items()):
        ax.plot(time, measured[:, k], ".", color=color, alpha=0.3, markersize=4)
        ax.plot(grid[:, 0], predicted[:, k], color=color, label=name)
    ax.set(title=f"{loss}: off by {errors[loss]:.3f}", xlabel="time", ylim=(-1.5, 1.5))
axes[0].legend(frameon=False)
print(errors)
print(reg.rules_[1])
plt.show()
