"""Identity providers: the list, the form that adds one, and the page of a provider with its actions."""

from typing import Any

from quart import Blueprint, Response, request

from sso.console.deletion_pages import Consequences, DeletionPage, StoredRecord, add_deletion, count_text
from sso.console.form_pages import Form, FormPage, add_actions, add_form, record_actions
from sso.console.identity_providers.form import (
    CHECKS,
    FIELD_TITLES,
    HARMLESS,
    PRESETS,
    ProviderPreset,
    claims_text,
    client_texts,
    provider_body,
    shown_checks,
    shown_fields,
)
from sso.console.list_pages import ListPage, Record, Variables, add_list
from sso.console.sections import IDENTITY_PROVIDERS
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit, version_of
from sso.core.errors import NotFound
from sso.upstream.model import TICKET_KINDS

PROVIDERS, PROVIDER = "/identity-providers", "/identity-providers/<provider_id>"
CSV_COLUMNS = ("id", "kind", "name", "issuer", "client_id", "position", "disabled")


def identity_provider_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(IDENTITY_PROVIDERS)

    async def list_values(visit: ConsoleVisit, _: Variables) -> Record:
        return {"may_add": visit.caller.is_root}  # the management API lets nobody else add one

    providers = ListPage(
        IDENTITY_PROVIDERS, PROVIDERS, "providers", "identity_providers/list.html", CSV_COLUMNS, page=list_values
    )
    add_list(console, routes, providers)

    async def show_new(visit: ConsoleVisit, _: Variables, form: Form | None, /, **problem: Any) -> Response:
        visit.require("POST", PROVIDERS)
        preset = PRESETS.get(request.args.get("preset", "")) if form is None else _preset(form)
        return await console.show(
            visit,
            "identity_providers/new.html",
            title=f"Add {preset.title}" if preset else "Add an identity provider",
            presets=PRESETS.values(),
            preset=preset,
            values=_texts(preset.values) | (_typed(form) if form else {}) if preset else {},
            fields=shown_fields(preset.kind) if preset else (),
            checks=shown_checks(preset.kind) if preset else (),
            client_texts=client_texts(preset.kind) if preset else (),
            is_for_tickets=preset is not None and preset.kind in TICKET_KINDS,
            ticket_kinds=TICKET_KINDS,
            **problem,
        )

    add_form(
        console,
        routes,
        FormPage(
            IDENTITY_PROVIDERS,
            "/new",
            "POST",
            PROVIDERS,
            _new_provider,
            show_new,
            "provider-created",
            lambda provider, _: path_of(provider["id"]),
            opens=True,
        ),
    )
    provider_detail_pages(console, routes)
    return routes


def provider_detail_pages(console: ConsoleView, routes: Blueprint) -> None:
    async def provider_page(visit: ConsoleVisit, variables: Variables, form: Form | None, /, **more: Any) -> Response:
        found = await visit.call("GET", PROVIDER, **variables)
        provider = found.members["data"]
        fields = shown_fields(provider["kind"])
        return await console.show(
            visit,
            "identity_providers/provider.html",
            title=provider["name"] or variables["provider_id"],
            provider=provider,
            users=found.members["users"],
            base=path_of(variables["provider_id"]),
            values=_texts(provider) | (_typed(form) if form else {}),
            version=version_of(provider),
            fields=fields if visit.caller.is_root else fields & {"client_secret"},
            checks=shown_checks(provider["kind"]) if visit.caller.is_root else (),
            client_texts=client_texts(provider["kind"]),
            is_for_tickets=provider["kind"] in TICKET_KINDS,
            is_root=visit.caller.is_root,
            field_titles=FIELD_TITLES,
            **{"outcome": None, **more},
        )

    add_form(
        console,
        routes,
        FormPage(
            IDENTITY_PROVIDERS,
            "/<provider_id>",
            "PATCH",
            PROVIDER,
            lambda form, _: provider_body(form),
            provider_page,
            "provider-saved",
            lambda _, variables: path_of(variables["provider_id"]),
            is_important=lambda provider, body: (
                not HARMLESS.issuperset(name for name, value in body.items() if value != provider.get(name))
            ),
            opens=True,
        ),
    )

    @routes.post("/<provider_id>/test")
    async def test(provider_id: str) -> Response:
        """Tests the connection with the stored values, and shows what was found."""
        visit, _ = await console.submitted(IDENTITY_PROVIDERS, "POST", f"{PROVIDER}/test", recent="never")
        outcome = await visit.data("POST", f"{PROVIDER}/test", provider_id=provider_id)
        return await provider_page(visit, {"provider_id": provider_id}, None, outcome=outcome)

    add_actions(console, routes, IDENTITY_PROVIDERS, *record_actions(IDENTITY_PROVIDERS, PROVIDER, "provider"))
    add_deletion(console, routes, DELETION)


async def _consequences(_visit: ConsoleVisit, stored: StoredRecord, variables: Variables) -> Consequences:
    provider, users, path = stored.data, stored.members["users"], path_of(variables["provider_id"])
    name = provider["name"] or variables["provider_id"]
    ends = [
        "Nobody can sign in with it any more.",
        f"The links of {count_text(users['linked'], 'user')} to it.",
    ]
    if users["without_other_sign_in"]:
        ends.append(f"{count_text(users['without_other_sign_in'], 'user').capitalize()} of them cannot sign in then.")
    undo = "You can undo this in the audit trail. The links of users do not come back: users link their accounts again."
    return Consequences(name, ends, undo, path, [(path, name)], asks_name=bool(users["linked"]))


DELETION = DeletionPage(
    IDENTITY_PROVIDERS,
    "/<provider_id>/delete",
    PROVIDER,
    "provider",
    "provider-deleted",
    lambda _: IDENTITY_PROVIDERS.path,
    _consequences,
)


def path_of(provider_id: str) -> str:
    return f"{IDENTITY_PROVIDERS.path}/{provider_id}"


def _texts(values: Any) -> dict[str, Any]:
    """Returns the values of a provider as its form shows them."""
    shown = dict(values)
    shown["scopes"] = " ".join(shown.get("scopes", ()))
    shown["claims"] = claims_text(shown.get("claims", {}))
    return shown


def _typed(form: dict[str, str]) -> dict[str, Any]:
    """Returns the values of a refused form, to show them again; not the secret."""
    checks = {name: name in form for name in CHECKS}
    return {name: value for name, value in form.items() if name != "client_secret"} | checks


def _preset(form: Form) -> ProviderPreset:
    if form.get("preset", "") not in PRESETS:
        raise NotFound("There is no such kind of provider.")
    return PRESETS[form["preset"]]


def _new_provider(form: Form, _variables: Variables) -> Record:
    kind = _preset(form).kind
    body = {name: value for name, value in provider_body(form).items() if value not in ("", [], {})}
    return body | {"id": form.get("id", "").strip(), "kind": kind}
