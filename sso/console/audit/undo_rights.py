"""The rights that an undo needs beyond that of its route, so that it is offered only if it will work.

The operations check them again.
"""

from sso.admin.caller import AdminCaller
from sso.admin.clients import require_rights_of_client
from sso.admin.identity_providers import require_rights_of_provider, require_root
from sso.admin.permission_access import AT_CENTRAL_APPLICATION
from sso.console.audit.undo import Undo, Values
from sso.core.errors import Forbidden
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID

_NEW_CLIENT: Values = {"application_id": None, "first_party": False}


def require_undo_rights(caller: AdminCaller, undo: Undo, current: Values | None) -> None:
    """Raises Forbidden. ``current``: the record as it is now."""
    if caller.is_root:
        return
    match undo.path:
        case "/clients":
            require_rights_of_client(caller, {**_NEW_CLIENT, **undo.body})
        case "/clients/<client_id>" if current is not None:
            require_rights_of_client(caller, current)
            require_rights_of_client(caller, {**current, **undo.body})
        case "/identity-providers":
            require_root(caller, "to add an identity provider")
        case "/identity-providers/<provider_id>" if current is not None:
            require_rights_of_provider(caller, current, {**current, **undo.body})
        case "/projects/<project_id>/restore":
            raise Forbidden("the role root is required to restore a project: its members get their rights back")
        case "/applications/<application_id>/restore":
            raise Forbidden("the role root is required to restore an application: its users get their permissions back")
        case "/schemas/<application_id>" if "secret_data" in undo.body:
            raise Forbidden("the role root is required to change secret_data")
    application_id = undo.variables.get("application_id") or undo.body.get("application_id")
    if str(application_id) == str(CENTRAL_APPLICATION_ID) and not undo.path.startswith("/clients"):
        raise Forbidden(AT_CENTRAL_APPLICATION)
