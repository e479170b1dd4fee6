"""Checks the assertions of applications with the permissions of users after a write.

A write is refused if an assertion fails for a user whom the write may affect. What already fails for other users, such
as after an override or the end of a role, does not stop it; `check_application` finds these. A write is also refused
if it gives everybody, by a default role or a value of the schema, what a new user must not have.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from sso.accounts.user_directory_store import read_logins
from sso.db.transaction import Runner, run_pure
from sso.perm.changes.candidates import Candidates
from sso.perm.changes.evaluation import FEW_USERS, MAX_WORK, chunks, evaluate, parts, read_member_projects
from sso.perm.changes.impact import MAX_EXACT_USERS, FailedAssertion
from sso.perm.engine import rules
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.effective_permissions import EffectivePermissions, compute_default_permissions
from sso.perm.engine.facts import ProjectFacts
from sso.perm.engine.render import short_name, short_prefix
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.errors import PermissionConflict
from sso.perm.input.assertions import Assertion, parse_assertion
from sso.perm.stores.affected_users import find_users_with_entry
from sso.perm.stores.facts import StoredFacts
from sso.perm.stores.permission_state import PermissionState
from sso.perm.stores.user_rows import EncodedUserReader, UserRow, decode_users, find_user_ids

MAX_NAMED = 5  # violators of one assertion that are named


class AssertionFailed(PermissionConflict):
    """The write would leave an assertion of an application that is not true."""

    def __init__(self, failed: list[FailedAssertion]) -> None:
        first = failed[0]
        more = f" ({len(failed) - 1} more fail)" if len(failed) > 1 else ""
        super().__init__(
            f"application {first.application_id}: the assertion '{first.statement}' would fail: {first.reason}{more}"
        )
        self.extra = {"failed_assertions": [item.json for item in failed]}
        self._failed = failed

    def without_users(self) -> "AssertionFailed":
        """Returns the same error for callers who may not read which users there are, and what they may do."""
        return AssertionFailed([item.without_users() for item in self._failed])


class AssertionCheck(Struct):
    """Sees the permissions of each user, and remembers the users who violate an assertion."""

    assertions: dict[int, tuple[Assertion, ...]]  # by application
    user_ids: Mapping[str, str]  # of the logins that they name
    violators: dict[tuple[int, Assertion], list[str]] = field(default_factory=dict)

    @classmethod
    async def begin(cls, runner: Runner, statements: Mapping[int, Iterable[str]]) -> "AssertionCheck":
        assertions = {
            application_id: tuple(map(parse_assertion, texts)) for application_id, texts in statements.items() if texts
        }
        logins = {item.login for items in assertions.values() for item in items if item.login}
        return cls(assertions, await find_user_ids(runner, logins) if logins else {})

    def see(self, effective: EffectivePermissions, user_id: str, home: ProjectFacts | None) -> None:
        """Checks the assertions about this user. ``home`` is the project of the application."""
        for assertion in self.assertions.get(effective.application_id, ()):
            if assertion.login:
                if self.user_ids.get(assertion.login) != user_id:
                    continue
                violated = _has_rule(effective, assertion, home) == assertion.negated
            else:
                violated = _has_rule(effective, assertion, home) and not _has_role(effective, assertion)
            if violated:
                self.violators.setdefault((effective.application_id, assertion), []).append(user_id)

    def newcomer_failures(
        self, application: CompiledApplication, home: ProjectFacts | None, now: int
    ) -> list[FailedAssertion]:
        """Returns the assertions that a new user would violate by what every user has, and that no present user
        violates."""
        effective = compute_default_permissions(application, now)
        application_id = application.application_id
        failed = []
        for assertion in self.assertions.get(application_id, ()):
            is_about_newcomers = not assertion.login or (assertion.negated and assertion.login not in self.user_ids)
            if (
                is_about_newcomers
                and (application_id, assertion) not in self.violators
                and _has_rule(effective, assertion, home)
                and not (assertion.role and _has_role(effective, assertion))
            ):
                failed.append(FailedAssertion(application_id, assertion.text, _newcomer_reason(assertion)))
        return failed

    def new_newcomer_failures(self, before: PermissionState, after: PermissionState, now: int) -> list[FailedAssertion]:
        """Returns the assertions that a new user would violate after the write, and did not before it."""
        failed: list[FailedAssertion] = []
        for application_id in self.assertions:
            old, new = (state.compiled.get(application_id) for state in (before, after))
            if new is None or new is old:
                continue
            known = self.newcomer_failures(old, before.home(application_id), now) if old else []
            found = self.newcomer_failures(new, after.home(application_id), now)
            failed += [item for item in found if item not in known]
        return failed

    async def failures(self, runner: Runner) -> list[FailedAssertion]:
        named = {user_id for users in self.violators.values() for user_id in users[:MAX_NAMED]}
        return self.failed(await read_logins(runner, named) if named else {})

    def failed(self, logins: Mapping[str, str]) -> list[FailedAssertion]:
        """Returns the assertions that the users seen violate. ``logins`` are those of the users, by id."""
        return [
            FailedAssertion(application_id, assertion.text, _reason(assertion, users, logins), tuple(users[:MAX_NAMED]))
            for (application_id, assertion), users in self.violators.items()
        ]

    def unknown_logins(self, text: str = "there is no user {}") -> list[FailedAssertion]:
        """Returns the assertions about what a user may who does not exist."""
        return [
            FailedAssertion(application_id, assertion.text, text.format(assertion.login))
            for application_id, assertions in self.assertions.items()
            for assertion in assertions
            if assertion.login and assertion.login not in self.user_ids and not assertion.negated
        ]


async def check_application(
    runner: Runner, facts: StoredFacts, application_id: int, statements: Iterable[str], now: int
) -> tuple[list[FailedAssertion], list[str]]:
    """Checks statements with all users that they concern. Returns those that fail, and warnings."""
    check = await AssertionCheck.begin(runner, {application_id: statements})
    state = await PermissionState.read(runner, [application_id], ())
    await state.compile(runner, facts, [application_id])
    user_ids = set(check.user_ids.values())
    application = state.compiled[application_id]
    is_large = application.is_large
    assertions = check.assertions.get(application_id, ())
    warnings = await run_pure(runner, is_large, _reference_warnings, application, assertions)
    for assertion in check.assertions.get(application_id, ()):
        if assertion.role:
            holders = await _possible_violators(runner, state, application_id, assertion)
            if len(holders) > MAX_EXACT_USERS:
                warnings.append(
                    f"'{assertion.text}': only {MAX_EXACT_USERS:,} of the users who may {assertion.rule} were checked"
                )
            user_ids.update(holders[:MAX_EXACT_USERS])
    checked = 0
    for chunk in chunks(sorted(user_ids)):
        async for encoded in EncodedUserReader(runner, application_id, chunk):
            rows, takes_long = await decode_users(runner, encoded), is_large or encoded.is_large
            if application_id == CENTRAL_APPLICATION_ID:
                await read_member_projects(runner, state, rows.values())
            for part in parts(list(rows.values()), is_large=is_large):
                work = check, state, application_id, part, now
                await run_pure(runner, len(part) > FEW_USERS or takes_long, _see_all, *work)
        checked += len(chunk)
        if checked * application.condition_nodes > MAX_WORK:
            warnings.append(f"the assertions were checked with {checked:,} of {len(user_ids):,} users")
            break
    newcomers = check.newcomer_failures(state.compiled[application_id], state.home(application_id), now)
    return [*check.unknown_logins(), *await check.failures(runner), *newcomers], warnings


def _see_all(
    check: AssertionCheck, state: PermissionState, application_id: int, rows: Iterable[UserRow], now: int
) -> None:
    for row in rows:
        effective = evaluate(state, application_id, row, now)
        if effective is not None:
            check.see(effective, row.user.user_id, state.home(application_id))


async def _possible_violators(
    runner: Runner, state: PermissionState, application_id: int, assertion: Assertion
) -> list[str]:
    """Returns the users who may have the rule other than through the role of the assertion."""
    application = state.compiled[application_id]
    paths = _paths(assertion)
    candidates = Candidates(application_id, everyone=not paths.isdisjoint(application.schema_rules))
    roles = await run_pure(runner, application.is_large, _roles_with_rule, application, paths) - {assertion.role}
    for name in roles:
        candidates.add_role(application.roles[name])
    candidates.add_grants(state.home(application_id), roles)
    for path in paths:
        own_path = path.split(".")[1:]
        candidates.users.update(await find_users_with_entry(runner, application_id, own_path, MAX_EXACT_USERS + 1))
    return await candidates.find(runner) if candidates else []


def _roles_with_rule(application: CompiledApplication, paths: frozenset[str]) -> set[str]:
    return {
        role.name
        for role in application.roles.values()
        if any(rule.listed and rule.path in paths for rule in role.rules)
    }


def _reference_warnings(application: CompiledApplication, assertions: Iterable[Assertion]) -> list[str]:
    """Warnings about roles and rules that do not exist, which may be misspelled."""
    known = {path for role in application.roles.values() for path in (rule.path for rule in role.rules)}
    known.update(
        path
        for section in rules.LISTED_SECTIONS
        for path, _ in rules.rule_nodes(getattr(application.schema, section), section)
    )
    warnings = []
    for assertion in assertions:
        if assertion.role and assertion.role not in application.roles:
            warnings.append(f"'{assertion.text}': there is no role {assertion.role}")
        if known.isdisjoint(_paths(assertion)):
            warnings.append(f"'{assertion.text}': neither the schema nor a role has the rule {assertion.rule}")
    return warnings


def _paths(assertion: Assertion) -> frozenset[str]:
    """Returns the paths that the rule of an assertion may have in roles, schemas and records."""
    name = assertion.rule.rpartition("/")[2]
    if name.startswith(("private_data.", "public_data.")):
        return frozenset((name,))
    return frozenset((f"private_data.{name}", f"public_data.{name}"))


def _has_rule(effective: EffectivePermissions, assertion: Assertion, home: ProjectFacts | None) -> bool:
    rule = assertion.rule
    if effective.application_id == CENTRAL_APPLICATION_ID and (assertion.project or "/" in rule):
        return any(
            path == rule
            if assertion.project
            else short_prefix(access.project.id, scope.level, scope.resource) + path == rule
            for access in effective.projects
            if not assertion.project or access.project.is_named(assertion.project)
            for scope in access.scopes
            for path in scope.rules
        )
    if assertion.project and (home is None or not home.is_named(assertion.project)):
        return False  # the application is not in this project
    if rule in effective.rules or f"private_data.{rule}" in effective.rules:
        return True
    public = f"public_data.{rule}"
    return public in effective.rules and short_name(effective, public) == rule


def _has_role(effective: EffectivePermissions, assertion: Assertion) -> bool:
    if assertion.role in effective.roles:
        return True
    names = [
        item.project.id
        for item in effective.projects
        if not assertion.project or item.project.is_named(assertion.project)
    ]
    return any(
        role.applies and role.name == assertion.role
        for access in effective.projects
        if access.project.id in names
        for role in access.roles
    )


def _reason(assertion: Assertion, users: list[str], logins: Mapping[str, str]) -> str:
    if assertion.login:
        return f"{assertion.login} {'may' if assertion.negated else 'may not'}"
    names = ", ".join(logins.get(user_id, user_id) for user_id in users[:MAX_NAMED])
    more = f" and {len(users) - MAX_NAMED} more" if len(users) > MAX_NAMED else ""
    return f"{names}{more} may without the role {assertion.role}"


def _newcomer_reason(assertion: Assertion) -> str:
    who = f"a new user {assertion.login}" if assertion.login else "every new user"
    return f"{who} may" + (f" without the role {assertion.role}" if assertion.role else "")
