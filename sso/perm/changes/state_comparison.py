"""Compares the permissions of all users whom a write of applications, projects or attributes of users may affect.

The state before the write is kept in memory: applications, projects, memberships and attributes. Candidates are found
after the write, by the difference of the states. Only records that the scope names change: they are read before it.
The steps share these states, so the file has a little over 300 lines.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from sso.db.transaction import Transaction, run_pure
from sso.perm.changes.assertion_check import AssertionCheck, check_application
from sso.perm.changes.candidates import Candidates, attributes_that_differ, find_candidates, is_removed
from sso.perm.changes.equal_users import EqualUsers, named_by_states
from sso.perm.changes.evaluation import FEW_USERS, MAX_WORK, chunks, evaluate, parts, read_member_projects
from sso.perm.changes.impact import (
    MAX_EXACT_USERS,
    MAX_LISTED_BYTES,
    Impact,
    PermissionChange,
    permission_change,
)
from sso.perm.changes.scope import Scope
from sso.perm.changes.size_limits import applications_with_more_groups, check_sizes
from sso.perm.changes.touched_facts import find_touched
from sso.perm.changes.write_warnings import write_warnings
from sso.perm.engine.effective_permissions import EffectivePermissions
from sso.perm.engine.render import as_list
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.stores.affected_users import applications_with_conditions, find_holders_of
from sso.perm.stores.facts import StoredFacts
from sso.perm.stores.locks import lock_applications, lock_conditions
from sso.perm.stores.permission_state import PermissionState
from sso.perm.stores.user_rows import (
    EncodedUserReader,
    UserAccount,
    UserRow,
    decode_users,
    read_accounts,
    read_user_rows,
    user_ids_by_name,
)

MAX_EVALUATIONS = 3 * MAX_EXACT_USERS  # of users, at all applications together


class StateComparison(Struct, dict=True):
    facts: StoredFacts
    scope: Scope
    now: int
    unevaluated: dict[int, int] = field(default_factory=dict)  # see `Impact`
    accounts_before: dict[str, UserAccount] = field(default_factory=dict)  # by user id
    _records: dict[tuple[str, int], UserRow] = field(default_factory=dict)  # before the write
    # Before the write, without own data: of many users, whose roles the write may remove.
    _holders: dict[tuple[str, int], UserRow] = field(default_factory=dict)
    _evaluations: int = 0
    _work: int = 0  # see `MAX_WORK`
    _listed_bytes: int = 0  # see `MAX_LISTED_BYTES`

    async def lock_accounts(self, tx: Transaction) -> None:
        """Locks the users in the scope. Users are locked before applications, as by the creation of projects."""
        self.accounts_before = await self._read_accounts(tx, lock=bool(self.scope.accounts))

    async def begin(self, tx: Transaction) -> None:
        scope = self.scope
        self.before = await self._read_state(tx)
        await self.before.compile(tx, self.facts, scope.applications)
        for application_id, name in scope.removed_roles:
            holders = await find_holders_of(tx, application_id, name, limit=MAX_EXACT_USERS + 1)
            for chunk in chunks(holders):
                rows = await read_user_rows(tx, application_id, chunk, with_data=False)
                self._holders |= {(user_id, application_id): row for user_id, row in rows.items()}
        for application_id, user_ids in _by_application(self._user_pairs(self.accounts_before)):
            await self._keep_records(tx, application_id, user_ids)

    async def read_after(self, tx: Transaction) -> None:
        self.accounts_after = await self._read_accounts(tx)
        self.after = await self._read_state(tx)
        self._share_unchanged()
        await self.after.compile(tx, self.facts, self.scope.applications)

    async def finish(self, tx: Transaction) -> Impact:
        accounts = self.accounts_after
        await self._check_sizes(tx)
        explicit = await self._explicit_candidates(tx, accounts)
        changes: list[PermissionChange] = []
        check = await AssertionCheck.begin(tx, self._assertions)
        for application_id in sorted({*self.after.applications, *explicit}):
            if is_removed(self.before, application_id) != is_removed(self.after, application_id):
                await self._compile_unchanged(tx, application_id)
            is_large = self._is_large(application_id)
            candidates = await run_pure(tx, is_large, find_candidates, application_id, self.before, self.after)
            candidates.users |= explicit.get(application_id, set())
            if candidates:
                changes += await self._compare(tx, candidates, accounts, check)
        failed = [*await check.failures(tx), *check.new_newcomer_failures(self.before, self.after, self.now)]
        is_large = any(map(self._is_large, self.scope.applications))
        warnings = await run_pure(tx, is_large, write_warnings, self.scope, self.before, self.after, self.now)
        for application_id in self._applications_to_check():
            statements = self.after.applications[application_id].assertions
            more, more_warnings = await check_application(tx, self.facts, application_id, statements, self.now)
            failed = [item for item in failed if item.application_id != application_id] + more
            warnings += more_warnings
        listed = (change for change in changes if change.application_id not in self.unevaluated)
        touched = find_touched(self.scope, self.before, self.after, explicit, listed)
        return replace(Impact.of(changes, self.unevaluated, warnings), failed_assertions=failed, touched=touched)

    def _is_large(self, application_id: int) -> bool:
        states = (self.before, self.after)
        return any(state.compiled[application_id].is_large for state in states if application_id in state.compiled)

    async def _check_sizes(self, tx: Transaction) -> None:
        for application_id in applications_with_more_groups(self.before, self.after):
            await self._compile_unchanged(tx, application_id)
        is_large = any(map(self._is_large, self.after.compiled))
        await run_pure(tx, is_large, check_sizes, self.before, self.after)

    @property
    def _assertions(self) -> dict[int, list[str]]:
        """The assertions of all applications at which permissions may change. Those of removed ones do not matter."""
        return {
            application_id: application.assertions
            for application_id, application in self.after.applications.items()
            if application.assertions and not is_removed(self.after, application_id)
        }

    def _applications_to_check(self) -> list[int]:
        """Returns those of which all users must be checked: not all were evaluated, or the assertions are new."""
        return [
            application_id
            for application_id, statements in sorted(self._assertions.items())
            if application_id in self.unevaluated or statements != self._assertions_before(application_id)
        ]

    def _assertions_before(self, application_id: int) -> list[str]:
        application = self.before.applications.get(application_id)
        return application.assertions if application is not None else []

    async def _read_state(self, tx: Transaction) -> PermissionState:
        application_ids = self.scope.changed_applications
        if self.scope.projects:
            application_ids |= {CENTRAL_APPLICATION_ID}
        return await PermissionState.read(tx, application_ids, self.scope.projects)

    async def _read_accounts(self, tx: Transaction, *, lock: bool = False) -> dict[str, UserAccount]:
        names = self.scope.accounts | {user for user, _ in self.scope.records}
        accounts = await read_accounts(tx, names, lock=lock) if names else []
        return {account.user_id: account for account in accounts}

    def _user_pairs(self, accounts: dict[str, UserAccount]) -> Iterator[tuple[str, int]]:
        """Returns the records in the scope, with user ids in place of logins."""
        ids = user_ids_by_name(accounts.values(), {name for name, _ in self.scope.records})
        return ((ids[name], application_id) for name, application_id in self.scope.records if name in ids)

    async def _keep_records(self, tx: Transaction, application_id: int, user_ids: Sequence[str]) -> None:
        for chunk in chunks(user_ids[: MAX_EXACT_USERS + 1]):
            for user_id, row in (await read_user_rows(tx, application_id, chunk)).items():
                self._records[user_id, application_id] = row

    def _share_unchanged(self) -> None:
        """Uses the compiled applications of the state before the write, where they did not change."""
        for application_id, compiled in self.before.compiled.items():
            if self.after.applications[application_id].revision == compiled.version:
                self.after.compiled[application_id] = compiled

    async def _explicit_candidates(self, tx: Transaction, accounts: dict[str, UserAccount]) -> dict[int, set[str]]:
        candidates: dict[int, set[str]] = {}
        for user_id, application_id in (*self._holders, *self._records, *self._user_pairs(accounts)):
            candidates.setdefault(application_id, set()).add(user_id)
        by_attributes = await self._candidates_by_attributes(tx, accounts)
        await lock_applications(tx, by_attributes)
        for application_id, user_ids in by_attributes.items():
            candidates.setdefault(application_id, set()).update(user_ids)
        await self._add_applications(tx, candidates)
        return candidates

    async def _candidates_by_attributes(self, tx: Transaction, accounts: dict[str, UserAccount]) -> dict[int, set[str]]:
        """Returns the users whose attributes the write changed, and those that it created, where these matter."""
        candidates: dict[int, set[str]] = {}
        applications: dict[frozenset[str], set[int]] = {}
        for user_id, attributes in attributes_that_differ(
            self.accounts_before, accounts, creates_accounts=bool(self.scope.accounts)
        ):
            if not applications:
                await lock_conditions(tx)
            if attributes not in applications:
                applications[attributes] = await applications_with_conditions(tx, attributes)
            # At the central application, projects may admit a member or not. A new user is a member of none.
            central = {CENTRAL_APPLICATION_ID} if user_id in self.accounts_before else set()
            for application_id in applications[attributes] | central:
                candidates.setdefault(application_id, set()).add(user_id)
        return candidates

    async def _add_applications(self, tx: Transaction, application_ids: Iterable[int]) -> None:
        """Reads applications that the write does not change, but where it changes permissions."""
        missing = [item for item in application_ids if item not in self.after.applications]
        if missing:
            state = await PermissionState.read(tx, missing, ())
            for side in (self.before, self.after):
                side.applications |= state.applications
                side.projects = state.projects | side.projects

    async def _compare(
        self, tx: Transaction, candidates: Candidates, accounts: dict[str, UserAccount], check: AssertionCheck
    ) -> list[PermissionChange]:
        application_id = candidates.application_id
        await self._compile_unchanged(tx, application_id)
        user_ids = await candidates.find(tx)
        limit = 0 if self._is_exhausted else min(MAX_EXACT_USERS, MAX_EVALUATIONS - self._evaluations)
        if len(user_ids) > limit:
            self.unevaluated[application_id] = await candidates.count(tx)
            user_ids = self._with_known_records(application_id, user_ids, accounts)
        self._evaluations += min(limit, len(user_ids))
        changes: list[PermissionChange] = []
        is_large = self._is_large(application_id)
        states = self.before, self.after
        equal_users = EqualUsers(application_id, await run_pure(tx, is_large, named_by_states, application_id, states))
        known: dict[Hashable, PermissionChange | None] = {}
        for chunk in chunks(user_ids[:limit]):
            async for encoded in EncodedUserReader(tx, application_id, chunk):
                rows, takes_long = await decode_users(tx, encoded), is_large or encoded.is_large
                kept = [self._kept(application_id, row) for row in rows.values()]
                await self._read_projects(tx, application_id, [*rows.values(), *filter(None, kept)])
                for part in parts(list(rows.values()), is_large=is_large):
                    work = application_id, part, accounts, equal_users, known, check
                    changes += await run_pure(tx, len(part) > FEW_USERS or takes_long, self._compare_rows, *work)
                    if self._is_exhausted:
                        self.unevaluated[application_id] = await candidates.count(tx)
                        return changes
        return changes

    def _compare_rows(
        self,
        application_id: int,
        rows: Iterable[UserRow],
        accounts: Mapping[str, UserAccount],
        equal_users: EqualUsers,
        known: dict[Hashable, PermissionChange | None],
        check: AssertionCheck,
    ) -> list[PermissionChange]:
        """``known`` has the changes of users with these keys of ``equal_users``."""
        changes: list[PermissionChange] = []
        for row in rows:
            if self._is_exhausted:
                break
            user_id = row.user.user_id
            named = user_id in accounts or self._kept(application_id, row) is not None
            key = None if named or application_id in check.assertions else equal_users.key(row)
            if key is not None and key in known:
                if (same := known[key]) is not None:
                    self._add_change(changes, same._replace(user_id=user_id))
                continue
            is_created = user_id in accounts and user_id not in self.accounts_before
            before = None if is_created else self._evaluate_before(application_id, row)
            after = self._evaluate(self.after, application_id, row)
            if after is not None:
                check.see(after, user_id, self.after.home(application_id))
            entries_before, entries_after = _entries(before), _entries(after)
            self._work += self._condition_nodes(application_id) + len(entries_before) + len(entries_after)
            change = permission_change(user_id, application_id, entries_before, entries_after)
            if key is not None:
                known[key] = change
            if change is not None:
                self._add_change(changes, change)
        return changes

    def _add_change(self, changes: list[PermissionChange], change: PermissionChange) -> None:
        self._listed_bytes += change.size
        changes.append(change)

    @property
    def _is_exhausted(self) -> bool:
        """Returns whether the write has evaluated, or lists, as much as it may."""
        return self._work > MAX_WORK or self._listed_bytes > MAX_LISTED_BYTES

    def _condition_nodes(self, application_id: int) -> int:
        states = (self.before, self.after)
        return sum(
            state.compiled[application_id].condition_nodes for state in states if application_id in state.compiled
        )

    def _with_known_records(
        self, application_id: int, user_ids: list[str], accounts: dict[str, UserAccount]
    ) -> list[str]:
        """Leaves out users whose record is in the scope, but too many are, so that it was not read before the write."""
        pairs = {pair for pair in self._user_pairs(accounts) if pair[0] in self.accounts_before} - self._records.keys()
        return [user_id for user_id in user_ids if (user_id, application_id) not in pairs]

    async def _compile_unchanged(self, tx: Transaction, application_id: int) -> None:
        await self.after.compile(tx, self.facts, [application_id])
        if application_id not in self.scope.applications and application_id in self.after.compiled:
            self.before.compiled.setdefault(application_id, self.after.compiled[application_id])

    async def _read_projects(self, tx: Transaction, application_id: int, rows: Iterable[UserRow]) -> None:
        """Reads the projects of members that the write does not change."""
        if application_id == CENTRAL_APPLICATION_ID and not self._only_scope_matters:
            for project_id in await read_member_projects(tx, self.after, rows):
                self.before.projects[project_id] = self.after.projects[project_id]

    @property
    def _only_scope_matters(self) -> bool:
        """Returns whether projects outside the scope change no permissions, and no assertion needs them."""
        compiled = [state.compiled.get(CENTRAL_APPLICATION_ID) for state in (self.before, self.after)]
        has_assertions = bool(self.after.applications[CENTRAL_APPLICATION_ID].assertions)
        return compiled[0] is compiled[1] and not self.scope.accounts and not has_assertions

    def _evaluate_before(self, application_id: int, row: UserRow) -> EffectivePermissions | None:
        user_id = row.user.user_id
        row = self._kept(application_id, row) or row
        if user_id in self.accounts_before:
            row = row._replace(user=self.accounts_before[user_id].facts)
        return self._evaluate(self.before, application_id, row)

    def _kept(self, application_id: int, row: UserRow) -> UserRow | None:
        """Returns the row of the user before the write; None if it is still the same."""
        pair = row.user.user_id, application_id
        if (holder := self._holders.get(pair)) is not None and pair not in self._records:
            return holder._replace(own=replace(row.own, roles=holder.own.roles))
        return self._records.get(pair)

    def _evaluate(self, state: PermissionState, application_id: int, row: UserRow) -> EffectivePermissions | None:
        scope_only = application_id == CENTRAL_APPLICATION_ID and self._only_scope_matters
        return evaluate(state, application_id, row, self.now, scope_only=scope_only)


def _entries(effective: EffectivePermissions | None) -> list[str]:
    return [] if effective is None else as_list(effective)


def _by_application(pairs: Iterable[tuple[str, int]]) -> list[tuple[int, list[str]]]:
    users: dict[int, list[str]] = {}
    for user_id, application_id in pairs:
        users.setdefault(application_id, []).append(user_id)
    return sorted(users.items())
