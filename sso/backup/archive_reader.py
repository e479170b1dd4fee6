"""Reads and checks the file that ``sso backup`` wrote."""

import hashlib
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar

from sso.backup import BackupError
from sso.backup.archive import DUMP
from sso.backup.authentication import (
    DIGESTS,
    MAC,
    READ_BYTES,
    check_authentication,
    check_digest,
    parse_digests,
)
from sso.backup.chunk_encryption import DamagedStream, decrypt_stream
from sso.backup.manifest import MANIFEST, UNAUTHENTICATED_FORMAT, parse_manifest
from sso.backup.secrets import SECRETS, Secrets

T = TypeVar("T")

DUMP_DIGEST = "database.sha256"  # in format 1
MAX_SMALL_MEMBER = 16 << 20


class ArchiveReader:
    """An archive whose members have been authenticated and compared with their digests."""

    def __init__(
        self,
        file: IO[bytes],
        passphrase: Callable[[], str],
        progress: Callable[[int, int], None],
        *,
        unauthenticated: bool,
    ) -> None:
        self._file = file
        self._members = _read_headers(file)
        self._small_members: dict[str, bytes] = {}
        self.manifest = parse_manifest(self._small(MANIFEST))
        self.secrets: Secrets | None = None
        if self.manifest.has_keys or SECRETS in self._members:
            self.secrets = Secrets.decrypted(self._small(SECRETS), passphrase())
        digests = self._optional(DIGESTS)
        check_authentication(self.secrets, digests, self._optional(MAC), unauthenticated=unauthenticated)
        self.is_authenticated = bool(self.secrets and self.secrets.mac_key)
        self._piece_digests = self._check_digests(digests, progress)

    @property
    def dump_bytes(self) -> int:
        """The size of the dump in the archive."""
        return self._members[DUMP][1]

    def dump(self, progress: Callable[[int, int], None]) -> Iterator[bytes]:
        """Yields the dump. Raises BackupError before a piece that was changed since the archive was opened."""
        stored = self._checked_again(progress)
        if not (self.secrets and self.secrets.dump_key):
            yield from stored
            return
        try:
            yield from decrypt_stream(bytes.fromhex(self.secrets.dump_key), stored)
        except DamagedStream:
            raise BackupError("the backup is damaged: its database dump cannot be decrypted") from None

    def _checked_again(self, progress: Callable[[int, int], None]) -> Iterator[bytes]:
        for piece, expected in zip(self._pieces(DUMP, progress), self._piece_digests, strict=True):
            check_digest(DUMP, hashlib.sha256(piece).digest(), expected)
            yield piece

    def _check_digests(self, digests: bytes | None, progress: Callable[[int, int], None]) -> list[bytes]:
        """Returns the digests of the dump's pieces."""
        if digests is None and self.manifest.format == UNAUTHENTICATED_FORMAT:
            expected = {DUMP: self._small(DUMP_DIGEST).decode("ascii", "replace")}
        else:
            expected = parse_digests(_required(DIGESTS, digests))
            if expected.keys() != self._members.keys() - {DIGESTS, MAC}:
                raise BackupError("the backup is damaged: its members are not those of its digests")
        for name in expected.keys() - {DUMP}:
            check_digest(name, hashlib.sha256(self._small(name)).hexdigest(), expected[name])
        return self._check_dump(_required(DUMP, expected.get(DUMP)), progress)

    def _check_dump(self, expected: str, progress: Callable[[int, int], None]) -> list[bytes]:
        """The digest of the whole dump is authentic, so its pieces are too if they come from the same reading."""
        whole, of_pieces = hashlib.sha256(), []
        for piece in self._pieces(DUMP, progress):
            whole.update(piece)
            of_pieces.append(hashlib.sha256(piece).digest())
        check_digest(DUMP, whole.hexdigest(), expected)
        return of_pieces

    def _small(self, name: str) -> bytes:
        return _required(name, self._optional(name))

    def _optional(self, name: str) -> bytes | None:
        """Reads a member once, so that its digest is of the content that is used."""
        if name not in self._members:
            return None
        if self._members[name][1] > MAX_SMALL_MEMBER:
            raise BackupError(f"the file is not a backup: {name} is too large")
        if name not in self._small_members:
            self._small_members[name] = b"".join(self._pieces(name, _ignore))
        return self._small_members[name]

    def _pieces(self, name: str, progress: Callable[[int, int], None]) -> Iterator[bytes]:
        offset, size = _required(name, self._members.get(name))
        done = 0
        while done < size:
            self._file.seek(offset + done)
            piece = self._file.read(min(READ_BYTES, size - done))
            if not piece:
                raise BackupError("the backup is incomplete: the file ends too early")
            done += len(piece)
            yield piece
            progress(done, size)


def _required(name: str, value: T | None) -> T:
    if value is None:
        raise BackupError(f"the file is not a complete backup: {name} is missing")
    return value


def _ignore(_done: int, _total: int) -> None:
    pass


def _read_headers(file: IO[bytes]) -> dict[str, tuple[int, int]]:
    """Returns the offset and size of each member.

    Only what ``sso backup`` writes is accepted: no extensions of the format, no name twice. Readers of tar archives
    differ in what they make of these.
    """
    members: dict[str, tuple[int, int]] = {}
    end = file.seek(0, 2)
    offset = 0
    while True:
        file.seek(offset)
        block = file.read(tarfile.BLOCKSIZE)
        if block == bytes(tarfile.BLOCKSIZE) and members:
            return members
        info = tarfile.TarInfo.frombuf(block, "ascii", "replace")
        offset += tarfile.BLOCKSIZE
        if info.type != tarfile.REGTYPE or info.name in members or info.size < 0 or offset + info.size > end:
            raise tarfile.HeaderError
        members[info.name] = (offset, info.size)
        offset += -(-info.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE


@contextmanager
def open_archive(
    path: Path,
    passphrase: Callable[[], str],
    progress: Callable[[int, int], None],
    *,
    unauthenticated: bool = False,
) -> Iterator[ArchiveReader]:
    """Yields an archive that was checked completely. ``passphrase`` is called if the archive needs one.

    ``unauthenticated`` accepts an archive that was made without a passphrase or by an earlier version.
    """
    try:
        with path.open("rb") as file:
            yield ArchiveReader(file, passphrase, progress, unauthenticated=unauthenticated)
    except OSError as error:
        raise BackupError(f"cannot read {path}: {error.strerror}") from None
    except tarfile.HeaderError:
        raise BackupError(f"{path} is not a backup, or it is incomplete") from None
