"""The table of routes: every page and form of the console, by administrators with one right; forms of other sites."""

import functools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, cast

import httpx
import pytest

from sso.admin.rights import AdminRight, with_included
from sso.app import build_app
from sso.console.sections import OVERVIEW, SECTIONS
from sso.console.visit import ConsoleVisit, RecentQuestion
from sso.health import Health
from sso.services import Services
from sso.telemetry.metrics import Metrics
from tests.console.conftest import ConsoleBrowser, console_browser
from tests.kit.browser import query
from tests.kit.console_pages import PAYLOAD, InlineCode
from tests.kit.server import Server
from tests.perm.endpoints.conftest import Studio

LONG = "SSO_TEST_ROUNDS" in os.environ
Others = Callable[[Sequence[AdminRight]], list[ConsoleBrowser]]
# The right that each form needs, beyond that of its section.
FORMS = {
    "/console/users/new": AdminRight.MANAGE_USERS,
    "/console/users/invitations": AdminRight.MANAGE_USERS,
    "/console/users/invitations/<invitation_id>/revoke": AdminRight.MANAGE_USERS,
    "/console/users/<user_id>": AdminRight.MANAGE_USERS,
    "/console/users/<user_id>/password": AdminRight.MANAGE_USERS,
    # These also need the right to ban, or to ban in some project, which depends on the user.
    "/console/users/<user_id>/merge": AdminRight.MANAGE_USERS,
    "/console/users/<user_id>/unmerge": AdminRight.MANAGE_USERS,
    "/console/users/<user_id>/impersonate": AdminRight.IMPERSONATE_USERS,
    "/console/users/<user_id>/bans": AdminRight.VIEW_USERS,
    "/console/users/<user_id>/bans/<ban_id>/lift": AdminRight.VIEW_USERS,
    "/console/users/<user_id>/disable": AdminRight.MANAGE_USERS,
    "/console/users/<user_id>/enable": AdminRight.MANAGE_USERS,
    "/console/users/<user_id>/delete": AdminRight.MANAGE_USERS,
    "/console/users/<user_id>/sessions/end": AdminRight.MANAGE_USERS,
    "/console/users/<user_id>/sessions/<session_id>/end": AdminRight.MANAGE_USERS,
    "/console/users/<user_id>/games/end": AdminRight.MANAGE_USERS,
    "/console/users/<user_id>/factors/reset": AdminRight.MANAGE_USERS,
    "/console/applications": AdminRight.MANAGE_APPLICATIONS,
    "/console/applications/<application_id>/delete": AdminRight.MANAGE_APPLICATIONS,
    "/console/applications/<application_id>/keys": AdminRight.MANAGE_APPLICATIONS,
    "/console/applications/<application_id>/keys/<key_id>/delete": AdminRight.MANAGE_APPLICATIONS,
    "/console/applications/<application_id>/roles": AdminRight.MANAGE_APPLICATIONS,
    "/console/applications/<application_id>/roles/<name>/delete": AdminRight.MANAGE_APPLICATIONS,
    "/console/applications/<application_id>/schema": AdminRight.MANAGE_APPLICATIONS,
    "/console/applications/<application_id>/schema/preview": AdminRight.MANAGE_APPLICATIONS,
    "/console/applications/<application_id>/roles/<name>": AdminRight.MANAGE_APPLICATIONS,
    "/console/applications/<application_id>/roles/<name>/preview": AdminRight.MANAGE_APPLICATIONS,
    "/console/applications/<application_id>/assertions": AdminRight.MANAGE_APPLICATIONS,
    "/console/applications/<application_id>/assertions/preview": AdminRight.MANAGE_APPLICATIONS,
    "/console/applications/<application_id>/roles/<name>/test": AdminRight.VIEW_APPLICATIONS,
    "/console/applications/<application_id>/users/<user_id>": AdminRight.MANAGE_APPLICATIONS,
    "/console/applications/<application_id>/users/<user_id>/preview": AdminRight.MANAGE_APPLICATIONS,
    "/console/projects": AdminRight.MANAGE_PROJECTS,
    "/console/projects/<project_id>/delete": AdminRight.MANAGE_PROJECTS,
    "/console/projects/<project_id>/settings": AdminRight.MANAGE_PROJECTS,
    "/console/projects/<project_id>/settings/preview": AdminRight.MANAGE_PROJECTS,
    "/console/projects/<project_id>/members": AdminRight.MANAGE_PROJECTS,
    "/console/projects/<project_id>/members/<user_id>": AdminRight.MANAGE_PROJECTS,
    "/console/projects/<project_id>/members/<user_id>/preview": AdminRight.MANAGE_PROJECTS,
    "/console/projects/<project_id>/members/<user_id>/remove": AdminRight.MANAGE_PROJECTS,
    "/console/projects/<project_id>/groups": AdminRight.MANAGE_PROJECTS,
    "/console/projects/<project_id>/groups/<group_id>": AdminRight.MANAGE_PROJECTS,
    "/console/projects/<project_id>/groups/<group_id>/preview": AdminRight.MANAGE_PROJECTS,
    "/console/projects/<project_id>/groups/<group_id>/delete": AdminRight.MANAGE_PROJECTS,
    "/console/projects/<project_id>/services/<application_id>": AdminRight.MANAGE_PROJECTS,
    "/console/projects/<project_id>/services/<application_id>/preview": AdminRight.MANAGE_PROJECTS,
    "/console/projects/<project_id>/tester": AdminRight.VIEW_PROJECTS,
    "/console/clients/new": AdminRight.MANAGE_CLIENTS,
    "/console/clients/<client_id>": AdminRight.MANAGE_CLIENTS,
    "/console/clients/<client_id>/rotate-secret": AdminRight.MANAGE_CLIENTS,
    "/console/clients/<client_id>/signal-streams/<stream_id>/pause": AdminRight.MANAGE_CLIENTS,
    "/console/clients/<client_id>/signal-streams/<stream_id>/enable": AdminRight.MANAGE_CLIENTS,
    "/console/clients/<client_id>/signal-streams/<stream_id>/delete": AdminRight.MANAGE_CLIENTS,
    "/console/clients/<client_id>/requests/record": AdminRight.MANAGE_CLIENTS,
    "/console/clients/<client_id>/requests/stop": AdminRight.MANAGE_CLIENTS,
    "/console/clients/<client_id>/branding": AdminRight.MANAGE_CLIENTS,
    "/console/clients/<client_id>/branding/preview": AdminRight.MANAGE_CLIENTS,
    "/console/branding": AdminRight.MANAGE_CLIENTS,
    "/console/branding/preview": AdminRight.MANAGE_CLIENTS,
    "/console/clients/<client_id>/disable": AdminRight.MANAGE_CLIENTS,
    "/console/clients/<client_id>/enable": AdminRight.MANAGE_CLIENTS,
    "/console/clients/<client_id>/delete": AdminRight.MANAGE_CLIENTS,
    "/console/clients/<client_id>/approve": AdminRight.MANAGE_CLIENTS,
    "/console/clients/<client_id>/refuse": AdminRight.MANAGE_CLIENTS,
    "/console/clients/registration-tokens": AdminRight.MANAGE_CLIENTS,
    "/console/clients/registration-tokens/<token_id>/revoke": AdminRight.MANAGE_CLIENTS,
    "/console/identity-providers/new": AdminRight.MANAGE_CLIENTS,
    "/console/identity-providers/<provider_id>": AdminRight.MANAGE_CLIENTS,
    "/console/identity-providers/<provider_id>/test": AdminRight.MANAGE_CLIENTS,
    "/console/identity-providers/<provider_id>/disable": AdminRight.MANAGE_CLIENTS,
    "/console/identity-providers/<provider_id>/enable": AdminRight.MANAGE_CLIENTS,
    "/console/identity-providers/<provider_id>/delete": AdminRight.MANAGE_CLIENTS,
    "/console/signing-keys/rotate": AdminRight.MANAGE_KEYS,
    "/console/signing-keys/<kid>/retire": AdminRight.MANAGE_KEYS,
    "/console/webhooks": AdminRight.MANAGE_WEBHOOKS,
    "/console/webhooks/<webhook_id>": AdminRight.MANAGE_WEBHOOKS,
    "/console/webhooks/<webhook_id>/disable": AdminRight.MANAGE_WEBHOOKS,
    "/console/webhooks/<webhook_id>/enable": AdminRight.MANAGE_WEBHOOKS,
    "/console/webhooks/<webhook_id>/delete": AdminRight.MANAGE_WEBHOOKS,
    "/console/webhooks/<webhook_id>/retry": AdminRight.MANAGE_WEBHOOKS,
    "/console/state/compare": AdminRight.VIEW_STATE,
    "/console/playground": AdminRight.VIEW_APPLICATIONS,
    "/console/playground/file": AdminRight.VIEW_APPLICATIONS,
    "/console/state/apply": AdminRight.MANAGE_STATE,
    "/console/data-requests/<number>/retry": AdminRight.MANAGE_USERS,
    "/console/game-sessions/<gsid>/end": AdminRight.MANAGE_GAME_SESSIONS,
    "/console/audit/<entry_id>/undo": AdminRight.VIEW_AUDIT,
}
# Forms that need no recent authentication: they change nothing, or only end something, or change how a page looks.
HARMLESS = {
    "/console/clients/<client_id>/requests/record",
    "/console/clients/<client_id>/requests/stop",
    "/console/users/invitations/<invitation_id>/revoke",
    "/console/clients/registration-tokens/<token_id>/revoke",
    "/console/users/<user_id>/sessions/end",
    "/console/users/<user_id>/sessions/<session_id>/end",
    "/console/users/<user_id>/games/end",
    "/console/applications/<application_id>/roles/<name>/test",
    "/console/projects/<project_id>/tester",
    "/console/clients/<client_id>/branding",
    "/console/identity-providers/<provider_id>/test",
    "/console/webhooks/<webhook_id>/retry",
    "/console/state/compare",
    "/console/playground",
    "/console/playground/file",
    "/console/data-requests/<number>/retry",
    "/console/game-sessions/<gsid>/end",
    *(rule for rule in FORMS if rule.endswith("/preview")),
}
# Forms for which it depends on the fields that change; their records do not exist here.
DEPENDING = {"/console/users/<user_id>", "/console/clients/<client_id>", "/console/identity-providers/<provider_id>"}
PAGES_THAT_CREATE = {
    "/console/clients/<client_id>/requests": AdminRight.MANAGE_CLIENTS,
    "/console/users/<user_id>/impersonate": AdminRight.IMPERSONATE_USERS,
    "/console/users/new": AdminRight.MANAGE_USERS,
    "/console/clients/new": AdminRight.MANAGE_CLIENTS,
    "/console/clients/registration-tokens/new": AdminRight.MANAGE_CLIENTS,
    "/console/identity-providers/new": AdminRight.MANAGE_CLIENTS,
    "/console/users/invitations/new": AdminRight.MANAGE_USERS,
    "/console/projects/new-project": AdminRight.MANAGE_PROJECTS,
    "/console/projects/<project_id>/members/new": AdminRight.MANAGE_PROJECTS,
    "/console/projects/<project_id>/groups/new": AdminRight.MANAGE_PROJECTS,
    "/console/applications/new": AdminRight.MANAGE_APPLICATIONS,
    "/console/applications/<application_id>/new-role": AdminRight.MANAGE_APPLICATIONS,
    "/console/applications/<application_id>/keys/new": AdminRight.MANAGE_APPLICATIONS,
    "/console/applications/<application_id>/holders/new": AdminRight.MANAGE_APPLICATIONS,
    "/console/webhooks/new": AdminRight.MANAGE_WEBHOOKS,
}


