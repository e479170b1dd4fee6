"""CSV files of the lists."""

import json
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any

import pytest

from sso.console.lists import exported_pages
from tests.console.conftest import ConsoleBrowser
from tests.perm.endpoints.conftest import Studio

FIRST_COLUMNS = {
    "users": "user_id", "projects": "id", "applications": "application_id", "clients": "client_id",
    "identity-providers": "id", "game-sessions": "id", "webhooks": "id", "signing-keys": "kid", "audit": "id",
}  # fmt: skip


@pytest.fixture(scope="module")
def records(studio: Studio) -> None:
    """Records for lists that have none."""
    studio.server.apply({"identity_providers": [{"id": "steam", "kind": "steam"}]})
    studio.server.sso("webhook", "add", "http://127.0.0.1:9/x", "--event", "users")
    studio.client.post("/proxy/api/gameSession/getGsid", json={}).raise_for_status()


@pytest.mark.usefixtures("records")
@pytest.mark.parametrize("section", FIRST_COLUMNS)
def test_list_links_to_its_export(root_browser: ConsoleBrowser, manager: ConsoleBrowser, section: str) -> None:
    path = f"/console/{section}/export.csv"
    assert f'formaction="{path}"' in root_browser.open(f"/console/{section}")
    answer = root_browser.get(path)
    lines = answer.text.split("\r\n")
    assert (answer.headers["Content-Type"], lines[0].split(",")[0]) == (
        "text/csv; charset=utf-8",
        FIRST_COLUMNS[section],
    )
    assert f'filename="{section}.csv"' in answer.headers["Content-Disposition"]
    if section not in ("clients", "projects"):
        assert len(lines) > 2, "expected a line with a record"
    assert manager.get(path).status_code == (200 if section == "users" else 403)


@pytest.mark.usefixtures("records")
def test_export_has_the_filters_of_the_page(root_browser: ConsoleBrowser, studio: Studio) -> None:
    path = "/console/game-sessions/export.csv"
    assert len(root_browser.get(path, params={"stage": "registered"}).text.split("\r\n")) > 2
    assert root_browser.get(path, params={"stage": "denied"}).text.count("\r\n") == 1
    assert root_browser.get(path, params={"user_id": studio.root.login}).text.count("\r\n") == 1


@pytest.mark.usefixtures("records")
def test_exports_are_audited(root_browser: ConsoleBrowser, studio: Studio) -> None:
    project_id, login = studio.project(), studio.root.login
    sections = {"groups": len(root_browser.get("/console/state/export.json?sections=groups").json()["groups"])}
    for path, operation, target, after in (
        (f"users/export.csv?search={login}", "list.export", "users", {"filter": {"search": login}}),
        (f"users/export.csv?search=not-{login}", "list.export", "users", {"filter": {"search": f"not-{login}"}}),
        (f"projects/{project_id}/members.csv", "list.export", f"projects/{project_id}/members", {"filter": {}}),
        ("state/export.json?sections=groups", "state.export", "", {"records": sections}),
    ):
        assert root_browser.get(f"/console/{path}").status_code == 200
        entry = last_entry(studio)
        assert (entry["operation"], entry["target"], entry["after"]) == (operation, target, after)
        assert entry["user_id"]
    studio.server.sso("export")
    entry = last_entry(studio)
    assert (entry["operation"], entry["operator"] != "") == ("state.export", True)


async def test_export_is_audited_before_its_first_record_is_sent() -> None:
    """A worker that is killed, or a client that leaves, ends the export at any later point."""
    written: list[tuple[str, dict[str, str]]] = []

    async def call(*_request: str, **_variables: Any) -> Any:
        return SimpleNamespace(members={"data": [{"id": "1"}], "next": "1"})

    async def write(_caller: Any, exported: str, filters: dict[str, str]) -> None:
        written.append((exported, filters))

    operations = SimpleNamespace(exports=SimpleNamespace(write=write))
    visit: Any = SimpleNamespace(call=call, caller=None, operations=operations)
    async with aclosing(exported_pages(visit, "/users", {"search": "a"})) as pages:
        assert await anext(pages) == [{"id": "1"}]
        assert written == [("users", {"search": "a"})]
        await anext(pages)
    assert len(written) == 1


def last_entry(studio: Studio) -> dict[str, Any]:
    entry: dict[str, Any] = json.loads(studio.server.sso("audit", "--json", "--limit", "1").stdout)
    return entry
