"""Looks for memory leaks: runs a steady load of every kind for some minutes and records the memory of the worker.

Games register, poll, log in or give up; a web site refreshes tokens and requests userinfo. The memory at the end should
equal that after the first minutes. Private memory grows for longer, because the worker copies pages of its parent
process when it writes to them.
"""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import trio

from scripts.benchmarks.report import arguments, cpu_seconds, private_kb, progress, resident_mb, show
from sso.accounts.user_store import UserStore
from sso.bus.wiring import build_bus
from sso.db.cleanup import TABLES
from sso.db.database import Database
from sso.db.statement import Statement
from sso.gsid.session_store import GameSessionStore
from tests.kit import postgres
from tests.kit.oauth import new_browser, new_site
from tests.kit.server import QUICK, Server, running

EVERY_S = 15.0
MIN_MINUTES = 1  # growth is computed from the rows of the second half
PAUSE_S = 0.02  # between two requests of each load: about half of the capacity of one worker
LIGHT_PAUSE_S = 0.1
MAX_BUSY_MINUTES = 30
GAME = "/proxy/api/gameSession"
# Tokens and sessions of games expire soon, so that their tables reach their final size in a run of an hour.
SHORT_LIVES = {"SSO_ACCESS_TTL_S": "300", "SSO_GSID_MAX_S": "120"}
_SIZES = Statement(
    f"""SELECT pg_database_size(current_database()) AS "database MB",
        sum(pg_total_relation_size(relid)) FILTER (WHERE relname = ANY (CAST('{{{",".join(TABLES)}}}' AS text[])))
            AS "expiring rows MB"
    FROM pg_stat_user_tables"""
)


class Load:
    def __init__(self, server: Server, database: Database, pause_s: float) -> None:
        """``pause_s`` is the pause between two requests of each kind."""
        self.requests = 0
        self.durations: list[float] = []  # of requests that are not held, since they were read last
        self._pause_s = pause_s
        self._database = database
        self._bus = build_bus(database)
        self._site = new_site(server)
        self._browser = new_browser(server).sign_in()
        self._tokens = self._site.tokens(self._browser)
        self._http = httpx.AsyncClient(base_url=server.base_url, timeout=40)

    async def run(self) -> None:
        async with self._http, trio.open_nursery() as nursery:
            for work in (self._site_requests_userinfo, self._site_refreshes, self._games_log_in, self._games_give_up):
                nursery.start_soon(self._repeat, work)

    async def _repeat(self, work: Any) -> None:
        while True:
            await work()
            await trio.sleep(self._pause_s)

    async def _ask(self, method: str, path: str, **options: Any) -> Any:
        began = time.perf_counter()
        answer = await self._http.request(method, path, **options)
        self.durations.append(time.perf_counter() - began)
        assert answer.status_code == 200, answer.text
        self.requests += 1
        return answer.json()

    async def _site_requests_userinfo(self) -> None:
        bearer = {"Authorization": f"Bearer {self._tokens['access_token']}"}
        await self._ask("GET", "/proxy/oauth/userinfo", headers=bearer)
        await self._ask("GET", "/proxy/oauth/keys")

    async def _site_refreshes(self) -> None:
        fields = {"grant_type": "refresh_token", "redirect_uri": self._site.redirect_uri}
        sent = fields | {"refresh_token": self._tokens["refresh_token"]}
        self._tokens = await self._ask("POST", "/proxy/oauth/token", json=sent, headers=self._site.bearer())

    async def _games_log_in(self) -> None:
        game = await self._ask("POST", f"{GAME}/getGsid", json={"factor": "soak"})
        user = await UserStore(self._database).get_by_login(self._browser.login)
        assert user is not None
        assert await GameSessionStore(self._database, self._bus, 1, 1).confirm(game["gsid"], user)
        assert (await self._ask("POST", f"{GAME}/getGsidResult", json={"gsid": game["gsid"]}))["status"] == "OK"

    async def _games_give_up(self) -> None:
        game = await self._ask("POST", f"{GAME}/getGsid", json={})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._disconnect_while_polling, game["gsid"])
        await self._ask("POST", f"{GAME}/closeGsid", json={"gsid": game["gsid"], "status": "Error"})

    async def _disconnect_while_polling(self, gsid: str) -> None:
        with trio.move_on_after(0.05):
            await self._http.post(f"{GAME}/getGsidResult", json={"gsid": gsid})


async def soak(server: Server, dsn: str, minutes: float) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    workers = server.workers()
    async with Database.open(dsn, 2) as database, trio.open_nursery() as nursery:
        pause_s = PAUSE_S if minutes <= MAX_BUSY_MINUTES else LIGHT_PAUSE_S
        load = await trio.to_thread.run_sync(Load, server, database, pause_s)
        nursery.start_soon(load.run)
        began = time.monotonic()
        while (passed := time.monotonic() - began) < minutes * 60:
            latest = f": {rows[-1]['RSS MB']:.1f} MB, {rows[-1]['per second']:.0f} requests a second" if rows else " …"
            progress(f"{passed:.0f} of {minutes * 60:.0f} s{latest}")
            requests, cpu = load.requests, cpu_seconds(workers)
            load.durations.clear()
            await trio.sleep(EVERY_S)
            done = load.requests - requests
            sizes = await database.row(_SIZES)
            assert sizes
            rows.append(
                {
                    "seconds": int(passed + EVERY_S),
                    "RSS MB": resident_mb(workers),
                    "private MB": private_kb(workers) / 1024,
                    "descriptors": descriptors(workers[0]),
                    "per second": done / EVERY_S,
                    "p99 ms": statistics.quantiles(load.durations, n=100)[-1] * 1000 if done > 1 else 0.0,
                    "CPU us": (cpu_seconds(workers) - cpu) / max(1, done) * 1e6,
                    **{name: float(size) / 2**20 for name, size in sizes.items()},
                }
            )
        nursery.cancel_scope.cancel()
    return rows


def descriptors(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def growth(rows: list[dict[str, Any]], column: str = "RSS MB") -> float:
    """Returns the change per hour over the second half, because caches fill during the first."""
    half = rows[len(rows) // 2 :]
    line = statistics.linear_regression([row["seconds"] for row in half], [row[column] for row in half])
    return line.slope * 3600


def measure(minutes: float) -> list[dict[str, Any]]:
    """Runs a server under load. Returns a row every few seconds."""
    progress("starting …")
    with postgres.running(autovacuum_naptime="1min") as database, tempfile.TemporaryDirectory() as folder:
        dsn = database.fresh()
        settings = QUICK | SHORT_LIVES | {"SSO_DATABASE_URL": dsn, "SSO_RATE_GETGSID": "0", "SSO_LOG_LEVEL": "error"}
        with running(Path(folder), **settings) as server:
            return trio.run(soak, server, dsn, minutes)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--minutes", type=float, default=10.0, help="duration")
    options = parser.parse_args()
    if options.minutes < MIN_MINUTES:
        parser.error(f"--minutes: must be at least {MIN_MINUTES}")
    rows = measure(options.minutes)
    show(rows, options.out)
    print(f"growth over the second half: {growth(rows):.1f} MB an hour")


if __name__ == "__main__":
    main()