@pytest.fixture(scope="module")
def rules(server: Server) -> dict[str, set[str]]:
    """The paths of the console, with their methods."""

    async def read(services: Services) -> dict[str, set[str]]:
        paths: dict[str, set[str]] = {}
        for rule in build_app(services, Health(), Metrics()).url_map.iter_rules():
            if rule.rule.startswith("/console"):
                paths.setdefault(rule.rule, set()).update((rule.methods or set()) & {"GET", "POST"})
        return paths

    return server.run_with_services(read)


@pytest.fixture(scope="module")
def holders(studio: Studio) -> Iterator[dict[AdminRight, ConsoleBrowser]]:
    """A browser for each right, whose user has no other."""
    with ExitStack() as stack:
        yield {right: stack.enter_context(console_browser(studio, right)) for right in AdminRight}


@pytest.fixture(scope="module")
def others(studio: Studio) -> Iterator[Others]:
    """Returns browsers of users who do not have any of some rights: of one user with all other rights.

    With SSO_TEST_ROUNDS, also of users with each of the other rights alone.
    """
    with ExitStack() as stack:

        @functools.cache
        def browser(rights: tuple[AdminRight, ...]) -> ConsoleBrowser:
            return stack.enter_context(console_browser(studio, *rights))

        def find(excluded: Sequence[AdminRight]) -> list[ConsoleBrowser]:
            rights = tuple(right for right in AdminRight if right not in excluded)
            alone = [(right,) for right in rights] if LONG else []
            return [browser(chosen) for chosen in (rights, *alone) if chosen]

        yield find


