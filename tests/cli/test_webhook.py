"""`sso webhook`: adding, listing and removing webhooks, and sending failed events again; findings of `sso doctor`."""

import io
import json

import pytest

from sso.db.standalone import fetch_value
from sso.delivery_findings import webhooks
from tests.cli.conftest import Sso

URL = "http://127.0.0.1:9/hook"


def test_webhook_is_added_listed_and_removed(sso: Sso) -> None:
    number, secret = (line.partition(" ")[2] for line in sso("webhook", "add", URL, "--event", "users").lines)
    assert len(secret) >= 32
    listed = json.loads(sso("webhook", "list", "--json").out)
    assert listed == {"id": number, "url": URL, "events": ["users"], "state": "active", "problem": ""}
    assert secret not in sso("webhook", "list").out + sso("audit").out
    assert sso("webhook", "remove", number, "--yes").lines == [f"{number} is removed"]
    assert sso("webhook", "remove", number, "--yes").failure == f"there is no webhook {number}"
    operations = [json.loads(line)["operation"] for line in sso("audit", "--json").lines]
    assert operations[:2] == ["webhook.delete", "webhook.create"]


def test_failed_events_are_listed_reported_and_sent_again(sso: Sso, environment: dict[str, str]) -> None:
    dsn = environment["SSO_DATABASE_URL"]
    number = sso("webhook", "add", URL).lines[0].removeprefix("id ")
    assert webhooks(dsn).good
    failure = """INSERT INTO webhook_failures (webhook_id, position, at, type, data, tries, problem, expires)
        SELECT webhook_id, 1, now(), 'user_disabled', '{}', 9, 'status 500', now() + interval '1 day' FROM webhooks
        RETURNING id"""
    event = fetch_value(dsn, failure)
    finding = webhooks(dsn)
    assert (finding.good, finding.warning) == (False, True)
    assert finding.detail == f"events are not delivered: {URL} (1 events were given up)"
    line = json.loads(sso("webhook", "failed", number, "--json").out)
    assert (line["id"], line["problem"], line["retrying"]) == (str(event), "status 500", False)
    assert sso("webhook", "retry", number, "--event", str(event)).lines == ["1 events are sent again"]
    assert sso("webhook", "retry", number).lines == ["0 events are sent again"]  # it is being sent already
    fetch_value(dsn, "UPDATE webhooks SET failing_since = now() - interval '1 hour', problem = 'ConnectError'")
    assert f"{URL} (ConnectError)" in webhooks(dsn).detail
    assert sso("webhook", "list").lines[0].split("\t")[3:] == ["failing", "ConnectError"]
    sso("webhook", "remove", number, "--yes")
    assert webhooks(dsn).good


@pytest.mark.parametrize(
    ("arguments", "failure"),
    [
        (("add", "ftp://127.0.0.1/hook"), "url: must be an address"),
        (("add", "http://10.0.0.1/hook"), "url: "),
        (("add", URL, "--event", "weather"), "events.0: must be one of"),
        (("failed", "unknown"), "there is no webhook unknown"),
        (("retry", "unknown"), "there is no webhook unknown"),
        (("retry", "unknown", "--event", "first"), "ids.0: must be the id of a failed event"),
        (("add", URL, "--secret-stdin"), "--secret-stdin: expected the secret on standard input"),
    ],
)
def test_failure_says_what_is_wrong(
    sso: Sso, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], failure: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert sso("webhook", *arguments).failure.startswith(failure)
