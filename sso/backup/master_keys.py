"""The master keys of the settings, and those that a database needs."""

from sso.config import Settings
from sso.core.encryption import Keyring, MasterKey
from sso.db.standalone import fetch_value
from sso.db.tables import sealed_columns

HAS_TABLE = "SELECT to_regclass('signing_keys')::text"
NEEDED = """SELECT array_agg(DISTINCT split_part(private_sealed, '.', 2)) FROM signing_keys
    WHERE retired IS NULL AND (published_until IS NULL OR published_until > now())"""
COLUMNS = """SELECT array_agg(table_name || '.' || column_name) FROM information_schema.columns
    WHERE table_schema = 'public'"""


def has_master_keys(settings: Settings) -> bool:
    return settings.secret_key is not None or settings.key_file.exists()


def master_keys(settings: Settings) -> list[str]:
    """Returns the keys of SSO_SECRET_KEY, or of the key file, which must exist."""
    if settings.secret_key is not None:
        keyring = Keyring.from_text(settings.secret_key.get_secret_value())
    else:
        keyring = Keyring.from_file(settings.key_file)
    return [key.text() for key in keyring.keys]


def key_id(text: str) -> str:
    return MasterKey.parse(text).id


def needed_key_ids(dsn: str) -> set[str]:
    """Returns the ids of the master keys that decrypt the published signing keys: the service does not start without.

    The set is empty if the service has never run.
    """
    return set(fetch_value(dsn, HAS_TABLE, NEEDED) or ())


def all_needed_key_ids(dsn: str) -> set[str]:
    """Returns the ids of the master keys that decrypt all secrets. During a change of the key, these are two.

    A database of an earlier version may lack columns. Values that name no key are damaged, and need none.
    """
    present = set(fetch_value(dsn, COLUMNS) or ())
    ids = [
        f"SELECT substring({column.name} FROM '^v1[.]([0-9a-f]+)[.]') AS id FROM {table.name}"
        for table, column in sealed_columns()
        if table.name != "signing_keys" and f"{table.name}.{column.name}" in present
    ]
    others = f"SELECT array_agg(id) FROM ({' UNION '.join(ids)}) AS ids WHERE id IS NOT NULL"
    return needed_key_ids(dsn) | set((fetch_value(dsn, others) if ids else None) or ())
