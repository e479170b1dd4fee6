"""Opens the master keys that the settings name."""

from sso.config import Settings
from sso.core.encryption import EncryptionError, Keyring
from sso.keys.shared_settings import require_shared_key


def open_keyring(settings: Settings) -> Keyring:
    """Returns the master keys of the settings, or of the key file, which is created if it does not exist."""
    require_shared_key(settings)
    if settings.secret_key is not None:
        try:
            return Keyring.from_text(settings.secret_key.get_secret_value())
        except EncryptionError as error:
            raise EncryptionError(f"SSO_SECRET_KEY: {error}") from None
    return Keyring.open_or_create(settings.key_file)
