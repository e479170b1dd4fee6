"""Measures how the cost of requests grows with the number of users and with the number of open connections.

Each number of users has its own database and worker. They are measured in turns, so that other load on the machine
affects all of them alike. Users are chosen at random; they share one password, whose hash is copied. For connections,
userinfo is measured with a few users.
"""

import argparse
import itertools
import random
import resource
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from scripts.benchmarks.http_clients import BenchmarkError
from scripts.benchmarks.oauth_login import signed_in
from scripts.benchmarks.oauth_measure import Figures, Subject, figures, row
from scripts.benchmarks.oauth_service import USERS, service_subject
from scripts.benchmarks.oauth_target import Target
from scripts.benchmarks.oauth_work import Load, flow, refresh_of, userinfo, userinfo_of
from scripts.benchmarks.report import Steps, arguments, progress, show
from tests.kit import postgres

SLICE = 100_000  # users created by one statement
SIGNED_IN = 200  # users whose tokens are used
LOGINS = 10_000  # users who sign in, in turn
WARM_S = 1.0
SPARE_FILES = 500  # open files besides the connections
EACH_S = 1 / 500  # additional seconds per connection, so that each one is used several times
# Copies the password hash of the first user, who was created with `sso apply`.
_FILL = """
    INSERT INTO users (user_id, login, login_key, password_hash, nick)
    SELECT CAST(nextval('user_ids') AS text), name, name, first.password_hash, 'nick' || n
    FROM generate_series({begin}, {end}) AS n, CAST('u' || n || '@example.com' AS text) AS name,
        (SELECT password_hash FROM users WHERE login_key = 'u0@example.com') AS first
"""


def fill(dsn: str, users: int) -> None:
    """Creates users up to this number."""
    for begin in range(USERS, users, SLICE):
        progress(f"{begin:,} of {users:,} users …")
        postgres.execute(dsn, _FILL.format(begin=begin, end=min(begin + SLICE, users) - 1))
    postgres.execute(dsn, "VACUUM (ANALYZE) users")


def with_random_users(target: Target, users: int) -> Target:
    """Returns the target with random users, none of them twice in a row."""
    numbers = random.sample(range(users), min(users, LOGINS))
    return replace(target, users=[f"u{number}@example.com" for number in numbers])


def by_users(database: postgres.Postgres, counts: Sequence[int], options: argparse.Namespace) -> list[dict[str, Any]]:
    found: dict[tuple[str, int], list[Figures]] = {}
    with ExitStack() as stack:
        progress("starting …")
        subjects: dict[int, Subject] = {}
        for count in counts:
            dsn = database.fresh()
            subjects[count] = stack.enter_context(service_subject(dsn, database.pid))
            fill(dsn, count)
        steps = Steps(3 * len(counts) * (options.rounds + 1))
        for turn, (count, subject) in itertools.product(range(options.rounds + 1), subjects.items()):
            seconds = options.seconds if turn else WARM_S
            target = with_random_users(subject.target, count)
            people = signed_in(target, SIGNED_IN)
            load: dict[str, Load] = {
                "userinfo": userinfo_of(people, target, options.parallel, seconds),
                "refresh": refresh_of(people, target, options.parallel, seconds),
                "flow": flow(target, options.parallel, seconds),
            }
            for work, one in load.items():
                steps.next(f"{count:,} users, {work}, {f'round {turn}' if turn else 'warming up'}")
                if turn:
                    found.setdefault((work, count), []).append(figures(subject, one))
                else:
                    one()  # warms up
    works = dict.fromkeys(work for work, _ in found)
    return [
        {"users": count, "connections": options.parallel} | row(work, found[work, count])
        for work in works
        for count in counts
    ]


def by_connections(
    database: postgres.Postgres, counts: Sequence[int], options: argparse.Namespace
) -> list[dict[str, Any]]:
    allowed = may_open(max(counts) + SPARE_FILES) - SPARE_FILES
    found: dict[int, list[Figures]] = {count: [] for count in counts}
    steps = Steps(len(counts) * options.rounds)
    with service_subject(database.fresh(), database.pid) as subject:
        userinfo(subject.target, 32, WARM_S)()
        for turn, count in itertools.product(range(options.rounds), counts):
            steps.next(f"round {turn + 1}, {count:,} connections")
            if count <= allowed:
                load = userinfo(subject.target, count, options.seconds + count * EACH_S)
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
    """Raises the limit of open files, which wrk inherits, and returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < files:
        soft = min(files, hard) if hard != resource.RLIM_INFINITY else files
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rounds", type=int, default=3, help="number of measurements")
    parser.add_argument("--parallel", type=int, default=32, help="connections while the number of users grows")
    parser.add_argument(
        "--users",
        type=numbers,
        default="1000,10000,100000,1000000",
        help="numbers to measure, separated by commas; empty: none",
    )
    parser.add_argument(
        "--connections",
        type=numbers,
        default="10,100,1000,10000",
        help="numbers to measure, separated by commas; empty: none",
    )
    options = parser.parse_args()
    if options.users and min(options.users) < SIGNED_IN:
        raise BenchmarkError(f"there must be at least {SIGNED_IN} users")
    rows: list[dict[str, Any]] = []
    with postgres.running() as database:
        rows += by_users(database, options.users, options) if options.users else []
        rows += by_connections(database, options.connections, options) if options.connections else []
    show(rows, options.out)


if __name__ == "__main__":
    main()
