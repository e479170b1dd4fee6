"""Measures a replica: how long it takes to start, from the service and from its disk, its memory, and its checks.

A tenth of the users have roles of the application, and another tenth has a tag that a condition names. The service has
two workers and its own PostgreSQL, on the machine of the replica, which runs in the process of the benchmark.
"""

import argparse
import gc
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from scripts.benchmarks.report import progress
from sso.perm.replica.answers import CHECK
from sso.replica.replica import Replica
from tests.kit import postgres
from tests.kit.server import QUICK, running
from tests.perm.endpoints.conftest import Studio

SLICE = 100_000
FIRST_USER = 10_000_000
RULES = 20  # of each role
ASKED = 200_000  # different users, in turn
_QUICK = "SET session_replication_role = replica; SET synchronous_commit = off;"
_USERS = """INSERT INTO users (user_id, login, login_key, password_hash, nick, tags)
    SELECT CAST({first} + n AS text), name, name, '', 'nick',
        CASE WHEN n % 10 = 1 THEN ARRAY['vip'] ELSE CAST(ARRAY[] AS text[]) END
    FROM generate_series({begin}, {end}) AS n, CAST('r' || n || '@example.com' AS text) AS name"""
_ROLES = """INSERT INTO role_assignments (user_id, application_id, name, position)
    SELECT CAST({first} + n AS text), {application}, 'role' || (n / 10) % {roles}, 0
    FROM generate_series({begin}, {end}) AS n WHERE n % 10 = 0"""


def fill(dsn: str, application: int, users: int, roles: int) -> None:
    for begin in range(0, users, SLICE):
        progress(f"{begin:,} of {users:,} users …")
        values = {"begin": begin, "end": min(begin + SLICE, users) - 1, "first": FIRST_USER}
        postgres.execute(dsn, _QUICK + _USERS.format(**values))
        postgres.execute(dsn, _QUICK + _ROLES.format(**values, application=application, roles=roles))
    postgres.execute(dsn, "VACUUM (ANALYZE) users, role_assignments")


def resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def measure(options: argparse.Namespace) -> dict[str, Any]:
    with postgres.running() as database, tempfile.TemporaryDirectory() as folder:
        settings = QUICK | {"SSO_DATABASE_URL": database.fresh(), "SSO_WORKERS": "2", "SSO_RATE_ADMIN": "0"}
        with running(Path(folder), **settings) as server, server.client() as client:
            studio = Studio(server, client)
            application = studio.application()
            secret = "the secret of the replica of the benchmark"
            fields = {"profile": "oidc", "grant_types": ["client_credentials"], "application_id": application}
            rules = {f"rule{number}": {"value": True} for number in range(RULES)}
            roles = [{"name": f"role{number}", "meta": {"private_data": rules}} for number in range(options.roles)]
            roles[0]["condition"] = {"tag": "vip"}
            server.apply(
                {
                    "clients": [{"client_id": "replica", "client_secret": secret, **fields}],
                    "roles": {str(application): roles},
                }
            )
            fill(settings["SSO_DATABASE_URL"], application, options.users, options.roles)
            arguments = {
                "server": server.base_url,
                "client_id": "replica",
                "client_secret": secret,
                "max_stale_s": 3600,
            }
            return run(application, {**arguments, "data_dir": Path(folder) / "copy"}, options)


def run(application: int, arguments: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    before, found = resident_bytes(), {}
    for name in ("service", "disk"):
        progress(f"starting from the {name} …")
        started, used_before = time.monotonic(), time.process_time()
        with Replica(application, **arguments) as replica:
            assert replica.wait_until_ready(3600)
            found[f"start_from_{name}_s"] = round(time.monotonic() - started, 1)
            found[f"start_from_{name}_cpu_s"] = round(time.process_time() - used_before, 1)
            if name == "service":
                users = len(replica)
                used = resident_bytes() - before
                found |= {"users": users, "memory_mib": used >> 20, "bytes_per_user": round(used / users)}
                found |= checks(replica, options)
    size = (arguments["data_dir"] / "replica.sso").stat().st_size
    return {**found, "roles": options.roles, "disk_mib": round(size / 2**20, 1)}


def checks(replica: Replica, options: argparse.Namespace) -> dict[str, Any]:
    """One check after another, of different users; and requests with 100 questions."""
    ids = [str(FIRST_USER + random.randrange(options.users)) for _ in range(ASKED)]
    for user_id in ids[:1000]:
        replica.check(user_id, "rule1")
    count, started = 0, time.process_time()
    while time.process_time() - started < options.seconds:
        replica.check(ids[count % ASKED], "rule1")
        count += 1
    single = count / (time.process_time() - started)
    questions = {"data": {"questions": [{"user_id": user_id, "rule": "rule1"} for user_id in ids[:100]]}}
    count, started = 0, time.process_time()
    while time.process_time() - started < options.seconds:
        replica.answer(CHECK, questions)
        count += 100
    return {"checks_per_cpu_second": round(single), "in_hundreds": round(count / (time.process_time() - started))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--roles", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=3)
    for name, value in measure(parser.parse_args()).items():
        print(f"{name:24} {value:>14,}")


if __name__ == "__main__":
    main()
