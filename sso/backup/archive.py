"""The file that ``sso backup`` writes. It is a tar archive with these members, in this order:

manifest.json    versions of the format, the program, the schema and PostgreSQL, and the time
secrets.enc      master keys and the files of ``keys/``, encrypted with a passphrase (absent with ``--no-keys``)
database.dump    the output of ``pg_dump --format=custom``
database.sha256  its digest, which a restore compares before it changes anything
"""

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from sso.backup.errors import BackupError
from sso.core.passphrase import WrongPassphrase, decrypt, encrypt

FORMAT = 1
MANIFEST, SECRETS, DUMP, DIGEST = "manifest.json", "secrets.enc", "database.dump", "database.sha256"
CHUNK_BYTES = 1 << 20
MAX_SMALL_MEMBER = 16 << 20


@dataclass(frozen=True)
class Manifest:
    program: str
    schema: str
    postgres: str
    created: str
    has_keys: bool
    format: int = FORMAT

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), indent=2).encode()


@dataclass(frozen=True)
class Secrets:
    master_keys: list[str]  # the newest first
    key_files: dict[str, str]  # name in ``keys/`` -> PEM

    def encrypted(self, passphrase: str) -> bytes:
        return encrypt(passphrase, json.dumps(asdict(self)).encode())

    @classmethod
    def decrypted(cls, data: bytes, passphrase: str) -> "Secrets":
        try:
            return cls(**json.loads(decrypt(passphrase, data)))
        except WrongPassphrase:
            raise BackupError("the passphrase is wrong") from None


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
        draft.unlink(missing_ok=True)


class ArchiveWriter:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def add_manifest(self, manifest: Manifest) -> None:
        self._add(MANIFEST, manifest.to_json())

    def add_secrets(self, secrets: Secrets, passphrase: str) -> None:
        self._add(SECRETS, secrets.encrypted(passphrase))

    def add_dump(self, chunks: Iterator[bytes], progress: Callable[[int], None]) -> None:
        """Streams the dump into the archive. Its size is known afterwards, so its header is written last."""
        start = self._file.tell()
        self._file.write(_header(DUMP, 0))
        digest, size = hashlib.sha256(), 0
        for chunk in chunks:
            self._file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
            progress(size)
        self._pad(size)
        end = self._file.tell()
        self._file.seek(start)
        self._file.write(_header(DUMP, size))
        self._file.seek(end)
        self._add(DIGEST, digest.hexdigest().encode())
        self._file.write(bytes(2 * tarfile.BLOCKSIZE))

    def _add(self, name: str, data: bytes) -> None:
        self._file.write(_header(name, len(data)))
        self._file.write(data)
        self._pad(len(data))

    def _pad(self, size: int) -> None:
        self._file.write(bytes(-size % tarfile.BLOCKSIZE))


def _header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o600
    return info.tobuf(tarfile.GNU_FORMAT)


class ArchiveReader:
    """An archive whose dump has been compared with its digest."""

    def __init__(self, tar: tarfile.TarFile, progress: Callable[[int, int], None]) -> None:
        self._tar = tar
        self.manifest = parse_manifest(self._small(MANIFEST))
        self._check_digest(progress)

    def secrets(self, passphrase: str) -> Secrets:
        return Secrets.decrypted(self._small(SECRETS), passphrase)

    def dump(self) -> Iterator[bytes]:
        file = self._member(DUMP)
        while chunk := file.read(CHUNK_BYTES):
            yield chunk

    @property
    def dump_bytes(self) -> int:
        return self._tar.getmember(DUMP).size

    def _check_digest(self, progress: Callable[[int, int], None]) -> None:
        expected = self._small(DIGEST).decode("ascii", "replace")
        digest, done = hashlib.sha256(), 0
        for chunk in self.dump():
            digest.update(chunk)
            done += len(chunk)
            progress(done, self.dump_bytes)
        if digest.hexdigest() != expected:
            raise BackupError("the backup is damaged: the digest of its database dump differs")

    def _member(self, name: str) -> IO[bytes]:
        try:
            file = self._tar.extractfile(name)
        except KeyError:
            file = None
        if file is None:
            raise BackupError(f"the file is not a complete backup: {name} is missing")
        return file

    def _small(self, name: str) -> bytes:
        return self._member(name).read(MAX_SMALL_MEMBER)


@contextmanager
def open_archive(path: Path, progress: Callable[[int, int], None]) -> Iterator[ArchiveReader]:
    try:
        with tarfile.open(path, "r:") as tar:
            yield ArchiveReader(tar, progress)
    except OSError as error:
        raise BackupError(f"cannot read {path}: {error.strerror}") from None
    except tarfile.TarError:
        raise BackupError(f"{path} is not a backup, or it is incomplete") from None


def parse_manifest(data: bytes) -> Manifest:
    try:
        values: dict[str, Any] = json.load(io.BytesIO(data))
        manifest = Manifest(**values)
    except (ValueError, TypeError):
        raise BackupError("the manifest of the backup cannot be read: another version made it") from None
    if manifest.format != FORMAT:
        raise BackupError(f"the backup has format {manifest.format}, this program reads format {FORMAT}")
    return manifest
