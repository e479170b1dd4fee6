"""Public keys of applications in files ``<application_id>.pem`` of one folder.

Files are read in a thread, and only when they have changed. Only small regular files count: opening a FIFO or a device
could block, and a symbolic link could lead anywhere.
"""

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

import trio

from sso.core import keys as material
from sso.core.keys import PublicKey, UnusableKey
from sso.core.thread_pool import ThreadPool
from sso.perm.engine.names import is_application_key

MAX_BYTES = 16 * 1024
REFRESH_S = 1.0  # how old the index by key id may be

Stamp: TypeAlias = tuple[int, int, int]  # inode, time of the last change, size


class FileKey(NamedTuple):
    application_id: int
    id: str
    key: PublicKey
    pem: str


class KeyFiles:
    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock
        self._threads = ThreadPool(1)
        self._known: dict[int, tuple[Stamp, FileKey | None]] = {}  # by application; None: the file holds no usable key
        self._index: dict[str, list[FileKey]] = {}
        self._refreshed = float("-inf")
        self._scanned = 0  # when the folder had changed last, at the time of the last scan
        self._refreshing = trio.Lock()

    async def of(self, application_id: int) -> FileKey | None:
        """The key in the file of one application, as the file is now."""
        stamp = _stamp(self._path(application_id))
        if stamp is None:
            return None
        known = self._known.get(application_id)
        if known is None or known[0] != stamp:
            known = stamp, await self._threads.run(self._read, application_id)
            self._known[application_id] = known
        return known[1]

    async def with_id(self, kid: str) -> list[FileKey]:
        """The keys with this id, of whichever applications.

        The folder is read when files were added or removed, and at most once per `REFRESH_S` otherwise, however many
        ask for keys that do not exist.
        """
        async with self._refreshing:
            changed = self._changed()
            if changed != self._scanned or self._clock() - self._refreshed >= REFRESH_S:
                self._known, self._index = await self._threads.run(self._scan, dict(self._known))
                self._refreshed, self._scanned = self._clock(), changed
        return self._index.get(kid, [])

    def _changed(self) -> int:
        """When files were last added to the folder or removed; 0 if there is none."""
        try:
            return self._folder.stat().st_mtime_ns
        except OSError:
            return 0

    def _scan(
        self, known: dict[int, tuple[Stamp, FileKey | None]]
    ) -> tuple[dict[int, tuple[Stamp, FileKey | None]], dict[str, list[FileKey]]]:
        """In a thread: the folder as it is now; files that have not changed are not read again."""
        found: dict[int, tuple[Stamp, FileKey | None]] = {}
        index: dict[str, list[FileKey]] = {}
        for application_id in sorted(self._application_ids()):
            stamp = _stamp(self._path(application_id))
            if stamp is None:
                continue
            old = known.get(application_id)
            found[application_id] = old if old is not None and old[0] == stamp else (stamp, self._read(application_id))
            key = found[application_id][1]
            if key is not None:
                index.setdefault(key.id, []).append(key)
        return found, index

    def _application_ids(self) -> list[int]:
        try:
            names = [path.name for path in self._folder.iterdir()]
        except OSError:  # there is no such folder
            return []
        stems = (name.removesuffix(".pem") for name in names if name.endswith(".pem"))
        return [int(stem) for stem in stems if is_application_key(stem)]

    def _path(self, application_id: int) -> Path:
        return self._folder / f"{int(application_id)}.pem"

    def _read(self, application_id: int) -> FileKey | None:
        try:
            key = material.load_public(_content(self._path(application_id)))
        except (OSError, UnicodeDecodeError, UnusableKey):
            return None
        return FileKey(application_id, material.key_id(key), key, material.public_pem(key))


def _stamp(path: Path) -> Stamp | None:
    """What changes with the content of a regular file; None for anything else."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_size) if stat.S_ISREG(found.st_mode) else None


def _content(path: Path) -> str:
    """The text of a small regular file. The file may have been replaced since it was looked at: opening it never waits,
    and what was opened is checked again."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a regular file")
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError("too large for a key")
    return content.decode()
