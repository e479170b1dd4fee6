"""A newcomer in tests: solves the puzzle of the registration form and reads mail."""

import hashlib
import itertools
import re

import httpx

from tests.kit.browser import Browser, Forms
from tests.kit.builders import PASSWORD
from tests.kit.mailbox import wait_for_mails
from tests.kit.server import Server

_numbers = itertools.count(1)


def new_address() -> str:
    """Returns an address that no user has."""
    return f"newcomer{next(_numbers)}@example.com"


def solve(puzzle: str) -> str:
    """Returns the solution of a puzzle, as the script of the page does."""
    nonce, _, bits, _ = puzzle.split(".")
    for number in itertools.count():
        if int.from_bytes(hashlib.sha256(f"{nonce}.{number}".encode()).digest()) >> (256 - int(bits)) == 0:
            return str(number)
    raise AssertionError


def solved_form(page: httpx.Response) -> dict[str, str]:
    form = dict(Forms(page.text).by_action["/register"][0])
    return form | ({"solution": solve(form["puzzle"])} if "puzzle" in form else {})


def request_mail(browser: Browser, address: str, path: str = "/register") -> httpx.Response:
    """Sends the first form of a registration."""
    page = browser.get(path)
    assert page.status_code == 200, page.text
    answer = browser.post("/register", solved_form(page) | {"email": address})
    if not answer.is_redirect:
        browser.page = answer
    return answer


def mails_to(server: Server, address: str, count: int = 1) -> list[str]:
    """Waits until ``count`` mails to the address were delivered. Returns their texts, oldest first."""
    return wait_for_mails(server, address, "", count)


def mailed_link(text: str) -> str:
    """Returns the path of the link in a mail."""
    match = re.search(r"https?://[^/\s]+(/register\?token=\S+)", text)
    assert match, text
    return match[1]


def mailed_code(text: str) -> str:
    match = re.search(r"Your code is (\d{6})", text)
    assert match, text
    return match[1]


def complete(browser: Browser, nick: str = "Newcomer", password: str = PASSWORD) -> httpx.Response:
    """Sends the last form of a registration, which is the current page."""
    return browser.submit("/register/complete", nick=nick, password=password)
