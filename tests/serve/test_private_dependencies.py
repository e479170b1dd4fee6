"""What sso.serve relies on in httptools, beyond its documentation, still works as expected.

A failure after an upgrade names the file that has to be adapted.
"""

import httptools
import pytest


class Headers:
    def __init__(self) -> None:
        self.pairs: list[tuple[bytes, bytes]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.pairs.append((name, value))


@pytest.mark.parametrize(
    ("head", "error"),
    [
        (b"GET / HTTP/1.1\r\nA: b\r\n\r\n", None),
        (b"UNKNOWN / HTTP/1.1\r\nA: b\r\n\r\n", httptools.HttpParserInvalidMethodError),
        (b"GET / HTTP/1.1\r\nA: b\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", httptools.HttpParserUpgrade),
        (b"GET / HTTP/1.1\r\nA b\r\n\r\n", httptools.HttpParserError),
    ],
)
def test_httptools_reports_headers_and_errors_as_before(head: bytes, error: type[Exception] | None) -> None:
    headers = Headers()
    raised: type[Exception] | None = None
    try:
        httptools.HttpRequestParser(headers).feed_data(head)
    except (httptools.HttpParserError, httptools.HttpParserUpgrade) as caught:
        raised = type(caught)
    assert raised is error or (raised and error and issubclass(raised, error)), (
        f"httptools raised {raised} for {head!r}: adapt _parse_headers in sso/serve/http1/head.py"
    )
    if error in (None, httptools.HttpParserUpgrade):
        assert headers.pairs[0] == (b"A", b"b"), "httptools reports headers differently: adapt sso/serve/http1/head.py"
