"""The page with the recorded requests of a client, on which a developer looks for a mistake."""

from typing import Any

from quart import Blueprint, Response

from sso.console.form_pages import Action, add_actions
from sso.console.list_pages import Variables
from sso.console.sections import CLIENTS
from sso.console.view import ConsoleView
from sso.core.path_ids import path_id

CLIENT = "/clients/<client_id>"
REQUESTS, RECORDING = f"{CLIENT}/requests", f"{CLIENT}/recording"
MAX_SHOWN = "200"  # all that are kept
# The codes of errors with a section of their own in the documentation.
EXPLAINED = frozenset(
    (
        "access_denied", "authorization_pending", "invalid_client", "invalid_dpop_proof", "invalid_grant",
        "invalid_request", "invalid_scope", "invalid_target", "invalid_token", "login_required", "unauthorized_client",
        "unsupported_grant_type", "use_dpop_nonce",
    )
)  # fmt: skip

# The titles and paths of what is recorded. What is sent to the client after a sign-in has no path of this service.
TITLES = {
    "authorize": ("Authorization request", "/proxy/oauth/authorize"),
    "authorization_response": ("Authorization response", ""),
    "device_authorization": ("Device authorization request", "/proxy/oauth/device_authorization"),
    "introspect": ("Introspection request", "/proxy/oauth/introspect"),
    "par": ("Pushed authorization request", "/proxy/oauth/par"),
    "revoke": ("Revocation request", "/proxy/oauth/token/revoke"),
    "token": ("Token request", "/proxy/oauth/token"),
    "userinfo": ("Userinfo request", "/proxy/oauth/userinfo"),
}


def recorded_request_pages(console: ConsoleView, routes: Blueprint) -> None:
    @routes.get("/<client_id>/requests")
    async def show_requests(client_id: str) -> Response:
        visit = await console.open(CLIENTS)
        found = await visit.call("GET", REQUESTS, query={"limit": MAX_SHOWN}, client_id=client_id)
        client = await visit.data("GET", CLIENT, client_id=client_id)
        return await console.show(
            visit,
            "clients/requests.html",
            title="Recorded requests",
            crumbs=[(f"{CLIENTS.path}/{path_id(client['client_id'])}", client["name"] or client["client_id"])],
            client=client,
            requests=[_shown(record) for record in found.members["data"]],
            recorded_until=found.members["recorded_until"],
        )

    add_actions(console, routes, CLIENTS, *ACTIONS)


def _shown(record: dict[str, Any]) -> dict[str, Any]:
    title, path = TITLES[record["endpoint"]]
    return {**record, "title": title, "path": path, "help": _help(record["answer"].get("error", ""))}


def _help(code: str) -> str:
    """Returns the path of the documentation about an error; "" without one."""
    if not code:
        return ""
    return f"/docs/testing.html#{code.replace('_', '-')}" if code in EXPLAINED else "/docs/errors.html#oauth"


def _own_page(variables: Variables) -> str:
    return f"{CLIENTS.path}/{variables['client_id']}/requests"


ACTIONS = (
    Action("/<client_id>/requests/record", "POST", RECORDING, "recording-started", _own_page, recent="never"),
    Action("/<client_id>/requests/stop", "DELETE", RECORDING, "recording-stopped", _own_page, recent="never"),
)
