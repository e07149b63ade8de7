"""The order of the examples in the gallery: from the first look to special questions."""

STORY = (
    *("quick_start", "reading_rules", "rules_on_pixels", "page", "label_dependence", "additive_model"),
    *("distilled_model", "editing_with_an_expert", "two_losses", "figure_1", "comparison", "number_of_rules"),
    *("early_stopping", "calibration", "unknown_labels", "sparse_text", "regression", "cluster"),
)


class ByStory:
    """Sort examples by their place in the story; those that have none come last."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        """The place of a file."""
        stem = name.removeprefix("plot_").removesuffix(".py")
        return STORY.index(stem) if stem in STORY else len(STORY), name
