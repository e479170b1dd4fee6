"""Forms with files, as browsers send them."""

import pytest

from sso.web.body import InvalidBody
from sso.web.multipart import FILE_PREFIX, MAX_PART_HEAD, MAX_PARTS, parse_multipart


def text(name: str, value: bytes) -> bytes:
    return b'--b\r\nContent-Disposition: form-data; name="' + name.encode() + b'"\r\n\r\n' + value + b"\r\n"


def file(name: str, content: bytes, file_name: bytes = b"logo.svg") -> bytes:
    head = b'--b\r\nContent-Disposition: form-data; name="%s"; filename="%s"' % (name.encode(), file_name)
    return head + b"\r\nContent-Type: image/svg+xml\r\n\r\n" + content + b"\r\n"


END = b"--b--\r\n"


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (
            text("name", b"Iron") + text("bo\u00eete", "\u00e9\r\n".encode()) + END,
            {"name": "Iron", "bo\u00eete": "\u00e9\r\n"},
        ),
        (text("name", b"") + b"--b--", {"name": ""}),
        (file("logo", b"\r\n--a\0\xff") + END, {"logo": FILE_PREFIX + "DQotLWEA/w=="}),
        (file("logo", b"", b"") + END, {"logo": ""}),
        (file("logo", b"x", b"%22; name=%22b") + END, {"logo": FILE_PREFIX + "eA=="}),
        (file("logo", b"x").replace(b"Content-D", b"content-d") + END, {"logo": FILE_PREFIX + "eA=="}),
        (b"--b--\r\n", {}),
        (
            b"".join(text(f"f{number}", b"1") for number in range(MAX_PARTS)) + END,
            {f"f{number}": "1" for number in range(MAX_PARTS)},
        ),
    ],
)
def test_fields_of_a_form(body: bytes, fields: dict[str, str]) -> None:
    assert parse_multipart(body, "b") == fields


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "is not a valid form"),
        (b"--b", "is not a valid form"),
        (text("a", b"1"), "is not a valid form"),
        (b"\r\nhello" + text("a", b"1") + END, "is not a valid form"),
        (text("a", b"\xff") + END, "is not valid UTF-8"),
        (text("a", "\ufffe".encode()) + END, "a Unicode noncharacter"),
        (text("a\0", b"1") + END, "a NUL character"),
        (text("a", b"1").replace(b"--b", b"--c") + END, "is not a valid form"),
        (text("a", b"1\r\n--bc") + END, "without an end of its headers"),
        (text("a", b"1").replace(b"\r\n\r\n", b"\r\n") + END, "without an end of its headers"),
        (file("a", b"1", b"x" * MAX_PART_HEAD) + END, "without an end of its headers"),
        (text("a", b"1").replace(b"--b\r", b"--bb\r") + END, "without an end of its headers"),
        (END + text("a", b"1").removeprefix(b"--b\r\n") + b"--b--", "without an end of its headers"),
        (text("", b"1") + END, "without a name"),
        (text("a", b"1").replace(b"\r\n\r\n", b"\rX: y\r\n\r\n") + END, "without a name"),
        (text("a", b"1").replace(b"\r\n\r\n", b"; filenames\r\n\r\n") + END, "without a name"),
        (
            text("a", b"1").replace(b"Content", b"Content-Disposition: form-data; name=b\r\nContent", 1) + END,
            "without a name",
        ),
        (b"--b\r\nContent-Type: text/plain\r\n\r\n1\r\n" + END, "without a name"),
        (b'--b\r\nX: content-disposition: form-data; name="a"\r\n\r\n1\r\n' + END, "without a name"),
        (text("a", b"1") + text("a", b"2") + END, "a repeated field"),
        (text("a", b"\0") + END, "a NUL character"),
        (b"".join(text(f"f{number}", b"1") for number in range(MAX_PARTS + 1)) + END, "at most 100 parts"),
        (b"--b\r\n" * 100_000, "at most 100 parts"),
    ],
)
def test_what_no_browser_sends_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(InvalidBody, match=reason):
        parse_multipart(body, "b")
