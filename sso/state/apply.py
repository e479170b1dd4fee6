"""Applies a document of desired state in one transaction. Applying it again changes nothing."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import trio
from msgspec import Struct
from msgspec.structs import replace

from sso.accounts.model import login_key
from sso.accounts.operations import UserOperations
from sso.accounts.password_changes import PasswordChanges
from sso.accounts.user_record import UserRecord
from sso.accounts.user_store import read_password_hash
from sso.audit.audited_changes import RecordDifference, read_differences
from sso.audit.store import last_entry_id
from sso.audit.trail import AuditActor
from sso.core.encryption import Keyring
from sso.core.errors import ApiError
from sso.core.field_errors import FieldError
from sso.core.passwords import Hasher
from sso.core.records import Outcome
from sso.db.database import Database
from sso.db.errors import DatabaseError, UniqueViolation
from sso.db.transaction import Transaction
from sso.oauth.clients.operations import ClientOperations
from sso.perm.changes.impact import Impact
from sso.perm.changes.scope import Scope
from sso.perm.changes.writer import WRITE, PermissionWriter, WriteMode
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.stores.applications import NAME_TAKEN
from sso.perm.stores.facts import StoredFacts
from sso.perm.stores.locks import lock_applications, lock_documents
from sso.perm.stores.seed import seed, seed_central_application
from sso.state.document import Document
from sso.state.location import error_location
from sso.state.scope import document_scope
from sso.state.sections import (
    access_keys,
    applications,
    groups,
    memberships,
    permissions,
    projects,
    schemas,
)
from sso.state.summary import ApplyCounts, ApplySummary
from sso.upstream.provider_operations import ProviderOperations

APPLY_SECONDS = 600.0
T = TypeVar("T")


def _constraint_error(constraint: str) -> ApiError:
    """Returns the error for a unique constraint. A concurrent change can violate it although this code has checked."""
    match constraint:
        case "uq_applications_name_in_project":
            return FieldError(("name",), NAME_TAKEN)
        case "pk_project_names":
            return ApiError("title or aliases: already used by another project")
        case "pk_projects":
            return ApiError("this title is taken")
    return ApiError(f"is already in use ({constraint})")


ApplyProgress = Callable[[str, int, int], None]  # called with what is being done, the number done and the total
ApplyPrecondition = Callable[[Transaction], Awaitable[None]]  # raises an error if the document must not be applied


class RecordOperations(Struct, frozen=True):
    """The operations that save the records of a document that are not about permissions."""

    keyring: Keyring
    users: UserOperations
    clients: ClientOperations
    providers: ProviderOperations


def build_operations(keyring: Keyring, passwords: PasswordChanges, *, allow_http: bool) -> RecordOperations:
    """``allow_http``: this service itself is used without TLS."""
    clients, providers = ClientOperations(keyring, allow_http), ProviderOperations(keyring, allow_http)
    return RecordOperations(keyring, UserOperations(keyring, passwords), clients, providers)


class ApplyReport(Struct, frozen=True):
    counts: ApplyCounts
    records: dict[str, str]  # location → created or changed
    impact: Impact
    differences: tuple[RecordDifference, ...]  # only after a dry run

    @property
    def json(self) -> dict[str, Any]:
        """What a dry run would change."""
        counts = self.counts
        return self.impact.json() | {
            "created": counts.created,
            "changed": counts.changed,
            "unchanged": counts.unchanged,
            "records": self.records,
            "changes": [difference.json for difference in self.differences],
            "warnings": list(counts.warnings),
        }


class ApplyRun:
    """One application of a document. The transaction may be run again, so each run begins with a new summary."""

    def __init__(
        self,
        operations: RecordOperations,
        actor: AuditActor,
        document: Document,
        hashes: dict[str, str],
        dry_run: bool,
        progress: ApplyProgress,
    ) -> None:
        self._operations = operations
        self._actor = actor
        self._document = document
        self._hashes = hashes
        self._dry_run = dry_run
        self._progress = progress
        self._last_audit_entry = 0
        self.summary = ApplySummary()
        self.differences: list[RecordDifference] = []

    async def begin(self, tx: Transaction) -> Scope:
        """Waits for other documents. Returns what the document may change."""
        await lock_documents(tx)
        if self._dry_run:
            self._last_audit_entry = await last_entry_id(tx)
            await seed(tx)
        return await document_scope(tx, self._document)

    async def apply(self, tx: Transaction) -> ApplyCounts:
        document = self._document
        self.summary = summary = ApplySummary(
            warnings=list(document.warnings),
            on_record=lambda done: self._progress("storing records", done, document.record_count),
        )
        operations = self._operations
        await self._save(tx, "users", document.users, self._save_user)
        await self._save(tx, "clients", document.clients, operations.clients.save)
        await self._save(tx, "identity_providers", document.identity_providers, operations.providers.save)
        await self._apply_permissions(tx)
        if self._dry_run:
            self.differences = await read_differences(tx, self._last_audit_entry)
        return summary.counts()

    async def _save(
        self,
        tx: Transaction,
        section: str,
        records: Sequence[T],
        save: Callable[[Transaction, AuditActor, T], Awaitable[Outcome]],
    ) -> None:
        for index, record in enumerate(records):
            location = (section, index)
            with self.summary.at(location):
                self.summary.record(location, await save(tx, self._actor, record))

    async def _save_user(self, tx: Transaction, actor: AuditActor, record: UserRecord) -> Outcome:
        return await self._operations.users.save(tx, actor, record, self._hashes.get(login_key(record.login)))

    async def _apply_permissions(self, tx: Transaction) -> None:
        """Applies the sections in an order in which every record exists before another one names it."""
        actor, summary, document = self._actor, self.summary, self._document
        if document.has_permissions:
            await lock_applications(tx, {CENTRAL_APPLICATION_ID, *document.application_ids})
        admins = await projects.create_missing(tx, actor, summary, document.projects)
        await applications.apply(tx, actor, self._operations.keyring, summary, document.applications)
        await schemas.apply(tx, actor, summary, document.schemas)
        await groups.apply(tx, actor, summary, document.groups)
        await projects.apply_settings(tx, actor, summary, document.projects)
        await memberships.apply(tx, actor, summary, document.memberships, document.projects, admins)
        await groups.remove_tags(tx, actor, summary, document.groups)
        await permissions.apply(tx, actor, summary, document.permissions)
        await access_keys.apply(tx, actor, self._operations.keyring, summary, document.access_keys)


class Applier:
    """Applies documents. ``actor`` is the actor of the audit entries."""

    def __init__(
        self,
        database: Database,
        hasher: Hasher,
        operations: RecordOperations,
        actor: AuditActor | None = None,
        writer: PermissionWriter | None = None,
        seconds: float = APPLY_SECONDS,
    ) -> None:
        self._seconds = seconds
        self._actor = actor or AuditActor()
        self._writer = writer or PermissionWriter(database, StoredFacts(database))
        self._database = database
        self._hasher = hasher
        self._operations = operations

    async def apply(
        self, document: Document, progress: ApplyProgress = lambda _what, _done, _total: None
    ) -> ApplyCounts:
        """Applies the document as a whole or not at all. Returns the number of created and changed records.

        Raises FieldError if the document does not fit what is stored.
        """
        return (await self.run(document, WRITE, progress)).counts

    async def run(
        self,
        document: Document,
        mode: WriteMode,
        progress: ApplyProgress = lambda _what, _done, _total: None,
        precondition: ApplyPrecondition | None = None,
    ) -> ApplyReport:
        """Like `apply`. Also returns the impact on permissions, and for a dry run the difference of each record.

        ``precondition`` is called before the first change, when the records that the document names are locked.
        """
        hashes = await self._hash_passwords(document.users, progress)
        if document.has_permissions and not mode.dry_run:
            await seed_central_application(self._database)
        run = ApplyRun(self._operations, self._actor, document, hashes, mode.dry_run, progress)

        async def work(tx: Transaction) -> ApplyCounts:
            if precondition is not None:
                await precondition(tx)
            return await run.apply(tx)

        try:
            written = await self._writer.write_document(self._seconds, mode, run.begin, work)
        except UniqueViolation as error:
            with error_location(run.summary.location):
                raise _constraint_error(error.constraint) from None
        counts = replace(written.result, warnings=(*written.result.warnings, *written.warnings))
        records = run.summary.changed_records()
        return ApplyReport(counts, records, written.impact, tuple(run.differences))

    async def _hash_passwords(self, records: list[UserRecord], progress: ApplyProgress) -> dict[str, str]:
        """Returns hashes of the passwords that differ from the stored ones, by login key.

        This is slow and runs before the transaction.
        """
        hashes: dict[str, str] = {}
        with_password = [record for record in records if record.password is not None]
        done = 0
        failures: list[ApiError | DatabaseError] = []

        async def hash_one(record: UserRecord) -> None:
            nonlocal done
            try:
                await self._hash_password(record, hashes)
            except (ApiError, DatabaseError) as error:
                failures.append(error)  # raised below, because the nursery would wrap it in an ExceptionGroup
            done += 1
            progress("hashing passwords", done, len(with_password))

        for start in range(0, len(with_password), 8):
            async with trio.open_nursery() as nursery:
                for record in with_password[start : start + 8]:
                    nursery.start_soon(hash_one, record)
            if failures:
                raise failures[0]
        return hashes

    async def _hash_password(self, record: UserRecord, hashes: dict[str, str]) -> None:
        password = record.password or ""
        stored = await read_password_hash(self._database, record.user_id, record.login)
        if stored is None or not await self._hasher.matches(stored, password):
            hashes[login_key(record.login)] = await self._hasher.hash(password)
