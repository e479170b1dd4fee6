"""The accent colour is legible in both themes, and a logo is an image."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sso.core.brand import DARK_CARD, DARK_PAGE, LIGHT_PAGE, accent_css, parse_accent
from sso.core.colour import BLACK, WHITE, Colour
from sso.core.logo import EXPECTED, MAX_BYTES, read_logo

SVG = b'<svg xmlns="http://www.w3.org/2000/svg"/>'
PNG = b"\x89PNG\r\n\x1a\n"
colours = st.builds(Colour, *[st.integers(0, 255)] * 3)


def test_contrast_is_that_of_wcag() -> None:
    assert WHITE.contrast(BLACK) == 21
    assert WHITE.contrast(WHITE) == 1
    assert round(Colour.parse("#767676").contrast(WHITE), 2) == 4.54  # the lightest grey that passes
    assert Colour.parse("#777").contrast(WHITE) < 4.5


@pytest.mark.parametrize("text", ["", "red", "#12", "#12345", "#1234567", "#12345g", "#１２３", "rgb(0,0,0)", "#fff;}"])
def test_text_that_is_no_colour_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="must be a colour such as"):
        parse_accent(text)


def test_light_accent_is_rejected_with_the_nearest_colour_that_is_legible() -> None:
    with pytest.raises(ValueError, match=r"must be darker: .* 1\.5 to 1 with #ffcc00 .* needs 4\.5 to 1") as caught:
        parse_accent("#fc0")
    suggested = re.findall("#[0-9a-f]{6}", str(caught.value))[-1]
    assert parse_accent(suggested).hex == suggested


@given(colours)
def test_every_accepted_accent_is_legible_in_both_themes(colour: Colour) -> None:
    if colour.contrast(WHITE) < 4.5:
        with pytest.raises(ValueError):
            parse_accent(colour.hex)
        return
    light, dark = accent_css(parse_accent(colour.hex)).split("@media")
    for css, page, card in ((light, LIGHT_PAGE, WHITE), (dark, DARK_PAGE, DARK_CARD)):
        found = {name: Colour.parse(value) for name, value in re.findall(r"--([\w-]+): (#[0-9a-f]{6});", css)}
        assert found["accent"].contrast(WHITE) >= 4.5
        assert found["accent-hover"].contrast(WHITE) >= 4.5
        for background in (page, card, found["accent-soft"]):
            assert found["link"].contrast(background) >= 4.5
        assert found["accent"].contrast(card) >= 3


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (SVG, "svg"),
        (b"\xef\xbb\xbf<?xml version='1.0'?>" + SVG, "svg"),
        (PNG + b"...", "png"),
        (b"RIFF....WEBPVP8 ", "webp"),
    ],
)
def test_type_of_a_logo_is_that_of_its_content(tmp_path: Path, content: bytes, kind: str) -> None:
    path = tmp_path / "logo.txt"
    path.write_bytes(content)
    assert read_logo(path).kind == kind


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"GIF89a",
        b"<html/>",
        b"<svg/>",  # without its namespace it is not an image
        SVG[:-1],
        b'<!DOCTYPE svg [<!ENTITY a "aaaa">]>' + SVG,
        ('<!DOCTYPE svg [<!ENTITY a "aaaa">]>' + SVG.decode()).encode("utf-16"),
        PNG + b"." * MAX_BYTES,
        SVG + b" " * MAX_BYTES,
    ],
)
def test_other_files_are_rejected(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "logo.svg"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(EXPECTED)):
        read_logo(path)


def test_unreadable_file_is_rejected(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.svg", tmp_path, Path("a\0b")):
        with pytest.raises(ValueError, match=re.escape(EXPECTED)):
            read_logo(path)
