"""Identity providers: the list, the form that adds one, and the page of a provider with its actions."""

from typing import Any

from quart import Blueprint, Response, request

from sso.console.export_pages import add_export
from sso.console.form_error import FormError
from sso.console.identity_providers.form import (
    CHECKS,
    FIELD_TITLES,
    HARMLESS,
    PRESETS,
    claims_text,
    provider_body,
    shown_fields,
)
from sso.console.record_action_pages import add_record_actions
from sso.console.sections import IDENTITY_PROVIDERS
from sso.console.users.pages import problem
from sso.console.view import ConsoleView, done
from sso.console.visit import ConsoleVisit, version_of
from sso.core.errors import ApiError, NotFound

PROVIDERS, PROVIDER = "/identity-providers", "/identity-providers/<provider_id>"
CSV_COLUMNS = ("id", "kind", "name", "issuer", "client_id", "position", "disabled")


def identity_provider_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(IDENTITY_PROVIDERS)
    add_export(console, routes, IDENTITY_PROVIDERS, "/identity-providers", CSV_COLUMNS)

    @routes.get("")
    async def show_list() -> Response:
        visit = await console.open(IDENTITY_PROVIDERS)
        found = await visit.call("GET", PROVIDERS, query={"after": request.args.get("after", "")})
        return await console.show(
            visit,
            "identity_providers/list.html",
            title="Identity providers",
            providers=found.members["data"],
            next=found.members.get("next"),
            may_add=visit.caller.is_root,  # the management API lets nobody else add one,
        )

    @routes.get("/new")
    async def show_new() -> Response:
        visit = await console.open(IDENTITY_PROVIDERS)
        visit.require("POST", PROVIDERS)
        return await new_form(visit, request.args.get("preset", ""))

    @routes.post("/new")
    async def create() -> Response:
        visit, form = await console.submitted(IDENTITY_PROVIDERS, "POST", PROVIDERS)
        if form.get("preset", "") not in PRESETS:
            raise NotFound("There is no such kind of provider.")
        try:
            body = {name: value for name, value in provider_body(form).items() if value not in ("", [], {})}
            body |= {"id": form.get("id", "").strip(), "kind": PRESETS[form["preset"]].kind}
            created = await visit.data("POST", PROVIDERS, body=body)
        except ApiError as error:
            return await new_form(visit, form["preset"], form, FormError.of(error))
        return done(path_of(created["id"]), "provider-created")

    async def new_form(
        visit: ConsoleVisit, key: str, form: dict[str, str] | None = None, error: FormError | None = None
    ) -> Response:
        preset = PRESETS.get(key)
        return await console.show(
            visit,
            "identity_providers/new.html",
            title=f"Add {preset.title}" if preset else "Add an identity provider",
            presets=PRESETS.values(),
            preset=preset,
            values=_texts(preset.values) | (_typed(form) if form else {}) if preset else {},
            fields=shown_fields(preset.kind) if preset else (),
            checks=CHECKS,
            **problem(error),
        )

    provider_detail_pages(console, routes)
    return routes


def provider_detail_pages(console: ConsoleView, routes: Blueprint) -> None:
    @routes.get("/<provider_id>")
    async def show_provider(provider_id: str) -> Response:
        return await provider_page(await console.open(IDENTITY_PROVIDERS), provider_id)

    @routes.post("/<provider_id>")
    async def save(provider_id: str) -> Response:
        visit, form = await console.submitted(IDENTITY_PROVIDERS, "PATCH", PROVIDER, recent="by_caller")
        provider = await visit.data("GET", PROVIDER, provider_id=provider_id)
        try:
            body = provider_body(form)
            changed = {name for name, value in body.items() if value != provider.get(name)}
            await console.require_recent(visit, form, needed=bool(changed - HARMLESS))
            version = form.get("version") or None
            await visit.call("PATCH", PROVIDER, provider_id=provider_id, body=body, if_match=version)
        except ApiError as error:
            return await provider_page(visit, provider_id, form, FormError.of(error))
        return done(path_of(provider_id), "provider-saved")

    @routes.post("/<provider_id>/test")
    async def test(provider_id: str) -> Response:
        """Tests the connection with the stored values, and shows what was found."""
        visit, _ = await console.submitted(IDENTITY_PROVIDERS, "POST", f"{PROVIDER}/test", recent="never")
        outcome = await visit.data("POST", f"{PROVIDER}/test", provider_id=provider_id)
        return await provider_page(visit, provider_id, outcome=outcome)

    async def provider_page(
        visit: ConsoleVisit,
        provider_id: str,
        form: dict[str, str] | None = None,
        error: FormError | None = None,
        outcome: dict[str, Any] | None = None,
    ) -> Response:
        found = await visit.call("GET", PROVIDER, provider_id=provider_id)
        provider = found.members["data"]
        return await console.show(
            visit,
            "identity_providers/provider.html",
            title=provider["name"] or provider_id,
            provider=provider,
            users=found.members["users"],
            base=path_of(provider_id),
            values=_texts(provider) | (_typed(form) if form else {}),
            version=form["version"] if form and "version" in form else version_of(provider),
            fields=shown_fields(provider["kind"]) if visit.caller.is_root else {"client_secret"},
            checks=CHECKS if visit.caller.is_root else (),
            is_root=visit.caller.is_root,
            outcome=outcome,
            field_titles=FIELD_TITLES,
            **problem(error),
        )

    add_record_actions(console, routes, IDENTITY_PROVIDERS, PROVIDER, "provider")


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
