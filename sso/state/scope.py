"""What a document may change, for the writer of permissions."""

from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.changes.scope import Scope
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.state.document import Document

# A group stays in its project, and an application leaves the project that it is in.
_PROJECTS = Statement(
    """SELECT project_id FROM user_groups WHERE id = ANY(CAST(:groups AS text[]))
    UNION SELECT project_id FROM applications
        WHERE application_id = ANY(CAST(:applications AS int[])) AND project_id IS NOT NULL"""
)


async def document_scope(tx: Transaction, document: Document) -> Scope:
    scope = Scope(
        records=frozenset((part.user, part.application_id) for part in document.permissions),
        applications=frozenset((CENTRAL_APPLICATION_ID, *document.application_ids) if document.has_permissions else ()),
        projects=await _projects(tx, document),
        accounts=frozenset(name for part in document.users for name in (part.user_id, part.login) if name is not None),
    )
    for part in document.schemas:
        for _, role in part.roles:
            scope |= Scope.role(part.id, role["name"])
    return scope


async def _projects(tx: Transaction, document: Document) -> frozenset[str]:
    applications = [part.id for part in document.applications]
    rows = await tx.rows(_PROJECTS, groups=[part.id for part in document.groups], applications=applications)
    named = (
        *(part.id for part in document.projects),
        *(part.id for part in document.memberships),
        *(part.project_id for part in document.groups),
        *(part.fields.get("project_id") for part in document.applications),
        *(row["project_id"] for row in rows),
    )
    return frozenset(project_id for project_id in named if project_id is not None)
