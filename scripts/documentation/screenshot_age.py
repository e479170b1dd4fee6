"""Tells which screenshots show pages that have changed since.

``scripts/screenshots.py`` records a digest of the templates and styles that each picture shows.
"""

import hashlib
import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "screenshots"
RECORD = FOLDER / "sources.json"
_WEB = "sso/web"
_PAGE = (f"{_WEB}/static/sso.css", f"{_WEB}/templates/base.html", f"{_WEB}/templates/_forms.html")
SOURCES = {
    "account-dark": (*_PAGE, f"{_WEB}/templates/account.html", f"{_WEB}/templates/account/*.html"),
    "console-light": (
        f"{_WEB}/static/sso.css",
        f"{_WEB}/static/console.css",
        f"{_WEB}/templates/console/layout.html",
        f"{_WEB}/templates/console/projects/list.html",
        "sso/console/sections.py",
    ),
    "game-login-light": (*_PAGE, f"{_WEB}/templates/game*.html", f"{_WEB}/templates/_game.html"),
    "site-light": ("scripts/demo_site.py",),
}


def digest(name: str) -> str:
    files = sorted(path for pattern in SOURCES[name] for path in ROOT.glob(pattern))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:16]


def record() -> None:
    RECORD.write_text(json.dumps({name: digest(name) for name in sorted(SOURCES)}, indent=2) + "\n")


def outdated_screenshots() -> list[str]:
    recorded = json.loads(RECORD.read_text())
    names = SOURCES.keys() | {path.stem for path in FOLDER.glob("*.png")}
    return [
        f"docs/screenshots/{name}.png is too old: run .venv/bin/python -m scripts.screenshots"
        for name in sorted(names)
        if name not in SOURCES or recorded.get(name) != digest(name)
    ]
