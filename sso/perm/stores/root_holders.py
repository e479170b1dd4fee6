"""Whether the service has an administrator: an enabled user to whom the role root is assigned."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID, ROOT_ROLE
from sso.perm.errors import PermissionConflict
from sso.perm.stores.administrators import Administration

NO_ROOT = "this would disable or remove the only administrator of the service: make someone else an administrator first"
NO_PERMANENT_ROOT = "the service would have no administrator whose role root does not end"

_IS_HELD = """a.application_id = :application_id AND a.name = :name AND NOT u.disabled
    AND (a.ttl > 0 OR a.expired = 0 OR a.expired > extract(epoch FROM now()))"""
_HOLDING = Statement(
    f"""SELECT coalesce(max(CASE WHEN a.ttl > 0 OR a.expired = 0 THEN 2 ELSE 1 END), 0)
    FROM role_assignments a JOIN users u USING (user_id) WHERE {_IS_HELD}"""
)
_HOLDS = Statement(
    f"""SELECT EXISTS (SELECT FROM role_assignments a JOIN users u USING (user_id)
    WHERE a.user_id = :user_id AND {_IS_HELD})"""
)


async def holds_root(runner: Runner, user_id: str) -> bool:
    holds: bool = await runner.value(_HOLDS, application_id=CENTRAL_APPLICATION_ID, name=ROOT_ROLE, user_id=user_id)
    return holds


@dataclass(frozen=True)
class RootGuard:
    """The service before a write. If it has an administrator, it must have one after the write.

    The central application must be locked: every change of the administrators holds its lock, so that two of them
    cannot each rely on the administrator that the other one removes.
    """

    tx: Transaction
    administered: Administration

    @classmethod
    async def begin(cls, tx: Transaction) -> "RootGuard":
        return cls(tx, await _read_administration(tx))

    async def check(self) -> None:
        """Raise PermissionConflict if the service lost its last administrator, or its last permanent one."""
        if self.administered:
            left = await _read_administration(self.tx)
            if left < self.administered:
                raise PermissionConflict(NO_PERMANENT_ROOT if left else NO_ROOT)


@asynccontextmanager
async def keep_root_holder(tx: Transaction) -> AsyncIterator[None]:
    """Refuse writes inside this block that leave the service without an administrator. See `RootGuard`."""
    guard = await RootGuard.begin(tx)
    yield
    await guard.check()


async def _read_administration(tx: Runner) -> Administration:
    return Administration(await tx.value(_HOLDING, application_id=CENTRAL_APPLICATION_ID, name=ROOT_ROLE))
