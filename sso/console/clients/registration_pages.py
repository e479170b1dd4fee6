"""Clients that registered themselves: the queue of those that wait for approval, and the tokens for a registration."""

from typing import Any

from quart import Blueprint, Response

from sso.admin.request import AdminResponse
from sso.console.deletion_pages import Consequences, DeletionPage, StoredRecord, add_deletion
from sso.console.form_pages import Form, FormPage, add_form, new_record
from sso.console.form_values import read_number
from sso.console.list_pages import ListPage, Record, Variables, add_list
from sso.console.lists import read_all
from sso.console.sections import CLIENTS
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit, version_of
from sso.core.errors import NotFound
from sso.oauth.registration.registration import RegistrationMode

CLIENT = "/clients/<client_id>"
WAITING = f"{CLIENTS.path}/waiting"
TOKENS, TOKEN = "/registration-tokens", "/registration-tokens/<token_id>"
MAX_TOKENS = 1000


def registration_pages(console: ConsoleView, routes: Blueprint, mode: RegistrationMode) -> None:
    waiting_pages(console, routes, mode)
    token_pages(console, routes, mode)


def waiting_pages(console: ConsoleView, routes: Blueprint, mode: RegistrationMode) -> None:
    async def page(_visit: ConsoleVisit, _variables: Variables) -> Record:
        return {"title": "Waiting for approval", "mode": mode}

    async def waiting_only(_visit: ConsoleVisit, filters: Any, _variables: Variables) -> dict[str, str]:
        return {**filters, "approved": "0"}

    clients = ListPage(
        CLIENTS,
        "/clients",
        "clients",
        "clients/waiting.html",
        path="/waiting",
        page=page,
        query=waiting_only,
        row=lambda _visit, client: {**client, "version": version_of(client)},
        default_sort="created",
    )
    show_list = add_list(console, routes, clients)

    async def show(visit: ConsoleVisit, variables: Variables, _: Form | None, /, **problem: Any) -> Response:
        return await show_list(visit, variables, **problem)

    # The form has the version that was shown: a client that changes itself meanwhile is not approved unseen.
    approval = FormPage(
        CLIENTS,
        "/<client_id>/approve",
        "PATCH",
        CLIENT,
        lambda _form, _variables: {"approved": True},
        show,
        "client-approved",
        lambda _record, _variables: WAITING,
    )
    refusal = FormPage(
        CLIENTS,
        "/<client_id>/refuse",
        "POST",
        f"{CLIENT}/refuse",
        lambda _form, _variables: {},
        show,
        "client-refused",
        lambda _record, _variables: WAITING,
    )
    add_form(console, routes, approval)
    add_form(console, routes, refusal)


def token_pages(console: ConsoleView, routes: Blueprint, mode: RegistrationMode) -> None:
    async def page(_visit: ConsoleVisit, _variables: Variables) -> Record:
        return {"title": "Registration tokens", "created": None, "mode": mode}

    async def form_values(_visit: ConsoleVisit, _variables: Variables) -> Record:
        return {"crumbs": [(f"{CLIENTS.path}{TOKENS}", "Registration tokens")], "mode": mode}

    tokens = ListPage(CLIENTS, TOKENS, "tokens", "clients/registration_tokens.html", filters=(), path=TOKENS, page=page)
    show_list = add_list(console, routes, tokens)

    async def show_token(visit: ConsoleVisit, found: AdminResponse, variables: Variables, _: Form) -> Response:
        return await show_list(visit, variables, created=found.members["data"])

    add_form(
        console,
        routes,
        FormPage(
            CLIENTS,
            TOKENS,
            "POST",
            TOKENS,
            _new_token,
            new_record(console, "clients/new_registration_token.html", "Add registration token", TOKENS, form_values),
            result=show_token,
            page_path=f"{TOKENS}/new",
        ),
    )
    add_deletion(console, routes, REVOCATION)


async def _read_token(visit: ConsoleVisit, variables: Variables) -> StoredRecord:
    for token in await read_all(visit, TOKENS, {}, MAX_TOKENS, MAX_TOKENS):
        if token["id"] == variables["token_id"]:
            return StoredRecord({"data": token})
    raise NotFound("registration token not found")


async def _consequences(_visit: ConsoleVisit, stored: StoredRecord, _: Variables) -> Consequences:
    ends = ["Nobody can register a client with it. Clients that were registered with it stay."]
    path = f"{CLIENTS.path}{TOKENS}"
    name = f"token {stored.data['id']}"
    return Consequences(name, ends, "This cannot be undone.", path, [(path, "Registration tokens")])


REVOCATION = DeletionPage(
    CLIENTS,
    f"{TOKEN}/revoke",
    TOKEN,
    "registration token",
    "registration-token-revoked",
    lambda _: f"{CLIENTS.path}{TOKENS}",
    _consequences,
    verb="Revoke",
    recent="never",
    read=_read_token,
)


def _new_token(form: Form, _variables: Variables) -> Record:
    return {name: read_number(form.get(name, "").strip()) for name in ("uses", "days")}
