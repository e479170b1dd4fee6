"""Reads and checks the folder that ``sso backup --base`` wrote."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from sso.backup import BackupError
from sso.backup.authentication import DIGESTS, MAC, check_authentication, check_digest, parse_digests, pieces
from sso.backup.manifest import MANIFEST, UNAUTHENTICATED_FORMAT, Manifest, parse_manifest
from sso.backup.secrets import SECRETS, Secrets

POSTGRES_DIGESTS = "data/backup_manifest"


class BaseBackup(Struct, frozen=True):
    """A base backup in a folder. Its files are compared with their digests when they are copied."""

    folder: Path
    manifest: Manifest
    secrets: Secrets | None
    digests: dict[str, str]  # path -> SHA-256

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def is_authenticated(self) -> bool:
        return bool(self.secrets and self.secrets.mac_key)

    def copy_data(self, target: Path, progress: Callable[[int, int], None]) -> None:
        """Copies the data directory. Raises BackupError if a file is missing, added, or differs from its digest."""
        names = files_of(self.folder, "data")
        missing = {name for name in self.digests if name.startswith("data/")} - set(names)
        if missing:
            raise BackupError(f"the base backup is damaged: {min(missing)} is missing")
        total = sum((self.folder / name).stat().st_size for name in names)
        for path in (path for path in sorted(self.data.rglob("*")) if path.is_dir()):
            (target / path.relative_to(self.data)).mkdir(0o700)
        done = 0
        for name in names:
            digest, size = _copy(self.folder / name, target / Path(name).relative_to("data"))
            if name in self.digests or self.manifest.format != UNAUTHENTICATED_FORMAT:
                check_digest(name, digest, self.digests.get(name))
            done += size
            progress(done, total)


def first_segment(folder: Path) -> str:
    """The name of the WAL segment with which the recovery begins."""
    line = (folder / "data/backup_label").read_text().partition("\n")[0]
    return line.partition("(file ")[2].rstrip(")")


def files_of(folder: Path, part: str = "") -> list[str]:
    """The paths of all files in the folder, or in a part of it, relative to the folder."""
    return sorted(str(path.relative_to(folder)) for path in (folder / part).rglob("*") if path.is_file())


def open_base_backup(folder: Path, passphrase: Callable[[], str], *, unauthenticated: bool = False) -> BaseBackup:
    """Opens a base backup that is authentic. ``passphrase`` is called if it needs one.

    ``unauthenticated`` accepts one that was made without a passphrase or by an earlier version.
    """
    try:
        manifest_data = (folder / MANIFEST).read_bytes()
        manifest = parse_manifest(manifest_data)
        listed_data = (folder / POSTGRES_DIGESTS).read_bytes()
        secrets_data = _optional(folder / SECRETS)
        digests = _optional(folder / DIGESTS)
        code = _optional(folder / MAC)
    except OSError as error:
        raise BackupError(
            f"{folder} is not a base backup, or it is incomplete: {error.strerror}: {error.filename}"
        ) from None
    if manifest.has_keys and secrets_data is None:
        raise BackupError(f"{folder} is not a base backup, or it is incomplete: {SECRETS} is missing")
    secrets = Secrets.decrypted(secrets_data, passphrase()) if secrets_data is not None else None
    check_authentication(secrets, digests, code, unauthenticated=unauthenticated)
    if digests is None and manifest.format == UNAUTHENTICATED_FORMAT:
        return BaseBackup(folder, manifest, secrets, postgres_digests(listed_data))
    if digests is None:
        raise BackupError(f"{folder} is not a base backup, or it is incomplete: {DIGESTS} is missing")
    expected = parse_digests(digests)
    for name, data in ((MANIFEST, manifest_data), (SECRETS, secrets_data), (POSTGRES_DIGESTS, listed_data)):
        if data is not None or name in expected:
            check_digest(name, hashlib.sha256(data or b"").hexdigest(), expected.get(name))
    return BaseBackup(folder, manifest, secrets, postgres_digests(listed_data) | expected)


def _optional(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def postgres_digests(data: bytes) -> dict[str, str]:
    """Reads PostgreSQL's manifest, whose last line is its own digest. Returns the digests of files in ``data``."""
    body, _, last = data.rstrip(b"\n").rpartition(b"\n")
    if hashlib.sha256(body + b"\n").hexdigest().encode() not in last:
        raise BackupError("the base backup is damaged: the digest of its backup_manifest differs")
    return {
        "data/" + (entry.get("Path") or os.fsdecode(bytes.fromhex(entry["Encoded-Path"]))): entry["Checksum"]
        for entry in json.loads(data)["Files"]
    }


def _copy(source: Path, target: Path) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    with source.open("rb") as reader, os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as writer:
        for piece in pieces(reader):
            digest.update(piece)
            writer.write(piece)
            size += len(piece)
    return digest.hexdigest(), size
