"""``scripts/bench latency``: requests are due at their own moments, delays of server and generator count, and every
kind of request is answered by the service. ``scripts/bench scale``: the growth of tables over a month."""

import itertools
import json
import socketserver
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scripts.benchmarks.http_clients import RequestFailed, Scenario, get
from scripts.benchmarks.latency import level_seconds, whole_load
from scripts.benchmarks.latency_kinds import ALL_SHARES, CLOSE, HEARTBEAT
from scripts.benchmarks.latency_report import Contest, print_report
from scripts.benchmarks.latency_sockets import lateness
from scripts.benchmarks.machine_probe import MachineFigures, Sample, slow_periods, watched_machine
from scripts.benchmarks.oauth_service import running_service
from scripts.benchmarks.open_loop.figures import Figures, KindFigures, quantile
from scripts.benchmarks.open_loop.generator import Generator, Planned
from scripts.benchmarks.open_loop.schedule import arrivals, mixed
from scripts.benchmarks.scale_month import TableSize, table_rows
from tests.kit.server import LIMIT_S, until

RATE = 100.0
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class PlantedServer(socketserver.ThreadingTCPServer):
    """Answers a request with what ``respond`` returns for its number; empty closes the connection."""

    daemon_threads = True
    request_queue_size = 200

    def __init__(self, respond: Callable[[int], bytes]) -> None:
        self.numbers = itertools.count()
        self.respond = respond
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(socketserver.StreamRequestHandler):
    server: PlantedServer

    def handle(self) -> None:
        while line := self.rfile.readline():
            if line == b"\r\n":
                answer = self.server.respond(next(self.server.numbers))
                self.wfile.write(answer)
                if not answer or b"close" in answer:
                    return


@contextmanager
def load_on(
    respond: Callable[[int], bytes],
    arrive: Callable[[], list[Planned]],
    *,
    answer_s: float = LIMIT_S,
    connections: int = 500,
) -> Iterator[Generator]:
    with PlantedServer(respond) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        generator = Generator(
            ("127.0.0.1", server.server_address[1]), {"a": arrive}, answer_s=answer_s, connections=connections
        )
        try:
            yield generator
        finally:
            generator.close()
            server.shutdown()
            thread.join()


def ask() -> Scenario:
    answer = yield get("/")
    if answer.status != 200:
        raise RequestFailed(str(answer.status))


def plain() -> list[Planned]:
    return [Planned("a", ask())]


def test_kinds_are_mixed_evenly_at_a_constant_rate() -> None:
    assert "".join(itertools.islice(mixed({"a": 1, "b": 2}), 9)) == "bab" * 3
    schedule = list(arrivals(200, ALL_SHARES, 13))
    assert [due for due, _ in schedule] == [number / 200 for number in range(2600)]
    assert Counter(kind for _, kind in schedule) == {kind: 100 * share for kind, share in ALL_SHARES.items()}


def test_quantile_is_known_only_with_enough_values() -> None:
    values = [float(number) for number in range(1000, 0, -1)]
    assert [quantile(values, share) for share in (0.5, 0.99, 0.999)] == [500, 990, 999]
    assert (quantile(values[:999], 0.999), quantile(values[:99], 0.99), quantile([], 0.5)) == (None, None, None)
    assert quantile(values[:100], 0.99) == 999


def test_each_heartbeat_that_was_due_in_a_gap_counts() -> None:
    assert lateness(0.9, 1.0) == [0.0]
    assert lateness(1.25, 1.0) == [0.25]
    assert lateness(3.5, 1.0) == [2.5, 1.5, 0.5]


def test_stalled_server_is_charged_for_all_requests_that_were_due_meanwhile() -> None:
    """Answers start when the 20th request has arrived, which is due 0.19 s after the first one."""
    stalled = threading.Event()

    def respond(number: int) -> bytes:
        if number == 19:
            stalled.set()
        stalled.wait(LIMIT_S)
        return OK

    with load_on(respond, plain) as generator:
        figures = generator.run_open(RATE, {"a": 1}, 0.5)
    slowest = sorted(figures.kinds["a"].latencies, reverse=True)
    assert len(slowest) == figures.due(["a"]) == 50
    for number in range(19):
        assert slowest[number] >= (19 - number) / RATE


