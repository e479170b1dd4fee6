"""Builds the Quart application from the services: routes, middleware and configuration."""

from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any

import orjson
from quart import Response
from quart.json.provider import JSONProvider
from quart_trio import QuartTrio
from werkzeug.exceptions import NotFound

from sso.core.fair_thread import FairThread
from sso.core.language import install_translations
from sso.health import Health
from sso.keys.routes import static_key_responses
from sso.oauth.registration.resource_metadata import metadata_challenges
from sso.oauth.registration.routes import public_paths
from sso.oauth.routes import CROSS_ORIGIN_PATHS
from sso.routes import all_routes
from sso.services import Services
from sso.telemetry.metrics import Metrics
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
# What a game in a browser calls. Only origins of first-party clients are allowed: a page that can start a session of a
# game in the player's own browser seems to be the player's game.
GAME_PATHS = frozenset(
    (
        *(f"/proxy/api/gameSession/{name}" for name in ("getGsid", "getGsidResult", "closeGsid")),
        *(f"/proxy/api/{name}" for name in ("login", "logout", "guest", "ticket")),
        "/api/permissions/check",
    )
)


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


def compile_templates() -> None:
    """Compiles the templates that ``build_app`` needs. Processes that are forked afterwards need not compile them."""
    pages.install(_create_app().jinja_env)


def build_app(services: Services, health: Health, metrics: Metrics) -> QuartTrio:
    settings = services.settings
    app = _create_app()
    app.json = OrjsonProvider(app)
    app.url_map.merge_slashes = False  # otherwise it redirects to the host that the client sent
    app.config.update(
        PROXIES=services.proxies,
        PARSERS=FairThread(MAX_BODIES_PER_CLIENT),
        BASE_URL=settings.base_url,
        HTTPS=settings.https,
        MAX_CONTENT_LENGTH=1024 * 1024,  # read_body has lower limits for most routes
        BODY_TIMEOUT=BODY_TIMEOUT_S,
        SEND_FILE_MAX_AGE_DEFAULT=3600,
    )
    services.brand.observe(partial(brand.install, app.jinja_env))
    app.jinja_env.globals["minimum_age"] = settings.minimum_age
    app.jinja_env.globals["docs"] = settings.shows_docs
    language_switcher.install(app.jinja_env)
    pages.install(app.jinja_env)
    for routes in all_routes(services, health):
        app.register_blueprint(routes)
    access_log = AccessLog(metrics, _request_tracing(services))
    app.rules = RequestRules(AllowedHosts.from_settings(settings))
    security = SecurityHeaders(https=settings.https)
    origins = services.oauth.browser_origins
    checks = dict.fromkeys(CROSS_ORIGIN_PATHS, origins.is_allowed) | dict.fromkeys(GAME_PATHS, origins.is_first_party)
    cross_origin = CrossOriginAccess(checks, public_paths(settings.client_registration))
    Middleware(
        app.rules,
        services.forwarding,
        security,
        access_log,
        cross_origin,
        metadata_challenges(settings.base_url),
        show_reasons=settings.is_loopback,
    ).register(app)
    app.static_responses = static_key_responses(services.keys, dict(data_headers(https=settings.https)), access_log)
    return app


def _create_app() -> App:
    app = App("sso", template_folder="web/templates", static_folder="web/static")
    install_translations(app.jinja_env)
    return app


def _request_tracing(services: Services) -> RequestTracing | None:
    telemetry, settings = services.database.telemetry, services.settings
    if telemetry is None:
        return None
    return RequestTracing(telemetry, settings.trusted_proxies if settings.otlp_continue_traces else ())
