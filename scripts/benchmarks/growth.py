"""How cost grows: with the users there are, and with the connections that are open.

For each number of users there is a database of its own, and a worker, and they are measured by turns: what else the
machine does is the same for all. Users are picked at random over the whole range; they share one password, whose hash
is copied. With connections, userinfo is measured, for a few users.
"""

import argparse
import itertools
import random
import resource
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from scripts.benchmarks.http_clients import Unable
from scripts.benchmarks.oauth_login import signed_in
from scripts.benchmarks.oauth_measure import Figures, Subject, figures, row
from scripts.benchmarks.oauth_ours import USERS, our_own
from scripts.benchmarks.oauth_target import Target
from scripts.benchmarks.oauth_work import Load, flow, refresh_of, userinfo, userinfo_of
from scripts.benchmarks.report import arguments, progress, show
from tests.kit import postgres

SLICE = 100_000  # users that are made at once
SIGNED_IN = 200  # whose tokens are used
LOGINS = 10_000  # those who sign in are the next of so many
WARM_S = 1.0
SPARE_FILES = 500  # beside the connections
EACH_S = 1 / 500  # a connection more takes this much longer: each shall be heard several times
# With the first of those that were added by the ordinary way; that one's hash is everybody's.
_FILL = """
    INSERT INTO users (user_id, login, login_key, password_hash, nick)
    SELECT CAST(nextval('user_ids') AS text), name, name, first.password_hash, 'nick' || n
    FROM generate_series({begin}, {end}) AS n, CAST('u' || n || '@example.com' AS text) AS name,
        (SELECT password_hash FROM users WHERE login_key = 'u0@example.com') AS first
"""


def fill(dsn: str, users: int) -> None:
    """Up to so many, in the order of their numbers."""
    for begin in range(USERS, users, SLICE):
        progress(f"{begin:,} of {users:,} users …")
        postgres.execute(dsn, _FILL.format(begin=begin, end=min(begin + SLICE, users) - 1))
    postgres.execute(dsn, "VACUUM (ANALYZE) users")


def somebody(target: Target, users: int) -> Target:
    """Users at random, nobody twice in a row."""
    numbers = random.sample(range(users), min(users, LOGINS))
    return replace(target, users=[f"u{number}@example.com" for number in numbers])


def by_users(database: postgres.Postgres, counts: Sequence[int], given: argparse.Namespace) -> list[dict[str, Any]]:
    found: dict[tuple[str, int], list[Figures]] = {}
    with ExitStack() as stack:
        subjects: dict[int, Subject] = {}
        for count in counts:
            dsn = database.fresh()
            subjects[count] = stack.enter_context(our_own(dsn, database.pid))
            fill(dsn, count)
        for turn, (count, subject) in itertools.product(range(given.rounds + 1), subjects.items()):
            seconds = given.seconds if turn else WARM_S
            target = somebody(subject.target, count)
            people = signed_in(target, SIGNED_IN)
            load: dict[str, Load] = {
                "userinfo": userinfo_of(people, target, given.parallel, seconds),
                "refresh": refresh_of(people, target, given.parallel, seconds),
                "flow": flow(target, given.parallel, seconds),
            }
            for work, one in load.items():
                progress(f"round {turn} of {given.rounds}, {count:,} users, {work} …")
                if turn:
                    found.setdefault((work, count), []).append(figures(subject, one))
                else:
                    one()  # warms up
    works = dict.fromkeys(work for work, _ in found)
    return [
        {"users": count, "connections": given.parallel} | row(work, found[work, count])
        for work in works
        for count in counts
    ]


def by_connections(
    database: postgres.Postgres, counts: Sequence[int], given: argparse.Namespace
) -> list[dict[str, Any]]:
    allowed = may_open(max(counts) + SPARE_FILES) - SPARE_FILES
    found: dict[int, list[Figures]] = {count: [] for count in counts}
    with our_own(database.fresh(), database.pid) as subject:
        userinfo(subject.target, 32, WARM_S)()
        for turn, count in itertools.product(range(given.rounds), counts):
            if count <= allowed:
                progress(f"round {turn + 1} of {given.rounds}, {count:,} connections …")
                load = userinfo(subject.target, count, given.seconds + count * EACH_S)
                found[count].append(figures(subject, load))
    return [
        {"users": USERS, "connections": count}
        | (
            row("userinfo", found[count])
            if found[count]
            else {"work": "userinfo", "note": f"open files are limited to {allowed:,}"}
        )
        for count in counts
    ]


def may_open(files: int) -> int:
    """How many files we may have open, and wrk, which inherits that; it is raised as far as it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < files:
        soft = min(files, hard) if hard != resource.RLIM_INFINITY else files
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured")
    parser.add_argument("--parallel", type=int, default=32, help="connections, where they are not what grows")
    parser.add_argument("--users", type=numbers, default="1000,10000,100000,1000000", help="empty: not these")
    parser.add_argument("--connections", type=numbers, default="10,100,1000,10000", help="empty: not these")
    given = parser.parse_args()
    if given.users and min(given.users) < SIGNED_IN:
        raise Unable(f"there must be at least {SIGNED_IN} users")
    rows: list[dict[str, Any]] = []
    with postgres.running() as database:
        rows += by_users(database, given.users, given) if given.users else []
        rows += by_connections(database, given.connections, given) if given.connections else []
    show(rows, given.out)


if __name__ == "__main__":
    main()
