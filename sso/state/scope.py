"""What a document may change, for the writer of permissions."""

from sso.db.transaction import Transaction
from sso.perm.changes.scope import Scope
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.stores.record_lists import projects_of_records
from sso.state.document import Document


async def document_scope(tx: Transaction, document: Document) -> Scope:
    scope = Scope(
        records=frozenset((part.user, part.application_id) for part in document.permissions),
        applications=frozenset((CENTRAL_APPLICATION_ID, *document.application_ids) if document.has_permissions else ()),
        projects=await _projects(tx, document),
        accounts=frozenset(name for part in document.users for name in (part.user_id, part.login) if name is not None),
    )
    roles = (Scope.role(part.id, role["name"]) for part in document.schemas for _, role in part.roles)
    return Scope.union((scope, *roles))


async def _projects(tx: Transaction, document: Document) -> frozenset[str]:
    applications = [part.id for part in document.applications]
    # A group stays in its project, and an application leaves the project that it is in.
    left = await projects_of_records(tx, [part.id for part in document.groups], applications)
    named = (
        *(part.id for part in document.projects),
        *(part.id for part in document.memberships),
        *(part.project_id for part in document.groups),
        *(part.fields.get("project_id") for part in document.applications),
        *left,
    )
    return frozenset(project_id for project_id in named if project_id is not None)
