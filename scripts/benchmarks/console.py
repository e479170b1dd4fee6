"""Measures every page of the console as root, with a million users, 1,000 applications and 10 million audit entries.

A page is opened several times, one request at a time. "CPU ms" is the time that the worker computes, "database ms" that
PostgreSQL does: a page is slow if their sum is above 50 ms. "ms" is the median of the time that the client waits, which
other programs of the machine prolong; "first ms" is that of the first request, before caches are filled. Filling the
database takes some minutes and 8 GB; with ``--keep FOLDER`` the next run uses it again.
"""

import re
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trio

from scripts.benchmarks.console_data import FIRST_USER, Sizes, fill, is_filled
from scripts.benchmarks.perm_work import SETTINGS
from scripts.benchmarks.report import Steps, arguments, cpu_seconds, process_tree, progress, show
from sso.app import build_app
from sso.config import load
from sso.db import embedded
from sso.db.migrate import migrate
from sso.health import Health
from sso.services import open_services
from sso.telemetry.metrics import Metrics
from tests.console.conftest import ConsoleBrowser
from tests.kit.server import SSO, Server, running
from tests.perm.endpoints.conftest import Studio

LIMIT_MS = 50.0
USER = str(FIRST_USER + 51 * 997)  # a member of project1
EXAMPLES = {
    "user_id": USER,
    "application_id": "10",
    "project_id": "project1",
    "group_id": "1f5617a48c3aacc9b0625902",  # the first of that project
    "client_id": "client1",
    "name": "role1",
    "framework": "flask",
    "entry_id": "1234567",
    "unknown": "unknown",
}
# Pages whose time depends on the query: searches, filters, later pages of lists.
QUERIES = {
    "/console": ("days=1", "days=30"),
    "/console/users": (
        "search=u99", "search=nick4", "search=unknown", f"search={USER}", "after=u5%40example.com",
        "search=example.com",
        "search=999%40exam", "search=ick7777", "search=u9", "sort=nick", "sort=reg_time&order=desc",
        "search=example.com&sort=reg_time", "search=ick77&sort=nick&order=desc", "status=disabled", "status=active",
        "two_step=1", "verified=1&search=example.com", "administrator=1",
    ),
    "/console/search": ("q=example.com", "q=unknown", "q=game+9", "q=1234567", "q=u"),
    "/console/applications": ("search=Game", "search=ame+99", "search=unknown", "sort=project_id&order=desc"),
    "/console/clients": ("search=client9", "search=ite+77", "search=unknown", "sort=created"),
    "/console/audit": (
        "actor=10000007", f"target={USER}", "operation=user.save", f"target={USER}&operation=role.save",
        "since=2026-06-01&until=2026-06-02", "actor=unknown", "after=5000000",
    ),
    "/console/game-sessions": ("stage=opened", "stage=confirmed", "application_id=10", "address=198.51.100.7",
        f"user_id={USER}"),
    "/console/projects": ("search=project9", "search=ject+9", "search=unknown", "sort=created"),
    "/console/explorer": (
        f"user={USER}&application_id=10", f"user={USER}&application_id=10&compare=user&other_user=10000002",
        f"user={USER}&application_id=10&at={{hour_ago}}",
    ),
}  # fmt: skip


def console_paths(server: Server) -> list[str]:
    """Returns the paths of all pages of the console, without exports, which read a whole list."""

    async def read() -> list[str]:
        async with open_services(load(None, server.settings), server.settings["SSO_DATABASE_URL"]) as services:
            rules = build_app(services, Health(), Metrics()).url_map.iter_rules()
            pages = [rule.rule for rule in rules if "GET" in (rule.methods or ())]
            return sorted(path for path in pages if path.startswith("/console"))

    found = [rule for rule in trio.run(read) if not rule.endswith(".csv") and "export" not in rule]
    hour_ago = time.strftime("%Y-%m-%dT%H:%M", time.gmtime(time.time() - 3600))
    paths = []
    for rule in found:
        path = re.sub(r"<(?:[a-z]+:)?([a-z_]+)>", lambda match: EXAMPLES.get(match[1], match[0]), rule)
        queries = (query.format(hour_ago=hour_ago) for query in QUERIES.get(path, ()))
        paths += [path, *(f"{path}?{query}" for query in queries)]
    return paths


def measure(browser: ConsoleBrowser, database_pid: int, path: str, times: int) -> dict[str, Any]:
    if "<" in path:
        return {"page": path, "note": "no example for a part of the path"}
    first, status = _open(browser, path)
    workers = browser.server.workers()
    before, database_before = cpu_seconds(workers), _database_seconds(database_pid)
    took = [_open(browser, path)[0] for _ in range(times)]
    used, in_database = cpu_seconds(workers) - before, _database_seconds(database_pid) - database_before
    return {
        "page": path,
        "status": status,
        "first ms": first * 1e3,
        "ms": statistics.median(took) * 1e3,
        "slowest ms": max(took) * 1e3,
        "CPU ms": used / times * 1e3,
        "database ms": in_database / times * 1e3,
        "note": "slow" if (used + in_database) / times * 1e3 > LIMIT_MS else "",
    }


def _database_seconds(pid: int) -> float:
    """CPU time of PostgreSQL; that of its processes that have ended is missing."""
    return cpu_seconds(process_tree(pid))


def _open(browser: ConsoleBrowser, path: str) -> tuple[float, int]:
    started = time.perf_counter()
    status = browser.get(path).status_code
    return time.perf_counter() - started, status


@contextmanager
def own_database(keep: Path | None) -> Iterator[tuple[str, int, Path]]:
    """Yields the address of a migrated database, the process id of PostgreSQL, and a folder for the service."""
    with tempfile.TemporaryDirectory(prefix="sso-bench-") as temporary:
        folder = keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o711)  # as root, PostgreSQL runs under another account, which needs access
        server = embedded.join(folder)
        try:
            migrate(server.dsn())
            (folder / "service").mkdir(exist_ok=True)
            yield server.dsn(), server.pid() or 0, folder / "service"
        finally:
            server.close()


@contextmanager
def filled_database(keep: Path | None, sizes: Sizes) -> Iterator[tuple[str, int, Path]]:
    with own_database(keep) as (dsn, pid, folder):
        if not is_filled(dsn, sizes):
            fill(dsn, sizes)
        yield dsn, pid, folder


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--times", type=int, default=10, help="requests per page")
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--applications", type=int, default=1000)
    parser.add_argument("--audit", type=int, default=10_000_000, help="entries of the audit trail")
    parser.add_argument("--keep", type=Path, help="folder of the database, for the next run")
    parser.add_argument("--only", default="", help="measure only paths that contain this text")
    options = parser.parse_args()
    sizes = Sizes(options.users, options.applications, options.audit)
    with (
        filled_database(options.keep, sizes) as (dsn, pid, folder),
        running(folder, SSO, **{**SETTINGS, "SSO_DATABASE_URL": dsn, "SSO_RATE_ADMIN": "0"}) as server,
        server.client() as client,
    ):
        progress("signing in …")
        with ConsoleBrowser(server, Studio(server, client).root) as browser:
            paths = [path for path in console_paths(server) if options.only in path]
            steps = Steps(len(paths))
            rows = []
            for path in paths:
                steps.next(path)
                rows.append(measure(browser, pid, path, options.times))
    show(rows, options.out)


if __name__ == "__main__":
    main()
