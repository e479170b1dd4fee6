"""What a browser loads for a page of the site."""

import re
from pathlib import Path


def loaded(site: Path, page: Path) -> list[Path]:
    """The page and the scripts, styles and images that it names."""
    text = page.read_text()
    names = re.findall(r'<(?:script|img)[^>]* src="([^"?]+)', text)
    names += re.findall(r'<link[^>]*rel="(?:stylesheet|icon)"[^>]* href="([^"?]+)', text)
    files = {(page.parent / name).resolve() for name in names if not name.startswith("data:")}
    return [page, *sorted(path for path in files if path.is_relative_to(site) and path.is_file())]


def figures(site: Path) -> list[str]:
    site = site.resolve()
    found = []
    largest = max(site.rglob("*.html"), key=lambda page: page.stat().st_size)
    for page in (site / "index.html", largest):
        files = loaded(site, page)
        total = sum(path.stat().st_size for path in files)
        found.append(
            f"{page.name}: {len(files)} requests, {total // 1024} kB (the page {files[0].stat().st_size // 1024} kB)"
        )
    whole = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    return [*found, f"the whole site: {whole / 1024 / 1024:.1f} MB"]
