"""Two nodes with one database, and what the clients of a history need: people, sites and an administrator."""

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.histories.history import History
from tests.kit.browser import Browser, fresh_browser
from tests.kit.builders import PASSWORD
from tests.kit.nodes import Node, running_nodes
from tests.kit.oauth import Site
from tests.kit.replication import Node as PostgresNode
from tests.kit.replication import replication
from tests.kit.second_factors import enrol
from tests.kit.server import NO_LIMITS

HOLD_S = 2  # of a poll
CENTRAL, GAME = 1, 70
LIMITED_ROLE, USER_LIMIT = "captain", 3
ADMINISTRATOR, SECRET = "histories", "a secret of the administrator of histories"
SITE_SECRET = "a secret of the site of histories"
REDIRECT_URI = "https://game.example.com/cb"
ROOTS = ("9001", "9002")
MEMBERS = tuple(str(number) for number in range(9101, 9107))
CARELESS = ("9201", "9202", "9203")  # who use their recovery codes
DISABLED = tuple(str(number) for number in range(10_000, 10_400))  # each is disabled once


@dataclass
class World:
    nodes: Sequence[Node]
    database: PostgresNode
    history: History = field(default_factory=History)
    recovery_codes: dict[str, list[str]] = field(default_factory=dict)  # by user id

    def node(self) -> Node:
        return random.choice(self.nodes)

    def site(self, node: Node) -> Site:
        return Site(node, "histories-site", SITE_SECRET, REDIRECT_URI)

    def browser(self, user_id: str) -> Browser:
        """Returns a browser that is signed in."""
        return fresh_browser(self.node(), login_of(user_id))

    @contextmanager
    def administrator(self, node: Node) -> Iterator[httpx.Client]:
        """Yields a client of the management API with all rights."""
        form = {"grant_type": "client_credentials", "client_id": ADMINISTRATOR, "client_secret": SECRET}
        with node.client() as http:
            token = http.post("/proxy/oauth/token", data=form).raise_for_status().json()["access_token"]
            http.headers["Authorization"] = f"Bearer {token}"
            http.base_url = httpx.URL(f"{node.url}/api/admin")
            yield http


def login_of(user_id: str) -> str:
    return f"u{user_id}@example.com"


@contextmanager
def world(folder: Path, **settings: str) -> Iterator[World]:
    with ExitStack() as stack:
        (database,) = stack.enter_context(replication(0))
        chosen = NO_LIMITS | {"SSO_WORKERS": "2", "SSO_GSID_HOLD_S": str(HOLD_S), **settings}
        nodes = stack.enter_context(running_nodes(folder, database.dsn, (0, 0), **chosen))
        found = World(nodes, database)
        nodes[0].apply(_document())
        for user_id in CARELESS:
            with found.browser(user_id) as browser:
                found.recovery_codes[user_id] = enrol(browser)[1]
        yield found


def _document() -> dict[str, Any]:
    people = [*ROOTS, *MEMBERS, *CARELESS, "9301", "9302"]
    return {
        "users": [{"user_id": user_id, "login": login_of(user_id), "password": PASSWORD} for user_id in people]
        + [{"user_id": user_id, "login": login_of(user_id)} for user_id in DISABLED],
        "applications": [{"application_id": GAME, "name": "Game"}],
        "roles": {
            str(GAME): [
                {"name": LIMITED_ROLE, "meta": {"private_data": {"kick": {"value": True}}}, "user_limit": USER_LIMIT}
            ]
        },
        "permissions": [
            {"user_id": user_id, "application_id": CENTRAL, "data": {"roles": [{"name": "root"}]}} for user_id in ROOTS
        ],
        "clients": [
            {
                "client_id": ADMINISTRATOR,
                "client_secret": SECRET,
                "profile": "oidc",
                "grant_types": ["client_credentials"],
                "application_id": CENTRAL,
            },
            {
                "client_id": "histories-site",
                "client_secret": SITE_SECRET,
                "redirect_hosts": ["game.example.com"],
                "name": "Site",
            },
        ],
    }
