"""Builds the Quart application from the services: routes, middleware and configuration."""

from collections.abc import Awaitable, Mapping
from typing import Any

import orjson
from quart import Response
from quart.json.provider import JSONProvider
from quart_trio import QuartTrio
from werkzeug.exceptions import NotFound

from sso.accounts.account_page.pages import account_pages
from sso.accounts.account_page.sections import SignedInSections
from sso.accounts.account_page.view import AccountView
from sso.accounts.email_address.link_pages import email_link_pages
from sso.accounts.email_address.pages import email_pages
from sso.accounts.email_address.section import EmailSection
from sso.accounts.history.pages import HistorySection, history_pages
from sso.accounts.login.flow import CombinedLoginFlows
from sso.accounts.login.pages import login_pages
from sso.accounts.login.routes import login_routes
from sso.accounts.login.view import LoginCompletion
from sso.accounts.passkeys.pages import passkey_pages
from sso.accounts.passkeys.section import PasskeySection
from sso.accounts.password_reset.pages import password_reset_pages
from sso.accounts.profile.pages import ProfileSection, profile_pages
from sso.accounts.profile.store import ProfileStore
from sso.accounts.recent_authentication import RecentAuthentication
from sso.accounts.registration.challenge import build_challenge
from sso.accounts.registration.pages import registration_pages
from sso.accounts.second_factor.pages import TotpEnrolments, second_factor_pages
from sso.accounts.second_factor.recovery_code_pages import recovery_code_pages
from sso.accounts.second_factor.section import SecondFactorSection
from sso.accounts.second_factor.shown_codes import ShownCodes
from sso.accounts.visitor import Visitor
from sso.core.fair_thread import FairThread
from sso.core.language import install_translations
from sso.db.rate_limit import RateLimiter
from sso.gsid.pages import game_pages
from sso.gsid.routes import game_routes
from sso.gsid.sockets import game_sockets
from sso.health import Health, health_routes
from sso.keys.routes import key_routes, static_key_responses
from sso.metrics import Metrics
from sso.oauth.logout_pages import logout_pages
from sso.oauth.pages import authorize_pages
from sso.oauth.routes import CROSS_ORIGIN_PATHS, discovery_routes, oauth_routes
from sso.perm.routes import exchange_routes, permission_routes
from sso.personal_data.closed_account import KeepTickets
from sso.personal_data.keep_pages import ClosedAccountPage, keep_pages
from sso.personal_data.pages import DataSection, personal_data_pages
from sso.services import Services
from sso.upstream.account_pages import IdentitiesSection, identity_pages
from sso.upstream.pages import upstream_pages
from sso.upstream.recent_login import LinkLoginFlows
from sso.upstream.view import UpstreamView
from sso.web import brand, language_switcher, pages
from sso.web.access_log import AccessLog
from sso.web.allowed_hosts import AllowedHosts
from sso.web.cross_origin import CrossOriginAccess
from sso.web.fast_quart.app import FastQuart
from sso.web.middleware import Middleware
from sso.web.request_rules import RequestRules
from sso.web.request_tracing import RequestTracing
from sso.web.security_headers import SecurityHeaders, data_headers
from sso.web.static_response import StaticResponse
from sso.web.websocket import WebSocketConnection

BODY_TIMEOUT_S = 30
MAX_BODIES_PER_CLIENT = 64  # costly bodies of one client that wait for the parser thread
MAX_FILE_NAME = 100
RESETS_DIVISOR = 6  # a network may ask for a sixth as many links that reset a password as it may have failed logins


class OrjsonProvider(JSONProvider):
    def dumps(self, obj: Any, **_: Any) -> str:
        return orjson.dumps(obj).decode()

    def loads(self, s: str | bytes, **_: Any) -> Any:
        return orjson.loads(s)


class App(FastQuart):
    asgi_websocket_class = WebSocketConnection
    static_responses: Mapping[str, StaticResponse] = {}
    rules: RequestRules

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:  # type: ignore[override]
        static = self.static_responses.get(scope.get("path", ""))
        if static and static.matches(scope) and self.rules.violation(scope) is None:
            return static.respond(scope, send)
        return super().__call__(scope, receive, send)

    async def send_static_file(self, filename: str) -> Response:
        if len(filename) > MAX_FILE_NAME:  # the operating system would report an error, which is logged
            raise NotFound
        return await super().send_static_file(filename)


def build_app(services: Services, health: Health, metrics: Metrics) -> QuartTrio:
    settings = services.settings
    app = App("sso", template_folder="web/templates", static_folder="web/static")
    app.json = OrjsonProvider(app)
    app.url_map.merge_slashes = False  # otherwise it redirects to the host that the client sent
    app.config.update(
        PROXIES=services.proxies,
        PARSERS=FairThread(MAX_BODIES_PER_CLIENT),
        BASE_URL=settings.base_url,
        HTTPS=settings.https,
        SERVICE_NAME=services.brand.name,
        PASSKEYS=services.passkeys.authentication,
        REGISTRATION_OPEN=settings.registration == "open",
        SIGN_IN_PROVIDERS=services.upstream.provider_list,
        MAX_CONTENT_LENGTH=1024 * 1024,  # read_body has lower limits for most routes
        BODY_TIMEOUT=BODY_TIMEOUT_S,
        SEND_FILE_MAX_AGE_DEFAULT=3600,
    )
    install_translations(app.jinja_env)
    brand.install(app.jinja_env, services.brand)
    language_switcher.install(app.jinja_env)
    pages.install(app.jinja_env)
    _register_routes(app, services, health)
    access_log = AccessLog(metrics, _request_tracing(services))
    app.rules = RequestRules(AllowedHosts.from_settings(settings))
    security = SecurityHeaders(https=settings.https)
    cross_origin = CrossOriginAccess(services.oauth.browser_origins.is_allowed, CROSS_ORIGIN_PATHS)
    Middleware(
        app.rules, services.forwarding, security, access_log, cross_origin, show_reasons=settings.is_loopback
    ).register(app)
    app.static_responses = static_key_responses(services.keys, dict(data_headers(https=settings.https)), access_log)
    return app


