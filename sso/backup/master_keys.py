"""The master keys of the settings, and those that a database needs."""

from sso.config import Settings
from sso.core.encryption import Keyring, MasterKey
from sso.db.standalone import fetch_value

HAS_TABLE = "SELECT to_regclass('signing_keys')::text"
NEEDED = """SELECT array_agg(DISTINCT split_part(private_sealed, '.', 2)) FROM signing_keys
    WHERE retired IS NULL AND (published_until IS NULL OR published_until > now())"""


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
