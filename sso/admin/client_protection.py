"""Protects OAuth clients that give rights from callers who do not have these rights.

Whoever knows the secret of a client, or chooses its keys and redirect URIs, can act as the client. So a change of such
a client needs the rights that the client has, before and after the change.
"""

from collections.abc import Mapping
from typing import Any

from sso.admin.caller import AdminCaller
from sso.admin.rights import AdminRight
from sso.core.errors import Forbidden
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID


def require_rights_of_client(caller: AdminCaller, client: Mapping[str, Any]) -> None:
    """Raises Forbidden if the client has, or could get, rights that the caller does not have."""
    if caller.is_root:
        return
    if client["application_id"] == CENTRAL_APPLICATION_ID:
        raise Forbidden("the role root is required for a client of the central application")
    if client["first_party"]:  # its tokens can be exchanged for JWTs with all rights of the user who signs in
        raise Forbidden("the role root is required for a client with first_party")
    if client["application_id"] and AdminRight.MANAGE_APPLICATIONS not in caller.rights:
        raise Forbidden(f"{AdminRight.MANAGE_APPLICATIONS} is required for a client with application_id")
