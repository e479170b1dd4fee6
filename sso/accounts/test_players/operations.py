"""Creates, restores and disables the test players. Every start of the service does one of them."""

import structlog

from sso.accounts.bans.operations import BanOperations
from sso.accounts.model import User
from sso.accounts.operations import UserOperations
from sso.accounts.second_factor.changes import SecondFactorChanges
from sso.accounts.second_factor.store import clear_attempts
from sso.accounts.test_players.outcomes import OUTCOMES, ForcedOutcome
from sso.accounts.test_players.store import enabled_test_players
from sso.accounts.user_record import UserChanges
from sso.accounts.user_store import UserStore, get_user, lock_user
from sso.audit.trail import AuditActor
from sso.core.errors import ApiError
from sso.core.passwords import Hasher
from sso.db.database import Database
from sso.db.errors import UniqueViolation
from sso.db.transaction import Transaction

log = structlog.get_logger()


class TestPlayers:
    __test__ = False  # no test case, whatever its name says

    def __init__(
        self,
        database: Database,
        users: UserStore,
        operations: UserOperations,
        bans: BanOperations,
        factors: SecondFactorChanges,
        hasher: Hasher,
    ) -> None:
        self._database = database
        self._users = users
        self._operations = operations
        self._bans = bans
        self._factors = factors
        self._hasher = hasher

    async def create(self, password: str) -> None:
        """Creates missing test players, and restores those that were changed. Doing it again changes nothing.

        A login that belongs to another account is left alone: its user must not get a known password.
        """
        log.warning("test_players.enabled", logins=[player.login for player in OUTCOMES])
        known_hashes: set[str] = set()
        for player in OUTCOMES:
            try:
                await self._restore(player, password, known_hashes)
            except UniqueViolation:
                continue  # another node has just created it
            except ApiError as error:
                log.warning("test_players.failed", login=player.login, reason=str(error))

    async def disable(self) -> None:
        """Disables the accounts, which ends everything that was issued to them. Usually, there are none."""
        for user_id in await enabled_test_players(self._database):
            await self._database.transaction(self._disable, user_id)

    async def _restore(self, player: ForcedOutcome, password: str, known_hashes: set[str]) -> None:
        """``known_hashes`` are those of the password: accounts that are created together have the same one."""
        user = await self._users.get(player.user_id)
        if user is not None and not player.second_factors.issuperset(user.second_factors):
            await self._factors.reset(user)
        stored_hash, new_hash = user.password_hash if user else None, None
        if stored_hash is None or (
            stored_hash not in known_hashes and not await self._hasher.matches(stored_hash, password)
        ):
            new_hash = next(iter(known_hashes), None) or await self._hasher.hash(password)
        known_hashes.add(new_hash or stored_hash or "")
        await self._database.transaction(self._save, player, new_hash)

    async def _save(self, tx: Transaction, player: ForcedOutcome, password_hash: str | None) -> None:
        await self._operations.save(tx, AuditActor(), player.record, password_hash)
        user = await get_user(tx, player.user_id)
        if player.ban is not None and not any(ban.is_of_all for ban in user.bans):
            await self._bans.ban(tx, AuditActor(), player.user_id, player.ban)
        await clear_attempts(tx, player.user_id)

    async def _disable(self, tx: Transaction, user_id: str) -> None:
        user: User | None = await lock_user(tx, user_id)
        if user is not None:
            await self._operations.change(tx, AuditActor(), user, UserChanges(disabled=True), None)