def test_lag_of_a_slow_generator_is_reported() -> None:
    """The generator sleeps for 0.3 s before it sends the first request; 29 others were due meanwhile."""
    numbers = itertools.count()

    def arrive() -> list[Planned]:
        if next(numbers) == 0:
            time.sleep(0.3)
        return plain()

    with load_on(lambda _: OK, arrive) as generator:
        figures = generator.run_open(RATE, {"a": 1}, 0.5)
    lags = sorted(figures.lags, reverse=True)
    for number in range(29):
        assert lags[number] >= 0.3 - number / RATE - 0.001  # the sleep may end a little early
    assert max(figures.kinds["a"].latencies) >= max(lags)
    assert figures.is_generator_late
    assert not Figures(lags=[0.001] * 200).is_generator_late


def test_held_answer_counts_from_the_end_of_its_hold() -> None:
    """The first request is held until the second one arrives, 0.3 s later."""
    arrived = threading.Event()

    def respond(number: int) -> bytes:
        if number == 0:
            arrived.wait(LIMIT_S)
        else:
            arrived.set()
        return OK

    def arrive() -> list[Planned]:
        return [Planned("held", ask(), held_s=0.3), Planned("release", ask(), after_s=0.3)]

    with load_on(respond, arrive) as generator:
        began = time.perf_counter()
        figures = generator.run_open(1.0, {"a": 1}, 0.5)
        whole = time.perf_counter() - began
    (held,) = figures.kinds["held"].latencies
    (release,) = figures.kinds["release"].latencies
    assert 0 < held < whole - 0.3
    assert release < whole - 0.3

    with load_on(lambda _: OK, lambda: [Planned("held", ask(), held_s=30.0)]) as generator:
        assert generator.run_open(1.0, {"a": 1}, 0.5).failures == {"answered too early": 1}


REFUSED = b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (REFUSED, "503"),
        (REFUSED.replace(b"Retry-After: 1\r\n", b""), "503 without Retry-After"),
        (REFUSED.replace(b"503", b"500"), "500"),
        (OK.replace(b"200", b"204"), "unexpected answer"),
        (b"", "connection closed"),
    ],
)
def test_failures_are_counted_by_their_cause(answer: bytes, failure: str) -> None:
    with load_on(lambda number: OK if number % 2 else answer, plain) as generator:
        figures = generator.run_open(RATE, {"a": 1}, 0.2)
        again = generator.run_closed(2, {"a": 1}, 0.05)
    assert figures.failures == {failure: 10}
    assert len(figures.kinds["a"].latencies) == 10
    assert set(again.failures) <= {failure}


def test_refused_request_is_sent_again_if_its_client_does() -> None:
    def request() -> Planned:
        return Planned("a", ask(), again=request)

    with load_on(lambda number: OK if number >= 3 else REFUSED, lambda: [request()]) as generator:
        figures = generator.run_open(1.0, {"a": 1}, 0.5)
    assert (figures.failures, len(figures.kinds["a"].latencies)) == ({"503": 3}, 1)


def test_requests_without_answer_connection_or_precondition_are_counted() -> None:
    never = threading.Event()

    def respond(_: int) -> bytes:
        never.wait(LIMIT_S)
        return b""

    numbers = itertools.count()
    with load_on(respond, lambda: plain() if next(numbers) else [], answer_s=0.2, connections=4) as generator:
        figures = generator.run_open(RATE, {"a": 1}, 0.1)
        never.set()
    assert figures.skipped == 1
    assert figures.failures["no answer"] >= 4  # of which a connection becomes free again
    assert figures.failures.total() == 9


def test_answers_while_the_machine_was_slow_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    samples = [Sample(number / 100, number / 100 + 0.001, 0.001) for number in range(1000)]
    samples[500:503] = [sample._replace(cpu_seconds=0.005) for sample in samples[500:503]]
    machine = MachineFigures(10.0, 0.5, slow_periods(samples))
    assert [(round(one.begin, 3), round(one.end, 3)) for one in machine.slow] == [(4.99, 5.031)]
    userinfo = KindFigures([0.001] * 999 + [0.3, 0.2, 0.1], counted_from=[0.0] * 999 + [4.9, 5.05, 5.08])
    assert userinfo.calm_latencies(machine) == [0.001] * 999 + [0.1]
    figures = Figures({"userinfo": userinfo}, seconds=10.0, machine=machine)
    print_report([Contest("a server", {"userinfo": 1}, 100.0, {90: figures})], [90], 10.0, 0.0, None)
    printed, _, calm = capsys.readouterr().out.partition("Without requests")
    assert "userinfo                     1.0 / 1.0 / 200" in printed
    assert "userinfo  1.0 / 1.0 / 1.0" in calm
    assert "slow machine, % of the time              0.4" in printed


