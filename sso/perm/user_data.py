"""POST /api/permissions/meta/data: a user's schema, read and saved (§2.9, §4.5)."""

import time
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from sso.core.errors import Forbidden, NotFound
from sso.core.ids import is_user_id
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction
from sso.perm.authorization import Authorizer, CallerRights, missing_sections
from sso.perm.endpoints.explain import explained
from sso.perm.engine.decode import decode_assignments, decode_own_record
from sso.perm.engine.effective_permissions import compute_permissions
from sso.perm.engine.names import CENTRAL_APPLICATION_ID, ROOT_ROLE
from sso.perm.engine.records import Assignment, RoleRecord, Schema
from sso.perm.engine.render import TYPES, Options, as_tree, earliest_role_end, render
from sso.perm.errors import InvalidInput, PermissionConflict
from sso.perm.input import validators
from sso.perm.input.protected import shadows
from sso.perm.input.roles import read_assignments, stored
from sso.perm.input.schema import read_own_data
from sso.perm.request import PermissionRequest
from sso.perm.stores import audit
from sso.perm.stores import roles as role_store
from sso.perm.stores.audit import AuditActor
from sso.perm.stores.facts import LoadedFacts

SECTIONS = ("login", "public_data", "private_data", "secret_data")
KNOWN = frozenset(("user_id", "type", "roles", *SECTIONS))
FLAGS = ("hide_project_access", "with_exp", "with_roles", "with_apps_data")
OPTIONS = frozenset(("project_id", "explain", *FLAGS))

_READ = Statement(
    """SELECT r.login, r.public_data, r.private_data, r.secret_data FROM user_records r
    WHERE r.user_id = :user_id AND r.application_id = :application_id"""
)
_ROLES = Statement(
    """SELECT name, expired, ttl FROM role_assignments
    WHERE user_id = :user_id AND application_id = :application_id ORDER BY position"""
)
_WRITE = Statement(
    """INSERT INTO user_records (user_id, application_id, login, public_data, private_data, secret_data)
    VALUES (:user_id, :application_id, :login, :public_data, :private_data, :secret_data)
    ON CONFLICT (user_id, application_id) DO UPDATE SET login = excluded.login, public_data = excluded.public_data,
        private_data = excluded.private_data, secret_data = excluded.secret_data"""
)
_CLEAR_ROLES = Statement("DELETE FROM role_assignments WHERE user_id = :user_id AND application_id = :application_id")
_GIVE_ROLES = Statement(
    """INSERT INTO role_assignments (user_id, application_id, name, expired, ttl, position)
    SELECT :user_id, :application_id, item.name, item.expired, item.ttl, item.n
    FROM unnest(CAST(:names AS text[]), CAST(:expired AS bigint[]), CAST(:ttl AS bigint[]))
        WITH ORDINALITY AS item (name, expired, ttl, n)"""
)


