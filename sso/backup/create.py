"""``sso backup``: writes the database and the keys to one file."""

import datetime
from collections.abc import Callable
from pathlib import Path

import sso
from sso.backup.archive import ArchiveWriter, Manifest, Secrets, new_file
from sso.backup.errors import BackupError
from sso.backup.postgres_tools import dump
from sso.config import Settings
from sso.core.encryption import Keyring
from sso.db.migrate import current
from sso.db.standalone import fetch_value


def create_backup(
    settings: Settings, dsn: str, path: Path, passphrase: str | None, progress: Callable[[int], None]
) -> Manifest:
    """Writes a backup that is consistent although the service runs. Without a passphrase it contains no keys.

    ``progress`` is called with the number of bytes of the database dump so far.
    """
    schema = current(dsn)
    if schema is None:
        raise BackupError("the database is empty: there is nothing to back up")
    # The keys are read before the dump: a key that a rotation adds later is not needed for the dump's values.
    secrets = read_secrets(settings) if passphrase is not None else None
    manifest = Manifest(
        program=sso.__version__,
        schema=schema,
        postgres=fetch_value(dsn, "SHOW server_version"),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        has_keys=secrets is not None,
    )
    with new_file(path) as file:
        writer = ArchiveWriter(file)
        writer.add_manifest(manifest)
        if secrets is not None and passphrase is not None:
            writer.add_secrets(secrets, passphrase)
        writer.add_dump(dump(dsn), progress)
    return manifest


def read_secrets(settings: Settings) -> Secrets:
    """The master keys of the setting or of the key file, and the public keys of applications."""
    if settings.secret_key is not None:
        keyring = Keyring.from_text(settings.secret_key.get_secret_value())
    else:
        keyring = Keyring.from_file(settings.key_file)
    folder = settings.data_dir / "keys"
    files = {path.name: path.read_text() for path in sorted(folder.glob("*.pem"))} if folder.is_dir() else {}
    return Secrets([key.text() for key in keyring.keys], files)
