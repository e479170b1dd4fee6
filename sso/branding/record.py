"""The fields of the stored brand, and the settings that have precedence over them."""

from collections.abc import Callable, Mapping
from typing import Annotated

from pydantic import AfterValidator

from sso.core import setting_values
from sso.core.brand import MAX_NAME, MAX_TEXT
from sso.core.records import RecordModel
from sso.settings import Settings

SETTINGS: Mapping[str, str] = {
    "name": "SSO_BRAND_NAME",
    "accent": "SSO_BRAND_ACCENT",
    "logo": "SSO_BRAND_LOGO",
    "signin_text": "SSO_SIGNIN_TEXT",
    "support_url": "SSO_SUPPORT_URL",
    "privacy_url": "SSO_PRIVACY_URL",
    "terms_url": "SSO_TERMS_URL",
}
MAX_LOGO_TEXT = 180_000


def fixed_fields(settings: Settings) -> tuple[str, ...]:
    """Returns the fields that settings decide about."""
    return tuple(
        field for field, name in SETTINGS.items() if getattr(settings, name.removeprefix("SSO_").lower()) is not None
    )


def _or_empty(parse: Callable[[object], str]) -> AfterValidator:
    """An empty text removes a value."""
    return AfterValidator(lambda text: parse(text) if text else "")


def _short(text: str) -> str:
    if len(text) > MAX_LOGO_TEXT:
        raise ValueError("must be a data URI of an image of at most 128 KiB")
    return text


class BrandChanges(RecordModel):
    """The fields of the brand, each of which may be missing."""

    name: Annotated[str, _or_empty(setting_values.line(MAX_NAME))] | None = None
    accent: Annotated[str, _or_empty(lambda text: setting_values.accent(text).hex)] | None = None
    logo: Annotated[str, AfterValidator(_short)] | None = None  # a data URI, or the id of an earlier logo
    signin_text: Annotated[str, _or_empty(setting_values.line(MAX_TEXT))] | None = None
    support_url: Annotated[str, _or_empty(setting_values.link)] | None = None
    privacy_url: Annotated[str, _or_empty(setting_values.document_link)] | None = None
    terms_url: Annotated[str, _or_empty(setting_values.document_link)] | None = None
