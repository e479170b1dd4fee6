"""Colours and their contrast, as WCAG 2.2 defines it."""

import re
from typing import NamedTuple

MIN_TEXT_CONTRAST = 4.5  # WCAG 1.4.3
_HEX = re.compile(r"#?(?:([0-9a-f]{6})|([0-9a-f]{3}))", re.IGNORECASE | re.ASCII)


class Colour(NamedTuple):
    red: int
    green: int
    blue: int

    @classmethod
    def parse(cls, text: str) -> "Colour":
        """Raises ValueError."""
        match = _HEX.fullmatch(text)
        if match is None:
            raise ValueError("must be a colour such as #3b50cf")
        digits = match[1] or "".join(digit * 2 for digit in match[2])
        return cls(*bytes.fromhex(digits))

    @property
    def hex(self) -> str:
        return f"#{bytes(self).hex()}"

    @property
    def rgb(self) -> str:
        """The functional notation, in which no colour looks like a six-digit code."""
        return f"rgb({self.red}, {self.green}, {self.blue})"

    @property
    def luminance(self) -> float:
        red, green, blue = (_linear(channel / 255) for channel in self)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    def contrast(self, other: "Colour") -> float:
        """Returns the contrast ratio, from 1 to 21."""
        light, dark = sorted((self.luminance, other.luminance), reverse=True)
        return (light + 0.05) / (dark + 0.05)

    def mixed(self, other: "Colour", share: float) -> "Colour":
        """Returns this colour with a share of another one, from 0 to 1."""
        return Colour(*(round(own + (foreign - own) * share) for own, foreign in zip(self, other, strict=True)))

    def legible(self, *backgrounds: "Colour", towards: "Colour", contrast: float = MIN_TEXT_CONTRAST) -> "Colour":
        """Returns the first colour on the way to another one that has this contrast with all backgrounds."""
        candidates = (self.mixed(towards, step / 100) for step in range(101))
        return next(
            (found for found in candidates if min(map(found.contrast, backgrounds)) >= contrast),
            towards,
        )


WHITE, BLACK = Colour(255, 255, 255), Colour(0, 0, 0)


def _linear(channel: float) -> float:
    return float(channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4)
