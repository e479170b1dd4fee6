"""Compares the permissions of all users whom a write of applications, projects or attributes of users may affect.

The state before the write is kept in memory: applications, projects, memberships and attributes. Candidates are found
after the write, by the difference of the states. Their own records did not change, unless the scope names them; so a
record that is read after the write is also the one before it. Records that the scope names are read before the write.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.changes.candidates import Candidates, find_candidates, is_removed
from sso.perm.changes.impact import MAX_EXACT_USERS, PermissionChange, permission_change
from sso.perm.changes.scope import Scope
from sso.perm.changes.scope_locks import lock_applications
from sso.perm.changes.state import PermissionState
from sso.perm.changes.user_rows import UserAccount, UserRow, read_accounts, read_user_rows
from sso.perm.engine.decode import decode_membership
from sso.perm.engine.effective_permissions import compute_permissions
from sso.perm.engine.facts import PermissionFacts, ProjectFacts
from sso.perm.engine.names import CENTRAL_APPLICATION_ID
from sso.perm.engine.render import as_list
from sso.perm.engine.user_facts import UserFacts
from sso.perm.stores.facts import FactsStore, member_roles

MAX_EVALUATIONS = 3 * MAX_EXACT_USERS  # of users, at all applications together
USERS_AT_ONCE = 100  # evaluated between two statements, so that other requests of the worker get their turn

_HOLDERS = Statement(
    """SELECT user_id FROM role_assignments WHERE application_id = :application_id AND name = :name
    UNION SELECT user_id FROM project_members WHERE :application_id = 1 AND role = :name LIMIT :limit"""
)
# Applications where an attribute of a user matters: in a condition of a role, or of a group that gets roles, or in
# the allowed domains of a project that gives roles. Values are compared as they are written in JSON.
_WITH_CONDITIONS = Statement(
    """WITH part AS (SELECT to_jsonb(value)::text AS text FROM unnest(CAST(:values AS text[])) AS value)
    SELECT r.application_id FROM roles r
    WHERE EXISTS (SELECT FROM part WHERE strpos(r.condition::text, part.text) > 0)
    UNION SELECT a.application_id FROM applications a JOIN projects p ON p.id = a.project_id
    WHERE p.settings -> 'services' ? a.application_id::text AND (
        EXISTS (SELECT FROM user_groups g, part WHERE g.project_id = p.id AND strpos(g.conditions::text, part.text) > 0)
        OR (:domain AND p.settings ? 'allowed_domains'))"""
)


@dataclass
class StateComparison:
    facts: FactsStore
    scope: Scope
    now: int
    unevaluated: dict[int, int] = field(default_factory=dict)  # see `Impact`
    _accounts: dict[str, UserAccount] = field(default_factory=dict)  # before the write, by user id
    _records: dict[tuple[str, int], UserRow] = field(default_factory=dict)  # before the write
    _evaluations: int = 0

    async def begin(self, tx: Transaction) -> None:
        scope = self.scope
        self._accounts = await self._read_accounts(tx)
        self.before = await self._read_state(tx)
        await self.before.compile(tx, self.facts, scope.applications)
        for application_id, name in scope.removed_roles:
            rows = await tx.rows(_HOLDERS, application_id=application_id, name=name, limit=MAX_EXACT_USERS + 1)
            await self._keep_records(tx, application_id, [row["user_id"] for row in rows])
        for application_id, user_ids in _by_application(self._user_pairs(self._accounts)):
            await self._keep_records(tx, application_id, user_ids)

    async def finish(self, tx: Transaction) -> list[PermissionChange]:
        accounts = await self._read_accounts(tx)
        self.after = await self._read_state(tx)
        self._share_unchanged()
        await self.after.compile(tx, self.facts, self.scope.applications)
        explicit = await self._explicit_candidates(tx, accounts)
        changes: list[PermissionChange] = []
        for application_id in sorted({*self.after.applications, *explicit}):
            if is_removed(self.before, application_id) != is_removed(self.after, application_id):
                await self._compile_unchanged(tx, application_id)
            candidates = find_candidates(application_id, self.before, self.after)
            candidates.users |= explicit.get(application_id, set())
            if candidates:
                changes += await self._compare(tx, candidates, accounts)
        return changes

    async def _read_state(self, tx: Transaction) -> PermissionState:
        application_ids = self.scope.changed_applications
        if self.scope.projects:
            application_ids |= {CENTRAL_APPLICATION_ID}
        return await PermissionState.read(tx, application_ids, self.scope.projects)

    async def _read_accounts(self, tx: Transaction) -> dict[str, UserAccount]:
        names = self.scope.accounts | {user for user, _ in self.scope.records}
        return {account.user_id: account for account in await read_accounts(tx, names)} if names else {}

    def _user_pairs(self, accounts: dict[str, UserAccount]) -> Iterator[tuple[str, int]]:
        """The records in the scope, with user ids in place of logins."""
        ids = {name: account.user_id for account in accounts.values() for name in (account.user_id, account.login_key)}
        return ((ids[name], application_id) for name, application_id in self.scope.records if name in ids)

    async def _keep_records(self, tx: Transaction, application_id: int, user_ids: Sequence[str]) -> None:
        for chunk in _chunks(user_ids):
            for user_id, row in (await read_user_rows(tx, application_id, chunk)).items():
                self._records[user_id, application_id] = row

    def _share_unchanged(self) -> None:
        """Use the compiled applications of the state before the write, where they did not change."""
        for application_id, compiled in self.before.compiled.items():
            if self.after.applications[application_id].revision == compiled.version:
                self.after.compiled[application_id] = compiled

    async def _explicit_candidates(self, tx: Transaction, accounts: dict[str, UserAccount]) -> dict[int, set[str]]:
        candidates: dict[int, set[str]] = {}
        applications: dict[frozenset[str], set[int]] = {}  # by the attributes that changed
        for user_id, application_id in (*self._records, *self._user_pairs(accounts)):
            candidates.setdefault(application_id, set()).add(user_id)
        for user_id in accounts.keys() & self._accounts.keys():
            old, new = self._accounts[user_id].facts, accounts[user_id].facts
            if old != new:
                attributes = _changed_attributes(old, new)
                if attributes not in applications:
                    applications[attributes] = await _applications_with_conditions(tx, attributes)
                for application_id in applications[attributes]:
                    candidates.setdefault(application_id, set()).add(user_id)
        await lock_applications(tx, {item for ids in applications.values() for item in ids})
        await self._add_applications(tx, candidates)
        return candidates

    async def _add_applications(self, tx: Transaction, application_ids: Iterable[int]) -> None:
        """Read applications that the write does not change, but where it changes permissions."""
        missing = [item for item in application_ids if item not in self.after.applications]
        if missing:
            state = await PermissionState.read(tx, missing, ())
            for side in (self.before, self.after):
                side.applications |= state.applications
                side.projects = state.projects | side.projects

    async def _compare(
        self, tx: Transaction, candidates: Candidates, accounts: dict[str, UserAccount]
    ) -> list[PermissionChange]:
        application_id = candidates.application_id
        await self._compile_unchanged(tx, application_id)
        user_ids = await candidates.find(tx)
        limit = min(MAX_EXACT_USERS, MAX_EVALUATIONS - self._evaluations)
        if len(user_ids) > limit:
            self.unevaluated[application_id] = await candidates.count(tx)
        self._evaluations += min(limit, len(user_ids))
        created = accounts.keys() - self._accounts.keys()
        changes = []
        for chunk in _chunks(user_ids[:limit]):
            rows = await read_user_rows(tx, application_id, chunk)
            kept = [self._records[pair] for user_id in rows if (pair := (user_id, application_id)) in self._records]
            await self._read_projects(tx, application_id, [*rows.values(), *kept])
            for user_id, row in rows.items():
                before = () if user_id in created else self._list_before(application_id, user_id, row)
                after = self._list(self.after, application_id, row)
                change = permission_change(user_id, application_id, before, after)
                if change is not None:
                    changes.append(change)
        return changes

    async def _compile_unchanged(self, tx: Transaction, application_id: int) -> None:
        await self.after.compile(tx, self.facts, [application_id])
        if application_id not in self.scope.applications and application_id in self.after.compiled:
            self.before.compiled.setdefault(application_id, self.after.compiled[application_id])

    async def _read_projects(self, tx: Transaction, application_id: int, rows: Iterable[UserRow]) -> None:
        """Read the projects of members that the write does not change."""
        if application_id == CENTRAL_APPLICATION_ID and not self._only_scope_matters:
            missing = {project_id for row in rows for project_id in row.members} - self.after.projects.keys()
            await self.after.read_projects(tx, missing)
            for project_id in missing & self.after.projects.keys():
                self.before.projects[project_id] = self.after.projects[project_id]

    @property
    def _only_scope_matters(self) -> bool:
        """Whether projects outside the scope give the same permissions before and after the write."""
        compiled = [state.compiled.get(CENTRAL_APPLICATION_ID) for state in (self.before, self.after)]
        return compiled[0] is compiled[1] and not self.scope.accounts

    def _list_before(self, application_id: int, user_id: str, row: UserRow) -> list[str]:
        row = self._records.get((user_id, application_id), row)
        if user_id in self._accounts:
            row = row._replace(user=self._accounts[user_id].facts)
        return self._list(self.before, application_id, row)

    def _list(self, state: PermissionState, application_id: int, row: UserRow) -> list[str]:
        application = state.applications.get(application_id)
        if application is None or application_id not in state.compiled:
            return []  # it does not exist yet
        facts = PermissionFacts(
            user=row.user,
            own=row.own,
            removed=application.removed,
            home=state.home(application_id),
            projects=tuple(self._projects(state, row)) if application_id == CENTRAL_APPLICATION_ID else (),
        )
        return as_list(compute_permissions(state.compiled[application_id], facts, self.now))

    def _projects(self, state: PermissionState, row: UserRow) -> Iterator[ProjectFacts]:
        members = {} if self._only_scope_matters else dict(row.members)
        for project_id, roles_by_user in state.members.items():
            members.pop(project_id, None)
            if row.user.user_id in roles_by_user:
                members[project_id] = roles_by_user[row.user.user_id]
        for project_id, roles in members.items():
            if project_id in state.projects:
                yield replace(state.projects[project_id], membership=decode_membership(member_roles(roles)))


def _changed_attributes(old: UserFacts, new: UserFacts) -> frozenset[str]:
    """The strings of which a stored condition has one if the difference of the attributes matters to it."""
    domain = ("domain",) if old.domain != new.domain else ()
    return frozenset((*(old.tags ^ new.tags), *(old.purchases ^ new.purchases), *domain))


async def _applications_with_conditions(tx: Transaction, attributes: frozenset[str]) -> set[int]:
    """The applications where the difference of the attributes may matter."""
    rows = await tx.rows(_WITH_CONDITIONS, values=list(attributes), domain="domain" in attributes)
    return {CENTRAL_APPLICATION_ID, *(row["application_id"] for row in rows)}


def _by_application(pairs: Iterable[tuple[str, int]]) -> list[tuple[int, list[str]]]:
    users: dict[int, list[str]] = {}
    for user_id, application_id in pairs:
        users.setdefault(application_id, []).append(user_id)
    return sorted(users.items())


def _chunks(user_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(user_ids), USERS_AT_ONCE):
        yield user_ids[start : start + USERS_AT_ONCE]
