"""`sso webhook dead-letters` and `resend` with deliveries that failed, on this machine and on a server."""

from pathlib import Path
from typing import NamedTuple

import orjson

from tests.cli.both_forms import OPERATOR, sign_in
from tests.cli.conftest import run_in_process
from tests.kit.browser import query
from tests.kit.server import Server, until
from tests.kit.webhook_receiver import webhook_receiver

DAYS = 2 * 86400 * 1_000_000
FAILED = "SELECT user_id FROM webhook_failures WHERE webhook_id = $1 ORDER BY id"
# Two days pass: positions are times, in microseconds.
AGE = f"""WITH events AS (UPDATE change_events SET position = position - {DAYS}),
    stream AS (UPDATE change_stream SET last_position = last_position - {DAYS}, trimmed_to = trimmed_to - {DAYS})
    UPDATE webhooks SET position = position - {DAYS}, next_try = now() WHERE webhook_id = $1"""


class Forms(NamedTuple):
    """`sso webhook …` on the machine of the service, and on the server."""

    server: Server
    folder: Path

    def local(self, *arguments: str) -> str:
        return run_in_process("webhook", *arguments, **self.server.settings).output

    def remote(self, *arguments: str) -> str:
        form = ("--server", self.server.base_url, "webhook", *arguments)
        return run_in_process(*form, XDG_CONFIG_HOME=str(self.folder)).output

    def failed_users(self, webhook_id: str) -> list[str]:
        return [row["user_id"] for row in query(self.server, FAILED, webhook_id)]


def fail_to_deliver(forms: Forms, webhook_id: str, *logins: str) -> list[str]:
    """Events about these users are tried, and fail. Returns the ids of the users."""
    server, user_ids = forms.server, []
    for login in logins:
        user_ids.append(run_in_process("user", "add", login, **server.settings).output.split()[-1])
        assert run_in_process("user", "disable", login, **server.settings).code == 0
    until(lambda: query(server, "SELECT 1 FROM webhooks WHERE webhook_id = $1 AND tries > 0", webhook_id))
    until(lambda: not query(server, "SELECT 1 FROM change_events WHERE position IS NULL"))
    query(server, AGE, webhook_id)
    until(lambda: forms.failed_users(webhook_id) == user_ids)
    return user_ids


def test_dead_letters_are_listed_and_sent_again(server: Server, tmp_path: Path) -> None:
    server.apply(OPERATOR)
    sign_in(server, tmp_path)
    forms = Forms(server, tmp_path)
    with webhook_receiver() as receiver:
        receiver.status = 503
        webhook_id = forms.local("add", receiver.url, "--event", "users").split()[1]
        first, second = fail_to_deliver(forms, webhook_id, "first@dead.example", "second@dead.example")
        for form in ((), ("--json",), ("--tsv",), ("--limit", "1")):
            assert forms.local("dead-letters", webhook_id, *form) == forms.remote("dead-letters", webhook_id, *form)
        letters = [orjson.loads(line) for line in forms.remote("dead-letters", webhook_id, "--json").splitlines()]
        assert [letter["event"]["user_id"] for letter in letters] == [first, second]
        assert {(letter["problem"], letter["retrying"]) for letter in letters} == {("status 503", False)}
        receiver.status = 204
        assert forms.remote("resend", webhook_id, letters[1]["id"]) == "1 events are sent again\n"
        until(lambda: forms.failed_users(webhook_id) == [first])
        assert forms.local("resend", webhook_id) == "1 events are sent again\n"
        until(lambda: forms.failed_users(webhook_id) == [])
        assert forms.local("dead-letters", webhook_id, "--json") == ""
        assert forms.remote("resend", webhook_id) == "0 events are sent again\n"
        assert [receiver.events_of(user_id)[-1]["type"] for user_id in (first, second)] == ["user_disabled"] * 2
        assert forms.remote("delete", webhook_id, "--yes") == f"{webhook_id} is deleted\n"
