"""OAuth clients: the list, the wizard that creates one, and the page of a client with its actions."""

from collections.abc import Awaitable, Callable
from typing import Any

from quart import Blueprint, Response, current_app, request

from sso.admin.clients import MAX_SECONDS, require_rights_of_client
from sso.admin.request import AdminResponse
from sso.audit.deleted_secret_store import UNDO_DAYS
from sso.console.clients.quickstarts import FRAMEWORKS, OTHER, Framework
from sso.console.clients.recorded_request_pages import recorded_request_pages
from sso.console.deletion_pages import Consequences, DeletionPage, StoredRecord, add_deletion, count_text
from sso.console.form_error import FormError
from sso.console.form_pages import Action, Form, FormPage, add_actions, add_form, record_actions
from sso.console.form_values import read_number, split_uris
from sso.console.list_pages import ListPage, Record, Variables, add_list
from sso.console.listing import FilterChoice
from sso.console.sections import CLIENTS
from sso.console.view import ConsoleView, done
from sso.console.visit import ConsoleVisit, version_of
from sso.core.errors import Forbidden, NotFound
from sso.core.field_errors import FieldError
from sso.core.path_ids import path_id
from sso.core.urls import origin_of
from sso.oauth.clients.redirect_uris import Redirect, match_redirect_uri, redirect_warnings

CLIENT = "/clients/<client_id>"
STREAMS = "/clients/<client_id>/signal-streams"
STREAM = f"{STREAMS}/<stream_id>"
DAY_S = 86400
# Who changes these can get the tokens of users.
CONFIRMED_FIELDS = frozenset(("redirect_uris", "consent", "token_exchange", "jwks_uri"))
CSV_COLUMNS = (
    "client_id", "name", "profile", "public", "disabled", "redirect_uris", "redirect_hosts", "grant_types",
    "application_id", "registered_by", "approved", "created",
)  # fmt: skip


def client_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(CLIENTS)
    status = FilterChoice("disabled", "Status", (("0", "Active"), ("1", "Disabled")))
    clients = ListPage(
        CLIENTS, "/clients", "clients", "clients/list.html", CSV_COLUMNS, choices=(status,), default_sort="name"
    )
    add_list(console, routes, clients)
    wizard_pages(console, routes)

    async def show_client(visit: ConsoleVisit, variables: Variables, form: Form | None, /, **problem: Any) -> Response:
        client = await visit.data("GET", CLIENT, **variables)
        if form is None:
            return await client_page(visit, client, added_uri=_added_uri(client))
        typed = {**client, **_changed_client(form, variables)}
        return await client_page(visit, typed, version=version_of(client), **problem)

    async def client_page(visit: ConsoleVisit, client: Record, **context: Any) -> Response:
        return await console.show(
            visit,
            "clients/client.html",
            title=client["name"] or client["client_id"],
            client=client,
            names=await visit.names({"application": [client["application_id"]]}),
            frameworks=FRAMEWORKS.values(),
            streams=await visit.data("GET", STREAMS, client_id=client["client_id"]),
            protection=protection_of(visit, client) if visit.may("PATCH", CLIENT) else "",
            warnings=redirect_warnings(client["redirect_uris"], client["redirect_hosts"]),
            **{"version": version_of(client), "added_uri": "", **context},
        )

    add_form(
        console,
        routes,
        FormPage(
            CLIENTS,
            "/<client_id>",
            "PATCH",
            CLIENT,
            _changed_client,
            show_client,
            "client-saved",
            lambda _, variables: f"{CLIENTS.path}/{variables['client_id']}",
            is_important=lambda client, body: any(
                body.get(name, client[name]) != client[name] for name in CONFIRMED_FIELDS
            ),
            opens=True,
        ),
    )
    client_actions(console, routes, client_page)
    recorded_request_pages(console, routes)
    add_actions(console, routes, CLIENTS, *STREAM_ACTIONS)
    return routes


