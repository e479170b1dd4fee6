"""GET /openapi.json. What the document says is checked by tests/source/test_openapi_document.py."""

from tests.kit.server import Server

EVIL = {"X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example", "Origin": "https://evil.example"}


def test_document_and_its_pages_are_served(server: Server) -> None:
    with server.client() as client:  # one connection, since each worker builds the document when it is first asked
        first = client.get("/openapi.json", headers=EVIL)
        assert (first.status_code, first.headers["Content-Type"]) == (200, "application/json")
        assert first.json()["openapi"] == "3.1.0"
        again = client.get("/openapi.json", headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
        pages = [
            client.get(path, headers=EVIL) for path in ("/docs/api", "/docs/api/get_user?%ff=%00", "/docs/api/%ff")
        ]
        assert [page.status_code for page in pages] == [200, 200, 404]
        assert not [page.url for page in pages if "Access-Control-Allow-Origin" in page.headers]
        assert not [answer.url for answer in (first, *pages) if "evil.example" in f"{answer.headers} {answer.text}"]
