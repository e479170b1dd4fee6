"""Public keys of applications in files ``<application_id>.pem`` of one folder.

Files are read in a thread, and only when they have changed. Only small regular files are read: opening a FIFO or a
device could block, and a symbolic link could lead anywhere.
"""

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

import trio

from sso.core.keys import PublicKey, UnusableKey, key_id, load_public, public_pem
from sso.core.thread_pool import ThreadPool
from sso.perm.engine.reserved_names import is_application_key

MAX_BYTES = 16 * 1024
REFRESH_S = 1.0  # maximum age of the index by key id

FileVersion: TypeAlias = tuple[int, int, int]  # inode, modification time, size
KnownFile: TypeAlias = "tuple[FileVersion, FileKey | None]"  # without a key if the file has no usable one


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
        self._files: dict[int, KnownFile] = {}  # by application id
        self._keys_by_id: dict[str, list[FileKey]] = {}
        self._scanned_at = float("-inf")
        self._scanned_folder_mtime = 0
        self._scan_lock = trio.Lock()

    async def find(self, application_id: int) -> FileKey | None:
        """Returns the key in the file of one application. Reads the file again if it has changed."""
        version = _version(self._path(application_id))
        if version is None:
            return None
        known = self._files.get(application_id)
        if known is None or known[0] != version:
            known = version, await self._threads.run(self._read, application_id)
            self._files[application_id] = known
        return known[1]

    async def all(self) -> list[FileKey]:
        """Returns the usable keys of all files, by application. Reads the files that have changed."""
        async with self._scan_lock:
            await self._rescan()
        return sorted((key for keys in self._keys_by_id.values() for key in keys), key=lambda key: key.application_id)

    async def find_by_id(self, key_id: str) -> list[FileKey]:
        """Returns the keys with this id, of all applications.

        Scans the folder if files were added or removed, and otherwise at most once per `REFRESH_S`, so that requests
        for unknown keys stay cheap.
        """
        async with self._scan_lock:
            if self._folder_mtime() != self._scanned_folder_mtime or self._clock() - self._scanned_at >= REFRESH_S:
                await self._rescan()
        return self._keys_by_id.get(key_id, [])

    async def _rescan(self) -> None:
        mtime = self._folder_mtime()
        if mtime or self._files:
            self._files, self._keys_by_id = await self._threads.run(self._scan, dict(self._files))
        self._scanned_at, self._scanned_folder_mtime = self._clock(), mtime

    def _folder_mtime(self) -> int:
        """Returns the time when a file was last added to the folder or removed; 0 if there is no folder."""
        try:
            return self._folder.stat().st_mtime_ns
        except OSError:
            return 0

    def _scan(self, known: dict[int, KnownFile]) -> tuple[dict[int, KnownFile], dict[str, list[FileKey]]]:
        """Runs in a thread. Returns the files by application id and the keys by key id; reads only changed files."""
        files: dict[int, KnownFile] = {}
        keys_by_id: dict[str, list[FileKey]] = {}
        for application_id in sorted(self._application_ids()):
            version = _version(self._path(application_id))
            if version is None:
                continue
            old = known.get(application_id)
            if old is not None and old[0] == version:
                files[application_id] = old
            else:
                files[application_id] = version, self._read(application_id)
            key = files[application_id][1]
            if key is not None:
                keys_by_id.setdefault(key.id, []).append(key)
        return files, keys_by_id

    def _application_ids(self) -> list[int]:
        try:
            names = [path.name for path in self._folder.iterdir()]
        except OSError:  # the folder does not exist
            return []
        stems = (name.removesuffix(".pem") for name in names if name.endswith(".pem"))
        return [int(stem) for stem in stems if is_application_key(stem)]

    def _path(self, application_id: int) -> Path:
        return self._folder / f"{int(application_id)}.pem"

    def _read(self, application_id: int) -> FileKey | None:
        try:
            key = load_public(_content(self._path(application_id)))
        except (OSError, UnicodeDecodeError, UnusableKey):
            return None
        return FileKey(application_id, key_id(key), key, public_pem(key))


def _version(path: Path) -> FileVersion | None:
    """Returns a value that changes with the content of a regular file, or None if there is no regular file."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return (status.st_ino, status.st_mtime_ns, status.st_size) if stat.S_ISREG(status.st_mode) else None


def _content(path: Path) -> str:
    """Returns the text of a small regular file. Raises OSError for any other file.

    The file may have been replaced since it was checked, so it is opened without blocking and checked again.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a regular file")
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError("too large for a key")
    return content.decode()
