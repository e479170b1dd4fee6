"""Moves inline scripts and styles of the built pages into files, so that the content security policy can forbid them.

Themes change: whatever they put into a page is found by its form, not by its text.
"""

import hashlib
import os
import re
from pathlib import Path

FOLDER, STYLES = "_static/moved", "_static/moved/attributes.css"
_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_TAG_WITH_STYLE = re.compile(
    r'<([a-z]\w*)((?:\s+[\w:-]+(?:="[^"]*")?)*?)\s+style="([^"]*)"((?:\s+[\w:-]+(?:="[^"]*")?)*\s*/?)>'
)
_CLASS = re.compile(r'\sclass="([^"]*)"')
_INLINE = re.compile(r'<script(?![^>]*\ssrc=)[^>]*>|<style\b|<[a-z][^<>]*\s(?:style|on\w+)="[^"]*"')


class InlineContent:
    def __init__(self, site: Path) -> None:
        self._site = site
        self._attributes: dict[str, str] = {}

    def move(self) -> None:
        (self._site / FOLDER).mkdir(parents=True, exist_ok=True)
        for page in sorted(self._site.rglob("*.html")):
            page.write_text(self._moved(page.read_text(), os.path.relpath(self._site, page.parent)))
        rules = (f".{name} {{ {style} }}" for name, style in sorted(self._attributes.items()))
        (self._site / STYLES).write_text("\n".join(rules) + "\n")

    def _moved(self, text: str, root: str) -> str:
        text = _SCRIPT.sub(lambda match: f'<script src="{root}/{self._file(match[1], "js")}"></script>', text)
        text = _STYLE.sub(lambda match: f'<link rel="stylesheet" href="{root}/{self._file(match[1], "css")}">', text)
        text = _TAG_WITH_STYLE.sub(self._with_class, text)
        return text.replace("</head>", f'<link rel="stylesheet" href="{root}/{STYLES}"></head>', 1)

    def _file(self, content: str, kind: str) -> str:
        name = f"{FOLDER}/{_digest(content)}.{kind}"
        (self._site / name).write_text(content)
        return name

    def _with_class(self, match: re.Match[str]) -> str:
        tag, before, style, after = match.groups()
        name = f"moved-{_digest(style)}"
        self._attributes[name] = style
        attributes = before + after
        if has_class := _CLASS.search(attributes):
            name, attributes = f"{has_class[1]} {name}", _CLASS.sub("", attributes, count=1)
        return f'<{tag} class="{name}"{attributes}>'


def inline_content(text: str) -> list[str]:
    """What the content security policy of the site would block in a page."""
    return _INLINE.findall(text)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