class UserDataEndpoint:
    def __init__(self, database: Database, desk: Authorizer) -> None:
        self._database = database
        self._desk = desk

    async def handle(self, call: PermissionRequest) -> dict[str, Any]:
        if call.action("get", "save") == "get":
            return await self._get(call)
        return await self._save(call)

    async def _get(self, call: PermissionRequest) -> dict[str, Any]:
        data = call.required_data()
        call.ignore_unknown(data, KNOWN)
        kind = data.get("type", "list")
        if kind not in TYPES:
            raise InvalidInput(f"data.type: must be {', '.join(TYPES[:-1])} or {TYPES[-1]}")
        options, explain = self._options(call)
        wanted = call.application_id()
        caller = call.caller
        user_id = _user_id(data.get("user_id", caller.user_id or None))
        own = bool(caller.user_id) and user_id == caller.user_id
        standing = await self._desk.standing(caller, wanted)
        here = _application(standing, "canRead", ())
        if not caller.user_id and kind != "roles":
            raise Forbidden
        found = here if own else await self._desk.facts.load(user_id, wanted, caller.address)
        assert found is not None
        sections = self._readable(call, standing, own=own)
        if not found.known:
            raise NotFound("user not found")
        if here.gone:
            raise Forbidden("removed")
        effective = compute_permissions(found.application, found.facts, caller.now)
        shown = replace(options, sections=sections)
        if kind == "roles" and "roles" not in sections:
            raise missing_sections("canRead", ("roles",))
        parts: dict[str, Any] = {"data": render(kind, found.application, found.facts, effective, shown)}
        parts |= explained(explain, standing, found, effective, shown, short=kind == "list_short")
        return call.answer(**parts, user_id=user_id, expired=earliest_role_end(effective, shown))

    def _options(self, call: PermissionRequest) -> tuple[Options, bool | str]:
        options = call.options
        call.warnings.extend(validators.unknown(options, OPTIONS, "options"))
        flags: dict[str, Any] = {
            name: validators.flag(options[name], f"options.{name}") for name in FLAGS if name in options
        }
        project_id = (
            validators.text(options["project_id"], "options.project_id", 64) if "project_id" in options else None
        )
        explain = options.get("explain", False)
        if not isinstance(explain, bool | str) or (isinstance(explain, str) and not 0 < len(explain) <= 512):
            raise InvalidInput("options.explain: must be true, or the name of a rule")
        return Options(project_id=project_id, **flags), explain

    def _readable(self, call: PermissionRequest, standing: CallerRights, *, own: bool) -> frozenset[str]:
        sections = standing.rights.readable_sections(own=own)
        if not call.caller.user_id:
            # A service, or a holder of the application's key, asks for roles: that is its own application's matter.
            sections = frozenset(("roles",)) if call.caller.key or standing.rights.service else frozenset()
        if not sections:
            raise missing_sections("canRead", ())
        return sections

    async def _save(self, call: PermissionRequest) -> dict[str, Any]:
        data = call.required_data()
        wanted = call.application_id()
        user_id = _user_id(data.get("user_id"))
        ends = validators.number(call.fields.get("expired", 0), "expired")
        given, warnings = read_own_data({name: data[name] for name in SECTIONS if name in data}, ends)
        call.warnings.extend(warnings)
        call.ignore_unknown(data, KNOWN)
        if "roles" in data:
            _, warnings = read_assignments(data["roles"], _Anything(), ends)  # which of them exist is told later
            call.warnings.extend(warnings)
        standing = await self._desk.standing(call.caller, wanted)
        sections = {name for name in (*SECTIONS, "roles") if name in data}
        here = _application(standing, "canWrite", sections)
        own = user_id == call.caller.user_id
        writable_sections = standing.rights.writable_sections(own=own)
        if not writable_sections or not sections <= writable_sections:
            raise missing_sections("canWrite", sections - writable_sections)
        if not own and not await self._known(user_id):
            raise NotFound("user not found")
        if here.gone:
            raise Forbidden("removed")
        # The project decides only which services may save.
        judged_in = here.project_id if standing.rights.service else role_store.ANY_PROJECT

        async def work(tx: Transaction) -> dict[str, Any]:
            row = await role_store.lock_application(tx, wanted, judged_in)
            roles = await role_store.read_roles(tx, wanted)
            schema = Schema(row["public_data"], row["private_data"], row["secret_data"], row["login"])
            if "public_data" in given and "private_data" not in writable_sections:
                _refuse_shadows(given["public_data"], schema, roles)
            if wanted == CENTRAL_APPLICATION_ID and "roles" in data and not standing.rights.is_root:
                await _refuse_root(tx, user_id, read_assignments(data["roles"], roles, ends)[0])
            return await save_record(tx, call.caller.actor, user_id, row, roles, given, data.get("roles"), ends)

        saved = decode_own_record(await self._database.transaction(work))
        found = await self._desk.facts.load(user_id, wanted, call.caller.address)
        assert found is not None
        effective = compute_permissions(found.application, replace(found.facts, own=saved), call.caller.now)
        readable_sections = standing.rights.readable_sections(own=own)
        tree = as_tree(found.application.schema, saved, readable_sections)
        return call.answer(
            data=tree, user_id=user_id, expired=earliest_role_end(effective, Options(sections=readable_sections))
        )

    async def _known(self, user_id: str) -> bool:
        found = await self._desk.facts.load(user_id, CENTRAL_APPLICATION_ID, None)
        return found is not None and found.known


