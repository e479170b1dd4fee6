"""Creates, restores and disables the test players. Every start of the service does one of them."""

from functools import partial

import structlog

from sso.accounts.bans.operations import BanOperations
from sso.accounts.model import User
from sso.accounts.operations import UserOperations
from sso.accounts.ports import LoginWrites
from sso.accounts.second_factor.changes import SecondFactorChanges
from sso.accounts.second_factor.store import clear_attempts, delete_recovery_codes, remove_factors
from sso.accounts.test_players.outcomes import OUTCOMES, ForcedOutcome
from sso.accounts.test_players.store import remove_other_sign_ins, usable_test_players
from sso.accounts.user_record import UserChanges
from sso.accounts.user_store import UserStore, get_user, lock_user, revoke_everything, update_user
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.ban import Ban
from sso.core.errors import ApiError, Conflict
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
        logins: LoginWrites,
        operations: UserOperations,
        bans: BanOperations,
        factors: SecondFactorChanges,
        hasher: Hasher,
    ) -> None:
        self._database = database
        self._users = users
        self._logins = logins
        self._operations = operations
        self._bans = bans
        self._factors = factors
        self._hasher = hasher

    async def create(self, password: str) -> None:
        """Creates missing test players, and restores those that were changed. Doing it again changes nothing.

        An ordinary account that has the id or the login of one is left alone: its user must not get a known password.
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
        """Disables the accounts, which ends everything that was issued to them. Usually, there are none.

        They lose all ways to sign in, too: an administrator who enables one by hand must not open it to everybody.
        """
        for user_id in await usable_test_players(self._database):
            await self._logins.write_login(user_id, partial(self._disable, user_id=user_id))

    async def _restore(self, player: ForcedOutcome, password: str, known_hashes: set[str]) -> None:
        """``known_hashes`` are those of the password: accounts that are created together have the same one."""
        user = await self._users.get(player.user_id)
        if user is not None:
            _require_restorable(user)
        if user is not None and not player.second_factors.issuperset(user.second_factors):
            await self._factors.reset(user)
        stored_hash, new_hash = user.password_hash if user else None, None
        if stored_hash is None or (
            stored_hash not in known_hashes and not await self._hasher.matches(stored_hash, password)
        ):
            new_hash = next(iter(known_hashes), None) or await self._hasher.hash(password)
        known_hashes.add(new_hash or stored_hash or "")
        await self._logins.write_login(player.user_id, partial(self._save, player=player, password_hash=new_hash))

    async def _save(self, tx: Transaction, player: ForcedOutcome, password_hash: str | None) -> None:
        await self._operations.save(tx, AuditActor(), player.record, password_hash)
        if await remove_other_sign_ins(tx, player.user_id):
            await revoke_everything(tx, player.user_id)
        await delete_recovery_codes(tx, player.user_id)
        await self._restore_bans(tx, player)
        await clear_attempts(tx, player.user_id)

    async def _restore_bans(self, tx: Transaction, player: ForcedOutcome) -> None:
        bans = (await get_user(tx, player.user_id)).bans
        kept = next((ban for ban in bans if _is_ban_of(player, ban)), None)
        for ban in bans:
            if ban is not kept:
                await self._bans.unban(tx, AuditActor(), player.user_id, ban.ban_id)
        if player.ban is not None and kept is None:
            await self._bans.ban(tx, AuditActor(), player.user_id, player.ban)

    async def _disable(self, tx: Transaction, user_id: str) -> None:
        user = await lock_user(tx, user_id)
        if user is None:
            return
        await self._operations.change(tx, AuditActor(), user, UserChanges(disabled=True), None)
        await remove_other_sign_ins(tx, user_id)
        await remove_factors(tx, user)  # a passkey signs in without the password
        await delete_recovery_codes(tx, user_id)
        await update_user(tx, user_id, {"password_hash": None})
        await trail.write(tx, AuditActor(), "user.save", user_id, {"password": user.password_hash}, {"password": None})


def _require_restorable(user: User) -> None:
    """Raises Conflict if the account is not a test player, or gives access to another account."""
    if user.merged_into is not None:
        raise Conflict(f"the user {user.user_id} was merged into {user.merged_into}")
    if not user.is_test_player:
        raise Conflict(f"the user_id {user.user_id} belongs to an ordinary account")


def _is_ban_of(player: ForcedOutcome, ban: Ban) -> bool:
    expected = player.ban
    return expected is not None and ban.is_of_all and (ban.reason, ban.until) == (expected.reason, expected.until)
