"""Two nodes with one database, and what the clients of a history need: people, sites and an administrator."""

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.histories.history import History
from tests.kit.browser import Browser, fresh_browser
from tests.kit.builders import PASSWORD
from tests.kit.device import DEVICE_CODE
from tests.kit.disk import SmallDisk, small_disk
from tests.kit.nodes import Node, running_nodes
from tests.kit.oauth import Site
from tests.kit.replication import Node as PostgresNode
from tests.kit.replication import replication
from tests.kit.second_factors import enrol
from tests.kit.server import NO_LIMITS
from tests.upstream.stores import OidcStore, opened

HOLD_S = 2  # of a poll
CENTRAL, GAME = 1, 70
LIMITED_ROLE, MEMBER_ROLE, USER_LIMIT = "captain", "officer", 3
CREW = "crew"
STORE = "store"
PROJECTS = ("guild_one", "guild_two")
PROJECT_LIMIT = 2  # of a publisher
TOTP_SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
ADMINISTRATOR, SECRET = "histories", "a secret of the administrator of histories"
SITE_SECRET = "a secret of the site of histories"
REDIRECT_URI = "https://game.example.com/cb"
ROOTS = ("9001", "9002")
MEMBERS = tuple(str(number) for number in range(9101, 9107))
CARELESS = ("9201", "9202", "9203")  # who use their recovery codes
# Users of whom each is used once, by the purpose.
FRESH_USERS = {
    "disabled": range(10_000, 10_100),
    "granted": range(11_000, 11_150),
    "guessed": range(12_000, 12_040),
    "forgetful": range(13_000, 13_060),
    "publishers": range(14_000, 14_050),
}


@dataclass
class World:
    nodes: Sequence[Node]
    database: PostgresNode
    disk: SmallDisk | None  # of the database
    store: OidcStore  # whose tickets sign players in
    clock_file: Path | None = None  # the steps of the nodes' clocks, which libfaketime reads
    history: History = field(default_factory=History)
    recovery_codes: dict[str, list[str]] = field(default_factory=dict)  # by user id
    fresh_users: dict[str, Iterator[int]] = field(
        default_factory=lambda: {purpose: iter(ids) for purpose, ids in FRESH_USERS.items()}
    )
    _sites: dict[tuple[str, str], Site] = field(default_factory=dict)  # their connections are used by all threads

    def node(self) -> Node:
        return random.choice(self.nodes)

    def take(self, purpose: str) -> str | None:
        """Returns a user whom no client has used, or None if all were used. A step of a range is atomic."""
        user_id = next(self.fresh_users[purpose], None)
        return None if user_id is None else str(user_id)

    def site(self, node: Node) -> Site:
        return self._site(node, "histories-site", SITE_SECRET)

    def oidc_site(self, node: Node) -> Site:
        return self._site(node, "histories-oidc", SITE_SECRET, "oidc")

    def device_site(self, node: Node) -> Site:
        return self._site(node, "histories-device", None, "oidc")

    def _site(self, node: Node, client_id: str, secret: str | None, profile: str = "strict") -> Site:
        key = (node.url, client_id)
        if key not in self._sites:
            self._sites[key] = Site(node, client_id, secret, REDIRECT_URI, profile)
        return self._sites[key]

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


def steps_of(clock_file: Path) -> dict[str, str]:
    """Returns the environment of a program whose clock this file moves; nothing without libfaketime."""
    libraries = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not libraries:
        return {}
    clock_file.parent.mkdir(parents=True, exist_ok=True)
    clock_file.write_text("+0\n")
    return {
        "LD_PRELOAD": str(libraries[0]),
        "FAKETIME_TIMESTAMP_FILE": str(clock_file),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


@contextmanager
def world(
    folder: Path, program: Sequence[str] = (), settings: Mapping[str, str] = NO_LIMITS, moves_clocks: bool = True
) -> Iterator[World]:
    """Starts everything. Nodes whose clocks move cannot be forked, so each of their starts takes seconds."""
    with ExitStack() as stack:
        disk = stack.enter_context(small_disk())
        parent = disk.folder if disk else None
        store = OidcStore()
        stack.enter_context(opened(store))
        (database,) = stack.enter_context(replication(0, {"max_wal_size": "64MB"}, parent))
        clock_file = folder / "clock"
        chosen = (steps_of(clock_file) if moves_clocks else {}) | {
            "SSO_WORKERS": "2",
            "SSO_GSID_HOLD_S": str(HOLD_S),
            "SSO_REGISTRATION": "invite",
            **NO_LIMITS,
            **settings,
        }
        nodes = stack.enter_context(running_nodes(folder, database.dsn, (0, 0), program, **chosen))
        found = World(nodes, database, disk, store, clock_file if "LD_PRELOAD" in chosen else None)
        nodes[0].apply(_document() | {"identity_providers": [{"id": STORE, "create_users": True, **store.record()}]})
        for user_id in CARELESS:
            with found.browser(user_id) as browser:
                found.recovery_codes[user_id] = enrol(browser)[1]
        yield found


def _document() -> dict[str, Any]:
    people = [*ROOTS, *MEMBERS, *CARELESS, "9301", "9302"]
    people += [str(number) for ids in FRESH_USERS.values() for number in ids]
    secrets = {str(number): {"totp_secret": TOTP_SECRET} for number in FRESH_USERS["guessed"]}
    return {
        "users": [
            {"user_id": user_id, "login": login_of(user_id), "password": PASSWORD, **secrets.get(user_id, {})}
            for user_id in people
        ],
        "projects": [{"id": project_id, "title": project_id} for project_id in PROJECTS],
        "applications": [{"application_id": GAME, "name": "Game"}],
        "roles": {
            str(GAME): [
                {"name": LIMITED_ROLE, "meta": _rules("kick"), "user_limit": USER_LIMIT},
                {"name": CREW, "meta": _rules("greet")},
            ],
            str(CENTRAL): [
                {
                    "name": MEMBER_ROLE,
                    "meta": {"private_data": {"project": {"can_view_project": {"value": True}}}},
                    "user_limit": USER_LIMIT,
                }
            ],
        },
        "permissions": [
            {"user_id": user_id, "application_id": CENTRAL, "data": {"roles": [{"name": "root"}]}} for user_id in ROOTS
        ]
        + [
            {
                "user_id": str(user_id),
                "application_id": CENTRAL,
                "data": {"private_data": {"can_create_projects": {"value": True, "params": str(PROJECT_LIMIT)}}},
            }
            for user_id in FRESH_USERS["publishers"]
        ],
        "clients": [
            {
                "client_id": ADMINISTRATOR,
                "client_secret": SECRET,
                "profile": "oidc",
                "grant_types": ["client_credentials"],
                "application_id": CENTRAL,
            },
            _client("histories-site", client_secret=SITE_SECRET),
            _client("histories-oidc", client_secret=SITE_SECRET, profile="oidc"),
            _client("histories-device", profile="oidc", grant_types=[DEVICE_CODE, "refresh_token"]),
        ],
    }


def _rules(name: str) -> dict[str, Any]:
    return {"private_data": {name: {"value": True}}}


def _client(client_id: str, **fields: Any) -> dict[str, Any]:
    return {"client_id": client_id, "redirect_hosts": ["game.example.com"], "name": "Site", **fields}
