"""Applies a document of desired state in one transaction. Applying it again changes nothing."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import trio

from sso.accounts.model import login_key
from sso.audit.audited_changes import RecordDifference, last_audit_entry, read_differences
from sso.audit.trail import AuditActor
from sso.core.encryption import Keyring
from sso.core.passwords import Hasher
from sso.db.database import Database
from sso.db.errors import UniqueViolation
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.changes.impact import Impact
from sso.perm.changes.scope import Scope
from sso.perm.changes.writer import WRITE, PermissionWriter, WriteMode
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.stores.applications import NAME_TAKEN
from sso.perm.stores.facts import StoredFacts
from sso.perm.stores.seed import seed, seed_central_application
from sso.state.document import Document
from sso.state.location import DocumentError, with_location
from sso.state.scope import document_scope
from sso.state.sections import (
    access_keys,
    applications,
    clients,
    groups,
    identity_providers,
    memberships,
    permissions,
    projects,
    schemas,
    users,
)
from sso.state.sections.users import UserPart
from sso.state.summary import ApplyCounts, ApplySummary

APPLY_SECONDS = 600.0

# Documents are applied one at a time. Waiting for the previous one may take long; afterwards the usual lock timeout
# applies again.
_SET_TIMEOUTS = Statement("SELECT set_config('lock_timeout', :lock, true), set_config('statement_timeout', :run, true)")
_LOCK_TIMEOUT = Statement("SELECT current_setting('lock_timeout')")
_LOCK_APPLY = Statement("SELECT pg_advisory_xact_lock(hashtextextended('sso apply', 0))")
# Applications are locked before projects, in the same order everywhere, to avoid deadlocks.
_LOCK_APPLICATIONS = Statement(
    """SELECT 1 FROM applications WHERE application_id = ANY(CAST(:ids AS int[]))
    ORDER BY application_id FOR UPDATE"""
)
_PASSWORD_HASH = Statement("SELECT password_hash FROM users WHERE user_id = :user_id OR login_key = :login_key")

# Error texts for unique constraints. A concurrent change can violate them although this code has checked.
_CONSTRAINT_ERRORS = {
    "uq_applications_name_in_project": NAME_TAKEN,
    "pk_project_names": "title or aliases: already used by another project",
    "pk_projects": "this title is taken",
}


ApplyProgress = Callable[[str, int, int], None]  # called with what is being done, the number done and the total
ApplyPrecondition = Callable[[Transaction], Awaitable[None]]  # raises an error if the document must not be applied


@dataclass(frozen=True)
class ApplyReport:
    counts: ApplyCounts
    records: dict[str, str]  # location → created or changed
    impact: Impact
    differences: tuple[RecordDifference, ...]  # of a dry run

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


class DocumentApplication:
    """One application of a document. The transaction may be run again, so each run begins with a new summary."""

    def __init__(
        self,
        keyring: Keyring,
        actor: AuditActor,
        document: Document,
        hashes: dict[str, str],
        dry_run: bool,
        progress: ApplyProgress,
    ) -> None:
        self._keyring = keyring
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
        usual = await tx.value(_LOCK_TIMEOUT)
        await tx.value(_SET_TIMEOUTS, lock="60s", run="60s")
        await tx.value(_LOCK_APPLY)
        await tx.value(_SET_TIMEOUTS, lock=usual, run="60s")
        if self._dry_run:
            self._last_audit_entry = await last_audit_entry(tx)
            await seed(tx)
        return await document_scope(tx, self._document)

    async def apply(self, tx: Transaction) -> ApplyCounts:
        document = self._document
        self.summary = summary = ApplySummary(
            warnings=list(document.warnings),
            on_record=lambda done: self._progress("storing records", done, document.record_count),
        )
        for index, user in enumerate(document.users):
            summary.location = f"users[{index}]"
            password_hash = self._hashes.get(login_key(user.login))
            outcome = await users.apply(tx, self._actor, self._keyring, summary.location, user, password_hash)
            summary.record(summary.location, outcome)
        for index, client in enumerate(document.clients):
            summary.location = f"clients[{index}]"
            outcome = await clients.apply(tx, self._actor, self._keyring, summary.location, client)
            summary.record(summary.location, outcome)
        await identity_providers.apply(tx, self._actor, self._keyring, summary, document.identity_providers)
        await self._apply_permissions(tx)
        if self._dry_run:
            self.differences = await read_differences(tx, self._last_audit_entry)
        return summary.counts()

    async def _apply_permissions(self, tx: Transaction) -> None:
        """Applies the sections in an order in which every record exists before another one names it."""
        actor, summary, document = self._actor, self.summary, self._document
        if document.has_permissions:
            await tx.value(_LOCK_APPLICATIONS, ids=sorted({CENTRAL_APPLICATION_ID, *document.application_ids}))
        admins = await projects.create_missing(tx, actor, summary, document.projects)
        await applications.apply(tx, actor, self._keyring, summary, document.applications)
        await schemas.apply(tx, actor, summary, document.schemas)
        await groups.apply(tx, actor, summary, document.groups)
        await projects.apply_settings(tx, actor, summary, document.projects)
        await memberships.apply(tx, actor, summary, document.memberships, document.projects, admins)
        await permissions.apply(tx, actor, summary, document.permissions)
        await access_keys.apply(tx, actor, self._keyring, summary, document.access_keys)


class Applier:
    """Applies documents. ``actor`` is the actor of the audit entries."""

    def __init__(
        self,
        database: Database,
        hasher: Hasher,
        keyring: Keyring,
        actor: AuditActor | None = None,
        writer: PermissionWriter | None = None,
        seconds: float = APPLY_SECONDS,
    ) -> None:
        self._seconds = seconds
        self._actor = actor or AuditActor()
        self._writer = writer or PermissionWriter(database, StoredFacts(database))
        self._database = database
        self._hasher = hasher
        self._keyring = keyring

    async def apply(
        self, document: Document, progress: ApplyProgress = lambda _what, _done, _total: None
    ) -> ApplyCounts:
        """Applies the document as a whole or not at all. Returns the number of created and changed records.

        Raises DocumentError if the document does not fit what is stored.
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
        application = DocumentApplication(self._keyring, self._actor, document, hashes, mode.dry_run, progress)

        async def work(tx: Transaction) -> ApplyCounts:
            if precondition is not None:
                await precondition(tx)
            return await application.apply(tx)

        try:
            written = await self._writer.write_document(self._seconds, mode, application.begin, work)
        except UniqueViolation as error:
            problem = _CONSTRAINT_ERRORS.get(error.constraint, f"is already in use ({error.constraint})")
            raise DocumentError(with_location(application.summary.location, problem)) from None
        counts = replace(written.result, warnings=(*written.result.warnings, *written.warnings))
        records = application.summary.changed_records()
        return ApplyReport(counts, records, written.impact, tuple(application.differences))

    async def _hash_passwords(self, parts: list[UserPart], progress: ApplyProgress) -> dict[str, str]:
        """Returns hashes of the passwords that differ from the stored ones, by login key.

        This is slow and runs before the transaction.
        """
        hashes: dict[str, str] = {}
        with_password = [part for part in parts if part.password is not None]
        done = 0

        async def hash_one(part: UserPart) -> None:
            nonlocal done
            password = part.password or ""
            row = await self._database.row(_PASSWORD_HASH, user_id=part.user_id or "", login_key=login_key(part.login))
            unchanged = row is not None and await self._hasher.matches(row["password_hash"], password)
            if not unchanged:
                hashes[login_key(part.login)] = await self._hasher.hash(password)
            done += 1
            progress("hashing passwords", done, len(with_password))

        for start in range(0, len(with_password), 8):
            async with trio.open_nursery() as nursery:
                for part in with_password[start : start + 8]:
                    nursery.start_soon(hash_one, part)
        return hashes