def wizard_pages(console: ConsoleView, routes: Blueprint) -> None:
    async def wizard(visit: ConsoleVisit, _: Variables, form: Form | None, /, **problem: Any) -> Response:
        visit.require("POST", "/clients")
        framework = FRAMEWORKS.get(request.args.get("framework", ""))
        return await console.show(
            visit,
            "clients/new.html",
            title="Add OAuth client",
            frameworks=FRAMEWORKS.values(),
            framework=framework if form is None else _framework(form.get("framework", "")),
            values=form or {},
            **problem,
        )

    async def show_program(visit: ConsoleVisit, found: AdminResponse, _: Variables, form: Form) -> Response:
        client = found.members["data"]
        notice = f"The client {client['client_id']} has been created."
        return await quickstart(visit, FRAMEWORKS[form["framework"]], client, notice)

    async def quickstart(visit: ConsoleVisit, framework: Framework, client: Record, notice: str) -> Response:
        issuer = current_app.config["BASE_URL"]
        return await console.show(
            visit,
            "clients/quickstart.html",
            title=f"Quickstart for {framework.title}",
            crumbs=[(f"{CLIENTS.path}/{path_id(client['client_id'])}", client["client_id"])],
            client=client,
            warnings=redirect_warnings(client["redirect_uris"], client["redirect_hosts"]),
            framework=framework,
            program=framework.program(issuer, client["client_id"]),
            issuer=issuer,
            home=_home(client["redirect_uris"]),
            authentication=_authentication(client),
            checklist=bool(framework.redirect_uri) and not framework.file,
            notice=notice,
        )

    @routes.get("/<client_id>/quickstart/<framework>")
    async def show_quickstart(client_id: str, framework: str) -> Response:
        visit = await console.open(CLIENTS)
        client = await visit.data("GET", CLIENT, client_id=client_id)
        return await quickstart(visit, _framework(framework), client, "")

    add_form(
        console,
        routes,
        FormPage(CLIENTS, "/new", "POST", "/clients", _new_client, wizard, result=show_program, opens=True),
    )


def client_actions(console: ConsoleView, routes: Blueprint, client_page: Callable[..., Awaitable[Response]]) -> None:
    @routes.post("/<client_id>/rotate-secret")
    async def rotate(client_id: str) -> Response:
        """The new secret is shown once."""
        visit, form = await console.submitted(CLIENTS, "POST", f"{CLIENT}/rotate-secret")
        finish = form.get("finish") == "1"
        try:
            body: dict[str, Any] = {"finish": True} if finish else {"overlap": _seconds(form.get("days", ""))}
            client = await visit.data("POST", f"{CLIENT}/rotate-secret", client_id=client_id, body=body)
        except FieldError as error:
            client = await visit.data("GET", CLIENT, client_id=client_id)
            return await client_page(visit, client, values=form, **FormError.of(error).values)
        if finish:
            return done(f"{CLIENTS.path}/{client_id}", "rotation-finished")
        secret = client.pop("client_secret")
        return await client_page(visit, client, new_secret=secret)

    add_actions(console, routes, CLIENTS, *record_actions(CLIENTS, CLIENT, "client"))
    add_deletion(console, routes, DELETION)


async def _consequences(visit: ConsoleVisit, stored: StoredRecord, _: Variables) -> Consequences:
    client, path = stored.data, f"{CLIENTS.path}/{path_id(stored.data['client_id'])}"
    name = client["name"] or client["client_id"]
    ends = ["Nobody can sign in to it any more."]
    if number := stored.members["grants"]:
        ends.append(f"{count_text(number, 'sign-in').capitalize()} of users there, with their tokens.")
    if "client_credentials" in client["grant_types"]:
        names = await visit.names({"application": [client["application_id"]]})
        ends.append(f"The tokens of the service: {names.of('application', client['application_id']).text}.")
    undo = "This cannot be undone, but the client can register itself again."
    if not client["registered_by"]:
        days = f"You can undo this for {UNDO_DAYS} days"
        undo = f"{days}: the client then works with the same secret, and users sign in again."
    return Consequences(name, ends, undo, path, [(path, name)], asks_name=True)


