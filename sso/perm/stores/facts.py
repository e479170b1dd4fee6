"""Loads the facts about a user at an application that the engine needs; concurrent requests share a statement.

Facts are read in each request. Only the compiled schema and roles of an application are cached, under the
application's revision, which is read together with the facts. So every request that starts after the commit of a
change sees it, on every worker, without notifications between workers.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import trio

from sso.core.net import Address
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner
from sso.perm.engine.compiled_application import CompiledApplication, compile_application
from sso.perm.engine.decode import decode_group, decode_own_record, decode_project
from sso.perm.engine.effective_permissions import EffectivePermissions, compute_permissions
from sso.perm.engine.explanation.explain import explain_rule
from sso.perm.engine.facts import Group, PermissionFacts, ProjectApplication, ProjectFacts
from sso.perm.engine.names import CENTRAL_APPLICATION_ID
from sso.perm.engine.records import RoleRecord
from sso.perm.engine.render import render
from sso.perm.engine.service_rights import ServiceRights, compute_service_rights
from sso.perm.engine.user_facts import UserFacts
from sso.perm.stores.builtin_roles import complete_schema

MAX_CACHED_APPLICATIONS = 1000

_PROJECT = """jsonb_build_object(
    'id', p.id, 'title', p.title, 'aliases', p.aliases, 'removed', p.removed, 'settings', p.settings,
    'allow', p.allow, 'disallow', p.disallow,
    'applications', (
        SELECT coalesce(jsonb_agg(jsonb_build_array(x.application_id, x.name, x.removed, x.service_meta <> '{}')
            ORDER BY x.application_id), '[]')
        FROM applications x WHERE x.project_id = p.id),
    'groups', (
        SELECT coalesce(jsonb_agg(jsonb_build_array(g.id, g.title, g.conditions, g.tags, EXISTS (
            SELECT 1 FROM group_users gu WHERE gu.group_id = g.id AND gu.user_id = item.user_id)) ORDER BY g.id), '[]')
        FROM user_groups g WHERE g.project_id = p.id),
    'members', (
        SELECT coalesce(jsonb_agg(jsonb_build_array(m.level, m.resource, m.role, m.expired, m.ttl)
            ORDER BY m.position), '[]')
        FROM project_members m WHERE m.project_id = p.id AND m.user_id = item.user_id))"""

# Project access is reported with the central application only, so memberships are read only for it.
_FACTS = BatchStatement(
    f"""SELECT item.n, u.login, u.tags, u.purchases, u.user_id IS NOT NULL AS known, a.removed, a.revision,
        a.settings AS app_settings, a.name AS app_name,
        (SELECT jsonb_build_object('login', r.login, 'public_data', r.public_data, 'private_data', r.private_data,
            'secret_data', r.secret_data)
         FROM user_records r WHERE r.user_id = item.user_id AND r.application_id = item.application_id) AS record,
        (SELECT jsonb_agg(jsonb_build_object('name', s.name, 'expired', s.expired, 'ttl', s.ttl) ORDER BY s.position)
         FROM role_assignments s
         WHERE s.user_id = item.user_id AND s.application_id = item.application_id) AS roles,
        (SELECT {_PROJECT} FROM projects p WHERE p.id = a.project_id) AS home,
        CASE WHEN item.application_id = 1 THEN
            (SELECT jsonb_agg({_PROJECT}) FROM projects p
             WHERE p.id IN (SELECT m.project_id FROM project_members m WHERE m.user_id = item.user_id))
        END AS projects
    FROM {{items}}
    JOIN applications a ON a.application_id = item.application_id
    LEFT JOIN users u ON u.user_id = item.user_id""",  # noqa: S608 - the parts are ours
    columns={"user_id": "text", "application_id": "int"},
)
_APPLICATION = Statement(
    """SELECT a.revision, a.login, a.public_data, a.private_data, a.secret_data,
        (SELECT coalesce(jsonb_agg(to_jsonb(r) - 'application_id' ORDER BY r.name), '[]')
         FROM roles r WHERE r.application_id = a.application_id) AS roles
    FROM applications a WHERE a.application_id = :application_id"""
)


@dataclass(frozen=True)
class LoadedFacts:
    """The facts about a user at an application."""

    application: CompiledApplication
    facts: PermissionFacts
    user_exists: bool
    name: str  # of the application
    settings: dict[str, Any]  # of the application

    @property
    def project_id(self) -> str | None:
        return self.facts.home.id if self.facts.home else None

    @property
    def is_removed(self) -> bool:
        """Whether the application or its project is removed."""
        return self.facts.removed or (self.facts.home is not None and self.facts.home.removed)

    def effective(self, now: int) -> EffectivePermissions:
        """The user's permissions at the application."""
        return compute_permissions(self.application, self.facts, now)

    def render(self, list_type: str, now: int) -> Any:
        """The user's permissions as one of `LIST_TYPES`, with all sections and projects."""
        return render(list_type, self.application, self.facts, self.effective(now))

    def explain(self, rule: str, now: int) -> dict[str, Any]:
        """The sources of a rule that the user has, or the most likely reasons why the user does not have it."""
        return explain_rule(self.application, self.facts, self.effective(now), rule)


class FactsRow(NamedTuple):
    """The facts about a user, and the revision of the application that they are about."""

    facts: PermissionFacts
    user_exists: bool
    revision: int


