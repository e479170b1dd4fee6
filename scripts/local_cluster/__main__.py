"""``scripts/cluster``: see ``--help``."""

import argparse
import sys

from scripts.local_cluster import cluster, faults, load, measure, status, strangers
from scripts.local_cluster.layout import NODES, Machine
from scripts.local_cluster.load import Plan

DESCRIPTION = """Runs a cluster of three machines on this one, in network namespaces: etcd, PostgreSQL under Patroni,
NATS and the service on each, haproxy before them. Needs root. The host's network is not touched."""
EPILOG = """example:
  scripts/cluster up
  scripts/cluster load --seconds 60 &
  scripts/cluster unplug 1; sleep 30; scripts/cluster plug 1
  scripts/cluster status
  scripts/cluster down"""


def machine(text: str) -> Machine:
    for node in NODES:
        if text in (str(node.number), node.name):
            return node
    raise argparse.ArgumentTypeError(f"{text} is not a machine: 1, 2 or 3")


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "scripts/cluster",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("up", help="start everything and wait until it is ready")
    commands.add_parser("down", help="end everything and delete its data")
    status_parser = commands.add_parser("status", help="show roles, rates and held polls")
    status_parser.add_argument("--watch", action="store_true", help="refresh every second until Ctrl-C")
    load_parser = commands.add_parser("load", help="log games in and check every acknowledged login afterwards")
    load_parser.add_argument("--seconds", type=float, default=30, help="how long (default: 30)")
    add_load_options(load_parser, rate=10)
    faults_parser = commands.add_parser(
        "faults", help="random faults under load; every acknowledged write is checked afterwards"
    )
    faults_parser.add_argument("--minutes", type=float, default=5, help="how long (default: 5)")
    add_load_options(faults_parser, rate=5)
    faults_parser.add_argument("--only", metavar="WORD", default="", help="only faults whose name contains this word")
    faults_parser.add_argument("--seed", type=int, help="repeats the faults of an earlier run")
    measure_parser = commands.add_parser("measure", help="how long clients wait when a part of the cluster fails")
    measure_parser.add_argument("--rounds", type=int, default=1, help="how often each event (default: 1)")
    kill = commands.add_parser("kill", help="kill a machine's processes with SIGKILL")
    kill.add_argument("machine", type=machine, metavar="N")
    kill.add_argument("service", nargs="?", choices=("etcd", "nats", "patroni", "postgres", "sso"), help="default: all")
    for name, text in (
        ("start", "start what does not run on a machine"),
        ("unplug", "cut a machine's network cable"),
        ("plug", "connect it again"),
    ):
        commands.add_parser(name, help=text).add_argument("machine", type=machine, metavar="N")
    commands.add_parser("switchover", help="make another machine the primary of the database")
    return parser


def add_load_options(parser: argparse.ArgumentParser, rate: float) -> None:
    parser.add_argument("--rate", type=float, default=rate, help=f"logins per second (default: {rate:g})")
    parser.add_argument("--users", type=int, default=load.USERS, help=f"number of players (default: {load.USERS})")
    parser.add_argument(
        "--confirm-after", type=float, default=0.3, metavar="SECONDS", help="how long polls are held (default: 0.3)"
    )


def plan(options: argparse.Namespace, seconds: float) -> Plan:
    return Plan(seconds, options.rate, options.users, options.confirm_after)


def main() -> None:
    options = parser().parse_args()
    match options.command:
        case "up":
            cluster.up()
            strangers.check()
        case "down":
            cluster.down()
        case "kill":
            cluster.kill(options.machine, options.service)
        case "start":
            cluster.start(options.machine)
        case "unplug":
            cluster.unplug(options.machine)
        case "plug":
            cluster.plug(options.machine)
        case "switchover":
            cluster.switchover()
        case "status":
            status.show(watch=options.watch)
        case "faults":
            chosen = plan(options, options.minutes * 60)
            sys.exit(0 if faults.run(chosen, options.seed, options.only) else 1)
        case "measure":
            measure.run(options.rounds)
        case "load":
            load.run(plan(options, options.seconds))


if __name__ == "__main__":
    main()
