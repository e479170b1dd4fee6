"""sso trigger sends examples of all events, signed, to a receiver on a real socket."""

from pathlib import Path

from sso.change_stream.events import ChangeType
from tests.kit.server import run_sso
from tests.kit.webhook_receiver import webhook_receiver


def test_trigger_sends_a_signed_example_of_each_event(tmp_path: Path) -> None:
    with webhook_receiver() as receiver:
        done = run_sso(tmp_path, "trigger", "all", "--to", receiver.url)
        assert done.returncode == 0, done.stderr
        first, *lines = done.stdout.splitlines()
        assert lines == [f"{name}: accepted" for name in ChangeType]
        assert [delivery.headers["Webhook-Event"] for delivery in receiver.deliveries] == [*ChangeType]
        for delivery in receiver.deliveries:
            assert delivery.is_signed_with(first.removeprefix("secret "))
            assert delivery.headers["Webhook-Id"] == delivery.event["id"]
            assert delivery.event.get("type", "permissions_changed") == delivery.headers["Webhook-Event"]
        receiver.deliveries.clear()
        receiver.status = 503
        done = run_sso(tmp_path, "trigger", "user.banned", "--to", receiver.url, "--secret-stdin", stdin="hush\n")
        assert (done.returncode, done.stdout) == (1, "user_banned: status 503\n")
        [delivery] = receiver.deliveries
        assert delivery.is_signed_with("hush")
        assert delivery.event["scope"] == {"application_id": delivery.event["application_id"]}
    for arguments in (("nothing", "--to", receiver.url), ("all", "--to", "ftp://localhost/")):
        done = run_sso(tmp_path, "trigger", *arguments)
        assert done.returncode in (1, 2)
        assert "Traceback" not in done.stderr
