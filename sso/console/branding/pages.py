"""The brand of the service: its form with a logo, colours and texts, and previews of the pages before it is saved."""

from typing import Any

import trio
from quart import Blueprint, Response, current_app, request

from sso.branding.operations import EXPECTED_LOGO, decode_logo
from sso.branding.record import SETTINGS
from sso.console.branding.preview import PAGES, PreviewBrand, previews, read_page
from sso.console.form_error import FormError
from sso.console.form_pages import Form
from sso.console.sections import BRANDING
from sso.console.view import ConsoleView, done
from sso.console.visit import ConsoleVisit, version_of
from sso.core.brand import DEFAULT_ACCENT, Brand, CurrentBrand, parse_accent
from sso.core.colour import WHITE, Colour
from sso.core.errors import ApiError
from sso.core.field_errors import FieldError
from sso.web.body import ParsedBody
from sso.web.brand import PageBrand, named_links, page_brand, style_path
from sso.web.request_model import validate

BRAND = "/brand"
MAX_FORM = 512 * 1024  # with a logo as a data URI
TEXTS = tuple(name for name in SETTINGS if name != "logo")


def branding_pages(console: ConsoleView, brand: CurrentBrand) -> Blueprint:
    routes = console.blueprint(BRANDING)

    @routes.get("")
    async def show_brand() -> Response:
        visit = await console.open(BRANDING)
        stored = await visit.data("GET", BRAND)
        return await show(visit, stored, _shown(stored, brand.value), request.args.get("page", ""))

    @routes.post("")
    async def save_brand() -> Response:
        visit, form = await submitted()
        stored = await visit.data("GET", BRAND)
        values, page = _typed(form, stored, brand.value), form.get("page", "")
        if form.get("preview"):
            return await show(visit, stored, values, page, await _error(visit, stored, values))
        await console.require_recent(visit, form)
        try:
            await visit.call("PATCH", BRAND, body=_body(stored, values), if_match=form.get("version") or None)
        except ApiError as error:
            return await show(visit, stored, values, page, FormError.of(error))
        return done(f"{BRANDING.path}?page={read_page(page)}", "brand-saved")

    @routes.post("/preview")
    async def preview_brand() -> Response:
        """The part of the page that changes while the administrator types."""
        visit, form = await submitted()
        stored = await visit.data("GET", BRAND)
        values = _typed(form, stored, brand.value)
        error = await _error(visit, stored, values)
        return await show(visit, stored, values, form.get("page", ""), error, template="branding/_preview.html")

    async def submitted() -> tuple[ConsoleVisit, Form]:
        return await console.submitted(BRANDING, "PATCH", BRAND, recent="by_caller", max_bytes=MAX_FORM, files=True)

    async def show(
        visit: ConsoleVisit,
        stored: dict[str, Any],
        values: dict[str, str],
        page: str,
        error: FormError | None = None,
        template: str = "branding/service.html",
    ) -> Response:
        """After a problem, there is no preview. A status of success, since htmx shows no others in place."""
        part = template != "branding/service.html"
        shown = [] if error else previews(current_app.jinja_env, read_page(page), _preview_brand(brand.value, values))
        return await console.show(
            visit,
            template,
            title="Branding",
            values=values,
            version=version_of(stored),
            may_save=visit.may("PATCH", BRAND),
            fixed={name: SETTINGS[name] for name in stored["fixed"]},
            accent=values["accent"] or DEFAULT_ACCENT.hex,
            contrast="" if error else _contrast(values["accent"]),
            logo_path=page_brand(brand.value).logo_path,
            has_stored_logo=bool(stored["logo"]),
            page=read_page(page),
            pages=[(key, title) for key, (title, _) in PAGES.items()],
            previews=shown,
            **((error.values if error else {}) | ({"status": 200} if part else {})),
        )

    return routes


def _shown(stored: dict[str, Any], brand: Brand) -> dict[str, str]:
    """Returns the values of the form: those of settings where they decide, otherwise the stored ones."""
    present = {
        "name": brand.name,
        "accent": brand.accent.hex if brand.accent else "",
        **{name: getattr(brand, name) for name in ("signin_text", "support_url", "privacy_url", "terms_url")},
    }
    return {name: present[name] if name in stored["fixed"] else stored[name] for name in TEXTS} | {"logo": ""}


def _typed(form: Form, stored: dict[str, Any], brand: Brand) -> dict[str, str]:
    """Returns what was typed. ``logo`` is a data URI, "" to keep the present logo, or "none" to remove it."""
    values = _shown(stored, brand)
    for name in TEXTS:
        if name not in stored["fixed"]:
            values[name] = form.get(name, "").strip()
    if values["accent"] == DEFAULT_ACCENT.hex:  # a colour field always has a value
        values["accent"] = ""
    logo = form.get("logo_file") or form.get("logo_data", "")
    return values | {"logo": "none" if "remove_logo" in form and not form.get("logo_file") else logo}


def _body(stored: dict[str, Any], values: dict[str, str]) -> dict[str, str]:
    body = {name: values[name] for name in TEXTS if name not in stored["fixed"]}
    return body | ({"logo": "" if values["logo"] == "none" else values["logo"]} if values["logo"] else {})


async def _error(visit: ConsoleVisit, stored: dict[str, Any], values: dict[str, str]) -> FormError | None:
    """Returns why the management API would refuse the values, or None."""
    model = visit.operations.find("PATCH", BRAND).body
    assert model is not None
    try:
        validate(model, ParsedBody(dict(_body(stored, values))))
        if values["logo"] not in ("", "none"):
            await trio.to_thread.run_sync(decode_logo, values["logo"])
    except FieldError as error:
        return FormError.of(error)
    except ValueError:
        return FormError(EXPECTED_LOGO, field="logo")
    return None


def _contrast(accent: str) -> str:
    """Says how well the white text of buttons can be read on the colour."""
    ratio = (Colour.parse(accent) if accent else DEFAULT_ACCENT).contrast(WHITE)
    reads = "very easy to read" if ratio >= 7 else "easy to read"
    return f"White text on this colour is {reads}: its contrast is {ratio:.1f} to 1, and 4.5 to 1 is needed."


def _preview_brand(brand: Brand, values: dict[str, str]) -> PreviewBrand:
    accent = parse_accent(values["accent"]) if values["accent"] else None
    present = page_brand(brand)
    shown = PageBrand(
        values["name"] or present.name,
        "" if values["logo"] == "none" else values["logo"] or present.logo_path,
        present.logo_type,
        style_path(accent),
        named_links(values["support_url"], values["privacy_url"], values["terms_url"]),
        values["signin_text"],
        values["privacy_url"],
        values["terms_url"],
    )
    return PreviewBrand(shown, accent)
