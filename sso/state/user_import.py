"""Imports users of other services in batches: each batch is one transaction, and each user succeeds or is skipped."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from sso.accounts.errors import Banned
from sso.accounts.history.events import EventKind, record_event
from sso.accounts.model import User, login_key
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.errors import Conflict
from sso.core.field_errors import FieldError
from sso.core.passwords import Hasher
from sso.db.errors import UniqueViolation
from sso.db.transaction import Row, Transaction
from sso.perm.changes.scope import Scope
from sso.perm.changes.writer import PermissionWriter, WriteMode
from sso.perm.engine.records import RoleRecord
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.input.references import check_roles_exist
from sso.perm.input.roles import read_assignments
from sso.perm.stores.locks import lock_applications, lock_documents
from sso.perm.stores.roles import read_roles
from sso.perm.stores.user_data import save_record
from sso.state.apply import RecordOperations
from sso.state.imported_changes import changes_of, left_out, password_problem
from sso.state.imported_user import ImportedUser, read_imported_user
from sso.state.sections.applications import lock_active_application
from sso.upstream.identity_store import find_link
from sso.upstream.linked_identities import LinkedIdentities
from sso.upstream.model import IdentityProvider, UpstreamIdentity
from sso.upstream.provider_store import list_providers

MAX_BATCH = 500
BATCH_SECONDS = 60.0
EXISTS = "there is already a user with this login"
OTHER_USER = "user_id belongs to another user"
ALREADY_SET = "the password was left out, because the user has one"


class ImportOutcome(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"


class ImportOptions(Struct, frozen=True):
    update: bool = False  # change the profile of users who exist, and give a password to verified ones without one
    passwords: bool = False  # with ``update``: replace their passwords, too


class ImportResult(Struct):
    outcome: ImportOutcome
    user_id: str | None = None
    notes: list[str] = field(default_factory=list)  # why it was skipped, or what is missing

    @property
    def json(self) -> dict[str, Any]:
        return {"outcome": self.outcome, "user_id": self.user_id, "notes": self.notes}


class _Directory(Struct, frozen=True):
    """What the users of a batch refer to."""

    providers: Mapping[str, IdentityProvider]
    applications: Mapping[int, tuple[Row, dict[str, RoleRecord]]]


class UserImport:
    def __init__(
        self, hasher: Hasher, operations: RecordOperations, links: LinkedIdentities, writer: PermissionWriter
    ) -> None:
        self._hasher = hasher
        self._users = operations.users
        self._links = links
        self._writer = writer

    async def run(self, mode: WriteMode, values: Sequence[Any], options: ImportOptions) -> list[ImportResult]:
        """Returns a result for each user. Raises FieldError if a role that is to be assigned does not exist."""
        parsed = [_read(value) for value in values]
        users = [user for user in parsed if isinstance(user, ImportedUser)]
        application_ids = {role.application_id for user in users for role in user.roles}
        if CENTRAL_APPLICATION_ID in application_ids:
            raise FieldError(("roles",), "roles of the service itself cannot be imported; use `sso role assign`")
        hashes = {id(user): await self._password_hash(user) for user in users}

        async def begin(tx: Transaction) -> Scope:
            await lock_documents(tx)
            return _scope(users, application_ids)

        async def work(tx: Transaction) -> list[ImportResult]:
            directory = await _read_directory(tx, application_ids)
            _check_roles(users, directory)
            return [
                await self._import(tx, mode.actor, item, hashes[id(item)], options, directory)
                if isinstance(item, ImportedUser)
                else item
                for item in parsed
            ]

        try:
            return (await self._writer.write_document(BATCH_SECONDS, mode, begin, work)).result
        except UniqueViolation:
            raise Conflict("another change was made at the same time; import the users again") from None

    async def _password_hash(self, user: ImportedUser) -> str | None:
        return user.password_hash if user.password is None else await self._hasher.hash(user.password)

    async def _import(
        self,
        tx: Transaction,
        actor: AuditActor,
        user: ImportedUser,
        password_hash: str | None,
        options: ImportOptions,
        directory: _Directory,
    ) -> ImportResult:
        """The operations refuse a user before they change anything, so the transaction continues with the others."""
        try:
            existing = await self._users.create_missing(tx, actor, user, password_hash)
            if isinstance(existing, User):
                return await self._update(tx, actor, existing, user, password_hash, options)
        except FieldError as error:
            return ImportResult(ImportOutcome.SKIPPED, notes=[str(error)])
        result = ImportResult(ImportOutcome.CREATED, existing)
        await self._link_identities(tx, actor, existing, user, directory, result.notes)
        await _assign_roles(tx, actor, existing, user, directory)
        return result

    async def _update(
        self,
        tx: Transaction,
        actor: AuditActor,
        existing: User,
        user: ImportedUser,
        password_hash: str | None,
        options: ImportOptions,
    ) -> ImportResult:
        if existing.login_key != login_key(user.login):
            return ImportResult(ImportOutcome.SKIPPED, notes=[OTHER_USER])
        if not options.update:
            return ImportResult(ImportOutcome.SKIPPED, existing.user_id, [EXISTS])
        notes = left_out(existing, user)
        new_hash = _new_hash(existing, user, password_hash, options, notes)
        changed = await self._users.change(tx, actor, existing, changes_of(existing, user), new_hash)
        outcome = ImportOutcome.UNCHANGED if changed == existing else ImportOutcome.UPDATED
        return ImportResult(outcome, existing.user_id, notes)

    async def _link_identities(
        self,
        tx: Transaction,
        actor: AuditActor,
        user_id: str,
        user: ImportedUser,
        directory: _Directory,
        notes: list[str],
    ) -> None:
        for identity in user.identities:
            provider = directory.providers.get(identity.provider)
            if provider is None:
                notes.append(f"there is no identity provider {identity.provider}: not linked")
            elif await find_link(tx, provider.provider_id, identity.subject):
                notes.append(f"the identity at {identity.provider} belongs to another user: not linked")
            else:
                upstream = UpstreamIdentity(subject=identity.subject, name=identity.name)
                try:
                    await self._link(tx, actor, user_id, provider, upstream)
                except Banned:
                    notes.append(f"the identity at {identity.provider} is banned: not linked")

    async def _link(
        self, tx: Transaction, actor: AuditActor, user_id: str, provider: IdentityProvider, identity: UpstreamIdentity
    ) -> None:
        await self._links.insert(tx, user_id, provider, identity)
        await record_event(tx, user_id, EventKind.IDENTITY_LINKED, name=provider.name)
        await trail.write(tx, actor, "user.link", user_id, None, {"provider": provider.provider_id})


def _read(value: Any) -> ImportedUser | ImportResult:
    try:
        return read_imported_user(value)
    except FieldError as error:
        return ImportResult(ImportOutcome.SKIPPED, notes=[str(error)])


def _new_hash(
    existing: User, user: ImportedUser, password_hash: str | None, options: ImportOptions, notes: list[str]
) -> str | None:
    """Returns the hash that replaces the stored one, or None and adds the reason to the notes."""
    if password_hash is None or password_hash == existing.password_hash:
        return None
    problem = ALREADY_SET if existing.password_hash is not None else password_problem(existing, user)
    if options.passwords or not problem:
        return password_hash
    notes.append(problem)
    return None


def _scope(users: Sequence[ImportedUser], application_ids: set[int]) -> Scope:
    return Scope(
        accounts=frozenset(name for user in users for name in (user.user_id, user.login) if name is not None),
        records=frozenset((user.login, role.application_id) for user in users for role in user.roles),
        applications=frozenset((CENTRAL_APPLICATION_ID, *application_ids) if application_ids else ()),
    )


async def _read_directory(tx: Transaction, application_ids: set[int]) -> _Directory:
    if application_ids:
        await lock_applications(tx, {CENTRAL_APPLICATION_ID, *application_ids})
    applications = {
        key: (await lock_active_application(tx, key, ("roles",)), await read_roles(tx, key)) for key in application_ids
    }
    return _Directory({provider.provider_id: provider for provider in await list_providers(tx)}, applications)


def _check_roles(users: Sequence[ImportedUser], directory: _Directory) -> None:
    """A role that does not exist is a mistake of the mapping and concerns many users, so nothing is imported."""
    for role in {(role.application_id, role.role) for user in users for role in user.roles}:
        check_roles_exist(read_assignments([role[1]])[0], directory.applications[role[0]][1])


async def _assign_roles(
    tx: Transaction, actor: AuditActor, user_id: str, user: ImportedUser, directory: _Directory
) -> None:
    by_application: dict[int, list[str]] = {}
    for role in user.roles:
        by_application.setdefault(role.application_id, []).append(role.role)
    for application_id, names in by_application.items():
        row, known = directory.applications[application_id]
        assigned, _ = read_assignments(list(dict.fromkeys(names)))
        await save_record(tx, actor, user_id, row, known, {}, assigned)