def _application(standing: CallerRights, right: str, sections: Collection[str]) -> LoadedFacts:
    """The application of the call. If there is none, the refusal is that of a caller without rights there."""
    if standing.at is None and not standing.rights.is_root:
        raise missing_sections(right, sections)
    return standing.application


class _Anything(frozenset[str]):
    """As if every role existed."""

    def __contains__(self, name: object) -> bool:
        return True


def _user_id(value: object) -> str:
    if value is None:
        raise InvalidInput("data.user_id: is required")
    if not isinstance(value, str):
        raise InvalidInput("data.user_id: must be a string")
    if not is_user_id(value):
        raise NotFound("user not found")
    return value


def _refuse_shadows(public_data: dict[str, Any], schema: Schema, roles: dict[str, RoleRecord]) -> None:
    hidden = shadows(public_data, schema, roles.values())
    if hidden:
        raise InvalidInput(f"public_data: {hidden[0]} is a private rule")


async def _refuse_root(tx: Transaction, user_id: str, given: tuple[Assignment, ...]) -> None:
    """Every right everywhere is root's alone to give and to take: the right to write roles is less than that."""
    held = decode_own_record(await read_record(tx, user_id, CENTRAL_APPLICATION_ID)).roles
    if {item for item in held if item.name == ROOT_ROLE} != {item for item in given if item.name == ROOT_ROLE}:
        raise Forbidden("the role root is required")


async def read_record(runner: Runner, user_id: str, application_id: int) -> dict[str, Any]:
    row = await runner.row(_READ, user_id=user_id, application_id=application_id)
    roles = await runner.rows(_ROLES, user_id=user_id, application_id=application_id)
    record = dict(row) if row else {name: {} for name in SECTIONS}
    return record | {"roles": stored(decode_assignments([dict(role) for role in roles]))}


async def save_record(
    tx: Transaction,
    actor: AuditActor,
    user_id: str,
    application: Any,
    roles: dict[str, RoleRecord],
    given: dict[str, Any],
    assigned: Any,
    ends: int,
) -> dict[str, Any]:
    """Save a user's record at a locked application: each part that is given replaces the old one."""
    wanted: int = application["application_id"]
    old = await read_record(tx, user_id, wanted)
    new = old | given
    if assigned is not None:
        wished, _ = read_assignments(assigned, roles, ends)
        now = int(time.time())
        held = {item.name for item in decode_assignments(old["roles"]) if not item.ended(now)}
        for assignment in wished:
            await _check_limit(tx, wanted, roles[assignment.name], user_id, held)
        new["roles"] = stored(wished)
    if new == old:
        return new
    if assigned is not None:
        await tx.value(_CLEAR_ROLES, user_id=user_id, application_id=wanted)
        await tx.value(
            _GIVE_ROLES,
            user_id=user_id,
            application_id=wanted,
            names=[item.name for item in wished],
            expired=[item.expired for item in wished],
            ttl=[item.ttl for item in wished],
        )
    sections = {name: new[name] for name in SECTIONS}
    await tx.value(_WRITE, user_id=user_id, application_id=wanted, **sections)
    await audit.write(
        tx,
        actor,
        "permissions.save",
        f"{wanted}/{user_id}",
        old,
        new,
        project_id=application["project_id"],
        application_id=wanted,
    )
    return new


async def _check_limit(tx: Transaction, application_id: int, role: RoleRecord, user_id: str, held: set[str]) -> None:
    """The application is locked, so the count stays as it is until the assignment is written."""
    if role.user_limit and role.name not in held:
        others = await role_store.holders(tx, application_id, role.name, user_id)
        if others >= role.user_limit:
            raise PermissionConflict(f"roles: {role.name} has {role.user_limit} users, which is its limit")
