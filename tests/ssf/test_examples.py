"""Examples of signals, which ``sso trigger`` sends through the streams of a client, signed by the service."""

import subprocess

from sso.signals.event_types import EVENT_URIS, SignalType
from tests.kit.server import Server
from tests.kit.signals import POLL, PUSH, event_of, names_of, push_receiver, signal_client, wait_for_tokens


def test_trigger_sends_signals_through_streams_with_the_keys_of_the_service(server: Server) -> None:
    client = signal_client(server)
    name = client.site.client_id
    assert "has no stream" in _trigger(server, "session-revoked", "--client", name).stderr
    polled = client.add_stream(delivery={"method": POLL}, events_requested=[EVENT_URIS[SignalType.ACCOUNT_PURGED]])
    done = _trigger(server, "signals", "--client", name)
    sent = ["account-purged", "verification", "stream-updated"]
    assert done.stdout.splitlines() == [f"{event}: added to the stream {polled}" for event in sent], done.stderr
    assert names_of(client.take(polled)) == sent
    refused = _trigger(server, "session-revoked", "--client", name)
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (
        1,
        "sso: EVENT: expected an event of the stream: account-purged, verification, stream-updated",
    )
    with push_receiver() as receiver:
        pushed = client.add_stream(delivery={"method": PUSH, "endpoint_url": receiver.url})
        assert "--stream: expected one of" in _trigger(server, "signals", "--client", name).stderr
        done = _trigger(server, "signals", "--client", name, "--stream", pushed)
        assert done.returncode == 0, done.stderr
        events = [client.claims(token) for token in wait_for_tokens(receiver, len(SignalType))]
        assert names_of(events) == [*SignalType]
        assert client.call("DELETE", f"stream?stream_id={pushed}").status_code == 204
    assert client.call("POST", "status", json={"stream_id": polled, "status": "paused"}).status_code == 200
    client.take(polled)
    assert _trigger(server, "stream-updated", "--client", name).returncode == 0
    [update] = client.take(polled)  # a receiver that acts on it keeps the status that the stream has
    assert event_of(update) == ("stream-updated", {"status": "paused", "reason": "This is an example"})
    assert client.call("POST", "status", json={"stream_id": polled, "status": "disabled"}).status_code == 200
    assert "takes no events" in _trigger(server, "account-purged", "--client", name).stderr
    assert "there is no client" in _trigger(server, "signals", "--client", "nobody").stderr


def _trigger(server: Server, *arguments: str) -> subprocess.CompletedProcess[str]:
    return server.sso("trigger", *arguments, check=False)