def _request_tracing(services: Services) -> RequestTracing | None:
    telemetry, settings = services.database.telemetry, services.settings
    if telemetry is None:
        return None
    return RequestTracing(telemetry, settings.trusted_proxies if settings.otlp_continue_traces else ())


def _register_routes(app: QuartTrio, services: Services, health: Health) -> None:
    s = services
    visitor = Visitor(s.sessions)
    life_s = s.settings.browser_ttl_s
    app.register_blueprint(health_routes(health, s.database, shared_database=s.settings.database_url is not None))
    app.register_blueprint(brand.brand_routes(s.brand))
    app.register_blueprint(language_switcher.switcher_routes())
    app.register_blueprint(key_routes(s.keys))
    app.register_blueprint(permission_routes(s.permissions, s.keys.find_pem))
    app.register_blueprint(exchange_routes(s.permissions.exchange_jwt))
    app.register_blueprint(
        login_routes(
            s.password_login,
            s.second_factors,
            s.session_tokens,
            s.known_devices,
            s.authentication_data,
            s.applications,
            s.sign_in_notices,
        )
    )
    completion = LoginCompletion(
        s.sessions, s.second_factors, s.second_factor_requirement, s.known_devices, s.sign_in_notices, life_s
    )
    recent = RecentAuthentication(
        s.password_login, s.second_factors, s.sessions, s.database.clock, s.passkeys.authentication
    )
    login_flows = CombinedLoginFlows(s.game_login.login_flows, s.oauth.login_flows, LinkLoginFlows(recent))
    tickets = KeepTickets(s.keyring, s.users, s.database.clock)
    closed = ClosedAccountPage(tickets, s.second_factors)
    app.register_blueprint(
        login_pages(
            visitor,
            s.password_login,
            s.second_factors,
            s.sessions,
            s.known_devices,
            login_flows,
            completion,
            s.passkeys.authentication,
            closed,
        )
    )
    app.register_blueprint(
        keep_pages(closed, tickets, s.deletion, s.password_login, s.second_factors, login_flows, completion)
    )
    challenge = build_challenge(s.settings, s.database, s.keyring)
    app.register_blueprint(registration_pages(s.registration, challenge, visitor, login_flows, completion))
    app.register_blueprint(
        password_reset_pages(
            s.reset_requests,
            s.password_reset,
            s.password_login,
            s.second_factors,
            s.passkeys.authentication,
            s.known_devices,
            login_flows,
            completion,
            RateLimiter(s.database, "password reset", -(-s.settings.rate_login // RESETS_DIVISOR)),
        )
    )
    shown = ShownCodes(s.keyring, s.database.clock)
    account = AccountView(
        visitor,
        s.password_login,
        s.sessions,
        s.known_devices,
        recent,
        shown,
        s.second_factor_requirement,
        [
            EmailSection(s.email_verification, s.email_change),
            ProfileSection(),
            SecondFactorSection(s.recovery_codes),
            PasskeySection(s.passkeys.store, s.passkeys.registration, s.passkeys.authentication),
            SignedInSections(s.sessions, s.signed_in_games, s.oauth.connected_sites),
            IdentitiesSection(s.upstream.links, s.upstream.provider_list),
            HistorySection(s.history),
            DataSection(s.deletion),
        ],
        life_s,
        s.database.clock,
    )
    app.register_blueprint(profile_pages(account, ProfileStore(s.database)))
    app.register_blueprint(history_pages(account, s.history))
    app.register_blueprint(personal_data_pages(account, s.database, s.deletion))
    app.register_blueprint(
        account_pages(account, s.users, s.password_changes, s.sessions, s.signed_in_games, s.oauth.connected_sites)
    )
    app.register_blueprint(
        second_factor_pages(
            account, s.second_factors, s.second_factor_changes, TotpEnrolments(s.keyring, s.database.clock), shown
        )
    )
    app.register_blueprint(recovery_code_pages(account, s.recovery_codes, shown))
    app.register_blueprint(email_pages(account, s.email_verification, s.email_change, s.sign_in_notices))
    app.register_blueprint(email_link_pages(s.email_verification, s.email_change))
    app.register_blueprint(passkey_pages(account, s.passkeys.store, s.passkeys.registration, s.passkeys.changes, shown))
    upstream_view = UpstreamView(s.upstream.sign_in, login_flows, s.upstream.rate)
    app.register_blueprint(
        upstream_pages(
            upstream_view,
            s.upstream.sign_in,
            s.upstream.pending,
            s.upstream.registration,
            completion,
            visitor,
            recent,
            closed,
        )
    )
    app.register_blueprint(identity_pages(account, upstream_view, s.upstream.sign_in, s.upstream.links))
    app.register_blueprint(
        oauth_routes(
            s.oauth.token_endpoint,
            s.oauth.revocation,
            s.oauth.token_store,
            s.oauth.token_exchange,
            s.oauth.assertions,
            s.oauth.introspection,
        )
    )
    app.register_blueprint(discovery_routes(s.keys, s.settings.base_url))
    app.register_blueprint(authorize_pages(s.oauth.authorize, visitor, s.oauth.authorize_rate))
    app.register_blueprint(game_routes(s.game_login))
    app.register_blueprint(game_sockets(s.game_login))
    app.register_blueprint(game_pages(s.game_login.confirmation, visitor))
    app.register_blueprint(logout_pages(s.oauth.logout, visitor, s.sessions))
