"""Draw the pictures of docs/looking-at-a-model.md: `python docs/images/draw.py` (needs the extras `pandas` and `plot`).

The map of 174 labels needs the data set cal500, by $PYBOOMER_DATA or from OpenML.
"""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from PIL import Image
from sklearn.model_selection import train_test_split

from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset
from pyboomer.explore.displays import (
    ExplanationDisplay,
    FeatureImportanceDisplay,
    FeatureLabelDisplay,
    LabelDependenceDisplay,
    TrainingCurveDisplay,
)
from pyboomer.explore.importance import permutation_importance

FOLDER = Path(__file__).parent


def save(name: str, display: Any) -> None:
    """Write a picture of 128 colours, which keeps the file small."""
    path = FOLDER / f"{name}.png"
    display.figure_.savefig(path, dpi=80)
    with Image.open(path) as image:
        reduced = image.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    reduced.save(path, optimize=True)


def main() -> None:
    """Draw them all."""
    digits = load_dataset("digits7")
    X, X_test, Y, Y_test = train_test_split(digits.to_frame(), digits.labels_frame(), random_state=1)
    clf = BoomerClassifier(n_rules=1000, max_conditions=3, random_state=1).fit(X, Y)
    importance = permutation_importance(clf, X_test, Y_test, random_state=1)
    save("importance", FeatureImportanceDisplay.from_importance(importance, top=12))
    save("feature-label-map", FeatureLabelDisplay.from_estimator(clf, top_features=15))
    save("label-dependence", LabelDependenceDisplay.from_estimator(clf))
    save("training-curve", TrainingCurveDisplay.from_estimator(clf, X, Y, X_test, Y_test))
    save("explanation", ExplanationDisplay.from_estimator(clf, X_test, example=16, label="b", top=8))
    songs = load_dataset("cal500")
    many = BoomerClassifier(n_rules=500, max_conditions=4, random_state=1).fit(songs.to_frame(), songs.labels_frame())
    save("label-dependence-174", LabelDependenceDisplay.from_estimator(many, top=24))


if __name__ == "__main__":
    main()