def path_of(rule: str) -> str:
    """The path with ids that do not exist."""
    return re.sub(r"<[a-z_:]+>", "x", rule.replace("<user_id>", "999999999999").replace("<entry_id>", "999999999999"))


def section_rights(rule: str) -> frozenset[AdminRight]:
    return next((s.rights for s in SECTIONS if s is not OVERVIEW and rule.startswith(s.path)), OVERVIEW.rights)


def send(browser: ConsoleBrowser, rule: str, **headers: str) -> httpx.Response:
    """Sends an empty form with the CSRF token of this browser."""
    return browser.post(path_of(rule), {"csrf": browser.csrf_token}, **headers)


def test_every_form_is_in_the_table(rules: dict[str, set[str]]) -> None:
    assert {rule for rule, methods in rules.items() if "POST" in methods} == FORMS.keys()
    assert FORMS.keys() >= HARMLESS | DEPENDING


def test_administrator_with_one_right_opens_its_pages_and_no_others(
    rules: dict[str, set[str]], holders: dict[AdminRight, ConsoleBrowser], others: Others
) -> None:
    for rule in (rule for rule, methods in rules.items() if "GET" in methods):
        asks = rule.endswith(("/delete", "/remove", "/retire", "/revoke"))  # before a deletion
        needed = FORMS[rule] if asks else PAGES_THAT_CREATE.get(rule)
        opening = [
            right
            for right in AdminRight
            if not section_rights(rule).isdisjoint(granted := with_included({right}))
            and (needed is None or needed in granted)
        ]
        assert opening, rule
        for right in opening:
            assert holders[right].get(path_of(rule)).status_code in (200, 303, 404), (rule, right)
        for browser in others(opening):
            assert browser.get(path_of(rule)).status_code == 403, (rule, browser.login)


