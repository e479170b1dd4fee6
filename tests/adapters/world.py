"""A server that is changed in every way that it offers, and what such a change leaves behind."""

import contextlib
import html
import io
import itertools
import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any
from unittest import mock

import httpx

from sso.cli import main, records
from tests.admin.conftest import Administrator
from tests.console.conftest import ConsoleBrowser
from tests.kit.browser import query
from tests.kit.server import Server, clean_environment
from tests.perm.endpoints.conftest import Studio

_numbers = itertools.count(70001)
# Values that the service chooses, which differ between two records.
_CHOSEN = (
    (re.compile(r"\b[0-9a-f]{24}\b"), "GROUP"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "SECRET"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?"), "TIME"),
    (re.compile(r"\b1[789]\d{8}\b"), "0"),
    (re.compile(r'"author": "\d*"'), '"author": "CALLER"'),  # an operator of the machine is no user
)


class CommandPlace(StrEnum):
    """Where a command runs, and so how it reaches the service."""

    ALONE = "command in its own process"  # it finds no service, and builds the services itself
    BESIDE_SERVICE = "command through the socket"
    ELSEWHERE = "command on another machine"  # over HTTP


class Refused(Exception):
    """A change was refused. The text is that of the error."""


@dataclass(frozen=True)
class Trace:
    """What a change has left behind. Ids and times of the record are replaced by words."""

    audit: list[Any]
    events: list[Any]
    effect: Any


@dataclass
class Case:
    """The records of one operation in one way. Their names contain a number of their own."""

    world: "World"
    number: int
    chosen_ids: dict[str, str]  # ids that the service has chosen, with the word that replaces them

    @property
    def user_id(self) -> str:
        return str(self.number)

    @property
    def login(self) -> str:
        return f"u{self.number}@example.com"

    @property
    def client_id(self) -> str:
        return f"client{self.number}"

    @property
    def provider_id(self) -> str:
        return f"idp{self.number}"

    @property
    def project_id(self) -> str:
        return f"project{self.number}"

    @property
    def group_id(self) -> str:
        return f"{self.number:024}"

    @property
    def application_id(self) -> int:
        return self.number

    def user(self, **fields: Any) -> None:
        self.apply(users=[{"user_id": self.user_id, "login": self.login, **fields}])

    def project(self, **fields: Any) -> None:
        """Creates a project with an administrator who stays."""
        keeper = self.world.studio.keeper.user_id
        self.apply(projects=[{"title": self.project_id, "admins": [keeper], **fields}])

    def application(self, **fields: Any) -> None:
        self.project()
        record = {"application_id": self.application_id, "name": f"app{self.number}", "project_id": self.project_id}
        rules = {"private_data": {"chat": {"mute": {"value": False}}}}
        self.apply(applications=[{**record, **fields}], schemas={str(self.application_id): rules})

    def group(self, **fields: Any) -> None:
        self.project()
        record = {"group_id": self.group_id, "project_id": self.project_id, "title": f"group{self.number}"}
        self.apply(groups=[{**record, **fields}])

    def role(self, **fields: Any) -> None:
        self.application()
        self.apply(roles={str(self.application_id): [{"name": "scout", "meta": RULES, **fields}]})

    # --- the ways

    def apply(self, **document: Any) -> None:
        """Applies a document of desired state."""
        self.api("POST", "/state/apply", **document)

    def api(self, method: str, path: str, **body: Any) -> Any:
        return answer_of(self.world.root.request(method, path, json=body or None))

    def endpoint(self, path: str, **body: Any) -> Any:
        """Calls an endpoint of the specification."""
        root = self.world.studio.root
        headers = {"Authorization": f"Bearer {root.jwt}", "Factor": "device-1"}
        return answer_of(self.world.root.client.post(f"/api/permissions/{path}", json=body, headers=headers))

    def command(self, line: str, place: "CommandPlace", stdin: str = "") -> str:
        return self.world.run(line, place, stdin)

    def form(self, page: str, action: str, /, **fields: str) -> None:
        """Opens a page of the console and sends one of its forms."""
        browser = self.world.browser
        browser.open(page)
        answer = browser.submit(action, **fields) if action in browser.page.text else browser.send(action, **fields)
        if not answer.is_redirect and answer.status_code != 200:
            raise Refused(browser.problem)

    def deletion(self, page: str) -> None:
        """Opens the page that asks before a record is deleted, and confirms, with the name if it is asked for."""
        asked = re.search(r"To confirm, type ([^<]+)<", self.world.browser.open(page))
        self.form(page, page, **({"name": html.unescape(asked[1].strip())} if asked else {}))

    # --- what is compared

    def masked(self, value: Any) -> Any:
        text = json.dumps(value, default=str, sort_keys=True)
        for chosen_id, word in self.chosen_ids.items():
            text = text.replace(chosen_id, word)
        text = text.replace(self.group_id, "GROUP").replace(str(self.number), "70000")
        for pattern, word in _CHOSEN:
            text = pattern.sub(word, text)
        return json.loads(text)


Way = Callable[[Case], Any]
RULES = {"private_data": {"chat": {"mute": {"value": True}}}}


def answer_of(response: httpx.Response) -> Any:
    body = response.json()
    if response.status_code >= 400:
        raise Refused(body.get("message") or body.get("error"))
    return body.get("data")


def _only_through_the_socket(place: CommandPlace) -> contextlib.AbstractContextManager[object]:
    """A command beside the service must not fall back to building the services itself."""
    if place is not CommandPlace.BESIDE_SERVICE:
        return contextlib.nullcontext()
    return mock.patch.object(records, "run_with_services", side_effect=AssertionError("the socket was not used"))


class World:
    def __init__(self, server: Server, studio: Studio, browser: ConsoleBrowser, folder: Path) -> None:
        self.server = server
        self.studio = studio
        self.root = Administrator.of(studio.root)
        self.browser = browser
        self.folder = folder
        # With another data directory than that of the service, commands do not find its socket.
        shutil.copy(server.folder / "data" / "secret.key", folder)

    def case(self) -> Case:
        return Case(self, next(_numbers), {})

    def run(self, line: str, place: CommandPlace, stdin: str) -> str:
        """Runs a command in this process."""
        server = ("--server", self.server.base_url) if place is CommandPlace.ELSEWHERE else ()
        arguments = ["sso", *server, *shlex.split(line)]
        data_dir = self.server.folder / "data" if place is CommandPlace.BESIDE_SERVICE else self.folder
        settings = self.server.settings | {"XDG_CONFIG_HOME": str(self.folder), "SSO_DATA_DIR": str(data_dir)}
        standard_input = io.TextIOWrapper(io.BytesIO(stdin.encode()))
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict("os.environ", clean_environment(**settings), clear=True),
            mock.patch.object(sys, "argv", arguments),
            mock.patch.object(sys, "stdin", standard_input),
            _only_through_the_socket(place),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            try:
                main()
            except SystemExit as end:
                if end.code:
                    raise Refused(err.getvalue().strip().removeprefix("sso: ")) from None
        return out.getvalue().strip()

    @contextlib.contextmanager
    def recorded(self, case: Case) -> Iterator[dict[str, list[Any]]]:
        """Records the audit entries and the change events of the block."""
        entry, event = self._last("audit"), self._last("change_events")
        record: dict[str, list[Any]] = {}
        yield record
        columns = "operation, target, before, after, project_id, application_id"
        record["audit"] = [self._row(case, row) for row in query(self.server, _NEW.format(columns, "audit"), entry)]
        columns = "type, user_id, application_id, data"
        events = query(self.server, _NEW.format(columns, "change_events"), event)
        record["events"] = [self._row(case, row) for row in events]

    def _row(self, case: Case, row: Any) -> Any:
        values = {name: json.loads(value) if name in _JSON and value else value for name, value in dict(row).items()}
        return case.masked(values)

    def _last(self, table: str) -> int:
        return int(query(self.server, f"SELECT coalesce(max(id), 0) AS id FROM {table}")[0]["id"])


_NEW = "SELECT {} FROM {} WHERE id > $1 ORDER BY id"
_JSON = {"before", "after", "data"}
