"""Bring the database to the desired state, in one transaction, any number of times with the same result."""

from collections.abc import Callable
from typing import Any

import trio
from sqlalchemy import bindparam, insert, select, update

from sso.accounts.model import User, login_key
from sso.accounts.second_factor import totp_purpose
from sso.accounts.users import revoke_everything
from sso.core.encryption import Keyring
from sso.core.ids import is_user_id
from sso.core.passwords import Hasher
from sso.db.database import Database
from sso.db.errors import UniqueViolation
from sso.db.statement import Statement
from sso.db.tables import oauth_clients, users
from sso.db.transaction import TRANSACTION_SETTINGS, Transaction
from sso.oauth.client_store import revoke_grants, revoke_grants_at_removed_uris, secret_purpose
from sso.oauth.model import Client
from sso.perm.credentials.access_keys import AccessKeys
from sso.perm.engine.names import CENTRAL_APPLICATION_ID
from sso.perm.stores import audit
from sso.perm.stores.applications import NAME_TAKEN
from sso.perm.stores.audit import AuditActor
from sso.perm.stores.seed import seed_central_application
from sso.state.document import ClientPart, Document, UserPart
from sso.state.location import DocumentError, joined
from sso.state.sections import access_keys, applications, groups, memberships, permissions, projects, schemas
from sso.state.summary import ApplySummary, SectionCounts

APPLY_S = 600.0

# One document after the other, however long the one before takes; then the usual limit on waiting counts again.
_WAIT = Statement("SELECT set_config('lock_timeout', :lock, true), set_config('statement_timeout', :run, true)")
_LOCK = Statement("SELECT pg_advisory_xact_lock(hashtextextended('sso apply', 0))")
# Before any project, as everybody does it: nobody then waits for somebody who waits for them.
_LOCK_APPLICATIONS = Statement(
    """SELECT 1 FROM applications WHERE application_id = ANY(CAST(:ids AS int[]))
    ORDER BY application_id FOR UPDATE"""
)
_NEXT_ID = Statement("SELECT CAST(nextval('user_ids') AS text)")
_USER = Statement(
    select(users)
    .where((users.c.user_id == bindparam("user_id")) | (users.c.login_key == bindparam("login_key")))
    .with_for_update()
)
_CLIENT = Statement(select(oauth_clients).where(oauth_clients.c.client_id == bindparam("client_id")).with_for_update())


# What the transaction may run into although everything was looked at: the database has the last word.
_TAKEN = {
    "uq_applications_name_in_project": NAME_TAKEN,
    "pk_project_names": "this title, or one of the aliases, is taken",
    "pk_projects": "this title is taken",
}


