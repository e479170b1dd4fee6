"""The file that ``sso backup`` writes. It is a tar archive with these members, in this order:

manifest.json    versions of the format, the program, the schema and PostgreSQL, and the time
secrets.enc      keys, encrypted with the passphrase (absent without a passphrase)
database.dump    the output of ``pg_dump --format=custom``, encrypted in chunks with ``--encrypt``
digests.json     the digests of these members, which a restore compares before it changes anything
digests.mac      its authentication code (absent without a passphrase)

Format 1, of earlier versions, has ``database.sha256`` in place of the last two. Nothing authenticates it.
"""

import hashlib
import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from sso.backup import BackupError
from sso.backup.authentication import DIGESTS, MAC, authentication_code, format_digests
from sso.backup.chunk_encryption import encrypt_stream
from sso.backup.manifest import MANIFEST, Manifest
from sso.backup.secrets import SECRETS, Secrets

DUMP = "database.dump"


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """A new file that appears under its name when it is complete. Only the owner can read it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "r+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)  # unlike a rename, it does not replace a file that appeared meanwhile
    except FileExistsError:
        raise BackupError(f"{path} exists: choose another name") from None
    except OSError as error:
        raise BackupError(f"cannot write {path}: {error.strerror}") from None
    finally:
        with suppress(OSError):
            draft.unlink()


def write_archive(
    file: IO[bytes],
    manifest: Manifest,
    protection: tuple[Secrets, str] | None,
    dump: Iterator[bytes],
    progress: Callable[[int], None],
) -> None:
    """Writes all members. ``protection`` is the secrets and the passphrase, or None for a backup without one."""
    writer = _Writer(file)
    writer.add(MANIFEST, manifest.to_json())
    if protection is None:
        writer.add_stream(DUMP, dump, progress)
        writer.add(DIGESTS, format_digests(writer.digests))
    else:
        secrets, passphrase = protection
        writer.add(SECRETS, secrets.encrypted(passphrase))
        stored = encrypt_stream(bytes.fromhex(secrets.dump_key), dump) if secrets.dump_key else dump
        writer.add_stream(DUMP, stored, progress)
        digests = format_digests(writer.digests)
        writer.add(DIGESTS, digests)
        writer.add(MAC, authentication_code(secrets, digests))
    file.write(bytes(2 * tarfile.BLOCKSIZE))


class _Writer:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digests: dict[str, str] = {}

    def add(self, name: str, data: bytes) -> None:
        self._file.write(_header(name, len(data)))
        self._file.write(data)
        self._pad(len(data))
        self.digests[name] = hashlib.sha256(data).hexdigest()

    def add_stream(self, name: str, chunks: Iterator[bytes], progress: Callable[[int], None]) -> None:
        """The size is known afterwards, so the header is written last."""
        start = self._file.tell()
        self._file.write(_header(name, 0))
        digest, size = hashlib.sha256(), 0
        for chunk in chunks:
            self._file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
            progress(size)
        self._pad(size)
        end = self._file.tell()
        self._file.seek(start)
        self._file.write(_header(name, size))
        self._file.seek(end)
        self.digests[name] = digest.hexdigest()

    def _pad(self, size: int) -> None:
        self._file.write(bytes(-size % tarfile.BLOCKSIZE))


def _header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o600
    return info.tobuf(tarfile.GNU_FORMAT)
