"""How Sphinx builds the site. scripts/docs runs it."""

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

_PROJECT = (Path(__file__).parents[1] / "pyproject.toml").read_text()

project = "sso"
version = release = re.findall(r'^version = "(.*)"', _PROJECT, re.MULTILINE)[0]
extensions = ["sphinx_copybutton", "sphinx_markdown_builder"]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
suppress_warnings = ["misc.highlighting_failure"]  # a program with newer syntax is shown with fewer colours
nitpicky = True  # a reference to nothing is an error
html_theme = "furo"
html_title = f"sso {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = html_use_index = html_show_sphinx = html_show_copyright = False
html_favicon = "../sso/web/static/logo.svg"
copybutton_prompt_text = "$ "  # copied are the commands without their prompt, and not what they print
copybutton_only_copy_prompt_lines = True
markdown_anchor_sections = False


def setup(app: Sphinx) -> None:
    """Leaves the keywords of a page, which the search finds, out of its Markdown."""
    app.add_node(nodes.meta, override=True, markdown=(_skip, None))


def _skip(*_: object) -> None:
    raise nodes.SkipNode
