"""Repairs what the theme does not do for people who use a screen reader."""

from pathlib import Path

# What the theme writes, and what it should write.
REPAIRS = {
    '<div class="highlight"><pre>': '<div class="highlight"><pre tabindex="0">',  # it may scroll
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<div id="search-results">': '<h1>Search</h1>\n<div id="search-results">',
}


def repair(site: Path) -> None:
    for page in sorted(site.rglob("*.html")):
        text = page.read_text()
        for wrong, right in REPAIRS.items():
            text = text.replace(wrong, right)
        page.write_text(text)
