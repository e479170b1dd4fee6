"""The keyring of a command, which is opened when it is first used.

Most commands encrypt and decrypt nothing. They work without the master key, and only those that may create a data
directory create one.
"""

from typing import Any

from sso.cli.data_directory import announce_creation, require_data_directory
from sso.config import Settings
from sso.core.encryption import Keyring
from sso.keys.master_key import open_keyring
from sso.keys.missing_key import MasterKeyMissing
from sso.keys.shared_settings import require_shared_key


class DeferredKeyring(Keyring):
    def __init__(self, settings: Settings, *, may_create: bool, is_missing: bool) -> None:
        self._settings = settings
        self._may_create = may_create  # a missing data directory
        self._is_missing = is_missing  # the key of a database that has secrets

    def __getattr__(self, name: str) -> Any:
        """Called for the attributes of an opened keyring, until it is opened."""
        self.open()
        return super().__getattribute__(name)

    def open(self) -> None:
        """Reads the master key. Creates one in a new data directory."""
        vars(self).update(vars(self._open()))

    def _open(self) -> Keyring:
        require_shared_key(self._settings)
        if self._settings.secret_key is None:  # the master key is in the data directory
            if self._may_create:
                announce_creation(self._settings)
            else:
                require_data_directory(self._settings)
        if self._is_missing:
            raise MasterKeyMissing(self._settings)
        return open_keyring(self._settings)
