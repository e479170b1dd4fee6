"""Checks of the nodes: the settings that they share, their messages and their heartbeats."""

from collections.abc import Iterator

import trio

from sso.bus.check import measure_message
from sso.bus.transport import BusUnavailable
from sso.config import ConfigError, Settings
from sso.doctor.finding import Finding
from sso.keys.shared_settings import require_shared_settings
from sso.nodes.node_list import read_nodes
from sso.nodes.problems import node_problems


def shared_settings(settings: Settings) -> Iterator[Finding]:
    if settings.database_url is None:
        return
    try:
        require_shared_settings(settings)
    except ConfigError as error:
        yield Finding("shared settings", False, "the service does not start", str(error))
    else:
        detail = "SSO_SINGLE_NODE is set: only one node may use this database"
        yield Finding("shared settings", True, detail if settings.single_node else "set")


def bus(settings: Settings, dsn: str) -> Finding:
    name = "NATS" if settings.bus_url else "PostgreSQL"
    advice = "start it, or correct SSO_BUS_URL; until then, wake-ups of held polls take seconds"
    try:
        milliseconds = trio.run(measure_message, settings, dsn) * 1000
    except BusUnavailable as error:
        return Finding("bus", False, f"{name}: {error}", advice if settings.bus_url else "is it a connection pooler?")
    return Finding("bus", True, f"{name}, a message took {milliseconds:.1f} ms")


def nodes(dsn: str) -> Iterator[Finding]:
    known = read_nodes(dsn)
    names = [node.name for node in known if not node.is_silent]
    yield Finding("nodes", True, f"{len(names)} running: {', '.join(names)}" if names else "none is running")
    for problem in node_problems(known):
        yield Finding(problem.name, False, problem.detail, problem.advice, warning=problem.warning)
