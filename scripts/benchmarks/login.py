"""Measures logins: POST /proxy/api/login and the sign-in form of a browser, with the default password hash, which is
slow on purpose, and with the cheapest hash, which shows the cost of everything else.
"""

import itertools
import statistics
from typing import Any
from urllib.parse import urljoin

import orjson

from scripts.benchmarks.http_clients import CookieJar, RequestFailed, Scenario, Tally, get, post, post_json, run
from scripts.benchmarks.oauth_login import filled
from scripts.benchmarks.oauth_service import running_service
from scripts.benchmarks.oauth_target import Target
from scripts.benchmarks.report import Steps, arguments, cpu_seconds, process_tree, show
from tests.kit import postgres

HASHES = {
    "default": {"SSO_ARGON2_TIME": "2", "SSO_ARGON2_KIB": "19456"},
    "cheapest": {"SSO_ARGON2_TIME": "1", "SSO_ARGON2_KIB": "8"},
}


def operation(target: Target, user: str) -> Scenario:
    answer = yield post_json(
        "/proxy/api/login", orjson.dumps({"login": user, "password": target.password, "factor": "bench"})
    )
    if answer.status != 200 or orjson.loads(answer.body).get("status") != "OK":
        raise RequestFailed(f"{answer.status} {answer.body[:200]!r}")


def browser(target: Target, user: str) -> Scenario:
    """Requests the form and submits it."""
    page = yield get("/login")
    jar = CookieJar()
    jar.take(page)
    path, fields = filled(page, "/login", user, target.password)
    answer = yield post(urljoin("/login", path), fields, jar.headers())
    if answer.status != 303:
        raise RequestFailed(f"{answer.status} at {path}")


WAYS = {"operation": operation, "browser": browser}


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=32)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    steps = Steps(len(HASHES) * len(WAYS) * (options.rounds + 1))
    with postgres.running() as database:
        for (kind, settings), (way, scenario) in itertools.product(HASHES.items(), WAYS.items()):
            with running_service(database.fresh(), **settings) as (server, target):
                turns = itertools.cycle(target.users)
                tallies: list[tuple[Tally, float, float]] = []
                for turn in range(options.rounds + 1):
                    steps.next(f"{way}, {kind} hash, {f'round {turn}' if turn else 'warming up'}")
                    workers, databases = server.workers(), process_tree(database.pid())
                    before, database_before = cpu_seconds(workers), cpu_seconds(databases)
                    tally = run(
                        target.base_url,
                        options.connections,
                        options.seconds,
                        lambda _, scenario=scenario, target=target, turns=turns: scenario(target, next(turns)),  # type: ignore[misc]
                    )
                    used = cpu_seconds(workers) - before
                    tallies.append((tally, used, cpu_seconds(databases) - database_before))
            rows.append({"what": way, "hash": kind, **figures(tallies[1:])})  # the first warms up
    show(rows, options.out)


def figures(tallies: list[tuple[Tally, float, float]]) -> dict[str, Any]:
    return {
        "per second": statistics.median(len(tally.took) / tally.seconds for tally, _, _ in tallies),
        "CPU us": statistics.median(used / len(tally.took) * 1e6 for tally, used, _ in tallies),
        "database us": statistics.median(used / len(tally.took) * 1e6 for tally, _, used in tallies),
        "p50 ms": statistics.median(tally.quantile(0.5) for tally, _, _ in tallies) * 1e3,
        "p99 ms": statistics.median(tally.quantile(0.99) for tally, _, _ in tallies) * 1e3,
        "failures": sum(len(tally.failures) for tally, _, _ in tallies),
    }


if __name__ == "__main__":
    main()
