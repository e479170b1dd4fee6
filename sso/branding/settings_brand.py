"""The brand of the settings. A setting has precedence over what administrators store in the console."""

from urllib.parse import urlsplit

from sso.core.brand import Brand
from sso.settings import Settings


def settings_brand(settings: Settings) -> Brand:
    return Brand(
        settings.brand_name or urlsplit(settings.base_url).hostname or "",
        settings.brand_accent,
        settings.brand_logo,
        settings.support_url or "",
        settings.privacy_url or "",
        settings.terms_url or "",
        settings.signin_text or "",
    )
