"""Starts the cluster, stops it, and does to it what happens to machines."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from scripts.local_cluster import network, processes, services
from scripts.local_cluster.layout import CERTIFICATES, FOLDER, MACHINES, NODES, PROXY, Machine

DEMO = Path(__file__).parents[1] / "demo.json"
MAX_WAIT_S = 120
TLS_PORTS = (2379, 8008)  # etcd and Patroni


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def up() -> None:
    services.check_programs()
    if network.existing():
        raise SystemExit("the cluster is up already; end it with: scripts/cluster down")
    began = time.monotonic()
    shutil.rmtree(FOLDER, ignore_errors=True)
    for machine in MACHINES:
        machine.folder.mkdir(parents=True, mode=0o700)
    services.create_secrets()
    services.create_certificates()
    say("network …")
    network.create()
    for title, start in (("etcd", services.start_etcd), ("NATS", services.start_nats)):
        say(f"{title} on three machines …")
        for node in NODES:
            start(node)
    _wait("etcd", lambda: all(_answers(node, 2379, "/health") for node in NODES))
    say("PostgreSQL under Patroni …")
    for node in NODES:
        services.start_patroni(node)
    wait_for_primary()
    _wait("two standbys", lambda: _synchronous_standbys() == len(NODES) - 1)
    _create_database()
    say("the service on three machines …")
    for node in NODES:
        services.start_sso(node)
    services.start_haproxy()
    _wait("the service", lambda: all(_answers(node, 8000, "/readyz?database=1") for node in NODES))
    _wait("the proxy", lambda: _answers(PROXY, 8000, "/readyz"))
    run_sso("apply", str(DEMO))
    say(f"the cluster is ready after {time.monotonic() - began:.0f} s; logs and data: {FOLDER}")


def down() -> None:
    namespaces = network.existing()
    processes.kill_all(namespaces)
    network.delete()
    shutil.rmtree(FOLDER, ignore_errors=True)
    say("the cluster is gone" if namespaces else "there is no cluster")


def kill(machine: Machine, service: str | None) -> None:
    """Kills a service of a machine; without a service everything on it, as if its power failed."""
    if service is None:
        processes.kill_all([machine.namespace])
    elif service == "postgres":
        os.kill(_postmaster(machine), signal.SIGKILL)
    elif not processes.kill(machine, service):
        raise SystemExit(f"{service} does not run on {machine.name}")
    say(f"killed {service or 'everything'} on {machine.name}")


def start(machine: Machine) -> None:
    """Starts the services of a machine that do not run."""
    for service, start_service in services.STARTERS.items():
        if not processes.is_running(machine, service):
            start_service(machine)
            say(f"started {service} on {machine.name}")


def unplug(machine: Machine) -> None:
    network.unplug(machine)
    say(f"{machine.name} is unplugged")


def plug(machine: Machine) -> None:
    network.plug(machine)
    say(f"{machine.name} is plugged in")


def switchover() -> None:
    """Makes another machine the primary of the database."""
    old = wait_for_primary()
    body = json.dumps({"leader": old.name})
    login = f"patroni:{services.read_secret('PATRONI_PASSWORD')}"
    answer = get(old, 8008, "/switchover", "-m", "60", "-u", login, "-XPOST", "-d", body)
    say(answer.strip() or "the switchover failed")


def primary() -> Machine | None:
    return next((node for node in NODES if _answers(node, 8008, "/primary")), None)


def wait_for_primary() -> Machine:
    """Returns the primary. A healthy cluster may have none for a moment: a primary that was unplugged resigns late."""
    _wait("a primary", lambda: primary() is not None)
    return primary() or wait_for_primary()


def is_healthy() -> bool:
    """Returns whether everything runs, all standbys are synchronous, and all nodes reach the database."""
    return (
        all(processes.is_running(node, service) for node in NODES for service in services.STARTERS)
        and _synchronous_standbys() == len(NODES) - 1
        and all(_answers(node, 8000, "/readyz?database=1") for node in NODES)
    )


def wait_until_healthy() -> None:
    _wait("a healthy cluster", is_healthy)


def in_network(*program: str) -> str:
    """Returns the output of a program that runs where the clients are."""
    done = subprocess.run(processes.command(PROXY, *program), capture_output=True, text=True, check=False)
    return done.stdout


def run_sso(*arguments: str) -> str:
    """Returns the output of a command of the program, which runs on the first machine."""
    node = NODES[0]
    environment = {"PATH": os.environ["PATH"], **services.sso_environment(node)}
    program = processes.command(node, str(services.BIN / "sso"), *arguments)
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"sso {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def query(machine: Machine, sql: str, database: str = "postgres") -> str:
    """Returns the result of a query of the superuser on a machine."""
    environment = {
        "PATH": os.environ["PATH"],
        "PGPASSWORD": services.read_secret("SUPERUSER_PASSWORD"),
        "PGSSLMODE": "verify-full",
        "PGSSLROOTCERT": str(CERTIFICATES / "ca.crt"),
    }
    psql = f"{services.postgres_bin()}/psql"
    options = ("-X", "-A", "-t", "-q", "-h", machine.address, "-U", "postgres", "-d", database, "-c", sql)
    program = processes.command(machine, psql, *options)
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return done.stdout.strip()


def _create_database() -> None:
    node = wait_for_primary()
    password = services.read_secret("DATABASE_PASSWORD")
    query(node, f"CREATE ROLE sso LOGIN PASSWORD '{password}'")
    query(node, "CREATE DATABASE sso OWNER sso")


def _synchronous_standbys() -> int:
    node = primary()
    if node is None:
        return 0
    try:
        return int(query(node, "SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"))
    except RuntimeError:
        return 0


def _postmaster(machine: Machine) -> int:
    try:
        return int((machine.folder / "postgres/postmaster.pid").read_text().split()[0])
    except (FileNotFoundError, IndexError):
        raise SystemExit(f"PostgreSQL does not run on {machine.name}") from None


def _answers(machine: Machine, port: int, path: str) -> bool:
    return get(machine, port, path, "-m", "1", "-o", "/dev/null", "-w", "%{http_code}") == "200"


def get(machine: Machine, port: int, path: str, *options: str) -> str:
    """Returns the answer to a request of the proxy's machine, which has a certificate of the cluster."""
    if port not in TLS_PORTS:
        return in_network("curl", "-s", *options, f"http://{machine.address}:{port}{path}")
    certificate = CERTIFICATES / PROXY.name
    tls = ("--cacert", str(CERTIFICATES / "ca.crt"), "--cert", f"{certificate}.crt", "--key", f"{certificate}.key")
    return in_network("curl", "-s", *tls, *options, f"https://{machine.address}:{port}{path}")


def _wait(name: str, condition: Callable[[], bool]) -> None:
    end = time.monotonic() + MAX_WAIT_S
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"waited {MAX_WAIT_S} s for {name}; logs: {FOLDER}")
        time.sleep(0.2)
