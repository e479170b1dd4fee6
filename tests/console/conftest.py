"""Administrators who use the console with a browser."""

import html
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import httpx
import pytest

from sso.core.ids import digest
from tests.kit.browser import Browser, Forms, query
from tests.kit.server import Server
from tests.perm.endpoints.conftest import ApiUser, Studio, studio

__all__ = ["studio"]


class ConsoleBrowser(Browser):
    """A browser in which an administrator is signed in."""

    def __init__(self, server: Server, user: ApiUser) -> None:
        super().__init__(server)
        self.user_id, self.login = user.user_id, user.login
        assert self.sign_in(user.login).status_code == 303

    def open(self, path: str, **options: Any) -> str:
        """Returns the text of a page."""
        answer = self.get(path, **options)
        assert answer.status_code == 200, (path, answer.status_code, answer.headers.get("Location"))
        return html.unescape(answer.text)

    def act(self, action: str, /, **fields: str) -> str:
        """Submits a form of the current page. Returns the notice of the page that it redirects to."""
        self.follow(self.submit(action, **fields))
        assert self.page.status_code == 200, self.page.status_code
        return html.unescape(self.notice)

    def send(self, action: str, /, **fields: str) -> httpx.Response:
        """Sends fields with the CSRF token of this browser, also where the current page has no such form."""
        answer = self.post(action, {"csrf": self.form("/logout")["csrf"], **fields})
        if not answer.is_redirect:
            self.page = answer
        return answer

    def delete(self, path: str) -> str:
        """Opens the page that asks before a deletion and confirms it, with the name if it asks for one.

        Returns the notice of the page that follows.
        """
        asked = re.search(r">To confirm, type (.*?)</label>", self.open(path))
        return self.act(path, **({"name": asked[1]} if asked else {}))

    @cached_property
    def csrf_token(self) -> str:
        """The token of the session, which is the same on all pages."""
        return Forms(self.http.get("/console").text).by_action["/logout"][0]["csrf"]

    def forget_authentication(self) -> None:
        """The user has not authenticated recently in this browser."""
        session = digest(self.cookie() or "")
        query(self.server, "UPDATE browser_sessions SET authenticated = NULL WHERE digest = $1", session)


def console_browser(studio: Studio, *rules: str) -> ConsoleBrowser:
    """A browser of a new user with these root rules."""
    user = studio.user()
    if rules:
        studio.give_rules(user, *rules)
    return ConsoleBrowser(studio.server, user)


@pytest.fixture(scope="module")
def root_browser(studio: Studio) -> Iterator[ConsoleBrowser]:
    with ConsoleBrowser(studio.server, studio.root) as browser:
        yield browser


@pytest.fixture(scope="module")
def manager(studio: Studio) -> Iterator[ConsoleBrowser]:
    """An administrator who manages users and does nothing else."""
    with console_browser(studio, "can_manage_users") as browser:
        yield browser
