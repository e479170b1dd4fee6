"""``sso backup --base``: a physical copy of the embedded database, from which a point-in-time recovery starts.

It is a folder with these files:

manifest.json  as in the file of ``sso backup``
secrets.enc    as in the file of ``sso backup``
data/          the data directory of PostgreSQL, copied by pg_basebackup, with the digests of its files
"""

import datetime
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sso
from sso.backup import postgres_tools
from sso.backup.archive import MANIFEST, SECRETS, Manifest, Secrets, parse_manifest
from sso.backup.create import read_secrets
from sso.backup.errors import BackupError
from sso.config import Settings
from sso.db.embedded.files import sync
from sso.db.migrate import current
from sso.db.standalone import fetch_value

CHUNK_BYTES = 1 << 20


def create_base_backup(
    settings: Settings, dsn: str, folder: Path, passphrase: str | None, progress: Callable[[int, int], None]
) -> Manifest:
    """Writes a base backup while the service runs. Without a passphrase it contains no keys."""
    schema = current(dsn)
    if schema is None:
        raise BackupError("the database is empty: there is nothing to back up")
    secrets = read_secrets(settings) if passphrase is not None else None
    version = fetch_value(dsn, "SHOW server_version")
    with _new_folder(folder) as draft:
        postgres_tools.base_backup(dsn, draft / "data", progress)
        # The time afterwards: a recovery cannot end earlier.
        created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        manifest = Manifest(sso.__version__, schema, version, created, has_keys=secrets is not None)
        if secrets is not None and passphrase is not None:
            _write(draft / SECRETS, secrets.encrypted(passphrase))
        _write(draft / MANIFEST, manifest.to_json())
    return manifest


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A new folder that appears under its name when it is complete. Only the owner can read it."""
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        draft.mkdir(0o700)
        yield draft
        sync(draft)
        draft.rename(folder)  # fails if the folder exists and is not empty
        sync(folder.parent)
    except OSError as error:
        raise BackupError(f"cannot write {folder}: {error.strerror}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write(path: Path, data: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@dataclass(frozen=True)
class BaseBackup:
    """A base backup in a folder. Its files are compared with their digests when they are copied."""

    folder: Path
    manifest: Manifest
    digests: dict[str, str]  # path in ``data`` -> SHA-256; files of the WAL have their own checksums

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def first_segment(self) -> str:
        """The name of the WAL segment with which the recovery begins."""
        line = (self.data / "backup_label").read_text().partition("\n")[0]
        return line.partition("(file ")[2].rstrip(")")

    def secrets(self, passphrase: str) -> Secrets:
        return Secrets.decrypted((self.folder / SECRETS).read_bytes(), passphrase)

    def copy_data(self, target: Path, progress: Callable[[int, int], None]) -> None:
        """Copies the data directory. Raises BackupError if a file is missing, or differs from its digest."""
        files = [path.relative_to(self.data) for path in self.data.rglob("*") if path.is_file()]
        missing = self.digests.keys() - {str(file) for file in files}
        if missing:
            raise BackupError(f"the base backup is damaged: {min(missing)} is missing")
        total = sum((self.data / file).stat().st_size for file in files)
        for path in (path for path in sorted(self.data.rglob("*")) if path.is_dir()):
            (target / path.relative_to(self.data)).mkdir(0o700)
        done = 0
        for file in files:
            digest, size = _copy(self.data / file, target / file)
            if digest != self.digests.get(str(file), digest):
                raise BackupError(f"the base backup is damaged: the digest of {file} differs")
            done += size
            progress(done, total)


def open_base_backup(folder: Path) -> BaseBackup:
    try:
        manifest = parse_manifest((folder / MANIFEST).read_bytes())
        return BaseBackup(folder, manifest, _digests((folder / "data/backup_manifest").read_bytes()))
    except OSError as error:
        raise BackupError(
            f"{folder} is not a base backup, or it is incomplete: {error.strerror}: {error.filename}"
        ) from None


def _digests(data: bytes) -> dict[str, str]:
    """Reads PostgreSQL's manifest, whose last line is its own digest."""
    body, _, last = data.rstrip(b"\n").rpartition(b"\n")
    if hashlib.sha256(body + b"\n").hexdigest().encode() not in last:
        raise BackupError("the base backup is damaged: the digest of its backup_manifest differs")
    return {
        entry.get("Path") or os.fsdecode(bytes.fromhex(entry["Encoded-Path"])): entry["Checksum"]
        for entry in json.loads(data)["Files"]
    }


def _copy(source: Path, target: Path) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    with source.open("rb") as reader, os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as writer:
        while chunk := reader.read(CHUNK_BYTES):
            digest.update(chunk)
            writer.write(chunk)
            size += len(chunk)
    return digest.hexdigest(), size
