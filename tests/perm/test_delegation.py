"""The check of writes that give or take away rights over a project, with records in memory in place of the database."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from sso.core.errors import Forbidden
from sso.core.net import Address, parse_address
from sso.db.transaction import Transaction
from sso.perm import delegation
from sso.perm.caller import Caller
from sso.perm.delegation import ACCESS_CHANGED, NOT_GRANTABLE, delegated_write
from sso.perm.engine.compiled_application import CompiledApplication, compile_application
from sso.perm.engine.facts import PermissionFacts
from sso.perm.engine.user_facts import UserFacts
from sso.perm.input.membership import MemberRole
from sso.perm.input.references import ProjectResources
from sso.perm.stores import builtin_roles
from sso.perm.stores.project_state import KnownUser, ProjectState
from tests.perm.evaluation import GROUP_A, NOW, application_of, facts_of, project, role_giving, rule

HERE = parse_address("10.0.0.1")
CENTRAL, GAME = 1, 10
OWNER, MANAGER = "1", "2"
NO_TRANSACTION = cast(Transaction, None)
ROLES = [role_giving("chief", protected=True), role_giving("fan")]


@dataclass
class Records:
    """A project with an owner who is an administrator, and the caller as a manager of it."""

    caller: Caller = field(default_factory=lambda: Caller(MANAGER, HERE, now=NOW))
    roles: dict[str, list[Any]] = field(default_factory=lambda: {OWNER: ["admin"], MANAGER: ["manager"]})
    settings: dict[str, Any] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    group: dict[str, Any] = field(default_factory=dict)
    own: dict[str, Any] = field(default_factory=dict)  # the caller's records by application
    applications: frozenset[int] = frozenset((GAME,))
    locked: list[Any] = field(default_factory=list)
    read_at: dict[int, Address | None] = field(default_factory=dict)
    users_read: list[set[str]] = field(default_factory=list)

    def facts(self) -> Any:
        groups = [{"id": GROUP_A, **self.group}]
        return {"id": "p", "settings": self.settings, "groups": groups, **self.lists}

    async def lock(self, _tx: Transaction, project_id: str, applications: Iterable[int]) -> None:
        self.locked.append((project_id, list(applications)))

    async def application(self, _tx: Transaction, application_id: int) -> CompiledApplication | None:
        if application_id == CENTRAL:
            return compile_application(CENTRAL, 1, builtin_roles.SCHEMA, builtin_roles.ROLES)
        return application_of({"application_id": GAME, "roles": ROLES}) if application_id == GAME else None

    async def permission_facts(
        self, _tx: Transaction, user_id: str, application_id: int, address: Address | None
    ) -> PermissionFacts | None:
        assert user_id == self.caller.user_id
        self.read_at[application_id] = address
        member = {"project": self.roles[user_id]} if user_id in self.roles else None
        projects = [{"id": "another"}, self.facts() | {"member": member}] if application_id == CENTRAL else []
        return facts_of(
            {"user": {"user_id": user_id}, "own": self.own.get(str(application_id), {}), "projects": projects}
        )

    async def states(self, _tx: Transaction, project_ids: Iterable[str]) -> dict[str, ProjectState]:
        members = frozenset(
            MemberRole(user_id, "project", "", *_assignment(item))
            for user_id, items in self.roles.items()
            for item in items
        )
        return {project_id: ProjectState(project(self.facts()), members) for project_id in project_ids}

    async def resources(self, _tx: Transaction, project_id: str) -> ProjectResources:
        assert project_id == "p"
        return ProjectResources(applications=self.applications, services=frozenset(), groups={})

    async def users(self, _tx: Transaction, user_ids: Iterable[str]) -> dict[str, KnownUser]:
        self.users_read.append(set(user_ids))
        return {
            user_id: KnownUser(UserFacts.from_login(user_id, f"{user_id}@example.com", (), ()), disabled=False)
            for user_id in self.users_read[-1]
            if user_id != "deleted"
        }


def _assignment(item: Any) -> tuple[str, int, int]:
    return (item, 0, 0) if isinstance(item, str) else (item["name"], item.get("expired", 0), item.get("ttl", 0))


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> Records:
    records = Records()
    for name, reader in {
        "lock_active_project": records.lock,
        "read_application": records.application,
        "read_facts": records.permission_facts,
        "read_states": records.states,
        "read_resources": records.resources,
        "read_users": records.users,
    }.items():
        monkeypatch.setattr(delegation, name, reader)
    return records


async def write(records: Records, applications: Iterable[int] = (), **changes: Any) -> None:
    async with delegated_write(NO_TRANSACTION, records.caller, "p", applications):
        for name, value in changes.items():
            setattr(records, name, value)


async def refused(records: Records, message: str, applications: Iterable[int] = (), **changes: Any) -> None:
    before = {name: getattr(records, name) for name in changes}
    with pytest.raises(Forbidden) as error:
        await write(records, applications, **changes)
    assert message in error.value.message
    for name, value in before.items():  # what the rollback of the transaction does
        setattr(records, name, value)


async def test_project_and_named_applications_are_locked(records: Records) -> None:
    await write(records, [GAME])
    assert records.locked == [("p", [GAME])]


# Members.


@pytest.mark.parametrize(
    "changed",
    [
        {OWNER: ["admin"], MANAGER: ["manager", "admin"]},
        {MANAGER: ["manager"]},
        {OWNER: ["viewer"], MANAGER: ["manager"]},
        {OWNER: [{"name": "admin", "expired": NOW + 9}], MANAGER: ["manager"]},
        {OWNER: ["admin"], MANAGER: ["manager"], "3": ["admin"]},
    ],
)
async def test_manager_neither_gives_nor_takes_the_role_admin(records: Records, changed: dict[str, list[Any]]) -> None:
    await refused(records, "role admin: only a caller who has all its rules", roles=changed)


async def test_manager_gives_and_takes_roles_that_it_holds(records: Records) -> None:
    await write(records, roles=records.roles | {"3": ["viewer", "unknown role"]})
    await write(records, roles={OWNER: ["admin"], MANAGER: ["manager"]})


async def test_role_that_has_ended_is_taken_by_anyone_but_not_given(records: Records) -> None:
    ended = records.roles | {"3": [{"name": "admin", "expired": NOW}]}
    await refused(records, "role admin", roles=ended)
    before, records.roles = records.roles, ended
    await write(records, roles=before)


async def test_temporary_administrator_gives_the_role_for_this_time_and_takes_it(records: Records) -> None:
    records.roles[MANAGER] = [{"name": "admin", "expired": NOW + 100}]
    await refused(records, "role admin", roles=records.roles | {"3": ["admin"]})
    await refused(records, "role admin", roles=records.roles | {"3": [{"name": "admin", "expired": NOW + 101}]})
    await refused(records, "role admin", roles=records.roles | {"3": [{"name": "admin", "expired": 9, "ttl": 9}]})
    await write(records, roles=records.roles | {"3": [{"name": "admin", "expired": NOW + 100}]})
    await write(records, roles={MANAGER: records.roles[MANAGER]})


async def test_role_is_given_for_one_time_and_refused_for_another_in_the_same_write(records: Records) -> None:
    records.roles[MANAGER] = [{"name": "admin", "expired": NOW + 100}]
    given = {"3": [{"name": "admin", "expired": NOW + 100}], "4": [{"name": "admin", "expired": NOW + 500}]}
    await refused(records, "role admin", roles=records.roles | given)


async def test_caller_outside_the_project_gives_nothing(records: Records) -> None:
    records.caller = replace_caller(records, user_id="9")
    await refused(records, "role viewer", roles=records.roles | {"3": ["viewer"]})
    await write(records, roles=records.roles | {"3": ["a role without rules"]})


async def test_management_rights_count_in_the_management_api(records: Records) -> None:
    records.caller = replace_caller(records, user_id="9", in_management=True)
    await refused(records, "role viewer", roles=records.roles | {"3": ["viewer"]})
    records.own = {"1": {"private_data": rule("can_manage_projects")}}
    await write(records, roles=records.roles | {"3": ["viewer"]})


def replace_caller(records: Records, **fields: Any) -> Caller:
    return records.caller._replace(**fields)


@pytest.mark.parametrize("by", ["role", "operator"])
async def test_root_is_not_checked(records: Records, by: str) -> None:
    if by == "role":
        records.own = {"1": {"roles": ["root"]}}
    else:
        records.caller = replace_caller(records, is_operator=True)
    await write(
        records, [GAME], roles={"3": ["admin"]}, settings=actions("chief"), lists={"disallow": [GROUP_A], "allow": []}
    )
    assert records.users_read == [set()]


@pytest.mark.parametrize(("signed_by", "address"), [("", HERE), ("k" * 24, None)])
async def test_signed_address_does_not_count(records: Records, signed_by: str, address: Address | None) -> None:
    records.caller = replace_caller(records, address_signed_by=signed_by)
    await write(records, [GAME])
    assert records.read_at == {CENTRAL: address, GAME: address}


# Roles of applications, granted to groups.


def actions(*roles: str, application_id: int = GAME, action: str = "grant") -> dict[str, Any]:
    groups = [{"group_id": GROUP_A, "role": role, "action": action} for role in roles]
    return {"services": {str(application_id): {"groups": groups}}}


async def test_protected_role_is_granted_only_with_a_right_over_the_roles(records: Records) -> None:
    await write(records, [GAME], settings=actions("fan"))
    await refused(records, NOT_GRANTABLE, [GAME], settings=actions("fan", "chief"))
    await refused(records, NOT_GRANTABLE, [GAME], settings=actions("fan", "unknown"))
    for own in (
        {"secret_data": {"application": {"canModifySchema": {"value": True}}}},
        {"secret_data": {"meta": {"roles": {"canWrite": {"value": "all"}}}}},
    ):
        records.own = {"10": own}
        await write(records, [GAME], settings=actions("fan", "chief"))
        records.own = {}
        await refused(records, NOT_GRANTABLE, [GAME], settings=actions("fan"))
        records.own = {"10": own}
        await write(records, [GAME], settings=actions("fan"))
    records.own = {"10": {"secret_data": {"meta": {"roles": {"canWrite": {"value": "self"}}}}}}
    await refused(records, NOT_GRANTABLE, [GAME], settings=actions("fan", "chief"))


async def test_manager_of_all_applications_grants_protected_roles(records: Records) -> None:
    records.own = {"1": {"private_data": rule("can_manage_applications")}}
    await refused(records, NOT_GRANTABLE, [GAME], settings=actions("chief"))
    records.caller = replace_caller(records, in_management=True)
    await write(records, [GAME], settings=actions("chief"))


async def test_role_of_an_application_that_the_write_does_not_name_is_not_granted(records: Records) -> None:
    await refused(records, NOT_GRANTABLE, [], settings=actions("fan"))


@pytest.mark.parametrize("applications", [frozenset(), frozenset((GAME, 11))])
async def test_role_of_another_project_or_of_no_application_is_not_granted(
    records: Records, applications: frozenset[int]
) -> None:
    records.applications = applications
    number = 11 if 11 in applications else GAME
    await refused(records, NOT_GRANTABLE, [number], settings=actions("fan", application_id=number))


async def test_group_with_a_protected_role_is_not_changed(records: Records) -> None:
    records.settings = actions("chief", action="revoke")
    await refused(records, NOT_GRANTABLE, group={"users": ["3"]})
    records.settings = actions("fan")
    await write(records, group={"users": ["3"]})


# Access to the project.


async def test_manager_does_not_change_the_access_of_an_administrator(records: Records) -> None:
    records.group = {"users": [OWNER]}
    await refused(records, ACCESS_CHANGED, lists={"disallow": [GROUP_A]})
    await refused(records, ACCESS_CHANGED, settings={"allowed_domains": ["elsewhere.example"]})
    await write(records, lists={"allow": [GROUP_A]})
    assert records.users_read[-1] == {OWNER}
    await refused(records, ACCESS_CHANGED, group={"users": ["3"]})
    records.lists = {"disallow": [GROUP_A]}
    await refused(records, ACCESS_CHANGED, lists={})


async def test_manager_changes_the_access_of_members_whose_roles_it_holds(records: Records) -> None:
    records.roles["3"] = ["viewer"]
    records.roles["4"] = [{"name": "admin", "expired": NOW}]
    records.group = {"users": ["3", "4"]}
    await write(records, lists={"disallow": [GROUP_A]})


async def test_access_that_a_time_window_decides_is_not_changed(records: Records) -> None:
    window = {"title": "later", "condition": {"uid": [OWNER], "time": {"from": 32_000_000_000}}}
    records.group = {"conditions": [window]}
    await refused(records, ACCESS_CHANGED, lists={"disallow": [GROUP_A]})
    records.lists = {"disallow": [GROUP_A]}
    moved = {"title": "later", "condition": {"uid": [OWNER], "time": {"from": 32_100_000_000}}}
    await refused(records, ACCESS_CHANGED, group={"conditions": [moved]})
    await write(records, roles=records.roles | {"3": ["viewer"]})  # which changes nobody's access


async def test_account_that_was_deleted_is_like_a_user_without_a_login(records: Records) -> None:
    records.roles["deleted"] = ["admin"]
    records.group = {"users": ["deleted"]}
    await refused(records, ACCESS_CHANGED, lists={"disallow": [GROUP_A]})
    await write(records, lists={"allow": []})
