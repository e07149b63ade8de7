"""The text of a rule is what people read of it: one line, a row of a table, in plain text or in HTML.

Numbers are rounded. A threshold keeps the digits that it takes to divide the training examples just as the exact one
does (see `digits`); scores have three. What must be absent, such as words of a text, is listed behind all else, `none
of: cough, fever`. Of many conditions, words or labels, those that matter most are named and the others counted.
Names are untrusted: in HTML, all are escaped, and in a line of plain text, what would end the line or speak to the
terminal.
"""

import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_FLOOR, Context
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyboomer.rules.ensemble import RuleEnsemble
    from pyboomer.rules.rule import Condition, Rule

SHOWN_RULES = 20
WHOLE = 0.99995  # what is not printed as 100.00%
FEW, SHOWN = 8, 5  # conditions, words or labels: of more than so many, those that matter most are named
NO_DIGITS = -1  # of a threshold that parts zero, the least value, from all others: something is there or not
ROUNDED_DOWN = 32  # is added to the digits of a threshold that, if rounded up, would be the next value or beyond
ABSENT = "none of:"
LONGEST = 1200  # characters of a message
# control characters, ends of lines, marks that turn the direction of text, and halves of characters
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
FOR, AGAINST = "#0072B2", "#B34700"  # blue and vermilion: told apart by all eyes, and dark enough to be read


def show_line(text: str) -> str:
    """A line of text as it can be printed: characters that are no text are shown as escapes, and so cannot act.

    >>> print(show_line("loud\\n  1  DEFAULT loud -9"))
    loud\\n  1  DEFAULT loud -9
    """
    return UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def shorten(text: str, most: int = LONGEST) -> str:
    """A text that leaves out its middle if it is long: what files hold may be of any length.

    >>> shorten("a" * 30 + "z" * 30, most=20)
    'aaaaaaaaaaa ... zzzz'
    """
    if len(text) <= most:
        return text
    end = most // 5
    return f"{text[: most - end - 5]} ... {text[-end:]}"


def format_threshold(value: float, digits: int = 0) -> str:
    """Write a threshold with so many significant digits, and never fewer than its whole part has; 0 means in full.

    Without any, it is 0: any number from there up to the next value does.

    >>> format_threshold(20.299999999999997, 4), format_threshold(20.299999999999997, 4 + ROUNDED_DOWN)
    ('20.3', '20.29')
    """
    value += 0.0  # turns -0 into 0
    if digits == NO_DIGITS:
        return "0"
    if digits == 0:
        return repr(value).removesuffix(".0")
    whole = len(str(int(abs(value)))) if abs(value) < 1e15 else 0
    if digits > ROUNDED_DOWN:
        n = max(digits - ROUNDED_DOWN, whole)
        value = float(Context(n, ROUND_FLOOR).create_decimal_from_float(value))
    else:
        n = max(digits, whole)
    return f"{value:.{n}g}"


def format_score(score: float) -> str:
    """Write a score with its sign and three digits, but no exponent where it is merely large."""
    return f"{score:+.0f}" if 999.5 <= abs(score) < 1e6 else f"{score:+.3g}"


