"""The brand of the service: previews with the present settings and with others, and the settings to copy."""

from typing import Any

from quart import Blueprint, Response, current_app, request

from sso.console.branding.preview import PAGES, PreviewBrand, previews, read_page
from sso.console.form_error import FormError
from sso.console.sections import BRANDING
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit
from sso.core import setting_values
from sso.core.brand import MAX_NAME, MAX_TEXT, Brand
from sso.core.colour import Colour
from sso.oauth.clients.branding import check_logo_uri
from sso.web.brand import PageBrand, named_links, page_brand, style_path

# The field of the form → the setting, and how its value is checked.
SETTINGS = {
    "name": ("SSO_BRAND_NAME", setting_values.line(MAX_NAME)),
    "accent": ("SSO_BRAND_ACCENT", lambda value: setting_values.accent(value).hex),
    "signin_text": ("SSO_SIGNIN_TEXT", setting_values.line(MAX_TEXT)),
    "support_url": ("SSO_SUPPORT_URL", setting_values.link),
    "privacy_url": ("SSO_PRIVACY_URL", setting_values.link),
    "terms_url": ("SSO_TERMS_URL", setting_values.link),
}
EXPECTED_LOGO = "must be a data URI in base64 of an SVG, PNG or WebP image of at most 32 KiB"


def branding_pages(console: ConsoleView, brand: Brand) -> Blueprint:
    routes = console.blueprint(BRANDING)
    present = {
        "name": brand.name,
        "accent": brand.accent.hex if brand.accent else "",
        **{name: getattr(brand, name) for name in ("signin_text", "support_url", "privacy_url", "terms_url")},
        "logo": "",
    }

    @routes.get("")
    async def show_brand() -> Response:
        return await show(await console.open(BRANDING), dict(present), request.args.get("page", ""))

    @routes.post("")
    async def try_brand() -> Response:
        """Shows the previews with the values of the form. Nothing is stored."""
        visit, form = await console.submitted(BRANDING, recent="never")
        return await show(visit, _typed(form), form.get("page", ""))

    @routes.post("/preview")
    async def preview_brand() -> Response:
        visit, form = await console.submitted(BRANDING, recent="never")
        return await show(visit, _typed(form), form.get("page", ""), template="branding/_preview.html")

    async def show(
        visit: ConsoleVisit, values: dict[str, str], page: str, template: str = "branding/service.html"
    ) -> Response:
        error = _error(values)
        shown = [] if error else previews(current_app.jinja_env, read_page(page), _preview_brand(brand, values))
        changed = [] if error else [_line(name, values) for name in SETTINGS if values[name] != present[name]]
        part = template != "branding/service.html"
        return await console.show(
            visit,
            template,
            title="Branding",
            values=values,
            page=read_page(page),
            pages=[(key, title) for key, (title, _) in PAGES.items()],
            previews=shown,
            settings="\n".join(changed),
            **((error.values if error else {}) | ({"status": 200} if part else {})),
        )

    return routes


def _typed(form: dict[str, str]) -> dict[str, str]:
    return {name: form.get(name, "").strip() for name in (*SETTINGS, "logo")}


def _error(values: dict[str, str]) -> FormError | None:
    """Returns which setting the service would refuse, or None. Empty values are those of the service."""
    for name, (_, check) in SETTINGS.items():
        try:
            if values[name]:
                check(values[name])
        except ValueError as error:
            return FormError(str(error), field=name)
    logo = values["logo"]
    if logo and not (logo.startswith("data:") and _is_logo(logo)):
        return FormError(EXPECTED_LOGO, field="logo")
    return None


def _is_logo(uri: str) -> bool:
    try:
        check_logo_uri(uri)
    except ValueError:
        return False
    return True


def _preview_brand(brand: Brand, values: dict[str, str]) -> PreviewBrand:
    accent = Colour.parse(values["accent"]) if values["accent"] else None
    present = page_brand(brand)
    shown = PageBrand(
        values["name"] or present.name,
        values["logo"] or present.logo_path,
        present.logo_type,
        style_path(accent),
        named_links(values["support_url"], values["privacy_url"], values["terms_url"]),
        values["signin_text"],
        values["privacy_url"],
        values["terms_url"],
    )
    return PreviewBrand(shown, accent)


def _line(name: str, values: dict[str, str]) -> Any:
    """Returns the setting as a line of an environment file; without its default, it is empty."""
    text = values[name].replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    return f'{SETTINGS[name][0]}="{text}"'
