"""What the tests of personal data share: a user with data in every part of the service, and an erasure."""

import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from sso.services import Services
from tests.admin.conftest import root, studio
from tests.kit.browser import Browser, new_user, query
from tests.kit.builders import PASSWORD
from tests.kit.server import Server, until

__all__ = ["root", "studio"]


def unique_user(server: Server, **fields: Any) -> str:
    """Creates a user whose strings occur nowhere else. Returns the login."""
    name = uuid.uuid4().hex
    return new_user(server, login=f"{name}@example.com", nick=f"nick{name}", **fields)


def with_services(server: Server, work: Callable[[Services], Awaitable[Any]]) -> Any:
    return server.run_with_services(work)


def make_due(server: Server, login: str) -> None:
    """Lets the time pass in which the account can be kept."""
    query(server, "UPDATE users SET deletion_due = now() - interval '1 second' WHERE login = $1", login)


def is_erased(server: Server, login: str) -> bool:
    """Erases what is due, unless a worker of the server has just done so. Returns whether the user is gone."""
    erase(server)
    return until(lambda: not query(server, "SELECT FROM users WHERE login = $1", login)) is True


def erase(server: Server) -> int:
    erased: int = with_services(server, lambda services: services.erasure.erase_due())
    return erased


def delete_account(browser: Browser) -> None:
    browser.open_account()
    assert browser.submit("/account/delete").status_code == 200
    assert "Your account is closed" in browser.page.text


def api_login(server: Server, login: str) -> dict[str, Any]:
    with server.client() as client:
        answer = client.post("/proxy/api/login", json={"login": login, "password": PASSWORD})
        return {"http": answer.status_code, **answer.json()}
