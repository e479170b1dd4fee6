"""Evaluates users with the applications and projects of one state."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from sso.db.transaction import Runner
from sso.perm.engine.decode import decode_membership
from sso.perm.engine.effective_permissions import EffectivePermissions, compute_permissions
from sso.perm.engine.facts import PermissionFacts, ProjectFacts
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.stores.facts_decoding import member_roles
from sso.perm.stores.permission_state import PermissionState
from sso.perm.stores.user_rows import UserRow

USERS_AT_ONCE = 100  # read with one statement
FEW_USERS = 5  # that are evaluated without a thread
# What one write evaluates: nodes of conditions and entries of lists, of all users together. It takes a few seconds, for
# which the write keeps its locks.
MAX_WORK = 4_000_000
USERS_PER_PART = 10  # of a large application, so that the thread is free again soon


def evaluate(
    state: PermissionState, application_id: int, row: UserRow, now: int, *, scope_only: bool = False
) -> EffectivePermissions | None:
    """Returns the permissions of a user, or None if the application does not exist in this state.

    With ``scope_only``, memberships of projects outside the scope of the write are left out. Bans do not count: what
    a banned user gains is effective when the ban ends.
    """
    if application_id not in state.applications or application_id not in state.compiled:
        return None
    facts = facts_of(state, application_id, row, scope_only=scope_only)
    return compute_permissions(state.compiled[application_id], facts, now)


def facts_of(state: PermissionState, application_id: int, row: UserRow, *, scope_only: bool = False) -> PermissionFacts:
    """Returns the facts about a user at an application of this state, without bans."""
    is_central = application_id == CENTRAL_APPLICATION_ID
    return PermissionFacts(
        user=row.user,
        own=row.own,
        removed=state.applications[application_id].removed,
        home=state.home(application_id),
        projects=tuple(_projects(state, row, scope_only=scope_only)) if is_central else (),
    )


def _projects(state: PermissionState, row: UserRow, *, scope_only: bool) -> Iterator[ProjectFacts]:
    members = {} if scope_only else dict(row.members)
    for project_id, roles_by_user in state.members.items():
        members.pop(project_id, None)
        if row.user.user_id in roles_by_user:
            members[project_id] = roles_by_user[row.user.user_id]
    for project_id, roles in members.items():
        if project_id in state.projects:
            yield replace(state.projects[project_id], membership=decode_membership(member_roles(roles)))


async def read_member_projects(runner: Runner, state: PermissionState, rows: Iterable[UserRow]) -> set[str]:
    """Reads the projects in which these users are members into the state and returns the ids of those that were
    added."""
    missing = {project_id for row in rows for project_id in row.members} - state.projects.keys()
    await state.read_projects(runner, missing)
    return missing & state.projects.keys()


def chunks(user_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(user_ids), USERS_AT_ONCE):
        yield user_ids[start : start + USERS_AT_ONCE]


def parts(rows: Sequence[UserRow], *, is_large: bool) -> Iterator[Sequence[UserRow]]:
    """Returns the rows of a chunk, as many as are evaluated at a time."""
    size = USERS_PER_PART if is_large else USERS_AT_ONCE
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
