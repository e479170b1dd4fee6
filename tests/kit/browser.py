"""A minimal browser on httpx: it keeps cookies, follows redirects on request, and submits the forms of a page.

Also a mailbox, an authenticator app, and a connection to each worker."""

import itertools
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from email.message import EmailMessage
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Self

import httpx
import markupsafe
import orjson
import pyotp

from tests.kit.builders import PASSWORD
from tests.kit.kept_connection import fetch
from tests.kit.server import Server, until

SESSION, VISIT = "sso_session", "sso_visit"
# The scripts that pages may have: our own files, and data for them.
OWN_SCRIPTS = re.compile(
    r'<script src="/static/[a-z-]+\.js" defer></script>|<script type="application/json" id="[a-z-]+">[^<]*</script>'
)
_FORM = re.compile(r"<form\b.*?</form>", re.DOTALL)
_numbers = itertools.count(1)


def new_user(server: Server, **fields: Any) -> str:
    """Creates a user and returns the login."""
    login = fields.pop("login", f"person{next(_numbers)}@example.com")
    server.save_accounts(users=[{"login": login, "password": PASSWORD, "nick": "Ann", **fields}])
    return str(login)


class Forms(HTMLParser):
    """The forms of a page by their action, each with the fields that a browser would send without input."""

    def __init__(self, page: str, action: str | None = None) -> None:
        """Reads all forms, or only those with this action: a page may have long lists of countries in others."""
        super().__init__()
        self.by_action: dict[str, list[dict[str, str]]] = {}
        self._fields: dict[str, str] | None = None
        self._open_field = ""  # the select or textarea whose content is being read
        self._has_option = False  # of the open select: the first one is sent, unless another is selected
        for form in _FORM.findall(page):
            tag = form.partition(">")[0]
            is_filter = 'method="get"' in tag and 'action="/console' in tag
            assert is_filter or 'method="post"' in tag, "a form must use POST"
            if not is_filter and (action is None or f'action="{markupsafe.escape(action)}"' in tag):
                self.feed(form)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._fields = {}
            self.by_action.setdefault(values["action"], []).append(self._fields)
        elif self._fields is None:
            return
        elif tag == "input" and values.get("name"):
            if values.get("type") not in ("checkbox", "radio") or "checked" in values:
                self._fields[values["name"]] = values.get("value", "")
        elif tag in ("select", "textarea"):
            self._open_field = values["name"]
            self._fields[self._open_field] = ""
            self._has_option = False
        elif tag == "option" and self._open_field and ("selected" in values or not self._has_option):
            self._fields[self._open_field] = values.get("value", "")
            self._has_option = True

    def handle_data(self, data: str) -> None:
        if self._open_field and self._fields is not None and self.lasttag == "textarea":
            self._fields[self._open_field] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._fields = None
        elif tag in ("select", "textarea"):
            if tag == "textarea" and self._fields is not None:  # browsers drop the first line break
                self._fields[self._open_field] = self._fields[self._open_field].removeprefix("\n")
            self._open_field = ""


class Browser:
    def __init__(self, server: Server, **options: Any) -> None:
        self.server = server
        self.http = server.client(**options)
        self.page = httpx.Response(204)  # the current page

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def get(self, path: str, **options: Any) -> httpx.Response:
        self.page = self.http.get(path, **options)
        return self.page

    def form(self, action: str) -> dict[str, str]:
        return dict(Forms(self.page.text, action).by_action[action][0])

    def post(self, path: str, fields: dict[str, str], **headers: str) -> httpx.Response:
        """Sends a form with the headers of a same-origin request."""
        all_headers = {"Origin": self.server.base_url, "Sec-Fetch-Site": "same-origin"}
        all_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.post(path, data=fields, headers=all_headers)

    def submit(self, action: str, **fields: str) -> httpx.Response:
        """Submits a form of the current page. A response that is a page becomes the current page."""
        answer = self.post(action, self.form(action) | fields)
        if not answer.is_redirect:
            self.page = answer
        return answer

    def follow(self, answer: httpx.Response) -> httpx.Response:
        assert answer.status_code == 303, answer.text
        return self.get(answer.headers["Location"])

    def sign_in(self, login: str, password: str = PASSWORD, **fields: str) -> httpx.Response:
        self.get("/login")
        return self.submit("/login", login=login, password=password, **fields)

    def open_account(self) -> httpx.Response:
        assert self.get("/account").status_code == 200
        return self.page

    @property
    def is_signed_in(self) -> bool:
        return self.http.get("/account/history").status_code == 200  # a smaller page than /account

    @property
    def problem(self) -> str:
        """The error text on the current page, above a form or below a field, or an empty string."""
        found = re.search(r'id="problem">.*?<p>(.*?)</p>', self.page.text, re.DOTALL)
        found = found or re.search(r'<p class="wrong"[^>]*>(.*?)</p>', self.page.text, re.DOTALL)
        return found[1] if found else ""

    @property
    def notice(self) -> str:
        found = re.search(r'role="status">.*?<p>(.*?)</p>', self.page.text, re.DOTALL)
        return found[1] if found else ""

    def cookie(self, name: str = SESSION) -> str | None:
        return self.http.cookies.get(name)

    def set_cookie(self, value: str, name: str = SESSION) -> None:
        if name in self.http.cookies:
            self.http.cookies.delete(name)
        self.http.cookies.set(name, value, domain="127.0.0.1", path="/")


