"""Measures sign-ins of guests, POST /proxy/api/guest with the key of a device, next to POST /proxy/api/login with the
cheapest password hash. Both run in turns against one service, and the last column is the ratio of the two.

The requests of guests are signed before they are sent, so that the cost of the client is that of any other request.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import httpx
import orjson

from scripts.benchmarks.http_clients import RequestFailed, Scenario, Tally, request, run
from scripts.benchmarks.login import HASHES, figures, operation
from scripts.benchmarks.oauth_service import running_service
from scripts.benchmarks.oauth_target import Target
from scripts.benchmarks.report import Steps, arguments, cpu_seconds, process_tree, show
from tests.kit import postgres
from tests.kit.guest import GUEST, Device

SETTINGS = {**HASHES["cheapest"], "SSO_GUESTS": "on", "SSO_RATE_GUEST": "0"}
DEVICES = 64
PER_SECOND = 3000  # requests that are signed ahead for each second of a round


def guest(prepared: Iterator[bytes]) -> Scenario:
    answer = yield next(prepared)
    if answer.status != 200 or orjson.loads(answer.body).get("status") != "OK":
        raise RequestFailed(f"{answer.status} {answer.body[:200]!r}")


def signed(devices: list[Device], count: int) -> Iterator[bytes]:
    """Requests with the keys in turns, each with a nonce of its own."""
    requests = []
    for device in itertools.islice(itertools.cycle(devices), count):
        body = device.body()
        requests.append(request("POST", GUEST, device.headers(body), body))
    return iter(requests)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=32)
    options = parser.parse_args()
    devices = [Device() for _ in range(DEVICES)]
    tallies: dict[str, list[tuple[Tally, float, float]]] = {"login": [], "guest": []}
    steps = Steps(2 * (options.rounds + 1))
    with postgres.running() as database, running_service(database.fresh(), **SETTINGS) as (server, target):
        with httpx.Client(base_url=target.base_url, timeout=60) as client:
            for device in devices:
                device.sign_in(client)  # creates the guest
        users = itertools.cycle(target.users)
        for turn in range(options.rounds + 1):
            for way, results in tallies.items():
                steps.next(f"{way}, {f'round {turn}' if turn else 'warming up'}")
                prepared = signed(devices, int(options.seconds * PER_SECOND) if way == "guest" else 0)
                workers, databases = server.workers(), process_tree(database.pid())
                before, database_before = cpu_seconds(workers), cpu_seconds(databases)
                tally = run(
                    target.base_url,
                    options.connections,
                    options.seconds,
                    lambda _, way=way, prepared=prepared: scenario(way, target, users, prepared),  # type: ignore[misc]
                )
                results.append((tally, cpu_seconds(workers) - before, cpu_seconds(databases) - database_before))
    rows: list[dict[str, Any]] = [{"what": way, **figures(results[1:])} for way, results in tallies.items()]
    for row in rows:
        row["ratio"] = row["per second"] / rows[0]["per second"]
    show(rows, options.out)


def scenario(way: str, target: Target, users: Iterator[str], prepared: Iterator[bytes]) -> Scenario:
    return guest(prepared) if way == "guest" else operation(target, next(users))


if __name__ == "__main__":
    main()