class FactsStore:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._facts = Batch(database, _FACTS)
        self._compiled: OrderedDict[int, CompiledApplication] = OrderedDict()

    async def load(self, user_id: str, application_id: int, address: Address | None) -> LoadedFacts | None:
        """Returns None if the application does not exist; the user need not exist."""
        row = await self._facts(user_id=user_id, application_id=application_id)
        if row is None:
            return None
        application = await self._application(application_id, row["revision"])
        facts = _facts(row, user_id, address)
        return LoadedFacts(application, facts, row["known"], row["app_name"], row["app_settings"])

    async def load_many(self, user_id: str, addresses: Mapping[int, Address | None]) -> dict[int, LoadedFacts | None]:
        """Load the facts at several applications concurrently, so that they share a statement.

        ``addresses`` has the address of the user for each application.
        """
        loaded: dict[int, LoadedFacts | None] = {}
        errors: list[DatabaseError] = []

        async def load(application_id: int) -> None:
            try:
                loaded[application_id] = await self.load(user_id, application_id, addresses[application_id])
            except DatabaseError as error:
                errors.append(error)  # raised below, because the nursery would wrap it in an ExceptionGroup

        async with trio.open_nursery() as nursery:
            for application_id in addresses:
                nursery.start_soon(load, application_id)
        if errors:
            raise errors[0]
        return loaded

    async def _application(self, application_id: int, revision: int) -> CompiledApplication:
        compiled = self._compiled.get(application_id)
        if compiled is None or compiled.version < revision:
            compiled = await read_application(self._database, application_id)
            assert compiled is not None  # applications are never deleted
            self._compiled[application_id] = compiled
            if len(self._compiled) > MAX_CACHED_APPLICATIONS:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(application_id)
        return compiled

    async def read_compiled(self, runner: Runner, application_id: int, revision: int) -> CompiledApplication:
        """The compiled schema and roles of a revision that a transaction sees. One that may be rolled back is not
        cached."""
        compiled = self._compiled.get(application_id)
        if compiled is None or compiled.version != revision:
            compiled = await read_application(runner, application_id)
            assert compiled is not None  # applications are never deleted
        return compiled


async def read_facts(
    runner: Runner, user_id: str, application_id: int, address: Address | None
) -> PermissionFacts | None:
    """The facts as a transaction sees them now. Returns None if the application does not exist."""
    row = await runner.row(_FACTS.statement, user_id=[user_id], application_id=[application_id])
    return None if row is None else _facts(row, user_id, address)


async def read_fact_rows(runner: Runner, pairs: Sequence[tuple[str, int]]) -> dict[tuple[str, int], FactsRow]:
    """The facts about users at applications as a transaction sees them now, without applications that do not exist.

    No user has an address, so conditions on addresses do not hold.
    """
    users, applications = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    rows = await runner.rows(_FACTS.statement, user_id=users, application_id=applications)
    return {
        pairs[row["n"] - 1]: FactsRow(_facts(row, users[row["n"] - 1], None), row["known"], row["revision"])
        for row in rows
    }


async def read_service_rights(runner: Runner, user_id: str, now: int) -> ServiceRights:
    """The rights of a user over the whole service, as a transaction sees them now."""
    central = await read_application(runner, CENTRAL_APPLICATION_ID)
    facts = await read_facts(runner, user_id, CENTRAL_APPLICATION_ID, None)
    assert central is not None  # it is built in
    assert facts is not None
    return compute_service_rights(central, facts, now)


async def read_application(runner: Runner, application_id: int) -> CompiledApplication | None:
    """The compiled schema and roles as they are now. A transaction that needs them unchanged locks the application."""
    row = await runner.row(_APPLICATION, application_id=application_id)
    if row is None:
        return None
    schema = complete_schema(row)
    records = [RoleRecord(**role) for role in row["roles"]]
    return compile_application(application_id, row["revision"], schema, records)


def _facts(row: Row, user_id: str, address: Address | None) -> PermissionFacts:
    user = UserFacts.from_login(
        user_id, row["login"] or "", tuple(row["tags"] or ()), tuple(row["purchases"] or ()), address
    )
    return PermissionFacts(
        user=user,
        own=decode_own_record({**(row["record"] or {}), "roles": row["roles"]}),
        removed=row["removed"],
        home=_project(row["home"], user_id) if row["home"] else None,
        projects=tuple(_project(project, user_id) for project in row["projects"] or ()),
    )


def _project(stored: dict[str, Any], user_id: str) -> ProjectFacts:
    return decode_project(
        stored,
        applications=[ProjectApplication(*item) for item in stored["applications"]],
        groups=[_group(item, user_id) for item in stored["groups"]],
        member_roles=member_roles(stored["members"]),
    )


def _group(item: list[Any], user_id: str) -> Group:
    group_id, title, conditions, tags, is_member = item
    return decode_group(group_id, [user_id] if is_member else [], conditions, tags, title)


def member_roles(rows: list[list[Any]]) -> dict[str, Any]:
    """The roles of one member, by level and resource, from rows (level, resource, role, expired, ttl)."""
    roles: dict[str, Any] = {"project": [], "applications": {}, "services": {}, "groups": {}}
    for level, resource, role, expired, ttl in rows:
        item = {"name": role, "expired": expired, "ttl": ttl}
        if level == "project":
            roles["project"].append(item)
        else:
            roles[level].setdefault(resource, []).append(item)
    return roles