def fresh_browser(server: Server, login: str, **options: Any) -> Browser:
    """Returns another browser in which the user is signed in."""
    browser = Browser(server, **options)
    assert browser.sign_in(login).status_code == 303
    return browser


@contextmanager
def each_worker(server: Server) -> Iterator[list[httpx.Client]]:
    """Yields one client for each worker: a connection stays with the worker that accepted it."""
    assert server.settings["SSO_WORKERS"] != "1", "mark the file with two_workers"
    with ExitStack() as stack:
        by_worker: dict[str, httpx.Client] = {}
        for _ in range(300):
            client = stack.enter_context(server.client())
            by_worker.setdefault(_worker(server, client.get("/healthz").headers["X-Request-Id"]), client)
            if len(by_worker) == int(server.settings["SSO_WORKERS"]):
                yield list(by_worker.values())
                return
        raise AssertionError(f"only {sorted(by_worker)} accepted a connection")


def _worker(server: Server, request_id: str) -> str:
    def find() -> str | None:
        lines = (line for line in reversed(server.log().splitlines()) if request_id in line)
        return next((str(orjson.loads(line)["process"]) for line in lines), None)

    process = until(find)
    assert isinstance(process, str)
    return process


class AuthenticatorApp:
    """An authenticator app. Each code is newer than the previous one and stays valid for at least ``MARGIN_S``."""

    MARGIN_S = 20

    def __init__(self, secret: str) -> None:
        self._totp = pyotp.TOTP(secret.replace(" ", ""))
        self._step = 0

    def code(self) -> str:
        """Returns a code. The service accepts the previous, current and next time step; waits if all three are used."""
        self._step = max(self._step + 1, int(time.time() + self.MARGIN_S) // 30 - 1)
        while int(time.time()) // 30 + 1 < self._step:
            time.sleep(0.2)
        return self._totp.at(self._step * 30)

    def wrong(self) -> str:
        now = int(time.time()) // 30
        valid = {self._totp.at(step * 30) for step in range(now - 3, now + 4)}
        return next(
            code for code in ("000000", "111111", "222222", *map(str, range(333333, 333344))) if code not in valid
        )


def mailed_codes(server: Server, login: str, count: int = 1) -> list[str]:
    """Waits until ``count`` codes were mailed to the user. Returns them, oldest first."""

    def read() -> list[str]:
        mails = sorted((server.folder / "data" / "mail").glob("*.eml"), key=lambda path: path.stat().st_mtime_ns)
        texts = [text for text in map(_read, mails) if f"To: {login}\n" in text]
        return [match[1] for text in texts if (match := re.search(r"code is (\d{6})", text))]

    until(lambda: len(read()) >= count)
    return read()


def mail_text(message: EmailMessage) -> str:
    """Returns the plain text of a mail that has text and HTML."""
    text, html = message.iter_parts()
    assert [text.get_content_type(), html.get_content_type()] == ["text/plain", "text/html"]
    content: str = text.get_content()
    return content


def _read(path: Path) -> str:
    return path.read_text()


def forget_authentication(server: Server) -> None:
    """All users have signed in long ago. Also while Playwright has an event loop in this thread."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(query, server, "UPDATE browser_sessions SET authenticated = now() - interval '1 hour'").result()


def query(server: Server, sql: str, *values: Any) -> list[Any]:
    """Returns the rows of a query on the server's database."""
    return fetch(server.settings["SSO_DATABASE_URL"], sql, *values)


def user_id_of(server: Server, login: str) -> str:
    return str(query(server, "SELECT user_id FROM users WHERE login = $1", login)[0]["user_id"])
