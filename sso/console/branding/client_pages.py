"""The branding of an OAuth client: its form, with a preview of the pages of its sign-in."""

from typing import Any

from quart import Blueprint, Response, current_app, request

from sso.console.branding.preview import PAGES, PreviewBrand, previews, read_page
from sso.console.clients.pages import protection_of
from sso.console.form_error import FormError
from sso.console.sections import CLIENTS
from sso.console.view import ConsoleView, done
from sso.console.visit import ConsoleVisit, version_of
from sso.core.brand import Brand, CurrentBrand, parse_accent
from sso.core.errors import ApiError
from sso.core.field_errors import FieldError
from sso.core.path_ids import path_id
from sso.core.urls import origin_of
from sso.oauth.clients.branding import EXPECTED_LOGO, has_own_logo
from sso.web.body import ParsedBody
from sso.web.brand import SiteBrand, named_links, page_brand, style_path
from sso.web.request_model import validate
from sso.web.security_headers import page_policy

CLIENT = "/clients/<client_id>"
FIELDS = ("logo_uri", "accent", "signin_text", "support_uri", "policy_uri", "tos_uri")


def client_branding_pages(console: ConsoleView, routes: Blueprint, service: CurrentBrand) -> None:
    @routes.get("/<client_id>/branding")
    async def show_branding(client_id: str) -> Response:
        visit = await console.open(CLIENTS)
        client = await visit.data("GET", CLIENT, client_id=client_id)
        return await show(visit, client, {name: client[name] for name in FIELDS}, request.args.get("page", ""))

    @routes.post("/<client_id>/branding")
    async def save_branding(client_id: str) -> Response:
        visit, form = await console.submitted(CLIENTS, "PATCH", CLIENT, recent="never")
        values, page = _typed(form), form.get("page", "")
        client = await visit.data("GET", CLIENT, client_id=client_id)
        if form.get("preview"):
            return await show(visit, client, values, page, _error(visit, client, values))
        try:
            await visit.call("PATCH", CLIENT, client_id=client_id, body=values, if_match=form.get("version") or None)
        except ApiError as error:
            return await show(visit, client, values, page, FormError.of(error))
        return done(f"{CLIENTS.path}/{client_id}/branding?page={read_page(page)}", "branding-saved")

    @routes.post("/<client_id>/branding/preview")
    async def preview_branding(client_id: str) -> Response:
        """The part of the page that changes while the administrator types."""
        visit, form = await console.submitted(CLIENTS, "PATCH", CLIENT, recent="never")
        client = await visit.data("GET", CLIENT, client_id=client_id)
        values = _typed(form)
        error = _error(visit, client, values)
        return await show(visit, client, values, form.get("page", ""), error, template="branding/_preview.html")

    async def show(
        visit: ConsoleVisit,
        client: dict[str, Any],
        values: dict[str, str],
        page: str,
        error: FormError | None = None,
        template: str = "branding/client.html",
    ) -> Response:
        """After a problem, there is no preview. A status of success, since htmx shows no others in place."""
        brand = None if error else _brand(service.value, client, values)
        origin = brand.site.logo_origin if brand and brand.site else ""
        part = template != "branding/client.html"
        return await console.show(
            visit,
            template,
            title="Branding",
            crumbs=[(f"{CLIENTS.path}/{path_id(client['client_id'])}", client["name"] or client["client_id"])],
            headers={"Content-Security-Policy": page_policy((), (origin,) if origin else (), sends_requests=True)},
            client=client,
            values=values,
            version=version_of(client),
            may_save=visit.may("PATCH", CLIENT) and not protection_of(visit, client),
            page=read_page(page),
            pages=[(key, title) for key, (title, _) in PAGES.items()],
            previews=previews(current_app.jinja_env, read_page(page), brand) if brand else [],
            **((error.values if error else {}) | ({"status": 200} if part else {})),
        )


def _typed(form: dict[str, str]) -> dict[str, str]:
    return {name: form.get(name, "").strip() for name in FIELDS}


def _error(visit: ConsoleVisit, client: dict[str, Any], values: dict[str, str]) -> FormError | None:
    """Returns why the management API would refuse the values, or None."""
    model = visit.operations.find("PATCH", CLIENT).body
    assert model is not None
    try:
        validate(model, ParsedBody(dict(values)))
    except FieldError as error:
        return FormError.of(error)
    return None if has_own_logo({**client, **values}) else FormError(EXPECTED_LOGO, field="logo_uri")


def _brand(service: Brand, client: dict[str, Any], values: dict[str, str]) -> PreviewBrand:
    links = named_links(values["support_uri"], values["policy_uri"], values["tos_uri"])
    accent = parse_accent(values["accent"]) if values["accent"] else None
    logo = values["logo_uri"]
    site = SiteBrand(logo, origin_of(logo), style_path(accent), links, values["signin_text"])
    uris = client["redirect_uris"] or [f"https://{host}" for host in client["redirect_hosts"]]
    host = (uris and origin_of(uris[0]).partition("://")[2]) or "site.example"
    return PreviewBrand(
        page_brand(service), accent or service.accent, site, client["name"] or client["client_id"], host
    )
