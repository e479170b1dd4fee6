"""The services that commands use. Each one is imported and built when it is first used, so that commands start fast."""

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sso.accounts.password_changes import PasswordChanges
    from sso.accounts.registration.invitations import Invitations
    from sso.accounts.second_factor.changes import SecondFactorChanges
    from sso.accounts.user_store import UserStore
    from sso.audit.trail import AuditActor
    from sso.bus.bus import Bus
    from sso.config import Settings
    from sso.core.encryption import Keyring
    from sso.core.passwords import Hasher
    from sso.db.database import Database
    from sso.keys.rotation import KeyRotation
    from sso.keys.store import KeyStore
    from sso.oauth.clients.store import ClientStore
    from sso.perm.changes.writer import PermissionWriter
    from sso.perm.stores.facts import StoredFacts
    from sso.services import Services
    from sso.state.apply import Applier
    from sso.upstream.provider_store import ProviderStore


class CommandServices:
    def __init__(
        self,
        settings: "Settings",
        database: "Database",
        actor: "AuditActor",
        *,
        may_create: bool = False,
        master_key_missing: bool = False,
    ) -> None:
        self.settings = settings
        self.master_key_missing = master_key_missing
        self.may_create = may_create  # a missing data directory
        self.database = database
        self.actor = actor  # for audit entries
        database.publish_topic = lambda topic: self.bus.publish(topic)

    async def database_time(self) -> int:
        """Returns the time of the database in Unix seconds."""
        from sso.db.clock_sync import measure_clock

        await measure_clock(self.database, samples=1)
        return int(self.database.clock.now())

    @cached_property
    def keyring(self) -> "Keyring":
        from sso.cli.data_directory import announce_creation, require_data_directory
        from sso.keys.master_key import open_keyring
        from sso.keys.missing_key import MasterKeyMissing
        from sso.keys.shared_settings import require_shared_key

        require_shared_key(self.settings)
        if self.settings.secret_key is None:  # the master key is in the data directory
            if self.may_create:
                announce_creation(self.settings)
            else:
                require_data_directory(self.settings)
        if self.master_key_missing:
            raise MasterKeyMissing(self.settings)
        return open_keyring(self.settings)

    @cached_property
    def bus(self) -> "Bus":
        from sso.bus.wiring import build_bus

        return build_bus(self.database, self.settings)

    async def send_messages(self) -> None:
        """Sends what the command has published, so that the workers notice its changes at once."""
        if "bus" in self.__dict__:  # it has been built
            await self.bus.send_once()

    @cached_property
    def users(self) -> "UserStore":
        from sso.accounts.user_store import UserStore

        return UserStore(self.database)

    @cached_property
    def second_factor_changes(self) -> "SecondFactorChanges":
        return self.complete.second_factor_changes

    @cached_property
    def invitations(self) -> "Invitations":
        return self.complete.registration.invitations

    @cached_property
    def password_changes(self) -> "PasswordChanges":
        return self.complete.password_changes

    @cached_property
    def hasher(self) -> "Hasher":
        from sso.core.passwords import Hasher

        return Hasher(self.settings.argon2_time, self.settings.argon2_kib, self.settings.login_queue)

    @cached_property
    def clients(self) -> "ClientStore":
        from sso.oauth.clients.store import ClientStore

        return ClientStore(self.database, self.keyring)

    @cached_property
    def identity_providers(self) -> "ProviderStore":
        from sso.upstream.provider_store import ProviderStore

        return ProviderStore(self.database, self.keyring)

    @cached_property
    def facts(self) -> "StoredFacts":
        from sso.perm.stores.facts import StoredFacts

        return StoredFacts(self.database)

    @cached_property
    def permission_writer(self) -> "PermissionWriter":
        from sso.change_stream.permission_changes import PermissionChangeRecorder
        from sso.perm.changes.writer import PermissionWriter

        return PermissionWriter(self.database, self.facts, PermissionChangeRecorder())

    @cached_property
    def key_store(self) -> "KeyStore":
        from sso.keys.store import KeyStore

        return KeyStore(self.database)

    @cached_property
    def key_rotation(self) -> "KeyRotation":
        from sso.keys.rotation import KeyRotation

        return KeyRotation(self.database, self.bus, self.keyring)

    @property
    def applier(self) -> "Applier":
        """Applies documents of desired state."""
        from sso.state.apply import Applier

        return Applier(self.database, self.hasher, self.complete.operations, self.actor, self.permission_writer)

    @cached_property
    def complete(self) -> "Services":
        """All services, for commands that need one which is not listed here."""
        from sso.services import build

        return build(self.settings, self.database, self.keyring, self.bus)
