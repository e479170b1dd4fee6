"""A browser as small as can be, over the wire: it keeps cookies, follows a redirect when it is told to, and sends forms
as a page has them. And what stands beside a browser: a mailbox, an authenticator app, a connection to each worker."""

import asyncio
import itertools
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Self

import asyncpg
import httpx
import orjson
import pyotp

from tests.kit.builders import PASSWORD
from tests.kit.server import Server, until

SESSION, VISIT = "sso_session", "sso_visit"
_numbers = itertools.count(1)


def new_user(server: Server, **fields: Any) -> str:
    """A user of this test's own; their login."""
    login = fields.pop("login", f"person{next(_numbers)}@example.com")
    server.apply({"users": [{"login": login, "password": PASSWORD, "nick": "Ann", **fields}]})
    return str(login)


class Forms(HTMLParser):
    """The forms of a page by their action, each with the fields that a browser would send untouched."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.by_action: dict[str, list[dict[str, str]]] = {}
        self._fields: dict[str, str] | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            assert values["method"] == "post", "what changes something is a POST"
            self._fields = {}
            self.by_action.setdefault(values["action"], []).append(self._fields)
        elif tag == "input" and self._fields is not None and values.get("name"):
            self._fields[values["name"]] = values.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._fields = None


class Browser:
    def __init__(self, server: Server, **options: Any) -> None:
        self.server = server
        self.http = server.client(**options)
        self.page = httpx.Response(204)  # what is shown now

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def get(self, path: str, **options: Any) -> httpx.Response:
        self.page = self.http.get(path, **options)
        return self.page

    def form(self, action: str) -> dict[str, str]:
        return dict(Forms(self.page.text).by_action[action][0])

    def post(self, path: str, fields: dict[str, str], **headers: str) -> httpx.Response:
        """As a browser does it from a page of ours."""
        sent = {"Origin": self.server.base_url, "Sec-Fetch-Site": "same-origin"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.post(path, data=fields, headers=sent)

    def submit(self, action: str, **fields: str) -> httpx.Response:
        """Send the form of the shown page. An answer that is a page is shown next."""
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
        return self.http.get("/account").status_code == 200

    @property
    def problem(self) -> str:
        """What the shown page says is wrong."""
        found = re.search(r'id="problem">.*?<p>(.*?)</p>', self.page.text, re.DOTALL)
        return found[1] if found else ""

    @property
    def notice(self) -> str:
        found = re.search(r'role="status">.*?<p>(.*?)</p>', self.page.text, re.DOTALL)
        return found[1] if found else ""

    def cookie(self, name: str = SESSION) -> str | None:
        return self.http.cookies.get(name)

    def plant(self, value: str, name: str = SESSION) -> None:
        if name in self.http.cookies:
            self.http.cookies.delete(name)
        self.http.cookies.set(name, value, domain="127.0.0.1", path="/")


def fresh_browser(server: Server, login: str, **options: Any) -> Browser:
    """Another browser of the same person, signed in."""
    browser = Browser(server, **options)
    assert browser.sign_in(login).status_code == 303
    return browser


@contextmanager
def each_worker(server: Server) -> Iterator[list[httpx.Client]]:
    """One client for each worker: a connection stays with the worker that took it."""
    with ExitStack() as stack:
        found: dict[str, httpx.Client] = {}
        for _ in range(300):
            client = stack.enter_context(server.client())
            found.setdefault(_worker(server, client.get("/healthz").headers["X-Request-Id"]), client)
            if len(found) == int(server.settings["SSO_WORKERS"]):
                yield list(found.values())
                return
        raise AssertionError(f"only {sorted(found)} took a connection")


def _worker(server: Server, request_id: str) -> str:
    def look() -> str | None:
        lines = (line for line in reversed(server.log().splitlines()) if request_id in line)
        return next((str(orjson.loads(line)["process"]) for line in lines), None)

    process = until(look)
    assert isinstance(process, str)
    return process


class App:
    """An authenticator app. Each code is newer than the one before, and stays valid for at least ``MARGIN_S``."""

    MARGIN_S = 20

    def __init__(self, secret: str) -> None:
        self._totp = pyotp.TOTP(secret.replace(" ", ""))
        self._step = 0

    def code(self) -> str:
        """The service accepts the previous, the present and the next time step. Waits if all three are used up."""
        self._step = max(self._step + 1, int(time.time() + self.MARGIN_S) // 30 - 1)
        while int(time.time()) // 30 + 1 < self._step:
            time.sleep(0.2)
        return self._totp.at(self._step * 30)

    def wrong(self) -> str:
        now = int(time.time()) // 30
        right = {self._totp.at(step * 30) for step in range(now - 3, now + 4)}
        return next(
            code for code in ("000000", "111111", "222222", *map(str, range(333333, 333344))) if code not in right
        )


def mailed_codes(server: Server, login: str, count: int = 1) -> list[str]:
    """The codes that were sent to somebody, oldest first, once there are so many."""

    def look() -> list[str]:
        mails = sorted((server.folder / "data" / "mail").glob("*.eml"), key=lambda path: path.stat().st_mtime_ns)
        texts = [text for text in map(_read, mails) if f"To: {login}\n" in text]
        return [found[1] for text in texts if (found := re.search(r"code is (\d{6})", text))]

    until(lambda: len(look()) >= count)
    return look()


def _read(path: Path) -> str:
    return path.read_text()


def query(server: Server, sql: str, *values: Any) -> list[Any]:
    """What the database holds."""

    async def run() -> list[Any]:
        connection = await asyncpg.connect(server.settings["SSO_DATABASE_URL"])
        try:
            return list(await connection.fetch(sql, *values))
        finally:
            await connection.close()

    with asyncio.Runner() as runner:
        return runner.run(run())
