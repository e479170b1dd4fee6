"""Runs writes of permissions: `PermissionWriter` is the only way in which permissions are changed.

A write is compared with the state before it, in its own transaction and under its locks. Who gains or loses permissions
is recorded for the change stream. A dry run does the same and is rolled back. Conditions on the address of a client
count as not met, because a write has no client. No write takes the last administrator from the service or a project.

A write that may affect many users uses the share of the database's connections for evaluations, one write at a time for
each project and application. A write that waits for the locks of another gives its connection back meanwhile.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar

from msgspec import Struct, field

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.errors import Forbidden
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.perm.changes.assertion_check import AssertionFailed
from sso.perm.changes.impact import FailedAssertion, Impact
from sso.perm.changes.last_administrators import LastAdministrators, RootGuard
from sso.perm.changes.record_comparison import RecordComparison
from sso.perm.changes.recorder import ChangeRecorder, NoRecorder
from sso.perm.changes.scope import Scope
from sso.perm.changes.scope_locks import lock_scope
from sso.perm.changes.state_comparison import StateComparison
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.stores.facts import StoredFacts
from sso.perm.stores.locks import lock_applications, lock_dry_runs

EVALUATION_S = 30.0  # how long a write may take that may affect many users
DOCUMENT_LANE = "document"  # documents of desired state may change everything, so one is applied at a time

P = ParamSpec("P")
T = TypeVar("T")
ReadScope: TypeAlias = Callable[[Transaction], Awaitable[Scope]]


class WriteMode(Struct, frozen=True):
    """How a write is done."""

    dry_run: bool = False  # roll the write back, and only report what it would change
    override: bool = False  # write even if an assertion of an application fails; the override is audited
    actor: AuditActor = field(default_factory=AuditActor)  # of the audit entry of an override
    overridable: Callable[[int], bool] = lambda _application_id: True  # whose assertions the actor may override


WRITE = WriteMode()


class Written(Struct, Generic[T], frozen=True):
    result: T  # of the work; for a dry run, of the work that was rolled back
    impact: Impact

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.impact.warnings


class _DryRunEnd(Exception):
    """Rolls the transaction of a dry run back."""

    def __init__(self, written: Written[Any]) -> None:
        self.written = written


class PermissionWriter:
    def __init__(self, database: Database, facts: StoredFacts, recorder: ChangeRecorder | None = None) -> None:
        self._database = database
        self._facts = facts
        self._recorder = recorder or NoRecorder()

    async def write(
        self,
        mode: WriteMode,
        scope: Scope,
        work: Callable[Concatenate[Transaction, P], Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Written[T]:
        """Runs ``work(tx, *args, **kwargs)`` in one transaction, and returns its result with what it changed.

        ``work`` must change only what ``scope`` names. It may be called again, see `Database.transaction`.
        """
        if not scope.is_expensive:
            return await self._write(EVALUATION_S, mode, scope, work, *args, **kwargs)
        with self._database.shares.limit_evaluation(*scope.lanes):
            return await self._write(EVALUATION_S, mode, scope, work, *args, **kwargs)

    async def write_login(self, user_id: str, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Runs a change of a user's own login. Assertions cannot stop it; those that fail are in the audit trail."""
        mode = WriteMode(override=True, actor=AuditActor(user_id=user_id))
        return (await self.write(mode, Scope.account(user_id), work)).result

    async def write_document(
        self,
        seconds: float,
        mode: WriteMode,
        scope: ReadScope,
        work: Callable[[Transaction], Awaitable[T]],
    ) -> Written[T]:
        """Like `write`, with another deadline. The scope is read in the transaction, before anything is locked."""
        with self._database.shares.limit_document(DOCUMENT_LANE):
            return await self._write(seconds, mode, scope, work)

    async def _write(
        self,
        seconds: float,
        mode: WriteMode,
        scope: Scope | ReadScope,
        work: Callable[Concatenate[Transaction, P], Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Written[T]:
        def call(tx: Transaction) -> Awaitable[T]:
            return work(tx, *args, **kwargs)

        try:
            return await self._database.contended_transaction(seconds, self._run, mode, scope, call)
        except _DryRunEnd as end:
            return end.written

    async def _run(
        self, tx: Transaction, mode: WriteMode, scope: Scope | ReadScope, work: Callable[[Transaction], Awaitable[T]]
    ) -> Written[T]:
        if not isinstance(scope, Scope):
            scope = await scope(tx)
        elif mode.dry_run and not scope.is_few_records:
            await lock_dry_runs(tx)
        compare = self._compare_records if scope.is_few_records else self._compare_states
        written = await compare(tx, scope, work)
        if mode.dry_run:
            raise _DryRunEnd(written)
        impact = written.impact
        if impact.failed_assertions:
            await _override(tx, mode, impact.failed_assertions)
        exact = [change for change in impact.changes if change.application_id not in impact.unevaluated]
        touched = {key: users for key, users in impact.touched.items() if key != CENTRAL_APPLICATION_ID}
        if exact or impact.unevaluated or touched:
            await self._recorder.record(tx, exact, impact.unevaluated, touched)
        return written

    async def _compare_records(
        self, tx: Transaction, scope: Scope, work: Callable[[Transaction], Awaitable[T]]
    ) -> Written[T]:
        assertions = await lock_applications(tx, scope.changed_applications | scope.read_applications)
        comparison = RecordComparison(self._facts, sorted(scope.records), self._now)
        await comparison.begin(tx)
        guard = RootGuard(scope)
        await guard.begin(tx)
        result = await work(tx)
        await guard.check(tx)
        return Written(result, await comparison.finish(tx, assertions))

    async def _compare_states(
        self, tx: Transaction, scope: Scope, work: Callable[[Transaction], Awaitable[T]]
    ) -> Written[T]:
        comparison = StateComparison(self._facts, scope, self._now)
        await comparison.lock_accounts(tx)
        await lock_scope(tx, scope)
        comparison.now = self._now  # begins and ends of time windows until now are recorded by those who had the locks
        await comparison.begin(tx)
        guards = LastAdministrators(self._facts, scope, comparison.now)
        await guards.begin(tx, comparison.before)
        result = await work(tx)
        await comparison.read_after(tx)
        await guards.check(tx, comparison)
        return Written(result, await comparison.finish(tx))

    @property
    def _now(self) -> int:
        return int(self._database.clock.now())


def overridable_by(*, is_root: bool, manages_applications: bool) -> Callable[[int], bool]:
    """Returns whose assertions a caller may override: those that the caller may change."""
    return lambda application_id: is_root or (manages_applications and application_id != CENTRAL_APPLICATION_ID)


def override_refusal(application_id: int) -> str:
    """Returns the text for a caller who may not change the assertions of the application, and so may not override."""
    right = "the role root" if application_id == CENTRAL_APPLICATION_ID else "can_manage_applications"
    return f"override: {right} is required to override an assertion of application {application_id}"


async def _override(tx: Transaction, mode: WriteMode, failed: Sequence[FailedAssertion]) -> None:
    """Raises AssertionFailed, unless the write overrides assertions, which is audited."""
    if not mode.override:
        raise AssertionFailed(list(failed))
    for item in failed:
        if not mode.overridable(item.application_id):
            raise Forbidden(override_refusal(item.application_id))
        await trail.write(
            tx,
            mode.actor,
            "assertions.override",
            str(item.application_id),
            None,
            {"assertion": item.statement, "reason": item.reason},
            application_id=item.application_id,
        )
