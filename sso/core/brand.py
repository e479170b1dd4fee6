"""The brand of the service, which its pages and mails show: name, logo, accent colour, links and a text."""

from collections.abc import Callable

from msgspec import Struct

from sso.core.colour import BLACK, MIN_TEXT_CONTRAST, WHITE, Colour
from sso.core.logo import Logo

DEFAULT_ACCENT = Colour.parse("#3b50cf")
MAX_NAME, MAX_TEXT = 64, 500
# The colours of web/static/sso.css that an accent stands on.
LIGHT_PAGE, LIGHT_CARD = Colour.parse("#f3f4f8"), WHITE
DARK_PAGE, DARK_CARD = Colour.parse("#101219"), Colour.parse("#191c26")
LINK_CONTRAST = 5.0  # a little more than the minimum for text
MIN_SHAPE_CONTRAST = 3.0  # between a button and the dark card (WCAG 1.4.11)


class Brand(Struct, frozen=True):
    name: str = ""
    accent: Colour | None = None
    logo: Logo | None = None
    support_url: str = ""
    privacy_url: str = ""
    terms_url: str = ""
    signin_text: str = ""


class CurrentBrand:
    """The brand as it is now: administrators change it while the service runs (``sso/branding``)."""

    def __init__(self, brand: Brand) -> None:
        self.value = brand
        self._observers: list[Callable[[Brand], None]] = []

    @property
    def name(self) -> str:
        return self.value.name

    def observe(self, function: Callable[[Brand], None]) -> None:
        """Calls the function now, and again after each change."""
        function(self.value)
        self._observers.append(function)

    def replace(self, brand: Brand) -> None:
        if brand != self.value:
            self.value = brand
            for function in self._observers:
                function(brand)


def parse_accent(text: str) -> Colour:
    """Raises ValueError for a colour on which the white text of buttons cannot be read."""
    colour = Colour.parse(text)
    contrast = colour.contrast(WHITE)
    if contrast < MIN_TEXT_CONTRAST:
        darker = colour.legible(WHITE, towards=BLACK)
        raise ValueError(
            f"must be darker: the white text of buttons has a contrast of {contrast:.1f} to 1 with {colour.hex} and "
            f"needs {MIN_TEXT_CONTRAST} to 1, which {darker.hex} has"
        )
    return colour


def accent_css(accent: Colour) -> str:
    """Returns the style sheet that replaces the accent variables of sso.css, with legible shades for both themes."""
    light, dark = accent_variables(accent, dark=False), accent_variables(accent, dark=True)
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"


def accent_variables(accent: Colour, *, dark: bool) -> str:
    """Returns the accent variables of sso.css for one theme."""
    if not dark:
        return _variables(accent, LIGHT_PAGE, LIGHT_CARD, towards=BLACK)
    on_dark = accent.legible(DARK_CARD, towards=WHITE, contrast=MIN_SHAPE_CONTRAST)
    return _variables(on_dark, DARK_PAGE, DARK_CARD, towards=WHITE)


def _variables(accent: Colour, page: Colour, card: Colour, towards: Colour) -> str:
    soft = card.mixed(accent, 0.12)
    link = accent.legible(page, card, soft, towards=towards, contrast=LINK_CONTRAST)
    values = {
        "accent": accent,
        "accent-hover": accent.mixed(BLACK, 0.15),
        "accent-soft": soft,
        "link": link,
        "glow": page.mixed(accent, 0.12),
    }
    return " ".join(f"--{name}: {colour.hex};" for name, colour in values.items())
