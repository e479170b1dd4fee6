"""One search for everything in the console: records by a part of their name, entries of the audit trail, and pages.

What an administrator finds is what the lists would show: each kind is read by the operation of its list.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import quote

from msgspec import Struct, field
from quart import Blueprint, Response, request

from sso.console.list_pages import Record
from sso.console.record_names import user_name
from sso.console.sections import (
    APPLICATIONS,
    AUDIT,
    CLIENTS,
    IDENTITY_PROVIDERS,
    OVERVIEW,
    PROJECTS,
    USERS,
    WEBHOOKS,
    open_sections,
)
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit
from sso.core.errors import ApiError
from sso.core.path_ids import path_id

MAX_HITS = 5  # of a kind
MAX_SEARCH = 100  # characters
MAX_ENTRY_DIGITS = 18


class Hit(NamedTuple):
    path: str
    text: str
    detail: str = ""


class SearchedKind(Struct, frozen=True):
    title: str
    operation: str  # the path of its list in the management API
    hit: Callable[[Record], Hit]
    query: Mapping[str, str] = field(default_factory=dict)


def _path(base: str, *parts: object) -> str:
    return "/".join((base, *(quote(str(part), safe="") for part in parts)))


KINDS = (
    SearchedKind(
        "Users",
        "/users",
        lambda one: Hit(_path(USERS.path, one["user_id"]), user_name(one), one["nick"] if one["login"] else "Guest"),
    ),
    SearchedKind(
        "Projects",
        "/projects",
        lambda one: Hit(_path(PROJECTS.path, one["id"]), one["display_name"] or one["title"], one["id"]),
    ),
    SearchedKind(
        "Applications",
        "/applications",
        lambda one: Hit(_path(APPLICATIONS.path, one["application_id"]), one["name"], f"{one['application_id']}"),
    ),
    SearchedKind(
        "Roles",
        "/roles",
        lambda one: Hit(
            _path(APPLICATIONS.path, one["application_id"], "roles", one["name"]),
            one["name"],
            f"of application {one['application_id']}",
        ),
    ),
    SearchedKind(
        "Groups",
        "/groups",
        lambda one: Hit(
            _path(PROJECTS.path, one["project_id"], "groups", one["group_id"]), one["title"], f"of {one['project_id']}"
        ),
    ),
    SearchedKind(
        "OAuth clients",
        "/clients",
        lambda one: Hit(
            _path(CLIENTS.path, path_id(one["client_id"])),
            one["name"] or one["client_id"],
            one["client_id"] if one["name"] else "",
        ),
    ),
    SearchedKind(
        "Identity providers",
        "/identity-providers",
        lambda one: Hit(_path(IDENTITY_PROVIDERS.path, one["id"]), one["name"] or one["id"], one["id"]),
    ),
    SearchedKind("Webhooks", "/webhooks", lambda one: Hit(_path(WEBHOOKS.path, one["id"]), one["url"])),
)
# Pages beside those of the sections, each with the operation that they are for.
PAGES = (
    (f"{USERS.path}/new", "Add user", "POST", "/users"),
    (f"{USERS.path}/invitations", "Invitations", "GET", "/invitations"),
    (f"{USERS.path}/invitations/new", "Add invitation", "POST", "/invitations"),
    (f"{PROJECTS.path}/new-project", "Add project", "POST", "/projects"),
    (f"{APPLICATIONS.path}/new", "Add application", "POST", "/applications"),
    (f"{CLIENTS.path}/new", "Add OAuth client", "POST", "/clients"),
    (f"{IDENTITY_PROVIDERS.path}/new", "Add identity provider", "POST", "/identity-providers"),
    (f"{WEBHOOKS.path}/new", "Add webhook", "POST", "/webhooks"),
)


def search_pages(console: ConsoleView, routes: Blueprint) -> None:
    @routes.get("/search")
    async def search() -> Response:
        visit = await console.open(OVERVIEW)
        text = request.args.get("q", "").strip()[:MAX_SEARCH]
        hits = await find_everything(visit, text) if text else {}
        return await console.show(visit, "search.html", title="Search", q=text, hits=hits)


async def find_everything(visit: ConsoleVisit, text: str) -> dict[str, list[Hit]]:
    """Returns what matches, by the title of its kind. Kinds without a match, or a right of the caller, are left out."""
    found = {"Pages": find_pages(visit, text)}
    for kind in KINDS:
        if visit.may("GET", kind.operation):
            query = {"search": text, "limit": str(MAX_HITS), **kind.query}
            found[kind.title] = [kind.hit(record) for record in await visit.data("GET", kind.operation, query=query)]
    found["Audit trail"] = await find_entry(visit, text)
    return {title: hits for title, hits in found.items() if hits}


def find_pages(visit: ConsoleVisit, text: str) -> list[Hit]:
    sections = [section for group in open_sections(visit.caller, visit.own).values() for section in group]
    pages = [Hit(section.path, section.title) for section in sections]
    pages += [Hit(path, title) for path, title, method, operation in PAGES if visit.may(method, operation)]
    pages.append(Hit("/docs/api", "API reference"))
    return [page for page in pages if text.casefold() in page.text.casefold()][:MAX_HITS]


async def find_entry(visit: ConsoleVisit, text: str) -> list[Hit]:
    """Returns the entry of the audit trail with this id."""
    if not (
        text.isascii() and text.isdecimal() and len(text) <= MAX_ENTRY_DIGITS and visit.may("GET", "/audit/<entry_id>")
    ):
        return []
    try:
        entry = await visit.data("GET", "/audit/<entry_id>", entry_id=text)
    except ApiError:
        return []
    return [Hit(_path(AUDIT.path, text), f"Entry {text}", entry["operation"])]