def format_count(number: int, noun: str) -> str:
    """Write a number and what it counts."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def describe_body(body: Iterable["Condition"], max_conditions: int | None) -> str:
    """Describe a body; see `Rule.body_text`."""
    by_feature: dict[int, list[Condition]] = {}
    for condition in body:
        by_feature.setdefault(condition.feature, []).append(condition)
    tests: list[tuple[float, str]] = []  # what they brought of the gain, and their text
    absent: list[tuple[float, str]] = []
    for conditions in by_feature.values():
        share = sum(condition.share for condition in conditions)
        if all(condition.is_absence for condition in conditions):
            name = conditions[0].name  # which must be told from others behind commas
            absent.append((share, quote(name) if "," in name or name.startswith('"') else name))
        else:
            merged = _merge(conditions)
            tests += [(share / len(merged), text) for text in merged]
    parts = [_join_largest(tests, " AND ", max_conditions)] if tests else []
    return " AND ".join([*parts, f"{ABSENT} {_join_largest(absent, ', ', max_conditions)}"] if absent else parts)


def quote(name: str) -> str:
    """Write a name in quotes, as `Rule.parse` reads it."""
    return '"' + re.sub(r'(["\\])', r"\\\1", name) + '"'


def _join_largest(shared: Sequence[tuple[float, str]], separator: str, most: int | None) -> str:
    """Join texts; of many, those of the largest shares, and the number of the others."""
    if most is None or len(shared) <= most:
        return separator.join(text for _, text in shared)
    shown = sorted(shared, key=lambda share_and_text: -share_and_text[0])[: min(SHOWN, most)]
    return _count_hidden(separator.join(text for _, text in shown), len(shared) - len(shown))


def _count_hidden(text: str, n_hidden: int) -> str:
    return f"{text} (+{n_hidden} more)".lstrip() if n_hidden else text


def _merge(conditions: Sequence["Condition"]) -> list[str]:
    """Describe the conditions on one feature in as few tests as say the same."""
    if any(isinstance(c.value, str) and not c.is_nominal for c in conditions):  # levels whose order is not known yet
        return [str(condition) for condition in conditions]
    lower = max((c for c in conditions if c.operator == ">"), key=lambda c: float(c.value), default=None)
    upper = min((c for c in conditions if c.operator == "<="), key=lambda c: float(c.value), default=None)
    if lower is not None and upper is not None:
        return [f"{lower.value_text()} < {lower.name} <= {upper.value_text()}"]
    numeric = [str(condition) for condition in (lower, upper) if condition is not None]
    return numeric + [str(condition) for condition in dict.fromkeys(c for c in conditions if c.is_nominal)]


def describe_head(names: Sequence[str], scores: Sequence[float], max_labels: int | None) -> str:
    """Describe a head: `beach +0.8, urban -0.4`; see `Rule.head_text`."""
    scored, hidden = _choose_scores(names, scores, max_labels)
    if not scored and not hidden:
        return "nothing"
    text = ", ".join(f"{name} {format_score(score)}" for name, score in scored)
    return _count_hidden(text, hidden)


def _choose_scores(
    names: Sequence[str], scores: Sequence[float], max_labels: int | None
) -> tuple[list[tuple[str, float]], int]:
    """The scores to show, and how many others there are."""
    scored = [(name, score) for name, score in zip(names, scores, strict=True) if score != 0]
    if max_labels is None or len(scored) <= max_labels:
        return scored, 0
    largest_first = sorted(scored, key=lambda name_and_score: -abs(name_and_score[1]))
    n = min(SHOWN, max_labels)
    shown, others = largest_first[:n], largest_first[n:]
    if n > 1 and len({score > 0 for _, score in shown}) == 1:  # what the rule says to the contrary is told as well
        contrary = [other for other in others if (other[1] > 0) != (shown[0][1] > 0)]
        shown[-1:] = contrary[:1] or shown[-1:]
    return shown, len(scored) - len(shown)


def tabulate(rules: "RuleEnsemble", max_rules: int | None, max_labels: int | None, max_conditions: int | None) -> str:
    """Describe rules as a table; see `RuleEnsemble.to_text`."""
    if len(rules) == 0:
        return "(no rules)"
    shown = rules[: len(rules) if max_rules is None else max(max_rules, 0)]
    cells = [("rule", "covers", "gain", "")]
    for number, share, rule in zip(shown.order.tolist(), shown.share.tolist(), shown, strict=True):
        cells.append((str(number), f"{rule.coverage:.6g}", f"{share:.2%}", rule.to_text(max_labels, max_conditions)))
    widths = [max(len(row[column]) for row in cells) for column in range(3)]
    lines = ["  ".join([*(cell.rjust(w) for cell, w in zip(row, widths, strict=False)), row[3]]) for row in cells]
    return "\n".join([*(line.rstrip() for line in lines), *tell_rest(rules, len(shown))])


def tell_rest(rules: "RuleEnsemble", n_shown: int) -> list[str]:
    """How many rules are not shown, and what share of the gain they have; if all are, what share of a larger whole."""
    hidden = rules.share[n_shown:]
    if len(hidden):
        share = float(hidden.sum())
        of_gain = f", {share:.2%} of the gain" if 0 < share < 1 else ""
        return [f"... and {format_count(len(hidden), 'more rule')}{of_gain}"]
    share = float(rules.share.sum())
    return [f"together {share:.2%} of the gain"] if len(rules) > 1 and 0 < share < WHOLE else []


# --- HTML -------------------------------------------------------------------------------------------------------------


def render_rules(rules: "RuleEnsemble", max_rules: int = SHOWN_RULES, max_labels: int | None = FEW) -> str:
    """Describe rules as an HTML table, for notebooks."""
    shown = rules[:max_rules]
    rows = [
        (str(number), f"{rule.coverage:.6g}", f"{share:.2%}", render_body(rule), render_head(rule, max_labels))
        for number, share, rule in zip(shown.order.tolist(), shown.share.tolist(), shown, strict=True)
    ]
    more = [f"<p>{line}</p>" for line in tell_rest(rules, len(shown))]
    return "".join([render_table(("rule", "covers", "gain", "if", "then"), rows, n_numbers=3), *more])


def render_rule(rule: "Rule") -> str:
    """Describe a rule as an HTML table of one row, for notebooks."""
    row = f"{rule.coverage:.6g}", render_body(rule), render_head(rule)
    return render_table(("covers", "if", "then"), [row], n_numbers=1)


def render_table(header: Sequence[str], rows: Iterable[Sequence[str]], n_numbers: int) -> str:
    """An HTML table of cells that are HTML themselves; the first `n_numbers` columns are set to the right."""
    cell = '<{tag} style="text-align: {side}; vertical-align: top; padding: 2px 8px">{content}</{tag}>'

    def render_row(cells: Sequence[str], tag: str) -> str:
        sides = ["right"] * n_numbers + ["left"] * (len(cells) - n_numbers)
        return "".join(cell.format(tag=tag, side=s, content=c) for s, c in zip(sides, cells, strict=True))

    lines = [f"<tr>{render_row(row, 'td')}</tr>" for row in rows]
    return f"<table><thead><tr>{render_row(header, 'th')}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def render_body(rule: "Rule") -> str:
    """The body of a rule as HTML."""
    return escape(rule.body_text()) if rule.body else "<em>always</em>"


def render_head(rule: "Rule", max_labels: int | None = FEW) -> str:
    """The head of a rule as HTML; colours repeat what the signs say."""
    return render_scores(rule.label_names, rule.scores, max_labels)


def render_scores(names: Sequence[str], scores: Sequence[float], max_labels: int | None = FEW) -> str:
    """Labels and their scores as HTML."""
    scored, hidden = _choose_scores(names, scores, max_labels)
    parts = [f"{escape(name)}&nbsp;{render_score(score)}" for name, score in scored]
    return (", ".join(parts) + (f" (+{hidden} more)" if hidden else "")) or "<em>nothing</em>"


def render_score(score: float) -> str:
    """A score as HTML."""
    return f'<span style="color: {FOR if score > 0 else AGAINST}">{format_score(score)}</span>'
