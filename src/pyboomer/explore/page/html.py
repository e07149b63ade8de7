"""A page is a model as one HTML file that opens in any browser: no server, no network, nothing to install.

It is the template, style and scripts in the folder `assets` and, as JSON, a summary of the model. All names in a
summary are text from anywhere. They stay within the JSON, where no character can end it; the scripts show them as text
only; and a content security policy lets the browser run those scripts, known by their hashes, and nothing else.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from string import Template
from typing import Any

SCRIPTS = (
    "model.js",  # the summary read back: rules, examples, scores, decoding
    "elements.js",  # HTML and SVG elements, and numbers as text
    "charts.js",  # curves and histograms
    "pictures.js",  # the pixels of an image, a seven-segment display
    "rules.js",  # a rule as people read it; lists of rules
    "overview.js",
    "labels.js",
    "shapes.js",  # what rules on one feature, or on two, add up to
    "features.js",
    "scores.js",  # the scores of an example, and the steps to one of them
    "examples.js",
    "main.js",  # tabs, addresses, light and dark
)
# what could end the JSON, or a script in general
ESCAPED = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def write_page(summary: Mapping[str, Any]) -> str:
    """The HTML of a page that shows a summary, see `pyboomer.explore.page.summary`."""
    style = _read_asset("page.css")
    script = '"use strict";\n(() => {\n' + "\n".join(map(_read_asset, SCRIPTS)) + "})();\n"
    # ASCII: U+2028, lone surrogates and the like are escaped
    content = json.dumps(summary, ensure_ascii=True, allow_nan=False, separators=(",", ":")).translate(ESCAPED)
    return Template(_read_asset("page.html")).substitute(
        policy=f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'",
        style=style,
        script=script,
        summary=content,
    )


def _read_asset(name: str) -> str:
    return files("pyboomer.explore.page").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(source: str) -> str:
    digest = hashlib.sha256(source.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