def test_administrator_with_one_right_sends_its_forms_and_no_others(
    holders: dict[AdminRight, ConsoleBrowser], others: Others
) -> None:
    for rule, needed in FORMS.items():
        allowed = [right for right in AdminRight if needed in with_included({right})]
        for right in allowed:
            accepted = (200, 303, 400, 403, 404, 409, 422) if "/bans" in rule else (200, 303, 400, 404, 409, 422)
            assert send(holders[right], rule).status_code in accepted, (rule, right)
        for browser in others(allowed):
            assert send(browser, rule).status_code == 403, (rule, browser.login)


def test_navigation_shows_the_sections_of_the_administrator(holders: dict[AdminRight, ConsoleBrowser]) -> None:
    for right, browser in holders.items():
        text = browser.get("/console").text
        for section in SECTIONS:
            is_shown = f'href="{section.path}"' in text.partition("<main")[0].replace('class="brand" href', "")
            assert is_shown == (not section.rights.isdisjoint(with_included({right}))), (section.key, right)


def test_administrator_without_a_second_factor_sees_a_banner(studio: Studio) -> None:
    """The shared server requires none (tests/accounts/test_require_2fa.py has one that does)."""
    with console_browser(studio, AdminRight.VIEW_USERS) as browser:
        assert "protected by a password alone" in browser.open("/console")
        query(studio.server, "UPDATE users SET email_2fa = true WHERE user_id = $1", browser.user_id)
        assert "protected by a password alone" not in browser.open("/console")


def test_user_without_rights_sees_a_helpful_page_and_nothing_else(rules: dict[str, set[str]], studio: Studio) -> None:
    with ConsoleBrowser(studio.server, studio.user()) as browser:
        for rule, methods in rules.items():
            if "GET" in methods:
                answer = browser.get(path_of(rule))
                assert (answer.status_code, "no right to administer" in answer.text) == (403, True), rule
            if "POST" in methods:
                assert send(browser, rule).status_code == 403, rule
        assert "/console" not in browser.open_account().text


def test_without_a_session_pages_lead_to_the_sign_in(rules: dict[str, set[str]], server: Server) -> None:
    with server.client() as client:
        for rule, methods in rules.items():
            if "GET" in methods:
                answer = client.get(path_of(rule))
                assert answer.status_code == 303, rule
                assert answer.headers["Location"].startswith("/login?next=/console"), rule
            if "POST" in methods:
                assert client.post(path_of(rule), data={"csrf": "x"}).status_code == 303, rule
        answer = client.get("/console", headers={"HX-Request": "true"})
        assert (answer.status_code, answer.headers["HX-Redirect"]) == (401, "/login?next=/console")


