"""OAuth clients: the list, the wizard that creates one, and the page of a client with its actions."""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from quart import Blueprint, Response, current_app, request

from sso.admin.clients import require_rights_of_client
from sso.console.clients.quickstarts import FRAMEWORKS, Framework
from sso.console.export_pages import add_export
from sso.console.form_error import FormError
from sso.console.record_action_pages import add_record_actions
from sso.console.sections import CLIENTS
from sso.console.users.form import split_list
from sso.console.users.pages import problem
from sso.console.view import ConsoleView, done
from sso.console.visit import ConsoleVisit, version_of
from sso.core.errors import ApiError, Forbidden, NotFound
from sso.core.field_errors import FieldError

CLIENT = "/clients/<client_id>"
DAY_S = 86400
CONFIRMED_FIELDS = ("redirect_uris", "consent")  # who changes these can get the tokens of users
CSV_COLUMNS = (
    "client_id",
    "name",
    "profile",
    "public",
    "disabled",
    "redirect_uris",
    "redirect_hosts",
    "grant_types",
    "application_id",
    "created",
)


def client_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(CLIENTS)
    add_export(console, routes, CLIENTS, "/clients", CSV_COLUMNS)

    @routes.get("")
    async def show_list() -> Response:
        visit = await console.open(CLIENTS)
        search, after = request.args.get("search", "").strip(), request.args.get("after", "")
        found = await visit.call("GET", "/clients", query={"search": search, "after": after})
        return await console.show(
            visit,
            "clients/list.html",
            title="OAuth clients",
            search=search,
            clients=found.members["data"],
            next=found.members.get("next"),
        )

    @routes.get("/new")
    async def show_wizard() -> Response:
        visit = await console.open(CLIENTS)
        visit.require("POST", "/clients")
        framework = FRAMEWORKS.get(request.args.get("framework", ""))
        return await wizard(visit, framework, {})

    @routes.post("/new")
    async def create() -> Response:
        visit, form = await console.submitted(CLIENTS, "POST", "/clients")
        framework = FRAMEWORKS.get(form.get("framework", ""))
        if framework is None:
            raise NotFound("There is no such framework.")
        try:
            created = await visit.data("POST", "/clients", body=_new_client(framework, form))
        except ApiError as error:
            return await wizard(visit, framework, form, FormError.of(error))
        return await quickstart(visit, framework, created, f"The client {created['client_id']} has been created.")

    async def wizard(
        visit: ConsoleVisit, framework: Framework | None, form: dict[str, str], error: FormError | None = None
    ) -> Response:
        return await console.show(
            visit,
            "clients/new.html",
            title="New OAuth client",
            frameworks=FRAMEWORKS.values(),
            framework=framework,
            values=form,
            **problem(error),
        )

    async def quickstart(visit: ConsoleVisit, framework: Framework, client: dict[str, Any], notice: str) -> Response:
        issuer = current_app.config["BASE_URL"]
        return await console.show(
            visit,
            "clients/quickstart.html",
            title=f"Quickstart for {framework.title}",
            crumbs=[(f"{CLIENTS.path}/{client['client_id']}", client["client_id"])],
            client=client,
            framework=framework,
            program=framework.program(issuer, client["client_id"]),
            issuer=issuer,
            home=_home(client["redirect_uris"]),
            notice=notice,
        )

    @routes.get("/<client_id>")
    async def show_client(client_id: str) -> Response:
        visit = await console.open(CLIENTS)
        return await client_page(visit, await visit.data("GET", CLIENT, client_id=client_id))

    async def client_page(visit: ConsoleVisit, client: dict[str, Any], **context: Any) -> Response:
        return await console.show(
            visit,
            "clients/client.html",
            title=client["name"] or client["client_id"],
            client=client,
            version=version_of(client),
            frameworks=FRAMEWORKS.values(),
            protection=protection_of(visit, client) if visit.may("PATCH", CLIENT) else "",
            **context,
        )

    @routes.get("/<client_id>/quickstart/<framework>")
    async def show_quickstart(client_id: str, framework: str) -> Response:
        visit = await console.open(CLIENTS)
        client = await visit.data("GET", CLIENT, client_id=client_id)
        if framework not in FRAMEWORKS:
            raise NotFound("There is no such framework.")
        return await quickstart(visit, FRAMEWORKS[framework], client, "")

    @routes.post("/<client_id>")
    async def save(client_id: str) -> Response:
        visit, form = await console.submitted(CLIENTS, "PATCH", CLIENT, recent="by_caller")
        body = {
            "name": form.get("name", "").strip(),
            "redirect_uris": split_list(form.get("redirect_uris", "")),
            "consent": "consent" in form,
        }
        client = await visit.data("GET", CLIENT, client_id=client_id)
        is_important = any(body[name] != client[name] for name in CONFIRMED_FIELDS)
        await console.require_recent(visit, form, needed=is_important)
        try:
            await visit.call("PATCH", CLIENT, client_id=client_id, body=body, if_match=form.get("version") or None)
        except ApiError as error:
            client = await visit.data("GET", CLIENT, client_id=client_id)
            return await client_page(visit, {**client, **body}, **problem(FormError.of(error)))
        return done(f"{CLIENTS.path}/{client_id}", "client-saved")

    client_actions(console, routes, client_page)
    return routes


def client_actions(console: ConsoleView, routes: Blueprint, client_page: Callable[..., Awaitable[Response]]) -> None:
    @routes.post("/<client_id>/rotate-secret")
    async def rotate(client_id: str) -> Response:
        """The new secret is shown once."""
        visit, form = await console.submitted(CLIENTS, "POST", f"{CLIENT}/rotate-secret")
        finish = form.get("finish") == "1"
        body: dict[str, Any] = {"finish": True} if finish else {"overlap": _days(form.get("days", ""))}
        try:
            client = await visit.data("POST", f"{CLIENT}/rotate-secret", client_id=client_id, body=body)
        except FieldError as error:
            client = await visit.data("GET", CLIENT, client_id=client_id)
            return await client_page(visit, client, **problem(FormError.of(error)))
        if finish:
            return done(f"{CLIENTS.path}/{client_id}", "rotation-finished")
        secret = client.pop("client_secret")
        return await client_page(visit, client, new_secret=secret)

    add_record_actions(console, routes, CLIENTS, CLIENT, "client")


def protection_of(visit: ConsoleVisit, client: dict[str, Any]) -> str:
    """Returns why the administrator may not change this client, or "" if nothing forbids it."""
    try:
        require_rights_of_client(visit.caller, client)
    except Forbidden as error:
        return error.message
    return ""


def _days(text: str) -> Any:
    return int(text) * DAY_S if text.isascii() and text.isdecimal() and len(text) < 6 else text


def _new_client(framework: Framework, form: dict[str, str]) -> dict[str, Any]:
    body: dict[str, Any] = {
        "client_id": form.get("client_id", "").strip(),
        "name": form.get("name", "").strip(),
        "profile": "oidc",
    }
    if framework.redirect_uri:
        return body | {"redirect_uris": split_list(form.get("redirect_uris", "")), "public": framework.is_public}
    application_id = form.get("application_id", "").strip()
    return body | {
        "grant_types": ["client_credentials"],
        "application_id": int(application_id) if application_id.isascii() and application_id.isdecimal() else None,
    }


def _home(redirect_uris: list[str]) -> str:
    """Returns the address at which the example is opened, or "" for a program without users."""
    parts = urlsplit(redirect_uris[0]) if redirect_uris else None
    return f"{parts.scheme}://{parts.netloc}/" if parts and parts.netloc else ""