class Applier:
    """``actor`` is who the audit trail names for the changes."""

    def __init__(self, database: Database, hasher: Hasher, keyring: Keyring, actor: AuditActor | None = None) -> None:
        self._actor = actor or AuditActor()
        self._database = database
        self._hasher = hasher
        self._keyring = keyring

    async def apply(
        self, document: Document, progress: Callable[[int, int], None] = lambda _done, _all: None
    ) -> SectionCounts:
        hashes = await self._hashes(document.users, progress)

        if document.has_permissions:
            await seed_central_application(self._database)
        tally = ApplySummary()

        async def work(tx: Transaction) -> SectionCounts:
            nonlocal tally
            await tx.value(_WAIT, lock="60s", run="60s")
            await tx.value(_LOCK)
            await tx.value(_WAIT, lock=TRANSACTION_SETTINGS["lock_timeout"], run="60s")
            tally = ApplySummary(warnings=list(document.warnings))
            for at, user in enumerate(document.users):
                tally.place = f"users[{at}]"
                tally.note(tally.place, await self._user(tx, at, user, hashes))
            for at, client in enumerate(document.clients):
                tally.place = f"clients[{at}]"
                tally.note(tally.place, await self._client(tx, client))
            await self._permissions(tx, tally, document)
            return tally.counts()

        try:
            return await self._database.long_transaction(APPLY_S, work)
        except UniqueViolation as error:
            what = _TAKEN.get(error.constraint, f"is taken by another one ({error.constraint})")
            raise DocumentError(joined(tally.place, what)) from None

    async def _permissions(self, tx: Transaction, tally: ApplySummary, document: Document) -> None:
        """In an order in which whatever one part names is there by then."""
        actor = self._actor
        if document.has_permissions:
            await tx.value(_LOCK_APPLICATIONS, ids=sorted({CENTRAL_APPLICATION_ID, *document.application_ids}))
        admins = await projects.make(tx, actor, tally, document.projects)
        await applications.apply(tx, actor, self._keyring, tally, document.applications)
        await schemas.apply(tx, actor, tally, document.schemas)
        await groups.apply(tx, actor, tally, document.groups)
        await projects.settle(tx, actor, tally, document.projects)
        await memberships.apply(tx, actor, tally, document.memberships, document.projects, admins)
        await permissions.apply(tx, actor, tally, document.permissions)
        keys = AccessKeys(self._database, self._keyring)
        await access_keys.apply(tx, actor, keys, tally, document.access_keys)

    async def _hashes(self, parts: list[UserPart], progress: Callable[[int, int], None]) -> dict[str, str]:
        """The slow part, before the transaction: hashes of those passwords that are not the present ones."""
        hashes: dict[str, str] = {}
        wanted = [part for part in parts if part.password is not None]
        done = 0

        async def one(part: UserPart) -> None:
            nonlocal done
            password = part.password or ""
            row = await self._database.row(_LOOK, user_id=part.user_id or "", login_key=login_key(part.login))
            same = row is not None and await self._hasher.matches(row["password_hash"], password)
            if not same:
                hashes[login_key(part.login)] = await self._hasher.hash(password)
            done += 1
            progress(done, len(wanted))

        for start in range(0, len(wanted), 8):
            async with trio.open_nursery() as nursery:
                for part in wanted[start : start + 8]:
                    nursery.start_soon(one, part)
        return hashes

    async def _user(self, tx: Transaction, at: int, part: UserPart, hashes: dict[str, str]) -> str:
        found = await tx.rows(_USER, user_id=part.user_id or "", login_key=login_key(part.login))
        if len(found) > 1 or (found and part.user_id and found[0]["user_id"] != part.user_id):
            raise DocumentError(f"users[{at}].login: belongs to another user_id")
        old = User.from_row(found[0]) if found else None
        user_id = old.user_id if old else part.user_id or await _fresh_id(tx)
        values = self._user_values(part, old, user_id, hashes)
        if old is None:
            await tx.value(Statement(insert(users).values(user_id=user_id, **values)))
            await self._record(tx, "user.create", user_id, None, _audited_user(values))
            return "created"
        changed = {name: value for name, value in values.items() if getattr(old, name) != _comparable(value)}
        if not changed:
            return "same"
        await tx.value(Statement(update(users).where(users.c.user_id == user_id).values(**changed)))
        before = {name: getattr(old, name) for name in changed}
        await self._record(tx, "user.save", user_id, _audited_user(before), _audited_user(changed))
        if not changed.keys().isdisjoint(("password_hash", "totp_sealed", "email_2fa")) or changed.get("disabled"):
            await revoke_everything(tx, user_id)
        return "changed"

    def _user_values(self, part: UserPart, old: User | None, user_id: str, hashes: dict[str, str]) -> dict[str, Any]:
        values = part.model_dump(exclude_none=True, exclude={"user_id", "password", "totp_secret"})
        values["login_key"] = login_key(part.login)
        if old is not None and old.login_key != values["login_key"]:
            values.setdefault("email_verified", False)  # nobody has verified the new address
        if values["login_key"] in hashes:
            values["password_hash"] = hashes[values["login_key"]]
        if part.totp_secret is not None:
            purpose = totp_purpose(user_id)
            if (
                old is None
                or old.totp_sealed is None
                or self._keyring.open(purpose, old.totp_sealed) != part.totp_secret
            ):
                values["totp_sealed"] = self._keyring.seal(purpose, part.totp_secret)
        return values

    async def _record(self, tx: Transaction, operation: str, target: str, before: Any, after: Any) -> None:
        """An entry with the fields that changed."""
        await audit.write(tx, self._actor, operation, target, before, after)

    async def _client(self, tx: Transaction, part: ClientPart) -> str:
        old = await tx.row(_CLIENT, client_id=part.client_id)
        values = part.model_dump(exclude_none=True, exclude={"client_id", "client_secret", "public"})
        purpose = secret_purpose(part.client_id)
        if part.client_secret is not None and (
            old is None
            or old["secret_sealed"] is None
            or self._keyring.open(purpose, old["secret_sealed"]) != part.client_secret
        ):
            values |= {"secret_sealed": self._keyring.seal(purpose, part.client_secret), "second_sealed": None}
        if old is None:
            if part.public is False and part.client_secret is None:
                # Without its secret a standard client would be a public one, which has nothing to prove.
                raise DocumentError("client_secret: is required for a new client that is not public")
            await tx.value(Statement(insert(oauth_clients).values(client_id=part.client_id, **values)))
            await self._record(tx, "client.create", part.client_id, None, _audited_client(values))
            return "created"
        changed = {name: value for name, value in values.items() if old[name] != value}
        if not changed:
            return "same"
        await tx.value(
            Statement(update(oauth_clients).where(oauth_clients.c.client_id == part.client_id).values(**changed))
        )
        before = {name: old[name] for name in changed}
        await self._record(tx, "client.save", part.client_id, _audited_client(before), _audited_client(changed))
        if changed.get("disabled"):
            await revoke_grants(tx, part.client_id)
        elif changed.keys() & {"redirect_hosts", "redirect_uris"}:
            await revoke_grants_at_removed_uris(tx, Client.from_row(old), Client.from_row({**old, **changed}))
        return "changed"


_LOOK = Statement(
    select(users.c.password_hash).where(
        (users.c.user_id == bindparam("user_id")) | (users.c.login_key == bindparam("login_key"))
    )
)


async def _fresh_id(tx: Transaction) -> str:
    """The next id that nobody has: ids may also be given by hand."""
    while True:
        user_id: str = await tx.value(_NEXT_ID)
        assert is_user_id(user_id)
        if not await tx.rows(_USER, user_id=user_id, login_key=""):
            return user_id


def _audited_user(values: dict[str, Any]) -> dict[str, Any]:
    """The columns of a user as the audit trail names them; of secrets only that there is one."""
    return _renamed(values, {"password_hash": "password", "totp_sealed": "totp_secret", "login_key": None})


def _audited_client(values: dict[str, Any]) -> dict[str, Any]:
    return _renamed(values, {"secret_sealed": "client_secret", "second_sealed": None})


def _renamed(values: dict[str, Any], names: dict[str, str | None]) -> dict[str, Any]:
    found = {names.get(name, name): value for name, value in values.items()}
    return {name: value for name, value in found.items() if name is not None}


def _comparable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
