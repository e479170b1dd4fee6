"""Repairs what the theme does not do for people who use a screen reader or a small screen."""

import re
from pathlib import Path

# What the theme writes, and what it should write.
REPAIRS = {
    '<div class="highlight"><pre>': '<div class="highlight"><pre tabindex="0">',  # it may scroll
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<div id="search-results">': '<h1>Search</h1>\n<div id="search-results">',
}


_CELL = re.compile(r"<td>.*?</td>", re.DOTALL)
_CODE = re.compile(r'(?<=<span class="pre">)[^<]+')
_BREAK = re.compile(r"(?<=[_/,])(?=[\w{])(?!\w*})|(?<=[a-z])(?=[A-Z])")


def repair(site: Path) -> None:
    for page in sorted(site.rglob("*.html")):
        text = page.read_text()
        for wrong, right in REPAIRS.items():
            text = text.replace(wrong, right)
        page.write_text(_CELL.sub(lambda cell: _breakable(cell[0]), text))


def _breakable(cell: str) -> str:
    """Long names in a table may be broken after an underscore, a slash, a comma or a word, and not within a word."""
    return _CODE.sub(lambda code: _BREAK.sub("<wbr>", code[0]), cell)