def test_forms_of_other_sites_are_refused(root_browser: ConsoleBrowser) -> None:
    """A usual run sends all kinds of forged forms to the first paths, and two kinds to each of the others."""
    tokens: list[dict[str, str]] = [{}, {"csrf": ""}, {"csrf": "x" * 43}]
    for number, rule in enumerate(FORMS):
        sends_all = LONG or number < 3
        assert send(root_browser, rule, Sec_Fetch_Site="cross-site").status_code == 403, rule
        if sends_all:
            assert send(root_browser, rule, Origin="https://evil.example").status_code == 403, rule
        for token in tokens if sends_all else [tokens[number % len(tokens)]]:
            answer = root_browser.post(path_of(rule), token)
            assert (answer.status_code, "expired" in answer.text) == (403, True), (rule, token)


def test_forms_need_recent_authentication_unless_they_are_harmless(studio: Studio) -> None:
    with console_browser(studio, *AdminRight) as browser:
        browser.forget_authentication()
        asking = {rule for rule in FORMS if "Confirm that it is you" in send(browser, rule).text}
    assert asking == FORMS.keys() - HARMLESS - DEPENDING


@pytest.mark.parametrize(
    ("kind", "fields", "asks"),
    [
        ("user", {"nick": "Bob"}, False),
        ("user", {"login": "other-recent@example.com"}, True),
        ("user", {"tags": "staff"}, True),
        ("user", {"purchases": "gold"}, True),
        ("user", {"email_verified": "1"}, True),
        ("client", {"name": "Shop"}, False),
        ("client", {"redirect_uris": "https://evil.example/cb"}, True),
        ("client", {"consent": "1"}, True),
        ("provider", {"name": "Studio"}, False),
        ("provider", {"issuer": "https://evil.example"}, True),
        ("provider", {"trusted_email": "1"}, True),
        ("provider", {"client_secret": "another secret"}, True),
    ],
)
def test_fields_that_create_power_need_recent_authentication(
    old_session: ConsoleBrowser, changeable: dict[str, str], kind: str, fields: dict[str, str], asks: bool
) -> None:
    old_session.open(changeable[kind])
    answer = old_session.submit(changeable[kind], **fields)
    assert ("Confirm that it is you" in answer.text) == asks, answer.text


@pytest.fixture(scope="module")
def old_session(studio: Studio) -> Iterator[ConsoleBrowser]:
    """A browser of root, who has not authenticated recently."""
    with ConsoleBrowser(studio.server, studio.root) as browser:
        browser.forget_authentication()
        yield browser


@pytest.fixture(scope="module")
def changeable(studio: Studio) -> dict[str, str]:
    """The pages of records for which it depends on the changed fields."""
    provider = {
        "id": "recent",
        "kind": "oidc",
        "issuer": "https://id.example",
        "client_id": "sso",
        "trusted_email": False,
    }
    client = {"client_id": "recent", "profile": "oidc", "redirect_uris": ["https://a.example/cb"], "consent": False}
    studio.server.apply({"identity_providers": [provider], "clients": [client | {"public": True}]})
    user_id = studio.user().user_id
    pages = {"user": f"users/{user_id}", "client": "clients/recent", "provider": "identity-providers/recent"}
    return {kind: f"/console/{page}" for kind, page in pages.items()}


async def test_form_that_forgets_to_decide_about_recent_authentication_changes_nothing() -> None:
    nothing = cast(Any, None)
    visit = ConsoleVisit(nothing, nothing, nothing, True, nothing, RecentQuestion(is_open=True))
    with pytest.raises(RuntimeError, match="has not decided"):
        await visit.call("PATCH", "/users/<user_id>", user_id="1")


def test_pages_cannot_be_framed_and_have_no_inline_code(
    rules: dict[str, set[str]], root_browser: ConsoleBrowser
) -> None:
    root_browser.get(f"/console/users/{root_browser.user_id}")
    for rule in (rule for rule, methods in rules.items() if "GET" in methods):
        path = path_of(rule).replace("999999999999", root_browser.user_id)
        answer = root_browser.get(
            path, params={"search": PAYLOAD, "done": PAYLOAD, "explain": PAYLOAD, "target": PAYLOAD}
        )
        if not answer.headers["Content-Type"].startswith("text/html"):
            continue
        policy = answer.headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in policy, rule
        assert "script-src 'self';" in policy, rule
        assert "style-src 'self';" in policy, rule
        assert answer.headers["X-Frame-Options"] == "DENY", rule
        assert answer.headers["Cache-Control"] == "no-store", rule
        assert InlineCode(answer.text).found == [], rule
        assert "<img src=x" not in answer.text, rule
