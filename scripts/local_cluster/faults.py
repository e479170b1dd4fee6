"""Random faults, one after another, each healed before the next. Load runs meanwhile.

Afterwards the ledger of the load is checked, and the three databases must have the same rows: after a split brain they
would not.
"""

import json
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

from scripts.local_cluster import cluster, load
from scripts.local_cluster.cluster import say
from scripts.local_cluster.layout import NODES, Machine
from scripts.local_cluster.load import Plan

UNPLUGGED_S = (3.0, 30.0)  # shorter and longer than the database needs to choose another primary
CALM_S = 3.0  # between two faults
CHECK_S = 600.0  # for the check of the ledger
CHANGING = frozenset({"node_workers"})  # heartbeats, which change between two looks
_SIGN_INS = """SELECT u.login, count(*) FROM sign_ins i JOIN users u USING (user_id)
    WHERE i.auth = 'gsid' AND NOT i.ended GROUP BY u.login"""
_TABLES = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1"


def run(plan: Plan, seed: int | None = None, only: str = "") -> bool:
    """Returns whether nothing was lost."""
    possible = [(name, fault) for name, fault in FAULTS if only in name]
    if not possible:
        raise SystemExit(f"no fault contains {only!r}: {', '.join(sorted({name for name, _ in FAULTS}))}")
    seed = random.randrange(10**6) if seed is None else seed
    say(f"seed {seed}: {plan.seconds / 60:g} minutes of faults")
    choose = random.Random(seed)
    load.prepare(plan.users)
    before = sign_ins()
    clients = subprocess.Popen(load.command(plan), stdout=subprocess.PIPE, text=True)
    while not load.READY.exists() and clients.poll() is None:
        time.sleep(0.2)
    counts: Counter[str] = Counter()
    end = time.monotonic() + plan.seconds
    while time.monotonic() < end and clients.poll() is None:
        time.sleep(CALM_S)
        name, fault = choose.choice(possible)
        machine = choose.choice(NODES)
        counts[name] += 1
        began = time.monotonic()
        fault(machine, choose)
        cluster.wait_until_healthy()
        text = name.format(machine=machine.name)
        seconds = time.monotonic() - began
        say(f"{datetime.now(UTC):%H:%M:%S} {sum(counts.values())}. {text}: healthy after {seconds:.0f} s")
    report, _ = clients.communicate(timeout=plan.seconds + CHECK_S)
    print(report)
    summary = ", ".join(f"{count} x {name.format(machine='a machine')}" for name, count in counts.items())
    print(f"faults     {sum(counts.values())}: {summary}")
    if not load.DELIVERED.exists():
        raise SystemExit("the load ended with an error")
    twice = delivered_twice(before)
    print(f"twice      {len(twice)} users have more sign-ins of games than logins were delivered")
    differences = different_tables()
    print(f"databases  {'different: ' + ', '.join(differences) if differences else 'equal on three machines'}")
    return clients.returncode == 0 and not differences and not twice


def sign_ins() -> Counter[str]:
    """Returns the number of living sign-ins of games by user."""
    rows = cluster.query(cluster.wait_for_primary(), _SIGN_INS, "sso").splitlines()
    return Counter({login: int(count) for login, count in (row.split("|") for row in rows)})


def delivered_twice(before: Counter[str]) -> list[str]:
    """Returns the users with more sign-ins than logins. A user keeps 100, so fewer are no proof of anything."""
    delivered = json.loads(load.DELIVERED.read_text())
    after = sign_ins()
    return [login for login, count in delivered.items() if after[login] - before[login] > count]


def kill_machine(machine: Machine, choose: random.Random) -> None:
    cluster.kill(machine, None)
    time.sleep(choose.uniform(0, 10))
    cluster.start(machine)


def kill_service(service: str) -> Callable[[Machine, random.Random], None]:
    def fault(machine: Machine, choose: random.Random) -> None:
        cluster.kill(machine, service)
        time.sleep(choose.uniform(0, 3))
        cluster.start(machine)

    return fault


def kill_primary(_: Machine, choose: random.Random) -> None:
    cluster.kill(cluster.wait_for_primary(), "postgres")


def unplug(machine: Machine, choose: random.Random) -> None:
    cluster.unplug(machine)
    time.sleep(choose.uniform(*UNPLUGGED_S))
    cluster.plug(machine)


def switchover(_: Machine, __: random.Random) -> None:
    cluster.switchover()


FAULTS: tuple[tuple[str, Callable[[Machine, random.Random], None]], ...] = (
    *(4 * (("unplug {machine}", unplug),)),  # four of ten, so that an hour has more than fifty
    ("power failure of {machine}", kill_machine),
    ("kill the service of {machine}", kill_service("sso")),
    ("kill NATS of {machine}", kill_service("nats")),
    ("kill etcd of {machine}", kill_service("etcd")),
    ("kill the primary", kill_primary),
    ("switchover", switchover),
)


def different_tables() -> list[str]:
    """Returns the tables whose rows differ between the machines, once all of them have the same changes."""
    tables = cluster.query(NODES[0], _TABLES, "sso").split()
    for _ in range(60):  # the service goes on writing a little, for example its heartbeats
        found = [
            table for table in tables if table not in CHANGING and len({_digest(node, table) for node in NODES}) > 1
        ]
        if not found:
            return []
        time.sleep(1)
    return found


def _digest(machine: Machine, table: str) -> str:
    return cluster.query(machine, f"SELECT md5(string_agg(t::text, '' ORDER BY t::text)) FROM {table} t", "sso")
