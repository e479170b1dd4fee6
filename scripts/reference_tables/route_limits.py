"""The limits of each family of routes: what the routes accept, and what keeps one caller from delaying others.

Sizes of bodies come from the routes. A route that belongs to no family, and a family without a route, are errors.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from sso.app import build_app
from sso.config import Settings
from sso.console.applications.editor_pages import EDITORS
from sso.console.state.document import MAX_FORM as MAX_STATE_FORM
from sso.console.view import MAX_CONSOLE_FORM
from sso.core.encryption import Keyring, MasterKey
from sso.db.database import Database
from sso.health import Health
from sso.oauth.pages import AUTHORIZE_PATH, RESUME_PATH
from sso.oauth.registration.routes import MAX_REGISTRATION, REGISTER, REGISTERED
from sso.oauth.routes import INTROSPECT, MAX_BODY, MAX_PUSHED_BODY, PAR, REVOKE, TOKEN, USERINFO
from sso.perm.routes import endpoint_table
from sso.personal_data.games.model import MAX_ANSWER
from sso.services import Services, build
from sso.ssf.model import POLL_PATH
from sso.ssf.requests import MAX_BODY_BYTES
from sso.ssf.routes import ADD_SUBJECT, REMOVE_SUBJECT, STATUS, STREAM, VERIFY
from sso.telemetry.metrics import Metrics
from sso.web.body import MAX_BYTES, BodyLimit
from sso.web.pages import MAX_FORM

COLUMNS = ("Routes", "Credential", "Body", "Rate limit", "Queue or share")
CHEAP = "none: a few indexed rows"
PARSER = "the parser thread for large bodies"


class Family(NamedTuple):
    credential: str
    rate: str
    queue: str


# By the beginning of the path; the longest one that matches counts.
FAMILIES = {
    "/": Family("none", "none", CHEAP),
    "/access": Family(
        "access key, service client, or user JWT with factor",
        "``SSO_RATE_ADMIN``, with reasons and ``at``",
        f"evaluation connections for ``at``; {PARSER}",
    ),
    "/account": Family(
        "browser session", "60 an hour of each kind of change, for a user", "password hashing; signature verification"
    ),
    "/account/export": Family("browser session, authenticated recently", "5 an hour for a user", "one for all users"),
    "/api/admin": Family(
        "user JWT with factor, or service client", "``SSO_RATE_ADMIN``", f"management connections; {PARSER}"
    ),
    "/api/admin/state": Family("as above", "as above", f"evaluation connections; {PARSER}"),
    "/api/permissions": Family(
        "user JWT with factor, service JWT or access key",
        "``SSO_RATE_ADMIN``, except frequent reads",
        f"evaluation connections for writes and ``at``; {PARSER}",
    ),
    "/console": Family(
        "browser session of an administrator", "``SSO_RATE_ADMIN``", f"management connections; {PARSER}"
    ),
    "/console/state": Family("as above", "as above", f"evaluation connections; {PARSER}"),
    "/docs": Family("none", "none", "a thread that reads the file"),
    "/email": Family("link of a mail", "none", CHEAP),
    "/impersonate": Family("link of an administrator", "none", CHEAP),
    "/forgot": Family("none", "``SSO_RATE_LOGIN``", "a background task"),
    "/game": Family("browser session", "none", "merge connections to link a guest, and for its preview"),
    "/device": Family("none; a browser session to confirm", "``SSO_RATE_USER_CODE``", CHEAP),
    "/login": Family("none", "``SSO_RATE_LOGIN``, ``SSO_RATE_ACCOUNT``", "password hashing"),
    "/login/identity/conflict": Family(
        "browser session to decide", "none", "merge connections to merge accounts, and for the preview"
    ),
    "/login/upstream": Family("none", "``SSO_RATE_UPSTREAM``", "32 outgoing requests"),
    "/logout": Family("browser session", "none", CHEAP),
    "/proxy/api/login": Family("password", "``SSO_RATE_LOGIN``, ``SSO_RATE_ACCOUNT``", "password hashing"),
    "/proxy/api/logout": Family("session token", "none", CHEAP),
    "/proxy/api/ticket": Family("ticket of a store", "``SSO_RATE_LOGIN``", "16 outgoing requests of a provider"),
    "/proxy/api/data": Family("link of a data request, once", "none", "the database parses the body"),
    "/proxy/api/gameSession": Family(
        "signature of the game", "``SSO_RATE_GETGSID``", f"signature verification; {PARSER}"
    ),
    "/proxy/api/guest": Family("signature of the device", "``SSO_RATE_GUEST``, per hour", CHEAP),
    "/proxy/oauth": Family("client secret or browser session", "``SSO_RATE_AUTHORIZE``", f"{PARSER}"),
    "/proxy/oauth/register": Family(
        "none, initial access token, or registration access token",
        "``SSO_RATE_CLIENT_REGISTRATION``",
        "100 clients that wait for approval",
    ),
    "/register": Family("none", "``SSO_RATE_REGISTER``", "password hashing"),
    "/reset": Family("link of a mail", "``SSO_RATE_LOGIN``", "password hashing"),
    "/ssf": Family(
        "service client with a scope ``ssf.…``", "20 held polls and 10 streams of a client", f"32 pushes; {PARSER}"
    ),
    "/ws": Family("``gsid`` and its secret", "20 messages in 5 seconds", CHEAP),
}


def limit_rows() -> list[tuple[str, ...]]:
    limits: dict[str, set[int]] = {prefix: set() for prefix in FAMILIES}
    seen = set()
    for path, has_body, max_bytes in _routes(offline_services()):
        prefix = family_of(path)
        seen.add(prefix)
        if has_body:
            limits[prefix].add(max_bytes)
    if unused := FAMILIES.keys() - seen:
        raise ValueError(f"no route begins with {', '.join(sorted(unused))}: remove the family")
    return [
        (
            "others" if prefix == "/" else f"``{prefix}…``",
            family.credential,
            _sizes(limits[prefix]),
            family.rate,
            family.queue,
        )
        for prefix, family in sorted(FAMILIES.items())
    ]


def family_of(path: str) -> str:
    return max((prefix for prefix in FAMILIES if path.startswith(prefix)), key=len)


def body_limits(services: Services) -> dict[tuple[str, str], BodyLimit]:
    """The limits of bodies, by method and path, of routes whose limit is not `usual_limit`."""
    admin = {(route.method, f"/api/admin{route.path}"): route.body_limit for route in services.management.routes}
    permissions = {
        ("POST", f"/api/permissions{endpoint.path}"): endpoint.limit
        for endpoint in endpoint_table(services.permissions.endpoints)
    }
    own = {("POST", path): MAX_BODY for path in (TOKEN, REVOKE, INTROSPECT, USERINFO)}
    own |= {("POST", PAR): MAX_PUSHED_BODY, ("POST", AUTHORIZE_PATH): MAX_FORM, ("POST", RESUME_PATH): MAX_FORM}
    own |= {("POST", "/proxy/api/data/<link>"): MAX_ANSWER}
    own |= {("POST", REGISTER): MAX_REGISTRATION, ("PUT", REGISTERED): MAX_REGISTRATION}
    own |= {(method, STREAM): MAX_BODY_BYTES for method in ("POST", "PATCH", "PUT")}
    own |= {("POST", path): MAX_BODY_BYTES for path in (STATUS, ADD_SUBJECT, REMOVE_SUBJECT, VERIFY, POLL_PATH)}
    own |= {("POST", path): MAX_STATE_FORM for path in ("/console/state/compare", "/console/state/apply")}
    own |= {
        ("POST", f"{editor.section.path}{editor.path}{suffix}"): editor.max_bytes
        for editor in EDITORS
        for suffix in ("", "/preview")
    }
    return admin | permissions | {key: BodyLimit(max_bytes) for key, max_bytes in own.items()}


def usual_limit(path: str) -> int:
    if path.startswith("/console"):
        return MAX_CONSOLE_FORM
    return MAX_BYTES if path.startswith(("/access/", "/api/", "/proxy/")) else MAX_FORM


def _routes(services: Services) -> Iterable[tuple[str, bool, int]]:
    special = body_limits(services)
    for rule in build_app(services, Health(), Metrics()).url_map.iter_rules():
        usual = usual_limit(rule.rule)
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
            limit = special.get((method, rule.rule), BodyLimit(usual))
            yield rule.rule, method in ("POST", "PUT", "PATCH"), limit.max_bytes


def offline_services() -> Services:
    """Services that are never used: their routes are read."""
    database = Database("postgresql:///", None, 8)  # type: ignore[arg-type]
    return build(Settings(data_dir=Path()), database, Keyring([MasterKey.generate()]))


def _sizes(limits: set[int]) -> str:
    return ", ".join(map(_size, sorted(limits))) or "none"


def _size(limit: int) -> str:
    return f"{limit // 1024} kB" if limit < 1024 * 1024 else f"{limit // 1024 // 1024} MB"
