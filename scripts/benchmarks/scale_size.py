"""The cost of requests and console pages with a large database, next to a small one."""

import argparse
import itertools
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.benchmarks.console import filled_database
from scripts.benchmarks.console import measure as measure_page
from scripts.benchmarks.console_data import Sizes
from scripts.benchmarks.growth import SIGNED_IN, with_random_users
from scripts.benchmarks.gsid import Game
from scripts.benchmarks.http_clients import Tally, run
from scripts.benchmarks.latency_kinds import request_once
from scripts.benchmarks.memory_growth import hold
from scripts.benchmarks.oauth_login import signed_in
from scripts.benchmarks.oauth_measure import Figures, Subject, figures, row
from scripts.benchmarks.oauth_service import LOGINS, running_service
from scripts.benchmarks.oauth_target import Target, address_of
from scripts.benchmarks.oauth_work import Load, flow, refresh_of, userinfo_of
from scripts.benchmarks.perm_work import build_target, check
from scripts.benchmarks.report import Steps, process_tree
from tests.console.conftest import ConsoleBrowser
from tests.kit import postgres

SMALL = Sizes(users=1000, applications=10, audit=1000)
USERS_PER_APPLICATION = 10_000
MASTER_KEY = b64encode(bytes(32)).decode()  # always the same: a database that is kept has secrets of the run before
CONNECTIONS = 32
POLLS = 1000
PAGE_TIMES = 10
PAGES = (
    "/console", "/console/users", "/console/users?search=u99", "/console/users?search=example.com&sort=reg_time",
    "/console/audit", "/console/audit?actor=10000007", "/console/game-sessions", "/console/applications",
)  # fmt: skip
# The users who sign in get the password of the first one.
_PASSWORDS = """
    UPDATE users SET password_hash = first.password_hash, sign_in_notices = false, first_sign_in = now()
    FROM (SELECT password_hash FROM users WHERE login_key = '{first}') AS first
    WHERE login_key = ANY (CAST('{{{logins}}}' AS text[]))
"""
# An earlier run with the same database has created applications of these names.
_RENAME_EARLIER = "UPDATE applications SET name = name || ' ' || application_id WHERE name LIKE 'Application %'"


@dataclass(frozen=True)
class Sized:
    """A service with a database of a certain size."""

    users: int
    dsn: str
    subject: Subject
    target: Target  # with users out of all
    check: bytes
    browser: ConsoleBrowser
    database_pid: int

    def loads(self, seconds: float) -> dict[str, Load]:
        people = signed_in(self.target, SIGNED_IN)
        return {
            "userinfo": userinfo_of(people, self.target, CONNECTIONS, seconds),
            "refresh": refresh_of(people, self.target, CONNECTIONS, seconds),
            "whole login": flow(self.target, CONNECTIONS, seconds),
            "check": lambda: run(self.target.base_url, CONNECTIONS, seconds, lambda _: request_once(self.check)),
            "held poll": self._hold_polls,
        }

    def _hold_polls(self) -> Tally:
        game, began = Game(address_of(self.target)), time.perf_counter()
        try:
            hold(game, self.dsn, POLLS)
        finally:
            game.close()
        seconds = time.perf_counter() - began
        return Tally(seconds, took=[seconds / POLLS] * POLLS)  # on average; the CPU time is what counts


def rows(options: argparse.Namespace) -> list[dict[str, Any]]:
    sizes = (
        SMALL,
        Sizes(options.users, max(SMALL.applications, options.users // USERS_PER_APPLICATION), options.audit),
    )
    found: dict[tuple[str, int], list[Figures]] = {}
    pages: list[dict[str, Any]] = []
    with ExitStack() as stack:
        all_sized = [
            stack.enter_context(_sized(size, keep)) for size, keep in zip(sizes, (None, options.keep), strict=True)
        ]
        steps = Steps(len(sizes) * (options.rounds + 1))
        for turn, sized in itertools.product(range(options.rounds), all_sized):
            steps.next(f"{sized.users:,} users, round {turn + 1}")
            for work, load in sized.loads(options.seconds).items():
                found.setdefault((work, sized.users), []).append(figures(sized.subject, load))
        for sized in all_sized:
            steps.next(f"{sized.users:,} users, pages")
            pages += [_page_row(sized, path) for path in PAGES]
    works = dict.fromkeys(work for work, _ in found)
    return [
        *({"users": size.users, **row(work, found[work, size.users])} for work in works for size in sizes),
        *sorted(pages, key=lambda page: PAGES.index(page["work"])),
    ]


def _page_row(sized: Sized, path: str) -> dict[str, Any]:
    """Returns the row of a page, with the columns of the other kinds of work."""
    page = measure_page(sized.browser, sized.database_pid, path, PAGE_TIMES)
    cost = {"CPU us": page["CPU ms"] * 1e3, "database us": page["database ms"] * 1e3, "p50 ms": page["ms"]}
    return {"users": sized.users, "work": path, **cost, "failures": PAGE_TIMES * (page["status"] != 200)}


@contextmanager
def _sized(sizes: Sizes, keep: Path | None) -> Iterator[Sized]:
    with (
        filled_database(keep, sizes) as (dsn, database_pid, _),
        running_service(dsn, SSO_WORKERS="1", SSO_RATE_ADMIN="0", SSO_SECRET_KEY=MASTER_KEY) as (server, target),
        server.client() as client,
    ):
        sampled = with_random_users(target, sizes.users)
        postgres.execute(dsn, _PASSWORDS.format(first=LOGINS[0], logins=",".join(sampled.users)))
        assert server.process is not None
        supervisor = server.process.pid
        subject = Subject(sampled, lambda: process_tree(supervisor), lambda: process_tree(database_pid))
        postgres.execute(dsn, _RENAME_EARLIER)
        permissions = build_target(server, client)
        with ConsoleBrowser(server, permissions.studio.root) as browser:
            yield Sized(sizes.users, dsn, subject, sampled, check(permissions, 1), browser, database_pid)
