"""Server-sent events: resuming, heartbeats, the end of the caller's right, disconnects and stopping workers."""

import itertools
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from sso.admin.changes import HEARTBEAT_S
from tests.admin.conftest import Administrator, administrator
from tests.change_stream.conftest import SentEvent, newest_cursor, sent_events
from tests.kit.constants import changed
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running, until
from tests.perm.endpoints.conftest import Studio

EVENT_STREAM = {"Accept": "text/event-stream"}


@dataclass(frozen=True)
class Streamed:
    """A server of its own: its workers are killed, and its metrics tell how many requests wait."""

    server: Server
    studio: Studio
    root: Administrator
    metrics: str

    def waiting(self) -> float | None:
        lines = httpx.get(f"http://{self.metrics}/metrics", timeout=60).text.splitlines()
        values = [float(line.rpartition(" ")[2]) for line in lines if line.startswith("sso_change_readers ")]
        return values[0] if values else None

    def toggle(self, user_id: str, disabled: bool) -> None:
        with self.server.client() as client:
            response = client.patch(
                f"/api/admin/users/{user_id}", json={"disabled": disabled}, headers=self.root.headers
            )
        assert response.status_code == 200, response.text


@pytest.fixture(scope="module")
def streamed(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Streamed]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        bind = f"127.0.0.1:{free.getsockname()[1]}"
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_WORKERS": "2", "SSO_METRICS_BIND": bind}
    settings |= {"SSO_RATE_LOGIN": "0"}
    settings |= changed({"sso.admin.changes.HEARTBEAT_S": 1, "sso.admin.changes.RECHECK_S": 5})
    with running(tmp_path_factory.mktemp("streamed"), **settings) as server, server.client() as client:
        studio = Studio(server, client)
        yield Streamed(server, studio, Administrator.of(studio.root), bind)


def first_events(response: httpx.Response, count: int) -> list[SentEvent]:
    events: list[SentEvent] = []
    for block in sent_events(response):
        events += [block] if block.data is not None else []
        if len(events) == count:
            return events
    return events


def test_events_arrive_and_resume_after_the_last_one(streamed: Streamed) -> None:
    user, start = streamed.studio.user(), newest_cursor(streamed.root)
    headers = streamed.root.headers | EVENT_STREAM
    with streamed.server.client() as client:
        with client.stream("GET", "/api/admin/changes", params={"after": start}, headers=headers) as response:
            assert response.headers["Content-Type"] == "text/event-stream"
            streamed.toggle(user.user_id, True)
            (first,) = first_events(response, 1)
        streamed.toggle(user.user_id, False)
        resumed = headers | {"Last-Event-ID": first.id}
        with client.stream("GET", "/api/admin/changes", params={"after": start}, headers=resumed) as response:
            (second,) = first_events(response, 1)
    assert (first.event, first.data["type"], first.data["id"]) == ("user_disabled", "user_disabled", first.id)
    assert (second.event, second.data["user_id"]) == ("user_enabled", user.user_id)
    body = streamed.root.get("/changes", after=start).json()
    assert body["data"] == [first.data, second.data]


def test_reader_that_leaves_is_forgotten(streamed: Streamed) -> None:
    assert until(lambda: streamed.waiting() == 0)
    start, headers = newest_cursor(streamed.root), streamed.root.headers
    with streamed.server.client() as client:
        with (
            client.stream("GET", "/api/admin/changes", headers=headers | EVENT_STREAM) as response,
            socket.create_connection(_address(streamed.server), timeout=60) as poller,
        ):
            assert response.status_code == 200
            poller.sendall(_long_poll(start, headers))
            assert until(lambda: streamed.waiting() == 2)
        assert until(lambda: streamed.waiting() == 0)


def _address(server: Server) -> tuple[str, int]:
    url = urlsplit(server.base_url)
    assert url.hostname
    assert url.port
    return url.hostname, url.port


def _long_poll(start: str, headers: dict[str, str]) -> bytes:
    request = httpx.Request("GET", "http://localhost/api/admin/changes", params={"after": start, "wait": 60})
    lines = [f"GET {request.url.raw_path.decode()} HTTP/1.1", "Host: localhost"]
    return "\r\n".join([*lines, *map(": ".join, headers.items()), "", ""]).encode()


