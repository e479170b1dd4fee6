"""CSV files of the lists."""

import json

import pytest

from tests.console.conftest import ConsoleBrowser
from tests.perm.endpoints.conftest import Studio

FIRST_COLUMNS = {
    "users": "user_id", "projects": "id", "applications": "application_id", "clients": "client_id",
    "identity-providers": "id", "game-sessions": "id", "webhooks": "id", "signing-keys": "kid", "audit": "id",
}  # fmt: skip


@pytest.fixture(scope="module")
def records(studio: Studio) -> None:
    """Some lists link to their export only if they have records."""
    studio.server.apply({"identity_providers": [{"id": "steam", "kind": "steam"}]})
    studio.server.sso("webhook", "add", "http://127.0.0.1:9/x", "--event", "users")
    studio.client.post("/proxy/api/gameSession/getGsid", json={}).raise_for_status()


@pytest.mark.usefixtures("records")
@pytest.mark.parametrize("section", FIRST_COLUMNS)
def test_list_links_to_its_export(root_browser: ConsoleBrowser, manager: ConsoleBrowser, section: str) -> None:
    path = f"/console/{section}/export.csv"
    assert f'href="{path}"' in root_browser.open(f"/console/{section}")
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
    project_id = studio.project()
    one_user = {"filter": {"search": studio.root.login}, "records": 1}
    for path, operation, target, after in (
        (f"users/export.csv?search={studio.root.login}", "list.export", "users", one_user),
        (f"projects/{project_id}/members.csv", "list.export", f"projects/{project_id}/members", {"records": 1}),
        ("state/export.json?sections=groups", "state.export", "", {"records": {"groups": 0}}),
    ):
        assert root_browser.get(f"/console/{path}").status_code == 200
        entry = json.loads(studio.server.sso("audit", "--json", "--most", "1").stdout)
        assert (entry["operation"], entry["target"]) == (operation, target)
        assert entry["after"].keys() >= after.keys()
        assert entry["after"]["records"] == after["records"] or target == ""
        assert entry["user_id"]
    studio.server.sso("export")
    entry = json.loads(studio.server.sso("audit", "--json", "--most", "1").stdout)
    assert (entry["operation"], entry["operator"] != "") == ("state.export", True)
