"""How Sphinx builds the site. scripts/docs runs it."""

import re
from pathlib import Path

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
html_search_scorer = str(Path(__file__).with_name("search_scorer.js"))  # Sphinx looks in the working folder
html_css_files = ["site.css"]
html_copy_source = html_use_index = html_show_sphinx = False
html_favicon = "../sso/web/static/logo.svg"
copybutton_prompt_text = "$ "  # copied are the commands without their prompt, and not what they print
copybutton_only_copy_prompt_lines = True
markdown_anchor_sections = False