DELETION = DeletionPage(
    CLIENTS, "/<client_id>/delete", CLIENT, "client", "client-deleted", lambda _: CLIENTS.path, _consequences
)


def _client_path(variables: Variables) -> str:
    return f"{CLIENTS.path}/{variables['client_id']}"


def _stream_action(name: str, method: str, notice: str, body: Record | None = None) -> Action:
    path = f"/<client_id>/signal-streams/<stream_id>/{name}"
    return Action(path, method, STREAM, notice, _client_path, body)


STREAM_ACTIONS = (
    _stream_action("pause", "PATCH", "stream-paused", {"status": "paused", "reason": "paused by an administrator"}),
    _stream_action("enable", "PATCH", "stream-enabled", {"status": "enabled"}),
    _stream_action("delete", "DELETE", "stream-deleted"),
)


def protection_of(visit: ConsoleVisit, client: dict[str, Any]) -> str:
    """Returns why the administrator may not change this client, or "" if nothing forbids it."""
    try:
        require_rights_of_client(visit.caller, client)
    except Forbidden as error:
        return error.message
    return ""


def _seconds(days: str) -> int:
    number = read_number(days.strip())
    if isinstance(number, str) or number > MAX_SECONDS // DAY_S:
        raise FieldError(("days",), f"must be a number of days from 0 to {MAX_SECONDS // DAY_S}")
    return number * DAY_S


def _framework(key: str) -> Framework:
    if key not in FRAMEWORKS:
        raise NotFound("There is no such framework.")
    return FRAMEWORKS[key]


def _changed_client(form: Form, _variables: Variables) -> Record:
    body: Record = {
        "name": form.get("name", "").strip(),
        "redirect_uris": split_uris(form.get("redirect_uris", "")),
        "consent": "consent" in form,
        "token_exchange": "token_exchange" in form,
    }
    return body | ({"jwks_uri": form["jwks_uri"].strip()} if "jwks_uri" in form else {})


def _new_client(form: Form, _variables: Variables) -> Record:
    framework = _framework(form.get("framework", ""))
    body: Record = {
        "client_id": form.get("client_id", "").strip(),
        "name": form.get("name", "").strip(),
        "profile": framework.profile,
    }
    if framework.profile == "fapi2":
        uris = split_uris(form.get("redirect_uris", ""))
        return body | {"redirect_uris": uris, "jwks_uri": form.get("jwks_uri", "").strip()}
    body["id_alg"] = form.get("id_alg", framework.id_alg)
    if framework.redirect_uri:
        is_public = framework.is_public or (framework.key == OTHER and "public" in form)
        return body | {"redirect_uris": split_uris(form.get("redirect_uris", "")), "public": is_public}
    body["grant_types"] = list(framework.grant_types)
    if framework.is_public:
        return body | {"public": True}
    return body | {"application_id": read_number(form.get("application_id", "").strip()) or None}


def _added_uri(client: Record) -> str:
    """Returns the redirect URI that a link to the page wants to add: the form has it, and nothing is stored."""
    uri = request.args.get("add_redirect_uri", "")
    is_valid = isinstance(match_redirect_uri(uri, (), (uri,), allow_http=True), Redirect)
    return uri if is_valid and uri not in client["redirect_uris"] else ""


def _authentication(client: Record) -> str:
    """Returns how the client authenticates, in the words of libraries."""
    if client["public"]:
        return "none (public client)"
    return client["token_endpoint_auth_method"] or "client_secret_basic or client_secret_post"


def _home(redirect_uris: list[str]) -> str:
    """Returns the address at which the example is opened, or "" for a program without users."""
    origin = origin_of(redirect_uris[0]) if redirect_uris else ""
    return f"{origin}/" if origin else ""
