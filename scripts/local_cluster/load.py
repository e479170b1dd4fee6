"""Uses the service through the proxy, and checks afterwards that it knows everything that it acknowledged.

Games log in, web sites redeem codes, refresh and revoke tokens, an administrator changes roles.
"""

import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import httpx
import trio

from scripts.local_cluster import administrator, cluster, processes, site
from scripts.local_cluster.administrator import LIMIT, LIMITED, Administrator
from scripts.local_cluster.clients import PASSWORD, Game, Player, game_http, login
from scripts.local_cluster.layout import BASE_URL, FOLDER, PROXY
from scripts.local_cluster.ledger import Ledger
from scripts.local_cluster.site import Site

# A user has at most 100 session tokens, and a login with its check creates four. The logins that have waited during an
# outage come at once. Among so many users, each has a few of them.
USERS = 100
READY = PROXY.folder / "load.ready"  # exists while logins are generated
DELIVERED = PROXY.folder / "delivered.json"  # number of logins by user
TOKENS_CHECKED = 15  # at the end, of each user. The service keeps 100, and each check creates two.
GIVE_UP_S = 90.0  # after the last login has begun
SITE_VISITS_S = 1.0  # between two
ROLE_SAVES_S = 1.0


@dataclass(frozen=True)
class Plan:
    seconds: float
    rate: float  # logins per second
    users: int = USERS
    confirm_after_s: float = 0.3  # on average; the poll is held meanwhile
    check_after_s: float = 45.0  # each login is checked after this time, and the last ones also at the end


def run(plan: Plan) -> None:
    """Creates the users, then runs this module where the clients are. Exits with 1 if something was lost."""
    prepare(plan.users)
    sys.exit(subprocess.run(command(plan), check=False).returncode)


def prepare(users: int) -> None:
    READY.unlink(missing_ok=True)
    DELIVERED.unlink(missing_ok=True)
    file = FOLDER / "load.json"
    file.write_text(json.dumps(document(users)))
    cluster.run_sso("apply", str(file))
    cluster.run_sso("role", "assign", administrator.LOGIN, "root", "--app", "1", "--yes")


def document(user_count: int = USERS) -> dict[str, Any]:
    """Returns the state document with the users and the site."""
    users = [{"login": login(user), "password": PASSWORD} for user in range(user_count)]
    users.append({"login": administrator.LOGIN, "password": PASSWORD})
    application = {"application_id": administrator.APPLICATION, "name": "Tanks"}
    return {"users": users, "clients": [site.CLIENT], "applications": [application]}


def command(plan: Plan) -> list[str]:
    program = (sys.executable, "-m", "scripts.local_cluster.load", json.dumps(asdict(plan)))
    return processes.command(PROXY, *program)


class Load:
    def __init__(self, http: httpx.AsyncClient, browser_url: str, ledger: Ledger, plan: Plan) -> None:
        self._ledger = ledger
        self._plan = plan
        self._game = Game(http, ledger, plan.confirm_after_s, plan.check_after_s)
        self._site = Site(http, ledger)
        self._administrator = Administrator(http, ledger)
        self._players = [Player(user, ledger, browser_url) for user in range(plan.users)]
        self._user_ids: list[str] = []

    async def prepare(self) -> None:
        for number, player in enumerate(self._players):
            show_progress(f"player {number + 1} of {self._plan.users} signs in …")
            await player.sign_in()
            self._user_ids.append(await self._game.user_id(number))
        await self._administrator.create_roles()
        for user_id in self._user_ids:
            await self._administrator.save(user_id, [])

    async def generate(self) -> None:
        """Starts logins at a steady rate. Waits for them, but not forever."""
        seconds, rate = self._plan.seconds, self._plan.rate
        with trio.move_on_after(seconds + self._plan.confirm_after_s + GIVE_UP_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._visit_sites, seconds)
                nursery.start_soon(self._save_roles, seconds)
                began = trio.current_time()
                for number in itertools.count():
                    await trio.sleep_until(began + number / rate)
                    left = seconds - (trio.current_time() - began)
                    if left <= 0:
                        break
                    user = number % self._plan.users
                    nursery.start_soon(self._game.log_in, user, self._players[user])
                    if number % max(1, int(rate)) == 0:
                        show_progress(
                            f"{left:.0f} s left: {self._ledger.delivered} logins, {len(self._ledger.lost)} lost"
                        )
        open_logins = self._ledger.confirmed - self._ledger.delivered - len(self._ledger.lost)
        self._ledger.lost += ["confirmed, but not delivered until the end"] * max(0, open_logins)

    async def check(self) -> None:
        """Compares what the service knows with what it acknowledged."""
        wrong = self._ledger.record_wrong
        show_progress("checking tokens …")
        for tokens in self._ledger.tokens.values():
            for token in tokens[-TOKENS_CHECKED:]:
                if problem := await self._game.problem_with(token):
                    wrong(problem)
        for token in self._ledger.refresh_tokens:
            if not await self._site.refreshes(token):
                wrong("refresh token refused")
        for token in self._ledger.revoked:
            if await self._site.refreshes(token):
                wrong("revoked token accepted")
        show_progress("checking roles …")
        holders = 0
        for user_id in self._user_ids:
            roles = await self._administrator.roles(user_id)
            holders += LIMITED in roles
            if roles != self._ledger.roles.get(user_id, set()):
                wrong(f"roles of {user_id}: {roles}, acknowledged {self._ledger.roles.get(user_id)}")
        if holders > LIMIT:
            wrong(f"{holders} users have the role {LIMITED}, whose limit is {LIMIT}")

    async def _visit_sites(self, seconds: float) -> None:
        end = trio.current_time() + seconds
        for number in itertools.count():
            if trio.current_time() > end:
                return
            await self._site.visit(self._players[number % self._plan.users], number)
            await trio.sleep(SITE_VISITS_S)

    async def _save_roles(self, seconds: float) -> None:
        end = trio.current_time() + seconds
        for user_id in itertools.cycle(self._user_ids):
            if trio.current_time() > end:
                return
            await self._administrator.save_random_roles(user_id)
            await trio.sleep(ROLE_SAVES_S)

    async def close(self) -> None:
        for player in self._players:
            await player.close()


async def run_load(
    plan: Plan, ledger: Ledger, game_url: str, browser_url: str, started: Callable[[], None] = lambda: None
) -> None:
    async with game_http(game_url) as http:
        load = Load(http, browser_url, ledger, plan)
        try:
            await load.prepare()
            started()
            await load.generate()
            await load.check()
        finally:
            await load.close()


def show_progress(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()


def main() -> None:
    plan, ledger = Plan(**json.loads(sys.argv[1])), Ledger()
    trio.run(run_load, plan, ledger, BASE_URL, BASE_URL, READY.touch)
    show_progress("")
    print(ledger.report())
    DELIVERED.write_text(json.dumps({login(user): len(tokens) for user, tokens in ledger.tokens.items()}))
    sys.exit(0 if ledger.is_clean else 1)


if __name__ == "__main__":
    main()
