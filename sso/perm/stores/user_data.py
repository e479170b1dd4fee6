"""A user's record at an application in the database: own sections and assigned roles (§2.9)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction
from sso.perm.engine.decode import decode_assignments
from sso.perm.engine.records import Assignment, RoleRecord
from sso.perm.engine.render import render_assignment
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID, SECTIONS
from sso.perm.errors import UserWasMerged
from sso.perm.input.references import check_roles_exist, encode_assignments
from sso.perm.stores.user_limits import within_user_limits
from sso.perm.stores.user_rows import require_can_administer

_READ = Statement(
    """SELECT r.login, r.public_data, r.private_data, r.secret_data FROM user_records r
    WHERE r.user_id = :user_id AND r.application_id = :application_id"""
)
_ROLES = Statement(
    """SELECT name, expired, ttl FROM role_assignments
    WHERE user_id = :user_id AND application_id = :application_id ORDER BY position"""
)
# Writes nothing for a user who was merged into another one: only the data of that user is read.
_WRITE = Statement(
    """INSERT INTO user_records (user_id, application_id, login, public_data, private_data, secret_data)
    SELECT u.user_id, CAST(:application_id AS int), CAST(:login AS jsonb), CAST(:public_data AS jsonb),
        CAST(:private_data AS jsonb), CAST(:secret_data AS jsonb)
    FROM users u WHERE u.user_id = :user_id AND u.merged_into IS NULL FOR KEY SHARE
    ON CONFLICT (user_id, application_id) DO UPDATE SET login = excluded.login, public_data = excluded.public_data,
        private_data = excluded.private_data, secret_data = excluded.secret_data
    RETURNING user_id"""
)
_CLEAR_ROLES = Statement("DELETE FROM role_assignments WHERE user_id = :user_id AND application_id = :application_id")
_PUT_ROLES = Statement(
    """INSERT INTO role_assignments (user_id, application_id, name, expired, ttl, position)
    SELECT :user_id, :application_id, item.name, item.expired, item.ttl, item.n
    FROM unnest(CAST(:names AS text[]), CAST(:expired AS bigint[]), CAST(:ttl AS bigint[]))
        WITH ORDINALITY AS item (name, expired, ttl, n)"""
)
# The applications where a caller may have rights: those of the caller's projects, those with own secret data of the
# caller, and those that give rights to all users.
_SECRET_DATA = Statement(
    """SELECT a.application_id, a.project_id, a.secret_data, r.secret_data AS own_secret_data FROM applications a
    LEFT JOIN user_records r ON r.application_id = a.application_id AND r.user_id = :user_id
    WHERE (NOT :central_only OR a.application_id = 1) AND (a.project_id = ANY(CAST(:projects AS text[]))
        OR r.secret_data <> '{}' OR a.secret_data @@ CAST('$.application.*.value == true' AS jsonpath))"""
)
_HAS_SECRET_RIGHTS = Statement(
    """SELECT EXISTS (SELECT 1 FROM user_records WHERE user_id = :user_id AND secret_data <> '{}')
        OR EXISTS (SELECT 1 FROM applications WHERE NOT removed AND secret_data @@ CAST(
            '$.application.*.value == true || $.meta.*.canWrite.value != "none"' AS jsonpath))"""
)
_WAS_GIVEN_RIGHTS = Statement(
    f"""SELECT EXISTS (
        SELECT FROM role_assignments WHERE user_id = :user_id AND application_id = {CENTRAL_APPLICATION_ID}
    ) OR EXISTS (SELECT FROM project_members WHERE user_id = :user_id)"""
)
_HAS_OWN_SECRET_DATA = Statement(
    "SELECT EXISTS (SELECT 1 FROM user_records WHERE user_id = :user_id AND secret_data <> '{}')"
)


class RecordSave(NamedTuple):
    record: dict[str, Any]  # as it is after the save
    is_changed: bool


async def read_record(runner: Runner, user_id: str, application_id: int) -> dict[str, Any]:
    """The stored record; empty sections and no roles if there is none."""
    row = await runner.row(_READ, user_id=user_id, application_id=application_id)
    roles = await read_assigned_roles(runner, user_id, application_id)
    record = dict(row) if row else {name: {} for name in SECTIONS}
    return record | {"roles": encode_assignments(roles)}


def record_json(record: dict[str, Any]) -> dict[str, Any]:
    """Returns the parts of a stored record that are not empty, as a save accepts them."""
    data = {name: record[name] for name in SECTIONS if record[name]}
    if record["roles"]:
        data["roles"] = [render_assignment(item) for item in decode_assignments(record["roles"])]
    return data


async def read_assigned_roles(runner: Runner, user_id: str, application_id: int) -> tuple[Assignment, ...]:
    rows = await runner.rows(_ROLES, user_id=user_id, application_id=application_id)
    return decode_assignments([dict(row) for row in rows])


async def save_record(
    tx: Transaction,
    actor: AuditActor,
    user_id: str,
    application: Row,
    roles: dict[str, RoleRecord],
    sections: dict[str, Any],
    assigned: tuple[Assignment, ...] | None,
) -> RecordSave:
    """Saves a user's record at a locked application.

    Each section in ``sections`` replaces the stored one, ``assigned`` replaces the assigned roles; None keeps them.
    ``roles`` are the roles of the application. Raises UserWasMerged before anything is written.
    """
    application_id: int = application["application_id"]
    old = await read_record(tx, user_id, application_id)
    new = old | sections
    if assigned is not None:
        check_roles_exist(assigned, roles)
        new["roles"] = encode_assignments(assigned)
    if new == old:
        return RecordSave(new, is_changed=False)
    gives_rights = application_id == CENTRAL_APPLICATION_ID or new["secret_data"]
    if gives_rights and any(new.values()):
        await require_can_administer(tx, [user_id], ("user_id",))
    data = {name: new[name] for name in SECTIONS}
    if await tx.value(_WRITE, user_id=user_id, application_id=application_id, **data) is None:
        raise UserWasMerged
    if assigned is not None:
        limits = {item.name: limit for item in assigned if (limit := roles[item.name].user_limit)}
        async with within_user_limits(tx, application_id, limits):
            await _replace_roles(tx, user_id, application_id, assigned)
    await trail.write(
        tx,
        actor,
        "permissions.save",
        f"{application_id}/{user_id}",
        old,
        new,
        project_id=application["project_id"],
        application_id=application_id,
    )
    return RecordSave(new, is_changed=True)


async def _replace_roles(tx: Transaction, user_id: str, application_id: int, assigned: tuple[Assignment, ...]) -> None:
    await tx.value(_CLEAR_ROLES, user_id=user_id, application_id=application_id)
    await tx.value(
        _PUT_ROLES,
        user_id=user_id,
        application_id=application_id,
        names=[item.name for item in assigned],
        expired=[item.expired for item in assigned],
        ttl=[item.ttl for item in assigned],
    )


async def has_own_secret_data(runner: Runner, user_id: str) -> bool:
    """Returns whether the user has own secret data at an application."""
    return bool(await runner.value(_HAS_OWN_SECRET_DATA, user_id=user_id))


async def was_given_rights(runner: Runner, user_id: str) -> bool:
    """Returns whether someone gave the user a role of the central application or of a project, in force or not."""
    return bool(await runner.value(_WAS_GIVEN_RIGHTS, user_id=user_id))


async def has_secret_rights(runner: Runner, user_id: str) -> bool:
    """Returns whether secret data gives the user rights at an application: own data, or that of all users."""
    return bool(await runner.value(_HAS_SECRET_RIGHTS, user_id=user_id))


async def read_secret_data(
    runner: Runner, user_id: str, project_ids: Sequence[str], *, central_only: bool
) -> Sequence[Row]:
    """Returns the applications where the user, a member of these projects, may have rights, with the secret data."""
    return await runner.rows(_SECRET_DATA, user_id=user_id, projects=list(project_ids), central_only=central_only)
