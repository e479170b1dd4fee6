"""``sso restore``: restores a backup into an empty database and data directory."""

import os
from collections.abc import Callable
from pathlib import Path

from sso.backup import BackupError, postgres_tools
from sso.backup.archive_reader import ArchiveReader
from sso.backup.manifest import Manifest
from sso.backup.secrets import Secrets
from sso.config import Settings
from sso.core.encryption import Keyring
from sso.db.migrate import HEAD, migrate
from sso.db.standalone import fetch_value

TABLES = "SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace"


def check_schema(manifest: Manifest) -> None:
    if manifest.schema > HEAD:
        raise BackupError(
            f"the backup is of schema version {manifest.schema}, newer than this program ({HEAD}): "
            f"install version {manifest.program} or newer"
        )


def check_keys(settings: Settings, secrets: Secrets | None) -> None:
    """Raises BackupError if the restored service could not decrypt its secrets."""
    if settings.secret_key is not None:
        present = {key.text() for key in Keyring.from_text(settings.secret_key.get_secret_value()).keys}
    elif settings.key_file.exists():
        present = {key.text() for key in Keyring.from_file(settings.key_file).keys}
    else:
        return
    if secrets is not None and not set(secrets.master_keys) <= present:
        where = "SSO_SECRET_KEY" if settings.secret_key is not None else str(settings.key_file)
        raise BackupError(
            f"{where} has another master key than the backup: use the backup's, or an empty data directory"
        )


def check_empty(dsn: str) -> None:
    if fetch_value(dsn, TABLES):
        raise BackupError("the database is not empty: restore into an empty one")


def restore_database(dsn: str, archive: ArchiveReader, progress: Callable[[int, int], None]) -> None:
    """Restores the database in one transaction, then migrates it to this program's schema."""
    postgres_tools.restore(dsn, archive.dump(progress))
    migrate(dsn)


def restore_keys(settings: Settings, secrets: Secrets) -> None:
    """Writes the key file and ``keys/*.pem``, unless they exist."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    if settings.secret_key is None and not settings.key_file.exists():
        _write(settings.key_file, "".join(f"{key}\n" for key in secrets.master_keys), 0o600)
    folder = settings.data_dir / "keys"
    for name, text in secrets.key_files.items():
        if Path(name).name != name:
            raise BackupError(f"the backup contains a key file with an invalid name: {name!r}")
        folder.mkdir(exist_ok=True)
        if not (folder / name).exists():
            _write(folder / name, text, 0o644)


def _write(path: Path, text: str, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
