"""The copy of a replica on disk, encrypted with a key that is derived from the client's secret.

The file has a salt, then encrypted blocks: the definition and the users, then what has changed since, as it came. So a
change writes little, and a replica that starts again continues where it was. The time of the file is when the copy was
last known to be current. A block that was not written completely, because the machine stopped, ends the file.
"""

import fcntl
import hashlib
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import orjson

from sso.core.encryption import KEY_BYTES, NONCE_BYTES, MasterKey
from sso.core.errors import OperatorError
from sso.perm.replica.copy import ReplicaCopy
from sso.perm.replica.definition import Definition

NAME, LOCK_NAME = "replica.sso", "replica.lock"
MAGIC = b"sso replica 2\n"
SALT_BYTES = 16
USERS_PER_BLOCK = 10_000
MAX_CHANGES_SHARE = 1.0  # of the size of the copy; the file is written anew when the changes take more
MIN_REWRITE_BYTES = 4 * 1024 * 1024


class SnapshotUnreadable(Exception):
    """The file belongs to another secret, service or application, or is damaged."""


class SnapshotFile:
    def __init__(self, folder: Path, secret: str, purpose: str) -> None:
        """``purpose`` names the service and the application: a file of another one is not used."""
        self._path = folder / NAME
        self._secret, self._purpose = secret, purpose.encode()
        self._blocks, self._base_bytes = 0, 0
        self._key: MasterKey | None = None
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(folder / LOCK_NAME, os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OperatorError(f"another replica uses {folder}: give each its own --data-dir") from None
        except OSError as error:
            raise OperatorError(f"cannot write to {folder}: {error.strerror}") from None

    def close(self) -> None:
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self) -> tuple[ReplicaCopy, str, float] | None:
        """Returns the copy, its cursor, and when it was known to be current; None if there is no file.

        Raises SnapshotUnreadable.
        """
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return None
        if not data.startswith(MAGIC):
            raise SnapshotUnreadable
        self._use_salt(data[len(MAGIC) : len(MAGIC) + SALT_BYTES])
        copy, cursor, length = None, "", len(MAGIC) + SALT_BYTES
        self._blocks, self._base_bytes = 0, 0
        for block, end in self._decrypted(data, length):
            length = end
            match block[0]:
                case "definition":
                    definition = Definition.decode(*block[1:])
                    copy = copy or ReplicaCopy(definition)
                    copy.use(definition)
                case "users" if copy is not None:
                    for user_id, row in block[1]:
                        copy.add_encoded(user_id, row.encode())
                case "complete":
                    cursor, self._base_bytes = block[1], end
                case "changes" if copy is not None:
                    _, cursor, rows, missing = block
                    copy.add(rows)
                    copy.remove(missing)
        if copy is None or not cursor:
            raise SnapshotUnreadable
        os.truncate(self._path, length)
        return copy, cursor, self._path.stat().st_mtime

    def write(self, copy: ReplicaCopy, cursor: str) -> None:
        """Replaces the file."""
        salt = os.urandom(SALT_BYTES)
        self._use_salt(salt)
        self._blocks = 0
        temporary = self._path.with_suffix(".new")
        temporary.unlink(missing_ok=True)
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(MAGIC + salt)
            definition = copy.definition
            file.write(self._encrypted(["definition", definition.version, definition.stored, definition.attributes]))
            rows = list(copy.rows())
            for begin in range(0, len(rows), USERS_PER_BLOCK):
                users = [(user_id, row.decode()) for user_id, row in rows[begin : begin + USERS_PER_BLOCK]]
                file.write(self._encrypted(["users", users]))
            file.write(self._encrypted(["complete", cursor]))
            file.flush()
            os.fsync(file.fileno())
            self._base_bytes = file.tell()
        temporary.replace(self._path)

    def add_definition(self, definition: Definition) -> None:
        self._append(["definition", definition.version, definition.stored, definition.attributes])

    def add_changes(self, cursor: str, rows: list[list[Any]], missing: list[str]) -> None:
        self._append(["changes", cursor, rows, missing])

    def touch(self) -> None:
        """Records that the copy is current."""
        os.utime(self._path)

    @property
    def has_many_changes(self) -> bool:
        size = self._path.stat().st_size
        return size - self._base_bytes > max(MIN_REWRITE_BYTES, self._base_bytes * MAX_CHANGES_SHARE)

    def _append(self, block: list[Any]) -> None:
        with self._path.open("ab") as file:
            file.write(self._encrypted(block))
            file.flush()
            os.fsync(file.fileno())

    def _use_salt(self, salt: bytes) -> None:
        self._key = MasterKey(hashlib.scrypt(self._secret.encode(), salt=salt, n=2**14, r=8, p=1, dklen=KEY_BYTES))

    def _encrypted(self, block: list[Any]) -> bytes:
        assert self._key is not None
        nonce = os.urandom(NONCE_BYTES)
        sealed = self._key.cipher.encrypt(nonce, zlib.compress(orjson.dumps(block), 1), self._place())
        self._blocks += 1
        return len(sealed).to_bytes(4) + nonce + sealed

    def _decrypted(self, data: bytes, begin: int) -> Iterator[tuple[list[Any], int]]:
        """Yields the blocks, each with its end in the file. Raises SnapshotUnreadable."""
        assert self._key is not None
        view = memoryview(data)
        while begin + 4 + NONCE_BYTES <= len(data):
            nonce = begin + 4
            end = nonce + NONCE_BYTES + int.from_bytes(view[begin:nonce])
            if end > len(data):
                return
            try:
                block = self._key.cipher.decrypt(
                    bytes(view[nonce : nonce + NONCE_BYTES]), bytes(view[nonce + NONCE_BYTES : end]), self._place()
                )
                yield orjson.loads(zlib.decompress(block)), end
            except Exception as error:
                raise SnapshotUnreadable from error
            self._blocks += 1
            begin = end

    def _place(self) -> bytes:
        """Is authenticated with a block, so that no block can be moved, or come from another file."""
        return self._purpose + b" %d" % self._blocks
