"""A logo: an image file whose type and size are checked before it is served."""

import hashlib
from pathlib import Path

from sso.core.hidden_fields import RecordWithHiddenFields

MAX_BYTES = 256 * 1024
MAX_PIXELS = 4096  # a side: a small file may describe an image that fills the memory of the browser
EXPECTED = f"must be a readable SVG, PNG or WebP file of at most {MAX_BYTES // 1024} KiB and {MAX_PIXELS} pixels a side"
_SVG = "{http://www.w3.org/2000/svg}svg"


class Logo(RecordWithHiddenFields, frozen=True):
    hidden_fields = frozenset({"content"})

    content: bytes
    kind: str  # "svg", "png" or "webp"

    @property
    def content_type(self) -> str:
        return "image/svg+xml" if self.kind == "svg" else f"image/{self.kind}"

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()[:16]


def read_logo(path: Path) -> Logo:
    """Reads and checks the file. Raises ValueError."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError):
        raise ValueError(EXPECTED) from None
    return check_logo(content)


def check_logo(content: bytes) -> Logo:
    """Raises ValueError if the content is not one of the image types, whatever its file is called."""
    kind = _kind(content)
    if kind is None or len(content) > MAX_BYTES or max(_size(content, kind)) > MAX_PIXELS:
        raise ValueError(EXPECTED)
    return Logo(content, kind)


def _kind(content: bytes) -> str | None:
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "webp"
    return "svg" if len(content) <= MAX_BYTES and _is_svg(content) else None


def _size(content: bytes, kind: str) -> tuple[int, int]:
    """Returns width and height as the header says. An SVG image has the size that the page gives it."""
    if kind == "png":
        return int.from_bytes(content[16:20]), int.from_bytes(content[20:24])
    if kind == "webp":
        match content[12:16]:
            case b"VP8X":
                return 1 + int.from_bytes(content[24:27], "little"), 1 + int.from_bytes(content[27:30], "little")
            case b"VP8L":
                bits = int.from_bytes(content[21:25], "little")
                return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
            case b"VP8 ":
                width, height = (int.from_bytes(content[at : at + 2], "little") & 0x3FFF for at in (26, 28))
                return width, height
        return MAX_PIXELS + 1, 0
    return 0, 0


def _is_svg(content: bytes) -> bool:
    if b"<!ENTITY" in content or b"\0" in content:  # entities may expand to gigabytes; UTF-16 would hide them
        return False
    from xml.etree import ElementTree  # slow to import, and rarely needed

    try:
        return ElementTree.fromstring(content).tag == _SVG  # noqa: S314 - has no entities
    except (ElementTree.ParseError, ValueError, LookupError):
        return False
