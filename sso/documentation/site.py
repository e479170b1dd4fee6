"""The files of the built site.

A path is looked up in a list of the files that exist, so no path leads out of the folder. The list is read again when
the folder was replaced, such as by ``scripts/docs`` while the service runs.
"""

import hashlib
import os
from pathlib import Path

from msgspec import Struct

BUILT_SITE = Path(__file__).parent / "site"
START = "index.html"
CONTENT_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".jpg": "image/jpeg",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".md": "text/markdown; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}


class SiteFile(Struct, frozen=True):
    content: bytes
    content_type: str
    etag: str


class DocumentationSite:
    def __init__(self, folder: Path | None) -> None:
        self._folder = folder or BUILT_SITE
        self._version: tuple[int, int] | None = None
        self._names: frozenset[str] = frozenset()

    def is_built(self) -> bool:
        return START in self._current_names()

    def read(self, name: str) -> SiteFile | None:
        """Reads files; call it in a thread. Returns None if the site has no such file."""
        if name not in self._current_names():
            return None
        path = self._folder / name
        try:
            content = path.read_bytes()
        except OSError:  # the site was replaced since
            return None
        etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        return SiteFile(content, CONTENT_TYPES[path.suffix], etag)

    def _current_names(self) -> frozenset[str]:
        try:
            status = (self._folder / START).stat()
        except OSError:
            return frozenset()
        version = (status.st_ino, status.st_mtime_ns)
        if version != self._version:
            self._names, self._version = frozenset(_files(self._folder)), version
        return self._names


def _files(folder: Path) -> list[str]:
    return [
        os.path.relpath(os.path.join(parent, name), folder)  # noqa: PTH118 - quicker for hundreds of files
        for parent, _, names in os.walk(folder)
        for name in names
        if Path(name).suffix in CONTENT_TYPES and not Path(parent, name).is_symlink()
    ]
