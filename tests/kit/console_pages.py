"""Pages of the console, payloads that must be escaped, and the undo of changes."""

from html.parser import HTMLParser
from typing import Any

from tests.admin.conftest import Administrator
from tests.console.conftest import ConsoleBrowser
from tests.kit.browser import query, user_id_of

PAYLOAD = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


class InlineCode(HTMLParser):
    """Collects what the Content-Security-Policy would block: inline scripts, styles and handlers."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "style" or (tag == "script" and "src" not in values and values.get("type") != "application/json"):
            self.found.append(tag)
        self.found += [f"{tag} {name}" for name in values if name.startswith(("on", "hx-on")) or name == "style"]


def page_of(browser: ConsoleBrowser, login: str, tab: str = "") -> str:
    path = f"/console/users/{user_id_of(browser.server, login)}"
    browser.open(path + tab)
    return path


def last_entry(browser: ConsoleBrowser, operation: str) -> dict[str, object]:
    rows = query(browser.server, "SELECT * FROM audit WHERE operation = $1 ORDER BY id DESC LIMIT 1", operation)
    return dict(rows[0])


def change(root: Administrator, method: str, path: str, **body: Any) -> Any:
    response = root.request(method, path, json=body) if method != "DELETE" else root.request(method, path)
    assert response.status_code in (200, 201), response.text
    return response.json().get("data")


def entry_of(browser: ConsoleBrowser, operation: str) -> str:
    """The page of the newest entry of an operation."""
    rows = query(browser.server, "SELECT id FROM audit WHERE operation = $1 ORDER BY id DESC LIMIT 1", operation)
    return f"/console/audit/{rows[0]['id']}"


def undo_last(browser: ConsoleBrowser, operation: str) -> str:
    """Undoes the newest entry of an operation. Returns the page that asks for it."""
    path = entry_of(browser, operation)
    assert f'href="{path}/undo"' in browser.open(path), operation
    page = browser.open(f"{path}/undo")
    assert "undone" in browser.act(f"{path}/undo"), operation
    return page
