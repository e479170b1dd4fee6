"""Permissions of the records of a document, computed without a database, and its assertions checked with them.

The engine and the check of assertions are those of the service. Only what is added here exists: an assertion is checked
with the users of the document, and the central application has its built-in roles.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct, field

from sso.accounts.model import login_key
from sso.perm.changes.assertion_check import AssertionCheck
from sso.perm.changes.evaluation import evaluate, facts_of
from sso.perm.changes.impact import FailedAssertion
from sso.perm.engine.compiled_application import compile_application
from sso.perm.engine.decode import decode_group, decode_own_record, decode_project
from sso.perm.engine.effective_permissions import EffectivePermissions
from sso.perm.engine.explanation.explain import explain_rule
from sso.perm.engine.explanation.text import explanation_lines
from sso.perm.engine.facts import ProjectApplication
from sso.perm.engine.records import NO_RECORD, OwnRecord, RoleRecord
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID, SECTIONS
from sso.perm.engine.user_facts import UserFacts
from sso.perm.input.assertions import parse_assertion
from sso.perm.input.membership import read_group_list, read_members
from sso.perm.input.references import ProjectResources
from sso.perm.stores import builtin_roles
from sso.perm.stores.permission_state import ApplicationState, PermissionState
from sso.perm.stores.user_rows import UserRow

_FIRST_ID = 10**17  # of users whose ids the service chooses
_NO_SECTIONS: Mapping[str, Any] = {name: {} for name in SECTIONS}


class OfflineGroup(NamedTuple):
    group_id: str
    title: str
    users: Sequence[str]
    conditions: Sequence[Mapping[str, Any]]
    tags: Sequence[str]


class OfflineState(Struct):
    state: PermissionState = field(default_factory=lambda: PermissionState({}, {}, {}))
    users: dict[str, UserFacts] = field(default_factory=dict)
    _ids: dict[str, str] = field(default_factory=dict)  # user ids by login
    _logins: dict[str, str] = field(default_factory=dict)
    _records: dict[tuple[str, int], OwnRecord] = field(default_factory=dict)
    _members: dict[str, dict[str, list[list[Any]]]] = field(default_factory=dict)  # by user, then by project

    def add_user(self, user_id: str | None, login: str, tags: Iterable[str], purchases: Iterable[str]) -> None:
        key = user_id or str(_FIRST_ID + len(self.users))
        self.users[key] = UserFacts.from_login(key, login, tuple(tags), tuple(purchases))
        self._ids[login_key(login)] = key
        self._logins[key] = login

    def find_user(self, name: str) -> str:
        """Returns the id of the user with this login or id. One that the document does not have is added."""
        if name not in self.users and login_key(name) not in self._ids:
            self.add_user(None if "@" in name else name, name if "@" in name else f"{name}@unknown.invalid", (), ())
        return self._ids.get(login_key(name), name)

    def add_application(
        self,
        application_id: int,
        project_id: str | None,
        schema: Mapping[str, Any],
        roles: Iterable[dict[str, Any]],
        assertions: Sequence[str] = (),
    ) -> None:
        is_central = application_id == CENTRAL_APPLICATION_ID
        built_in = builtin_roles.SCHEMA
        stored = {name: getattr(built_in, name) for name in SECTIONS} if is_central else _NO_SECTIONS
        records = {role.name: role for role in builtin_roles.ROLES} if is_central else {}
        records |= {role["name"]: RoleRecord(**role) for role in roles}
        complete = builtin_roles.complete_schema(stored, schema)
        self.state.applications[application_id] = ApplicationState(
            application_id, False, project_id, 1, list(assertions)
        )
        self.state.compiled[application_id] = compile_application(application_id, 1, complete, records.values())

    def add_project(
        self,
        project: Mapping[str, Any],
        groups: Iterable[OfflineGroup],
        applications: Iterable[tuple[int, str, bool]],
        membership: Mapping[str, Any],
    ) -> None:
        """``project`` has id, title, aliases and settings. Raises FieldError for a wrong membership."""
        known = list(groups)
        parts = [ProjectApplication(key, name, False, is_service) for key, name, is_service in applications]
        resources = ProjectResources(
            frozenset(part.id for part in parts),
            frozenset(part.id for part in parts if part.is_service),
            {group.group_id: tuple(group.tags) for group in known},
        )
        lists = {name: read_group_list(membership.get(name, []), resources, (name,)) for name in ("allow", "disallow")}
        decoded = [decode_group(item.group_id, item.users, item.conditions, item.tags, item.title) for item in known]
        self.state.projects[project["id"]] = decode_project({**project, **lists}, parts, decoded)
        central = self.state.compiled[CENTRAL_APPLICATION_ID]
        members, _ = read_members(membership.get("users", []), resources, central)
        for member in members:
            rows = self._members.setdefault(member.user_id, {}).setdefault(project["id"], [])
            rows.append([member.level, member.resource, member.role, member.expired, member.ttl])
            self.find_user(member.user_id)

    def add_record(self, user: str, application_id: int, record: Mapping[str, Any]) -> None:
        """``record`` has the roles and sections of a user at an application."""
        self._records[self.find_user(user), application_id] = decode_own_record(record)

    def check(self, now: int) -> list[FailedAssertion]:
        """Returns the assertions that fail, each with the explanation of the first user who violates it."""
        assertions = {
            key: tuple(map(parse_assertion, application.assertions))
            for key, application in self.state.applications.items()
            if application.assertions
        }
        logins = {item.login for items in assertions.values() for item in items if item.login}
        check = AssertionCheck(assertions, {name: self._ids[login_key(name)] for name in logins if self._has(name)})
        for application_id in assertions:
            home = self.state.home(application_id)
            for user_id in self.users:
                if (effective := self._evaluate(application_id, user_id, now)) is not None:
                    check.see(effective, user_id, home)
        failed = [
            item._replace(reason=f"{item.reason}{self._because(item, now)}") for item in check.failed(self._logins)
        ]
        failed += check.unknown_logins("there is no user {} in the document")
        for application_id in assertions:
            application = self.state.compiled[application_id]
            failed += check.newcomer_failures(application, self.state.home(application_id), now)
        return failed

    def _has(self, login: str) -> bool:
        return login_key(login) in self._ids

    def _row(self, application_id: int, user_id: str) -> UserRow:
        own = self._records.get((user_id, application_id), NO_RECORD)
        return UserRow(self.users[user_id], own, self._members.get(user_id, {}))

    def _evaluate(self, application_id: int, user_id: str, now: int) -> EffectivePermissions | None:
        return evaluate(self.state, application_id, self._row(application_id, user_id), now)

    def explain(self, application_id: int, user_id: str, rule: str, now: int) -> dict[str, Any]:
        """Returns whether a user has a rule at an application, and why. Both must exist."""
        row = self._row(application_id, user_id)
        effective = self._evaluate(application_id, user_id, now)
        assert effective is not None
        facts = facts_of(self.state, application_id, row)
        return explain_rule(self.state.compiled[application_id], facts, effective, rule)

    def _because(self, failed: FailedAssertion, now: int) -> str:
        assertion = parse_assertion(failed.statement)
        is_central = failed.application_id == CENTRAL_APPLICATION_ID
        rule = f"{assertion.project}/{assertion.rule}" if is_central and assertion.project else assertion.rule
        explanation = self.explain(failed.application_id, failed.users[0], rule, now)
        lines = [line.text for line in explanation_lines(explanation)]
        return f" ({'; '.join(lines)})" if lines else ""
