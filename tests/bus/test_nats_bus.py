"""The bus over NATS: a server that is killed, stopped or overrun, authentication, TLS, and foreign messages."""

import asyncio
import gc
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from nats.aio.client import Client
from structlog.testing import capture_logs

from sso.bus import nats_transport
from sso.bus.bus import Bus
from sso.bus.nats_transport import subject_of
from sso.bus.subscriptions import Rescans
from sso.bus.transport import EVERYONE
from sso.bus.wiring import build_bus
from sso.config import Settings
from sso.db.database import Database
from tests.bus import TIMEOUT_S, is_empty, nats_settings, received, running_bus, until_connected, until_disconnected
from tests.kit.nats import NatsServer, nats_server, needs_nats
from tests.kit.smtp import make_certificate
from tests.kit.timing import SLACK

pytestmark = needs_nats


@pytest.fixture
def nats() -> Iterator[NatsServer]:
    with nats_server() as server:
        yield server


@pytest.fixture
def bus_settings(nats: NatsServer) -> Settings:
    return nats_settings(nats.url)


def publish_raw(server: NatsServer, subject: str, *payloads: bytes) -> None:
    """Publishes messages over a plain socket and waits until the server has read them."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT_S) as connection:
        commands = [b"PUB %s %d\r\n%s\r\n" % (subject.encode(), len(payload), payload) for payload in payloads]
        connection.sendall(b'CONNECT {"verbose":false}\r\n' + b"".join(commands) + b"PING\r\n")
        answer = b""
        while b"PONG" not in answer:
            answer += connection.recv(4096)


async def failure_of(database: Database, settings: Settings) -> str:
    """Returns why a bus with these settings does not connect."""
    bus = build_bus(database, settings)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bus.run)
        with trio.fail_after(TIMEOUT_S):
            while not bus.failure:  # noqa: ASYNC110 - a plain text
                await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
    return bus.failure


async def test_killed_server_is_noticed_and_reconnected_with_a_scan(
    sender: Bus, receiver: Bus, nats: NatsServer
) -> None:
    with receiver.subscribe("anything") as signals, receiver.subscribe("mine", Rescans.NEVER) as mine:
        nats.kill()
        await received(signals)  # the connection is lost
        await until_disconnected(sender)
        sender.publish("mine", receiver.worker)
        nats.start()
        await until_connected(receiver)
        await received(signals)  # it is back
        sender.publish("mine", receiver.worker)
        await received(mine)


async def test_stopped_server_is_noticed_within_seconds(
    sender: Bus, receiver: Bus, nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connections stay open, so nothing but a missing answer shows it."""
    with receiver.subscribe("anything", Rescans.RARELY) as signals:
        nats.pause()
        began = trio.current_time()
        sender.publish("never sent", receiver.worker)
        await received(signals)
        await until_disconnected(sender)
        longest = nats_transport.PROBE_EVERY_S + nats_transport.ANSWER_S + nats_transport.LAST_ANSWER_S
        assert trio.current_time() - began < longest * SLACK
        nats.resume()
        await until_connected(receiver)
        await received(signals)


async def until_waiting(bus: Bus) -> None:
    """Returns when a message that could not be sent waits again."""
    await until_disconnected(bus)
    with trio.fail_after(TIMEOUT_S):
        while not bus.waiting:  # noqa: ASYNC110 - a plain number
            await trio.sleep(0.001)


async def until_sent(bus: Bus) -> None:
    with trio.fail_after(TIMEOUT_S):
        while not bus.sent:  # noqa: ASYNC110 - a plain number
            await trio.sleep(0.001)
    await bus.wait_until_sent()


async def test_message_that_the_stopped_server_did_not_confirm_is_sent_again(
    sender: Bus, receiver: Bus, nats: NatsServer
) -> None:
    nats.pause()
    sender.publish("mine", receiver.worker)
    await until_waiting(sender)
    assert sender.sent == 0
    nats.kill()
    nats.start()
    await until_sent(sender)
    assert (sender.waiting, sender.sent) == (0, 1)


# The library may leave a transport that it gave up to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_storm_while_the_server_is_stopped_ends_with_a_reconnect(
    sender: Bus, receiver: Bus, nats: NatsServer
) -> None:
    """More than fits into the buffers of the sockets."""
    nats.pause()
    for number in range(40_000):
        sender.publish(f"topic {number}", receiver.worker)
    await until_waiting(sender)
    assert sender.waiting <= 40_000
    await until_disconnected(receiver)
    nats.resume()
    with receiver.subscribe("mine", Rescans.NEVER) as mine:
        await until_connected(receiver)
        await until_sent(sender)
        sender.publish("mine", receiver.worker)
        await received(mine)


async def test_another_server_takes_over(database: Database, nats: NatsServer) -> None:
    with nats_server() as second:
        settings = nats_settings(f"nats://127.0.0.1:{nats.port},127.0.0.1:{second.port}")
        nats.kill()
        async with running_bus(database, settings) as sender, running_bus(database, settings) as receiver:
            with receiver.subscribe("mine") as mine:
                sender.publish("mine")
                await received(mine)


@pytest.mark.parametrize("payload", [b"", b"\n\n\n", b"\xff\xfe\x00", b"mine", b"poll:1", b"x" * 100_000])
async def test_malformed_message_is_ignored(receiver: Bus, sender: Bus, nats: NatsServer, payload: bytes) -> None:
    with receiver.subscribe("mine", Rescans.NEVER) as mine, receiver.subscribe("last") as last:
        for subject in (subject_of(EVERYONE), subject_of(receiver.worker)):
            await trio.to_thread.run_sync(publish_raw, nats, subject, payload)
        sender.publish("last")
        await received(last)
        assert is_empty(mine)
        assert receiver.connected.is_set()


