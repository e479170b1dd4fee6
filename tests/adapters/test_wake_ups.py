"""Whatever ends the sessions of a user, and in whichever way: the senders of notices and mails learn of it at once.

The senders of this server never look by themselves, so a notice that arrives was announced by the change.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import jwt as pyjwt
import pytest

from tests.adapters.operation import Operation, of_user, user_of
from tests.adapters.user_operations import USERS
from tests.adapters.world import Case, CommandPlace, Way, World
from tests.conftest import LONG_INTERVALS, WITHOUT_LIMITS
from tests.kit.browser import query
from tests.kit.constants import changed
from tests.kit.logout_receiver import LogoutReceiver, logout_receiver
from tests.kit.server import Server, until
from tests.kit.shared_server import SharedServers

CLIENT = "notified"
ENDING = (
    "disable a user",
    "set a password",
    "end the sessions of a user",
    "reset the second factors of a user",
    "delete a user",
)
OPERATIONS = (
    *(operation for operation in USERS if operation.name in ENDING),
    Operation(
        "ban a user",
        user_of,
        Case.user,
        api=lambda case: case.api("POST", f"/users/{case.user_id}/bans", scope="all"),
        command=lambda case: f"user ban {case.login}",
        console=lambda case: case.form(f"{of_user(case)}/bans", f"{of_user(case)}/bans", scope="all"),
    ),
    Operation(
        "merge a user",
        user_of,
        Case.user,
        api=lambda case: case.api("POST", f"/users/{case.user_id}/merge", into=other_user(case)),
    ),
)


@dataclass(frozen=True)
class Change:
    """An operation in one of its ways."""

    operation: Operation
    name: str
    way: Way


def changes() -> Iterator[Change]:
    """All operations in all ways, commands in each of their places."""
    for operation in OPERATIONS:
        ways = {name: way for name, way in operation.ways().items() if name not in set(CommandPlace)}
        if operation.command is not None:
            ways |= {place: partial(run_command, operation, place) for place in CommandPlace}
        for name, way in ways.items():
            yield Change(operation, name, way)


def run_command(operation: Operation, place: CommandPlace, case: Case) -> str:
    assert operation.command is not None
    return case.command(operation.command(case), place, operation.stdin)


def other_user(case: Case) -> str:
    other = case.world.case()
    other.user()
    return other.user_id


@pytest.fixture(scope="module")
def server(shared_servers: SharedServers) -> Iterator[Server]:
    never = LONG_INTERVALS | {"sso.bus.bus.RESCAN_S": 86400}
    with shared_servers.use(**WITHOUT_LIMITS, **changed(never)) as server:
        yield server


@pytest.fixture(scope="module")
def receiver(server: Server) -> Iterator[LogoutReceiver]:
    """A site that wants to be notified."""
    with logout_receiver() as receiver:
        site = {"client_id": CLIENT, "profile": "oidc", "backchannel_logout_uri": receiver.uri}
        redirect_uris = ["https://shop.example.com/done"]
        server.apply({"clients": [{**site, "redirect_uris": redirect_uris, "client_secret": "secret " * 5}]})
        yield receiver


def sign_in_at_site(server: Server, case: Case) -> None:
    query(
        server,
        """INSERT INTO oauth_site_sessions (sid, client_id, user_id, expires)
        VALUES ($1, $2, $1, now() + interval '1 day')""",
        case.user_id,
        CLIENT,
    )


def is_notified(receiver: LogoutReceiver, user_id: str) -> bool:
    tokens = (pyjwt.decode(request.token, options={"verify_signature": False}) for request in list(receiver.requests))
    return any(token["sub"] == user_id for token in tokens)


@pytest.mark.parametrize("change", [*changes()], ids=lambda change: f"{change.operation.name}, {change.name}")
def test_change_that_ends_sessions_wakes_the_senders(world: World, receiver: LogoutReceiver, change: Change) -> None:
    case = world.case()
    change.operation.prepare(case)
    sign_in_at_site(world.server, case)
    change.way(case)
    assert until(lambda: is_notified(receiver, case.user_id))
    assert until(lambda: not query(world.server, "SELECT FROM outbox"))
