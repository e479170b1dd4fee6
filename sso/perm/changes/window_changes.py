"""Records who gains and loses permissions when time windows of conditions begin and end.

The permissions themselves follow the clock; this adds the events to the change stream, once, on whichever worker looks
first. After a time without any worker, the events are about the difference since then.
"""

import random
from collections.abc import Sequence

import structlog
import trio

from sso.db.database import Database
from sso.db.errors import DatabaseError, ReadOnly, Unreachable
from sso.db.transaction import Transaction, run_pure
from sso.perm.changes.assertion_check import AssertionCheck
from sso.perm.changes.candidates import Candidates
from sso.perm.changes.evaluation import evaluate
from sso.perm.changes.impact import MAX_EXACT_USERS, PermissionChange
from sso.perm.changes.recorder import ChangeRecorder
from sso.perm.changes.scope import Scope
from sso.perm.changes.state_comparison import StateComparison
from sso.perm.changes.writer import EVALUATION_S
from sso.perm.engine.effective_permissions import EffectivePermissions
from sso.perm.engine.facts import ProjectFacts
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.engine.time_windows import TimeWindow
from sso.perm.stores.facts import StoredFacts
from sso.perm.stores.locks import lock_applications
from sso.perm.stores.permission_state import PermissionState
from sso.perm.stores.time_windows import ALL_APPLICATIONS, advance, members_with_windows, read_moment, read_windows
from sso.perm.stores.user_rows import UserRow

INTERVAL_S = 5.0  # between looks for windows that were saved
MIN_PAUSE_S = 0.05
log = structlog.get_logger()


class WindowChanges:
    def __init__(self, database: Database, facts: StoredFacts, recorder: ChangeRecorder) -> None:
        self._database = database
        self._facts = facts
        self._recorder = recorder

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            pause = INTERVAL_S * random.uniform(0.5, 1.5)  # noqa: S311 - jitter between workers
            try:
                next_change = await self.record_due()
                pause = min(pause, max(next_change - self._database.clock.now(), 0) + MIN_PAUSE_S)
            except DatabaseError as error:
                log.warning("time_windows.recording_failed", reason=str(error))
            await trio.sleep(pause)

    async def record_due(self) -> float:
        """Records the begins and ends up to now. Returns the moment of the next one."""
        now = int(self._database.clock.now())
        recorded_to, known_to, windows = await self._database.transaction(read_windows, now)
        due: dict[int, list[TimeWindow]] = {}
        for application_id, window in windows:
            if window.period(recorded_to).until <= now:
                due.setdefault(application_id, []).append(window)
        are_recorded = [await self._try(key, due[key], recorded_to, now) for key in sorted(due)]
        if all(are_recorded) and (due or recorded_to < known_to - INTERVAL_S / 2):
            await self._database.transaction(advance, ALL_APPLICATIONS, known_to)
        return min((window.period(now).until for _, window in windows), default=float("inf"))

    async def _try(self, application_id: int, windows: Sequence[TimeWindow], recorded_to: int, now: int) -> bool:
        """Records the begins and ends at one application. Returns False if that failed: it is tried again later."""
        transaction = self._database.contended_transaction
        try:
            with self._database.shares.limit_evaluation(("application", application_id)):
                await transaction(EVALUATION_S, self._record, application_id, windows, recorded_to, now)
        except (Unreachable, ReadOnly):
            raise
        except Exception as error:  # one application must not stop the others
            log.warning("time_windows.recording_failed", application_id=application_id, reason=repr(error))
            return False
        return True

    async def _record(
        self, tx: Transaction, application_id: int, windows: Sequence[TimeWindow], recorded_to: int, now: int
    ) -> None:
        await lock_applications(tx, [application_id])
        since = await read_moment(tx, application_id, recorded_to)
        if all(window.period(since).until > now for window in windows):  # all of them are recorded already
            return
        comparison = WindowComparison(self._facts, Scope(), now, since=since)
        changes = await comparison.compare(tx, application_id)
        unevaluated = comparison.unevaluated
        exact = [] if application_id in unevaluated else changes
        if exact or unevaluated:
            await self._recorder.record(tx, exact, unevaluated, {})
        await advance(tx, application_id, now)


class WindowComparison(StateComparison):
    """Compares the permissions at two moments with the same records."""

    since: int = 0

    async def compare(self, tx: Transaction, application_id: int) -> list[PermissionChange]:
        self.before = self.after = state = await PermissionState.read(tx, [application_id], ())
        await state.compile(tx, self.facts, [application_id])
        is_large = self._is_large(application_id)
        candidates = await run_pure(tx, is_large, _candidates, application_id, state)
        if application_id == CENTRAL_APPLICATION_ID:
            candidates.users |= await members_with_windows(tx, MAX_EXACT_USERS + 1)
        return await self._compare(tx, candidates, {}, AssertionCheck({}, {})) if candidates else []

    def _evaluate_before(self, application_id: int, row: UserRow) -> EffectivePermissions | None:
        return evaluate(self.before, application_id, row, self.since)

    @property
    def _only_scope_matters(self) -> bool:
        return False


def _candidates(application_id: int, state: PermissionState) -> Candidates:
    """Returns the users whose permissions time windows may change."""
    candidates = Candidates(application_id)
    home = state.home(application_id)
    roles = [role for role in state.compiled[application_id].roles.values() if role.windows]
    for role in roles:
        candidates.add_role(role)
    candidates.add_grants(home, {role.name for role in roles})
    if home is not None:
        _add_groups(candidates, home)
    return candidates


def _add_groups(candidates: Candidates, home: ProjectFacts) -> None:
    listed = {*home.allow, *home.disallow}
    if any(group.id in listed and group.windows for group in home.groups):
        candidates.add_grants(home)
        return
    granted = {action.group_id for action in home.services.get(candidates.application_id, ())}
    for group in home.groups:
        if group.id in granted and group.windows:
            candidates.add_group(group)
