"""Names of projects are stored in their canonical form, so that two spellings of one name cannot both be used.

If two projects have spellings of one name, an id wins over an alias, and the older project over the younger one; the
other project loses that alias. Roles that memberships have at applications of other projects are deleted.
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

FORM = "name = replace(lower(name), '-', '_')"
NAMES = """SELECT n.name, n.project_id FROM project_names n JOIN projects p ON p.id = n.project_id
    ORDER BY n.name = n.project_id DESC, p.created, n.project_id, array_position(p.aliases, n.name), n.name"""


def upgrade() -> None:
    connection = op.get_bind()
    owners: dict[str, str] = {}
    for name, project_id in connection.execute(sa.text(NAMES)).all():
        owners.setdefault(_key(name), project_id)
    for project_id, aliases in connection.execute(sa.text("SELECT id, aliases FROM projects")).all():
        kept = _kept(project_id, aliases, owners)
        if kept != aliases:
            save = sa.text("UPDATE projects SET aliases = CAST(:aliases AS text[]) WHERE id = :id")
            connection.execute(save, {"id": project_id, "aliases": kept})
    connection.execute(sa.text("DELETE FROM project_names"))
    if owners:
        rows = [{"name": name, "id": project_id} for name, project_id in owners.items()]
        connection.execute(sa.text("INSERT INTO project_names (name, project_id) VALUES (:name, :id)"), rows)
    op.create_check_constraint("ck_project_names_compared_form", "project_names", FORM)
    op.create_index("ix_project_members_role", "project_members", ["role"])
    connection.execute(
        sa.text(
            """DELETE FROM project_members m WHERE m.level IN ('applications', 'services') AND NOT EXISTS (
                SELECT 1 FROM applications a WHERE a.project_id = m.project_id AND NOT a.removed
                AND CAST(a.application_id AS text) = m.resource)"""
        )
    )


def _key(name: str) -> str:
    return name.lower().replace("-", "_")  # names are ASCII


def _kept(project_id: str, aliases: list[str], owners: dict[str, str]) -> list[str]:
    """Aliases that are still the project's own, each in its first spelling."""
    found: dict[str, str] = {}
    for alias in aliases:
        if _key(alias) != project_id and owners.get(_key(alias)) == project_id:
            found.setdefault(_key(alias), alias)
    return list(found.values())
