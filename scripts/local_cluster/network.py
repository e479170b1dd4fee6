"""The network: a bridge in a namespace of its own, with a cable to each machine. The host is not connected to it."""

import subprocess

from scripts.local_cluster.layout import MACHINES, SWITCH, Machine


def ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


def create() -> None:
    ip("netns", "add", SWITCH)
    ip("-n", SWITCH, "link", "add", "lan", "type", "bridge")
    ip("-n", SWITCH, "link", "set", "lan", "up")
    for machine in MACHINES:
        _connect(machine)


def _connect(machine: Machine) -> None:
    ip("netns", "add", machine.namespace)
    cable = ("type", "veth", "peer", "name", "eth0", "netns", machine.namespace)
    ip("link", "add", machine.port, "netns", SWITCH, *cable)
    ip("-n", SWITCH, "link", "set", machine.port, "master", "lan", "up")
    ip("-n", machine.namespace, "addr", "add", f"{machine.address}/24", "dev", "eth0")
    ip("-n", machine.namespace, "link", "set", "eth0", "up")
    ip("-n", machine.namespace, "link", "set", "lo", "up")


def delete() -> None:
    for namespace in existing():
        ip("netns", "del", namespace)


def existing() -> list[str]:
    ours = {SWITCH, *(machine.namespace for machine in MACHINES)}
    return [line.split()[0] for line in ip("netns", "list").splitlines() if line.split()[0] in ours]


def unplug(machine: Machine) -> None:
    ip("-n", SWITCH, "link", "set", machine.port, "down")


def plug(machine: Machine) -> None:
    ip("-n", SWITCH, "link", "set", machine.port, "up")


def is_plugged(machine: Machine) -> bool:
    return "state UP" in ip("-n", SWITCH, "link", "show", machine.port)


def pids(namespace: str) -> list[int]:
    """Returns the processes in a namespace."""
    return [int(pid) for pid in ip("netns", "pids", namespace).split()]
