"""The pages of the console in Chromium, each with a record: it fits and is accessible.

Pages that show something only after an action are looked at by the tests of these actions.
"""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PHONE, open_signed_in, set_width
from tests.kit.browser import new_user, query
from tests.kit.browser_pages import look, window
from tests.kit.server import Server

__all__ = ["window"]
pytestmark = pytest.mark.browser
GROUP = "730000000000000000000001"
RULE = {"private_data": {"chat": {"kick": {"value": True}}}}
DOCUMENT: dict[str, Any] = {
    "users": [{"login": "looked.at@example.com", "user_id": "7300002", "tags": ["looked-at"]}],
    "clients": [
        {
            "client_id": "looked-at",
            "client_secret": "a secret of sixteen",
            "name": "Looked at",
            "profile": "oidc",
            "redirect_uris": ["https://looked-at.example/callback"],
        }
    ],
    "identity_providers": [
        {
            "id": "looked-at",
            "kind": "oauth2",
            "name": "Looked at",
            "client_id": "1234",
            "client_secret": "a secret of sixteen",
            "authorization_url": "https://looked-at.example/authorize",
            "token_url": "https://looked-at.example/token",
            "userinfo_url": "https://looked-at.example/me",
            "claims": {"name": "username"},
        }
    ],
    "projects": [
        {
            "id": "looked_at",
            "title": "Looked at",
            "settings": {
                "services": {"7300": {"groups": [{"group_id": GROUP, "role": "moderator", "action": "grant"}]}}
            },
        }
    ],
    "groups": [
        {
            "group_id": GROUP,
            "project_id": "looked_at",
            "title": "Testers",
            "conditions": [{"title": "Beta", "condition": {"tag": "looked-at", "domain": "example.com"}}],
        }
    ],
    "memberships": [{"id": "looked_at", "users": [{"user_id": "7300002", "roles": {"project": ["viewer"]}}]}],
    "applications": [{"application_id": 7300, "name": "Looked at", "project_id": "looked_at"}],
    "schemas": {"7300": {"private_data": {"chat": {"kick": {"value": False}}}}},
    "roles": {"7300": [{"name": "moderator", "meta": RULE}]},
    "permissions": [{"user_id": "7300002", "application_id": 7300, "data": {"roles": ["moderator"]}}],
}
PATHS = (
    "users", "users/new", "users/invitations", "users/7300002", "users/7300002/sign-ins", "users/7300002/security",
    "users/7300002/roles", "users/7300002/delete",
    "projects", "projects/new-project", "projects/looked_at", "projects/looked_at/members/7300002",
    "projects/looked_at/services", "projects/looked_at/services/7300", f"projects/looked_at/groups/{GROUP}",
    "projects/looked_at/settings",
    "applications", "applications/7300", "applications/7300/schema?view=json", "applications/7300/assertions",
    "applications/7300/keys", "applications/7300/roles/moderator", "applications/7300/roles/moderator/delete",
    "applications/7300/holders", "applications/7300/users/7300002", "explorer?user=7300002&application=7300",
    "playground",
    "clients", "clients/new", "clients/looked-at", "clients/looked-at/requests",
    "clients/looked-at/quickstart/express",
    "identity-providers", "identity-providers/looked-at", "branding", "game-sessions",
    "audit", "signing-keys", "webhooks/new", "state",
)  # fmt: skip


@pytest.fixture(scope="module")
def administrator(server: Server) -> str:
    login = new_user(server, nick="Looking Administrator", user_id="7300001")
    permission = {"user_id": login, "application_id": 1, "data": {"roles": ["root"]}}
    server.apply(DOCUMENT | {"permissions": [*DOCUMENT["permissions"], permission]})
    return login


@pytest.fixture
def entry(server: Server, administrator: str) -> str:
    """The path of the change of a record."""
    sql = "SELECT max(id) AS id FROM audit WHERE operation = 'role.save'"
    return f"audit/{query(server, sql)[0]['id']}"


def test_pages_fit_and_are_accessible(page: Page, server: Server, administrator: str, entry: str) -> None:
    set_width(page, PHONE)
    open_signed_in(page, server, administrator, "/console/system")
    expect(page.locator("#findings")).to_contain_text("checks passed")
    look(page, "system")
    for path in (*PATHS, entry):
        answer = page.goto(f"{server.base_url}/console/{path}")
        assert answer
        assert answer.status == 200, path
        look(page, path.partition("?")[0].replace("/", "-"))