def test_probe_samples_the_machine_until_it_is_stopped() -> None:
    with watched_machine() as machine:
        begin = time.thread_time()
        while time.thread_time() < begin + 0.1:
            pass
    assert machine.seconds >= 0.1
    assert 0 < machine.busy <= 1
    assert machine.slow_share <= 1.5  # periods include a margin before and after the samples


def test_report_names_what_is_missing_and_what_is_not_to_be_trusted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = Figures(seconds=10.0, lags=[0.02] * 100)
    figures.kinds["userinfo"].latencies = [0.001 * number for number in range(1, 1001)]
    figures.kinds["userinfo"].failures["503"] = 7
    contest = Contest("a server", {"userinfo": 3, "check": 1}, 100.0, {90: figures})
    print_report([contest], [90, 110], 10.0, 3.0, tmp_path / "figures.json")
    printed = capsys.readouterr().out
    rows = {line.split("  ")[0]: line.split() for line in printed.partition("Failures:")[0].splitlines()}
    assert rows["userinfo"] == ["userinfo", "500", "/", "990", "/", "999"]
    assert rows["check"] == ["check", "-", "/", "-", "/", "-"]
    assert rows["due per second"][-1] == "101"
    assert rows["answered per second"][-1] == "100"
    assert "503: 7" in printed
    for warning in (
        "Other programs used",
        "At 90 % the generator was late",
        "Left out, because the time was over: 110 %",
    ):
        assert warning in printed
    (stored,) = json.loads((tmp_path / "figures.json").read_text())
    assert stored["levels"]["90"]["kinds"]["userinfo"]["p99"] == 990
    assert level_seconds(12, 3, 5) * 18 < 12 * 60
    assert level_seconds(0.1, 3, 5) == 2.0


def test_growth_of_a_table_is_that_of_the_second_half() -> None:
    """A table is filled on the first days. Another one grows by a page and two rows a day, and has the same end."""

    def day(number: int) -> dict[str, TableSize]:
        filled, growing = 8192 * min(10, number * 4), 8192 * (number + 1)
        return {
            "filled": TableSize("filled", filled, 8192, min(10, number * 4), 0, number),
            "growing": TableSize("growing", growing, 8192, 2 * number, 1, number),
        }

    rows = {row["table"]: row for row in table_rows([day(number) for number in range(9)], failures=3)}
    assert (rows["filled"]["KiB more per day"], rows["filled"]["rows more per day"]) == (0.0, 0.0)
    assert (rows["growing"]["KiB more per day"], rows["growing"]["rows more per day"]) == (8.0, 2.0)
    assert rows["growing"]["autovacuum runs"] == 8
    assert rows["filled"]["note"] == "3 requests failed"
    assert list(rows) == ["filled", "growing"]


def test_every_kind_is_answered_by_the_service(dsn: str) -> None:
    with running_service(dsn, (), SSO_WORKERS="1", SSO_GSID_HEARTBEAT_S="1") as (server, target):
        load = whole_load("the service", server, target, prepared=10, sockets=3, answer_s=LIMIT_S)
        contest = load.contest
        assert until(lambda: load.capacity(0.1, warm_s=0.02) > 0)
        contest.capacity = 100.0
        kinds = {*ALL_SHARES, CLOSE, HEARTBEAT}

        def are_all_answered() -> bool:
            load.measure(50, 2.0)
            return all(contest.levels[50].kinds[kind].latencies for kind in kinds)

        answered = until(are_all_answered)
        load.generator.close()
    figures = contest.levels[50]
    assert answered, {kind: figures.kinds[kind] for kind in kinds if not figures.kinds[kind].latencies}
    assert figures.due(ALL_SHARES) == 100
    assert figures.kinds.keys() == kinds
    assert len(figures.lags) == sum(
        figures.kinds[kind].due - figures.kinds[kind].skipped for kind in kinds - {HEARTBEAT}
    )
