"""The sections of the console, in the order of the navigation. A section is shown to callers with one of its rights."""

from collections.abc import Callable

from msgspec import Struct

from sso.admin.caller import AdminCaller
from sso.admin.own_records import OwnRecords
from sso.admin.rights import ALL_RIGHTS, AdminRight

BASE = "/console"


class ConsoleSection(Struct, frozen=True):
    key: str  # also the name of its template folder
    title: str
    path: str
    rights: frozenset[AdminRight]  # one of them is required
    group: str = ""  # the heading in the navigation

    opens_to_own: Callable[[OwnRecords], bool] = lambda _: False  # also opens it, for records of the caller's own
    help: str = "console.html"  # the page of the documentation about it

    def is_open_to(self, caller: AdminCaller, own: OwnRecords) -> bool:
        return not self.rights.isdisjoint(caller.rights) or self.opens_to_own(own)


OVERVIEW = ConsoleSection("overview", "Overview", BASE, ALL_RIGHTS, opens_to_own=bool)
USERS = ConsoleSection("users", "Users", f"{BASE}/users", frozenset({AdminRight.VIEW_USERS}), "People")
DATA_REQUESTS = ConsoleSection(
    "data_requests",
    "Data requests",
    f"{BASE}/data-requests",
    frozenset({AdminRight.VIEW_USERS}),
    "People",
    help="personal_data.html#data-of-games",
)
AUDIT = ConsoleSection(
    "audit",
    "Audit trail",
    f"{BASE}/audit",
    frozenset({AdminRight.VIEW_AUDIT}),
    "Service",
    help="permissions.html#the-audit-trail",
)

SYSTEM = ConsoleSection(
    "system", "System", f"{BASE}/system", frozenset({AdminRight.VIEW_SYSTEM}), "Service", help="troubleshooting.html"
)

CLIENTS = ConsoleSection(
    "clients",
    "OAuth clients",
    f"{BASE}/clients",
    frozenset({AdminRight.VIEW_CLIENTS}),
    "Sign-in",
    help="quickstarts/index.html",
)
APPLICATIONS = ConsoleSection(
    "applications",
    "Applications",
    f"{BASE}/applications",
    frozenset({AdminRight.VIEW_APPLICATIONS}),
    "Permissions",
    lambda own: own.applications,
    help="permissions.html",
)
PROJECTS = ConsoleSection(
    "projects",
    "Projects",
    f"{BASE}/projects",
    frozenset({AdminRight.VIEW_PROJECTS}),
    "Permissions",
    lambda own: own.projects,
    help="permissions.html#projects-and-applications",
)
BRANDING = ConsoleSection(
    "branding", "Branding", f"{BASE}/branding", frozenset({AdminRight.VIEW_CLIENTS}), "Sign-in", help="branding.html"
)
EXPLORER = ConsoleSection(
    "explorer",
    "Explorer",
    f"{BASE}/explorer",
    frozenset({AdminRight.VIEW_USERS, AdminRight.VIEW_APPLICATIONS}),
    "Permissions",
    help="permissions.html#permissions-of-a-user",
)
PLAYGROUND = ConsoleSection(
    "playground",
    "Playground",
    f"{BASE}/playground",
    frozenset({AdminRight.VIEW_APPLICATIONS}),
    "Permissions",
    bool,
    help="change_permissions.html#playground",
)
GAME_SESSIONS = ConsoleSection(
    "game_sessions",
    "Game sessions",
    f"{BASE}/game-sessions",
    frozenset({AdminRight.VIEW_GAME_SESSIONS}),
    "Sign-in",
    help="game_sessions.html",
)
IDENTITY_PROVIDERS = ConsoleSection(
    "identity_providers",
    "Identity providers",
    f"{BASE}/identity-providers",
    frozenset({AdminRight.VIEW_CLIENTS}),
    "Sign-in",
    help="providers.html",
)
SIGNING_KEYS = ConsoleSection(
    "signing_keys",
    "Signing keys",
    f"{BASE}/signing-keys",
    frozenset({AdminRight.VIEW_KEYS}),
    "Service",
    help="keys.html",
)
WEBHOOKS = ConsoleSection(
    "webhooks",
    "Webhooks",
    f"{BASE}/webhooks",
    frozenset({AdminRight.MANAGE_WEBHOOKS}),
    "Service",
    help="changes.html#webhooks",
)
STATE = ConsoleSection(
    "state",
    "State",
    f"{BASE}/state",
    frozenset({AdminRight.VIEW_STATE}),
    "Service",
    help="desired_state.html",
)

SECTIONS = (
    OVERVIEW, USERS, DATA_REQUESTS, PROJECTS, APPLICATIONS, EXPLORER, PLAYGROUND, CLIENTS, IDENTITY_PROVIDERS,
    BRANDING, GAME_SESSIONS, AUDIT, SIGNING_KEYS, WEBHOOKS, STATE, SYSTEM,
)  # fmt: skip


def open_sections(caller: AdminCaller, own: OwnRecords) -> dict[str, list[ConsoleSection]]:
    """Returns the sections that the caller may use, by the heading of their group."""
    groups: dict[str, list[ConsoleSection]] = {}
    for section in SECTIONS:
        if section.is_open_to(caller, own):
            groups.setdefault(section.group, []).append(section)
    return groups
