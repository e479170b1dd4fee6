"""Finds links of the built pages that lead nowhere: to a page, file or heading of the site that does not exist."""

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

_HREF = re.compile(r'\s(?:href|src)="([^"]*)"')
_ID = re.compile(r'\sid="([^"]+)"')


def broken_links(site: Path) -> list[str]:
    ids = cache(lambda page: set(_ID.findall(page.read_text())))
    broken = []
    for page in sorted(site.rglob("*.html")):
        for href in sorted(set(_HREF.findall(page.read_text()))):
            parts = urlsplit(href)
            if parts.scheme or parts.netloc or parts.path.startswith("/"):
                continue  # another site, or a page of the service
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            is_page = target.suffix == ".html"
            if not target.is_file() or (parts.fragment and is_page and unquote(parts.fragment) not in ids(target)):
                broken.append(f"{page.relative_to(site)}: {href}")
    return broken


def other_hosts(site: Path) -> list[str]:
    """Scripts, styles, fonts and images that a browser would get from another host."""
    found = []
    for page in sorted(site.rglob("*.html")):
        found += re.findall(
            r'<(?:script|img|link(?=[^>]*stylesheet))[^>]*(?:src|href)="((?:https?:)?//[^"]*)"', page.read_text()
        )
    for style in sorted(site.rglob("*.css")):
        found += re.findall(r"(?:@import|url\()\s*[\"']?((?:https?:)?//[^\"')]*)", style.read_text())
    return sorted(set(found))