async def test_messages_beyond_the_limit_are_dropped_and_replaced_by_a_scan(
    database: Database, bus_settings: Settings, nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats_transport, "MAX_PENDING", 10)
    async with running_bus(database, bus_settings) as bus:
        with bus.subscribe("anything") as signals, capture_logs() as logs:
            done = threading.Event()

            def overrun() -> None:
                while not done.is_set():
                    publish_raw(nats, subject_of(EVERYONE), *[b"x"] * 5000)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.to_thread.run_sync, overrun)
                await received(signals)  # the connection is given up
                done.set()
            await until_connected(bus)
            assert {entry["event"] for entry in logs} >= {"bus.connection_lost"}
            assert any("slow consumer" in entry.get("reason", "") for entry in logs)


@pytest.mark.parametrize(
    ("options", "credentials", "wrong"),
    [
        (["--user", "sso", "--pass", "p:a/s@s"], "sso:p%3Aa%2Fs%40s@", "sso:wrong@"),
        (["--auth", "t0ken"], "t0ken@", "wrong@"),
        (["--auth", "t0ken"], "t0ken@", ""),
    ],
)
async def test_authentication(database: Database, options: list[str], credentials: str, wrong: str) -> None:
    with nats_server(*options) as server:
        url = f"nats://{{}}localhost:{server.port}"
        async with running_bus(database, nats_settings(url.format(credentials))):
            pass
        failure = await failure_of(database, nats_settings(url.format(wrong)))
    assert "Authorization Violation" in failure
    assert "wrong" not in failure


async def test_tls_with_a_private_ca(database: Database, tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)
    options: list[str | Path] = ["--tls", "--tlscert", certificate.chain_file, "--tlskey", certificate.chain_file]
    with nats_server(*options, "--user", "sso", "--pass", "secret", scheme="tls", credentials="sso:secret@") as server:
        settings = nats_settings(server.url, certificate.ca_file)
        async with running_bus(database, settings) as sender, running_bus(database, settings) as receiver:
            with receiver.subscribe("mine") as mine:
                sender.publish("mine", receiver.worker)
                await received(mine)
        failure = await failure_of(database, nats_settings(server.url))
        assert "certificate verify failed" in failure
        by_address = f"tls://sso:secret@127.0.0.1:{server.port}"  # not the name in the certificate
        assert "certificate verify failed" in await failure_of(database, nats_settings(by_address, certificate.ca_file))


async def test_password_is_not_sent_to_a_server_without_tls(database: Database) -> None:
    sent = b""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def pretend() -> None:
            nonlocal sent
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(TIMEOUT_S)
                connection.sendall(b'INFO {"server_id":"x","version":"2.9.10","max_payload":1048576}\r\n')
                while received := connection.recv(4096):
                    sent += received

        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, pretend)
            failure = await failure_of(database, nats_settings(f"tls://sso:secret@127.0.0.1:{port}"))
    assert "the server does not use TLS" in failure
    assert sent == b""


async def test_no_gsid_is_sent(sender: Bus, receiver: Bus, nats: NatsServer) -> None:
    gsid = "0fdd6d9e-9b1c-4a4e-8a6c-0123456789ab"
    with socket.create_connection(("127.0.0.1", nats.port), timeout=TIMEOUT_S) as eavesdropper:
        eavesdropper.sendall(b'CONNECT {"verbose":false}\r\nSUB > 1\r\nPING\r\n')
        seen = b""
        while b"PONG" not in seen:
            seen += eavesdropper.recv(4096)
        with receiver.subscribe(f"poll:{gsid}") as signals:
            sender.publish(f"poll:{gsid}", receiver.worker)
            await received(signals)
        while b"MSG" not in seen or not seen.endswith(b"\r\n"):
            seen += eavesdropper.recv(4096)
    assert subject_of(receiver.worker).encode() in seen
    assert gsid[:8].encode() not in seen


async def test_client_that_stops_reading_is_replaced(
    sender: Bus, receiver: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail_to_read(*_: object) -> None:
        raise ValueError("by the test")  # logged by the library, which then ends its reading task and nothing else

    with receiver.subscribe("anything") as signals, capture_logs() as logs:
        with monkeypatch.context() as patch:
            patch.setattr("nats.aio.client.Client._process_msg", fail_to_read)
            sender.publish("mine", receiver.worker)
            await received(signals)  # the connection is given up
        await until_connected(receiver)
        with receiver.subscribe("mine") as mine:
            sender.publish("mine", receiver.worker)
            await received(mine)
    assert "the client has stopped reading" in [entry.get("reason") for entry in logs]


async def test_failed_task_of_the_library_does_not_end_the_process(receiver: Bus, database: Database) -> None:
    """One fails, for example, if the connection is reset while the library closes it."""

    async def fail_in_a_task() -> None:
        task = asyncio.ensure_future(Client().publish("", b""))
        await asyncio.wait([task])  # the result is not read

    with capture_logs() as logs:
        await database.run_on_asyncio(fail_in_a_task())
        gc.collect()  # asyncio reports a failed task when it is collected
        await trio.sleep(0.01)
    assert [entry["event"] for entry in logs] == ["bus.client_failed"]
    assert receiver.connected.is_set()
