"""How the site is built: `make -C docs html`. Everything a page needs is in the site: it works offline."""

import logging
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx

import pyboomer

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # pictures.py and order.py, which are used when the site is built

logging.getLogger("pyboomer").setLevel(logging.ERROR)  # the gallery's readers need not know what was compiled for it

project = "pyboomer"
author = "the pyboomer developers"
version = release = pyboomer.__version__
project_copyright = "the pyboomer developers, MIT licence"

extensions = [
    "myst_parser",  # pages in Markdown, which read well on any server of Git repositories, too
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_made/**.md", "images/*.py", "results/reproduction/*.json"]
default_role = "py:obj"  # `Rule.parse` in a docstring links to its page, if it has one
suppress_warnings = [
    "myst.header",  # benchmarks write their pages themselves
]

# --- Markdown ---------------------------------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# --- Reference --------------------------------------------------------------------------------------------------------

autosummary_generate = True
autodoc_typehints = "none"  # the sections of a docstring say what is taken, in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # all methods are on the page of their class, see _templates
numpydoc_xref_param_type = False
templates_path = ["_templates"]
add_module_names = False
toc_object_entries_show_parents = "hide"
highlight_language = "none"  # what has no language is output
smartquotes = False  # quotes are those of Python

# --- Gallery ----------------------------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "order.ByStory",
    "abort_on_example_error": True,
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("pyboomer",),
    "reference_url": {"pyboomer": None},
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,  # times of the machine that builds the site say nothing to readers
    "show_signature": False,
    "matplotlib_animations": True,
    "remove_config_comments": True,
    "capture_repr": ("_repr_html_", "__repr__"),
    "ignore_repr_types": r"matplotlib|list|tuple|dict|.*Display",
    "copyfile_regex": r"^$",
}

# --- Look -------------------------------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "pyboomer"
html_static_path = ["_static"]
html_css_files = ["pyboomer.css"]
html_extra_path = ["_made/live"]  # pages of models, see live.md
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "pyboomer"},
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "navigation_with_keys": False,
    "header_links_before_dropdown": 9,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_center": [],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}
html_sidebars = {"index": [], "get-started": [], "live": []}


def write_formula(translator: Any, node: nodes.Element, display: bool) -> None:
    """Write a formula as MathML, which browsers draw by themselves: MathJax would come from elsewhere."""
    converted = latex2mathml.tex2mathml(node.astext().strip(), as_block=display)
    translator.body.append(f'<div class="formula">{converted}</div>' if display else converted)
    raise nodes.SkipNode


def skip_routing(_app: Sphinx, _what: str, name: str, *_: Any) -> bool | None:
    """Leave out the methods that scikit-learn adds for metadata routing: their docstrings lead to its own site."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing|parameter_table", name) else None


def setup(app: Sphinx) -> None:
    """Register what is made when the site is built."""
    import pictures

    app.add_html_math_renderer(
        "mathml",
        (lambda translator, node: write_formula(translator, node, False), None),
        (lambda translator, node: write_formula(translator, node, True), None),
    )
    app.connect("autodoc-skip-member", skip_routing)
    app.connect("config-inited", lambda _app, _config: pictures.make_all(HERE / "_made"), priority=1)
