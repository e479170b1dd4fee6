"""What `sso doctor` finds about webhooks."""

from sso.db.standalone import fetch_value
from sso.doctor.checks import webhooks
from tests.cli.conftest import Sso

URL = "http://127.0.0.1:9/hook"


def test_failing_webhook_is_found(sso: Sso, environment: dict[str, str]) -> None:
    dsn = environment["SSO_DATABASE_URL"]
    assert sso("webhook", "add", URL).code == 0
    assert webhooks(dsn).good
    failure = """INSERT INTO webhook_failures (webhook_id, position, at, type, data, tries, problem, expires)
        SELECT webhook_id, 1, now(), 'user_disabled', '{}', 9, 'status 500', now() + interval '1 day' FROM webhooks
        RETURNING id"""
    fetch_value(dsn, failure)
    finding = webhooks(dsn)
    assert (finding.good, finding.warning) == (False, True)
    assert finding.detail == f"events are not delivered: {URL} (1 events have failed)"
    fetch_value(dsn, "UPDATE webhooks SET failing_since = now() - interval '1 hour', problem = 'ConnectError'")
    assert f"{URL} (ConnectError)" in webhooks(dsn).detail
    fetch_value(dsn, "UPDATE webhooks SET disabled = true")
    assert webhooks(dsn).good