def test_head_request_gets_no_stream(streamed: Streamed) -> None:
    response = streamed.root.request("HEAD", "/changes", EVENT_STREAM)
    assert (response.status_code, response.headers["Content-Type"]) == (200, "application/json")


def test_stream_ends_with_the_right_of_its_caller_and_has_heartbeats(streamed: Streamed) -> None:
    reader = administrator(streamed.studio, "can_view_changes")
    start = newest_cursor(reader)
    with (
        httpx.Client(base_url=streamed.server.base_url, timeout=HEARTBEAT_S * 4) as client,
        client.stream(
            "GET", "/api/admin/changes", params={"after": start}, headers=reader.headers | EVENT_STREAM
        ) as response,
    ):
        blocks = sent_events(response)
        assert next(blocks).data is None
        streamed.toggle(reader.user_id, True)
        rest = list(blocks)
    events = [block.event for block in rest if block.data is not None]
    assert events[-1] == "user_disabled"  # perhaps after the grant of the right, which was made just before
    assert any("heartbeat" in block.comments for block in rest)


def test_stopping_server_answers_held_requests(streamed: Streamed) -> None:
    """Both at once, and the supervisor starts other workers for those that it stops."""
    start, headers = newest_cursor(streamed.root), streamed.root.headers
    answers: list[tuple[int, object]] = []

    def poll() -> None:
        with httpx.Client(base_url=streamed.server.base_url, timeout=300) as client:
            response = client.get("/api/admin/changes", params={"after": start, "wait": 60}, headers=headers)
            answers.append((response.status_code, response.json()))

    def read() -> None:
        with (
            httpx.Client(base_url=streamed.server.base_url, timeout=300) as client,
            client.stream("GET", "/api/admin/changes", params={"after": start}, headers=headers | EVENT_STREAM) as got,
        ):
            blocks = [block.data for block in sent_events(got) if "heartbeat" not in block.comments]
            answers.append((got.status_code, blocks))

    threads = [threading.Thread(target=work) for work in (poll, poll, read, read)]
    for thread in threads:
        thread.start()
    assert until(lambda: streamed.waiting() == 4)
    for pid in streamed.server.workers():
        os.kill(pid, signal.SIGTERM)
    for thread in threads:
        thread.join()
    assert sorted(answers, key=str) == sorted(
        [(200, {"status": "OK", "data": [], "next": start})] * 2 + [(200, [None])] * 2, key=str
    )


def test_consumer_gets_each_event_once_while_workers_are_killed(streamed: Streamed) -> None:
    user, start = streamed.studio.user(), newest_cursor(streamed.root)
    stop, received = threading.Event(), list[SentEvent]()

    def consume() -> None:
        last = start
        while not stop.is_set():
            headers = streamed.root.headers | EVENT_STREAM | {"Last-Event-ID": last}
            try:
                with (
                    httpx.Client(base_url=streamed.server.base_url, timeout=60) as client,
                    client.stream("GET", "/api/admin/changes", headers=headers) as response,
                ):
                    for block in sent_events(response):
                        if block.data is not None:
                            received.append(block)
                            last = block.id
                        if stop.is_set():
                            return
            except httpx.HTTPError:
                time.sleep(0.05)

    consumer = threading.Thread(target=consume)
    consumer.start()
    changes = 0
    for number in range(30):
        if number in (8, 16, 24):
            os.kill(streamed.server.workers()[0], signal.SIGKILL)
        try:
            streamed.toggle(user.user_id, disabled=number % 2 == 0)
            changes += 1
        except httpx.HTTPError:  # the worker was killed before or after the commit
            time.sleep(0.2)

    def expected() -> list[Any]:
        stored: list[Any] = streamed.root.get("/changes", after=start, limit=200).json()["data"]
        return stored

    assert until(lambda: len(expected()) >= changes and len(received) == len(expected()))
    stop.set()
    streamed.toggle(user.user_id, True)
    streamed.toggle(user.user_id, False)
    consumer.join()
    stored = expected()[: len(received)]
    assert [block.data for block in received] == stored
    types = [event["type"] for event in stored]
    assert all(first != second for first, second in itertools.pairwise(types))
