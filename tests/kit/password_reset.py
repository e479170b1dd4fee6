"""The link of a password reset: requested, mailed and opened."""

from tests.kit.browser import Browser
from tests.kit.mailbox import link_in, path_of, wait_for_mails
from tests.kit.server import Server

SUBJECT = "Choose a new password"


def ask_for_link(browser: Browser, login: str, **fields: str) -> None:
    browser.get("/forgot")
    assert browser.submit("/forgot", login=login, **fields).status_code == 200


def mailed_link(server: Server, login: str, count: int = 1) -> str:
    return link_in(wait_for_mails(server, login, SUBJECT, count)[-1])


def open_link(browser: Browser, link: str) -> None:
    browser.follow(browser.get(path_of(link)))
