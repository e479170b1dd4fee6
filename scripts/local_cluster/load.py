"""Logs games in through the proxy and checks afterwards that every acknowledged login is known to the service."""

import argparse
import itertools
import json
import subprocess
import sys
from functools import partial

import trio

from scripts.local_cluster import cluster, processes
from scripts.local_cluster.clients import PASSWORD, Game, Player, game_http, login
from scripts.local_cluster.layout import FOLDER, PROXY
from scripts.local_cluster.ledger import Ledger

USERS = 20
TOKENS_CHECKED = 80  # of each user; the service keeps 100
GIVE_UP_S = 90.0  # after the last login has begun


def run(seconds: float, rate: float) -> None:
    """Creates the users, then runs this module where the clients are. Exits with 1 if something was lost."""
    users = {"users": [{"login": login(user), "password": PASSWORD} for user in range(USERS)]}
    document = FOLDER / "load.json"
    document.write_text(json.dumps(users))
    cluster.run_sso("apply", str(document))
    program = (sys.executable, "-m", "scripts.local_cluster.load", str(seconds), str(rate))
    sys.exit(subprocess.run(processes.command(PROXY, *program), check=False).returncode)


async def generate(seconds: float, rate: float, ledger: Ledger) -> None:
    players = [Player(user, ledger) for user in range(USERS)]
    for number, player in enumerate(players):
        show_progress(f"player {number + 1} of {USERS} signs in …")
        await player.sign_in()
    async with game_http() as http:
        game = Game(http, ledger)
        with trio.move_on_after(seconds + GIVE_UP_S):
            async with trio.open_nursery() as nursery:
                began = trio.current_time()
                for number in itertools.count():
                    await trio.sleep_until(began + number / rate)
                    left = seconds - (trio.current_time() - began)
                    if left <= 0:
                        break
                    user = number % USERS
                    nursery.start_soon(game.log_in, user, players[user])
                    if number % max(1, int(rate)) == 0:
                        show_progress(f"{left:.0f} s left: {ledger.delivered} delivered, {len(ledger.lost)} lost")
        open_logins = ledger.confirmed - ledger.delivered - len(ledger.lost)
        ledger.lost += ["confirmed, but not delivered until the end"] * max(0, open_logins)
        await check_tokens(game, ledger)


async def check_tokens(game: Game, ledger: Ledger) -> None:
    for user, tokens in ledger.tokens.items():
        show_progress(f"checking the tokens of user {user} …")
        for token in tokens[-TOKENS_CHECKED:]:
            ledger.refused_tokens += not await game.accepts(token)


def show_progress(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds", type=float)
    parser.add_argument("rate", type=float)
    options = parser.parse_args()
    ledger = Ledger()
    trio.run(partial(generate, options.seconds, options.rate, ledger))
    show_progress("")
    print(ledger.report())
    sys.exit(0 if ledger.is_clean else 1)


if __name__ == "__main__":
    main()
