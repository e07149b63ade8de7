"""An option is a parameter of the classifier as the command line takes it, made from the table of parameters."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pyboomer.parameters import Parameter

NOT_OPTIONS = {
    "verbose": "a progress bar is shown in a terminal, unless --quiet is given",
    "callbacks": "functions cannot be passed in a shell",
    "warm_start": "a command learns a model of its own",
}
PREDICTING = ("decode", "n_jobs", "device")  # what can still be chosen for a model that is already learned

_WORDS: dict[str, Any] = {"none": None, "true": True, "false": False}
_NAMES = "(comma separated, patterns allowed)"
NAMES_HELP = {
    "categorical_features": f"Names of columns that are nominal although they hold numbers {_NAMES}.",
    "fixed_features": f"Names of columns that every refinement considers, besides those drawn {_NAMES}.",
}


class TableValue(click.ParamType):
    """A value of a parameter, checked by the table."""

    name = "value"

    def __init__(self, parameter: Parameter) -> None:
        self.parameter = parameter

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002
        """Read the text as the plainest Python value it can be; refuse what the table does not allow."""
        parsed = parse_value(value) if isinstance(value, str) else value
        try:
            self.parameter.validate(parsed)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        return parsed


def parse_value(text: str) -> Any:
    """Read `none`, `true`, `false`, numbers, lists and dicts as such; all else stays text."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    if text.lstrip().startswith(("[", "{")):
        try:
            return literal_eval(text.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return text
    return text


def make_option(parameter: Parameter) -> click.Option:
    """Turn a row of the table of parameters into an option."""
    flag = "--" + parameter.name.replace("_", "-")
    meaning = parameter.meaning.replace("\n- ", " ")
    if isinstance(parameter.default, bool):
        on_off = f"{flag}/--no-{flag[2:]}"
        return click.Option([on_off], default=parameter.default, show_default=True, help=meaning)
    if parameter.name in NAMES_HELP:
        return click.Option([flag], multiple=True, metavar="NAMES", help=NAMES_HELP[parameter.name])
    words = re.findall(r'"([^"]+)"', parameter.allowed)
    kind = "INTEGER" if "whole number" in parameter.allowed else "NUMBER"
    if "fraction" in parameter.allowed or words:
        only_words = len(words) > 1 and not re.search(r"\.\.\.|number|fraction", parameter.allowed)
        kind = "|".join(words) if only_words else "VALUE"
    allowed = f" Must be {parameter.allowed.removesuffix(', or a pyboomer.Loss')}." if kind == "VALUE" else ""
    return click.Option(
        [flag],
        type=TableValue(parameter),
        default=parameter.default,
        show_default="none" if parameter.default is None else True,
        metavar=kind,
        help=meaning + allowed,
    )


class LearnerCommand(click.Command):
    """A command whose options include parameters of the classifier; they are made when first asked for."""

    def __init__(self, *args: Any, only: Sequence[str] = (), without: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.only = only
        self.without = (*without, *NOT_OPTIONS)
        self._options: list[click.Parameter] | None = None

    def list_options(self) -> list[click.Parameter]:
        """The options that the table of parameters gives."""
        if self._options is None:
            from pyboomer.parameters import PARAMETERS

            chosen = [p for p in PARAMETERS if p.name not in self.without and (not self.only or p.name in self.only)]
            self._options = [make_option(parameter) for parameter in chosen]
        return self._options

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Add the parameters of the classifier to the command's own."""
        return [*super().get_params(ctx), *self.list_options()]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options first, then those of the classifier."""
        for title, options in ("Options", super().get_params(ctx)), ("Parameters of the model", self.list_options()):
            shown = (option.get_help_record(ctx) for option in options if isinstance(option, click.Option))
            with formatter.section(title):
                formatter.write_dl([record for record in shown if record is not None])


def list_given(ctx: click.Context, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that the user named, not those that have their defaults."""
    chosen = click.core.ParameterSource.COMMANDLINE
    return {name: value for name, value in parameters.items() if ctx.get_parameter_source(name) is chosen}
