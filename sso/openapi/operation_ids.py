"""The ids of operations, which generated clients take as names: ``list_users``, ``rotate_client_secret``."""

import re
from collections.abc import Sequence

SERVICE_OPERATIONS = {
    "POST /proxy/api/login": "login",
    "POST /proxy/api/logout": "logout",
    "POST /proxy/api/guest": "sign_in_guest",
    "POST /proxy/api/ticket": "sign_in_with_ticket",
    "POST /proxy/api/data/{link}": "send_user_data",
    "GET /proxy/oauth/authorize": "authorize",
    "POST /proxy/oauth/authorize": "authorize_with_form",
    "POST /proxy/oauth/token": "get_tokens",
    "POST /proxy/oauth/token/revoke": "revoke_token",
    "POST /proxy/oauth/introspect": "introspect_token",
    "POST /proxy/oauth/par": "push_authorization_request",
    "POST /proxy/oauth/register": "register_client",
    "GET /proxy/oauth/register/{client_id}": "read_registered_client",
    "PUT /proxy/oauth/register/{client_id}": "change_registered_client",
    "DELETE /proxy/oauth/register/{client_id}": "delete_registered_client",
    "GET /proxy/oauth/userinfo": "get_userinfo",
    "POST /proxy/oauth/userinfo": "post_userinfo",
    "POST /proxy/oauth/exchange": "exchange_jwt_for_id_token",
    "POST /proxy/oauth/exchangeToken": "exchange_token_for_jwt",
    "POST /proxy/oauth/exchangeJwt": "renew_user_jwt",
    "POST /proxy/oauth/device_authorization": "start_device_sign_in",
    "GET /proxy/oauth/logout": "end_session",
    "GET /.well-known/openid-configuration": "get_openid_configuration",
    "GET /.well-known/oauth-authorization-server": "get_authorization_server_metadata",
    "GET /.well-known/oauth-protected-resource": "get_resource_metadata",
    "GET /.well-known/oauth-protected-resource/api/admin": "get_management_resource_metadata",
    "GET /.well-known/oauth-protected-resource/api/permissions": "get_permission_resource_metadata",
    "GET /.well-known/oauth-protected-resource/access/v1": "get_authzen_resource_metadata",
    "POST /proxy/api/gameSession/getGsid": "start_game_session",
    "POST /proxy/api/gameSession/getGsidResult": "get_game_session_result",
    "POST /proxy/api/gameSession/closeGsid": "close_game_session",
    "POST /proxy/api/gameSession/info": "get_game_session_info",
    "GET /ws/gameSession/refresh/{gsid}": "follow_game_session",
    "POST /api/permissions/application": "manage_application",
    "POST /api/permissions/application/tags": "set_application_tags",
    "POST /api/permissions/user/info": "count_own_projects",
    "POST /api/permissions/publish": "publish_project",
    "POST /api/permissions/project": "manage_project",
    "POST /api/permissions/project/membership": "manage_membership",
    "POST /api/permissions/group": "manage_group",
    "POST /api/permissions/group/access": "set_group_access",
    "POST /api/permissions/group/tags": "set_group_tags",
    "POST /api/permissions/accessKey": "manage_access_keys",
    "POST /api/permissions/roles": "manage_roles",
    "POST /api/permissions/meta/schema": "manage_schema",
    "POST /api/permissions/meta/data": "manage_permissions",
    "POST /api/permissions/check": "check_permissions",
    "POST /api/permissions/audit": "read_audit_trail",
    "GET /.well-known/authzen-configuration": "get_authzen_configuration",
    "POST /access/v1/evaluation": "evaluate_access",
    "POST /access/v1/evaluations": "evaluate_accesses",
    "POST /access/v1/search/subject": "search_subjects",
    "POST /access/v1/search/resource": "search_resources",
    "POST /access/v1/search/action": "search_actions",
    "GET /api/permissions/application/publicKeys/{app_id}": "list_public_keys_of_application",
    "GET /api/permissions/application/publicKey/{key_id}": "get_public_key",
    "GET /api/permissions/keys": "get_token_keys",
    "GET /proxy/oauth/keys": "get_signing_key_set",
    "GET /.well-known/ssf-configuration": "get_ssf_configuration",
    "GET /ssf/stream": "list_signal_streams",
    "POST /ssf/stream": "create_signal_stream",
    "PATCH /ssf/stream": "update_signal_stream",
    "PUT /ssf/stream": "replace_signal_stream",
    "DELETE /ssf/stream": "delete_signal_stream",
    "GET /ssf/status": "get_signal_stream_status",
    "POST /ssf/status": "set_signal_stream_status",
    "POST /ssf/subjects:add": "add_signal_subject",
    "POST /ssf/subjects:remove": "remove_signal_subject",
    "POST /ssf/verify": "verify_signal_stream",
    "POST /ssf/poll": "poll_signals",
    "GET /healthz": "check_health",
    "GET /readyz": "check_readiness",
    "GET /metrics": "get_metrics",
    "GET /openapi.json": "get_openapi_document",
}
_VERBS = {"POST": "create", "PUT": "replace", "PATCH": "update", "DELETE": "delete"}


def management_operation_id(method: str, path: str, *, is_list: bool) -> str:
    """Makes the id from a path: ``GET /users/<user_id>/sessions`` is ``list_user_sessions``."""
    parts = [part for part in path.replace("-", "_").split("/") if part]
    names = _names(parts)
    if method == "POST" and len(parts) > 1 and not parts[-1].endswith("s"):  # /clients/<client_id>/rotate-secret
        action, _, rest = parts[-1].partition("_")
        return "_".join([action, *names[:-1], *([rest] if rest else [])])
    verb = _VERBS.get(method) or ("list" if is_list else "get")
    if method == "POST":
        names[-1] = _one(names[-1])
    return "_".join([verb, *names])


def _names(parts: Sequence[str]) -> list[str]:
    """The names of a path, in the singular before a variable and before another name."""
    return [
        _one(part) if following else part
        for part, following in zip(parts, [*parts[1:], ""], strict=True)
        if not part.startswith("<")
    ]


def _one(plural: str) -> str:
    return plural.removesuffix("s")


def service_operation_id(method: str, path: str) -> str:
    """Returns the id of another endpoint. Pages have no name; theirs is made of the method and the path."""
    words = re.sub(r"[^A-Za-z0-9]+", " ", path).split()
    return SERVICE_OPERATIONS.get(f"{method.upper()} {path}") or "_".join([method.lower(), *words])


def summary_of(operation_id: str) -> str:
    """``get_user`` is "Get a user", ``list_users`` is "List users"."""
    verb, *words = operation_id.split("_")
    article = "" if not words or words[-1].endswith("s") else "an " if words[0][0] in "aeio" else "a "
    return f"{verb.title()} {article}{' '.join(words)}"
