"""Each page is of one kind, which its first line declares, and is under the heading of that kind in the navigation."""

import re
from collections import Counter
from pathlib import Path

from scripts.documentation.markdown import Navigation

CAPTIONS = {"tutorial": "Tutorials", "how-to": "How-to", "reference": "Reference", "explanation": "Explanation"}
_KIND = re.compile(r":kind: (.*)\n\n")


def wrong_kinds(docs: Path, navigation: Navigation) -> list[str]:
    """A caption of the navigation may name a part of a kind: ``How-to: operate``."""
    kinds = {page: _kind(docs / f"{page}.rst") for page in _pages(docs)}
    places = Counter(page for _, pages in navigation for page in pages)
    problems = [
        f"docs/{page}.rst: begins with {kind!r}, expected :kind: and one of {', '.join(CAPTIONS)}"
        for page, kind in kinds.items()
        if kind not in CAPTIONS
    ]
    problems += [f"docs/{page}.rst: is {places[page]} times in the navigation" for page in kinds if places[page] != 1]
    problems += [
        f"docs/{page}.rst: is of the kind {kinds[page]}, and is under {caption!r}"
        for caption, pages in navigation
        for page in pages
        if page in kinds and CAPTIONS.get(kinds[page]) != caption.partition(":")[0]
    ]
    return problems


def _pages(docs: Path) -> list[str]:
    paths = (path.relative_to(docs) for path in sorted(docs.rglob("*.rst")))
    return [str(path.with_suffix("")) for path in paths if path.parts[0] != "_build" and path != Path("index.rst")]


def _kind(page: Path) -> str:
    text = page.read_text()
    return match[1] if (match := _KIND.match(text)) else text.partition("\n")[0]
