"""The Quart application, built from the services: routes in, answers and errors out."""

import time
from typing import Any

import orjson
import structlog
from quart import Response, g
from quart.json.provider import JSONProvider
from quart.typing import ResponseTypes
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException, NotFound, RequestHeaderFieldsTooLarge

from sso.accounts.account_pages import account_pages
from sso.accounts.journey import AnyJourneys
from sso.accounts.pages import Visitor, signin_pages
from sso.accounts.routes import login_routes
from sso.core.ids import record_id
from sso.core.refused import Refused
from sso.db.errors import DatabaseError
from sso.gsid.pages import game_pages
from sso.gsid.routes import game_routes
from sso.gsid.sockets import game_sockets
from sso.health import Health, health_routes
from sso.keys.routes import key_routes
from sso.metrics import Metrics
from sso.oauth.logout_pages import logout_pages
from sso.oauth.pages import authorize_pages
from sso.oauth.routes import discovery_routes, oauth_routes
from sso.perm.routes import exchange_routes, permission_routes
from sso.services import SERVICE_NAME, Services
from sso.web.address import Proxies
from sso.web.errors import Family, error_body, family_of
from sso.web.gate import BadBody
from sso.web.headers import add_security_headers
from sso.web.http import asked, reply
from sso.web.pages import page
from sso.web.socket import SocketConnection

BODY_S = 30
HEAD_MOST = 32 * 1024
FILE_NAME_MOST = 100
log = structlog.get_logger()


class OrjsonProvider(JSONProvider):
    def dumps(self, obj: Any, **_: Any) -> str:
        return orjson.dumps(obj).decode()

    def loads(self, s: str | bytes, **_: Any) -> Any:
        return orjson.loads(s)


class App(QuartTrio):
    asgi_websocket_class = SocketConnection

    async def send_static_file(self, filename: str) -> Response:
        if len(filename) > FILE_NAME_MOST:  # the operating system would call it an error
            raise NotFound
        return await super().send_static_file(filename)


def build_app(services: Services, health: Health, metrics: Metrics) -> QuartTrio:
    settings = services.settings
    app = App("sso", template_folder="web/templates", static_folder="web/static")
    app.json = OrjsonProvider(app)
    app.url_map.merge_slashes = False  # else it redirects, to whatever host the client has named
    app.config.update(
        PROXIES=Proxies(settings.trusted_proxies, settings.proxy_header.lower()),
        BASE_URL=settings.base_url,
        HTTPS=settings.https,
        SERVICE_NAME=SERVICE_NAME,
        MAX_CONTENT_LENGTH=1024 * 1024,  # the gate has lower limits for most routes
        BODY_TIMEOUT=BODY_S,
        SEND_FILE_MAX_AGE_DEFAULT=3600,
    )
    _register_routes(app, services, health)
    _register_edge(app, settings.https, metrics)
    return app


def _register_routes(app: QuartTrio, services: Services, health: Health) -> None:
    s = services
    visitor = Visitor(s.sessions)
    life_s = s.settings.browser_ttl_s
    app.register_blueprint(health_routes(health, s.database))
    app.register_blueprint(key_routes(s.keys))
    app.register_blueprint(permission_routes(s.permissions, s.keys.find_pem))
    app.register_blueprint(exchange_routes(s.exchange_jwt))
    app.register_blueprint(login_routes(s.signin, s.factors, s.session_tokens, s.auth_data, s.applications))
    journeys = AnyJourneys(s.game.journeys, s.oauth.journeys)
    app.register_blueprint(signin_pages(visitor, s.signin, s.factors, s.sessions, journeys, life_s))
    app.register_blueprint(
        account_pages(visitor, s.signin, s.users, s.sessions, s.factors, s.hasher, s.keyring, s.oauth.sites, life_s)
    )
    app.register_blueprint(oauth_routes(s.oauth.token, s.oauth.revocation, s.oauth.grants, s.oauth.exchange))
    app.register_blueprint(discovery_routes(s.keys, s.settings.base_url))
    app.register_blueprint(authorize_pages(s.oauth.authorize, visitor))
    app.register_blueprint(game_routes(s.game))
    app.register_blueprint(game_sockets(s.game))
    app.register_blueprint(game_pages(s.game.confirm, visitor))
    app.register_blueprint(logout_pages(s.oauth.logout, visitor, s.sessions))


def _register_edge(app: QuartTrio, https: bool, metrics: Metrics) -> None:
    @app.before_request
    @app.before_websocket
    async def begin() -> None:
        g.started = time.perf_counter()
        g.request_id = record_id()
        structlog.contextvars.bind_contextvars(request=g.request_id)
        # What reads the head has a limit of its own, but only for a head that comes in pieces.
        if sum(len(name) + len(value) + 4 for name, value in asked().scope["headers"]) > HEAD_MOST:
            raise RequestHeaderFieldsTooLarge

    @app.after_request
    async def finish(response: Response) -> Response:
        add_security_headers(response.headers, https=https)
        response.headers["X-Request-Id"] = g.request_id
        seconds = time.perf_counter() - g.started
        route = rule.rule if (rule := asked().url_rule) else "-"
        metrics.request(asked().method, route, response.status_code, seconds)
        # The rule, not the path or the query: those may hold a secret.
        log.info("request", method=asked().method, route=route, status=response.status_code, ms=round(seconds * 1e3, 1))
        return response

    @app.after_websocket
    async def finish_socket(response: ResponseTypes | None) -> ResponseTypes | None:
        """There is a response only where no socket was opened."""
        return await finish(response) if isinstance(response, Response) else response

    @app.errorhandler(Refused)
    async def refused(error: Refused) -> Response:
        return await show_error(error.status, error.code, error.message, error.headers, error.extra)

    @app.errorhandler(BadBody)
    async def bad_body(error: BadBody) -> Response:
        return await show_error(error.status, "invalid_request", str(error))

    @app.errorhandler(DatabaseError)
    async def unavailable(error: DatabaseError) -> Response:
        log.warning("database", error=type(error).__name__, reason=str(error))
        message = "the service is not available for a moment, try again"
        return await show_error(503, "temporarily_unavailable", message, {"Retry-After": "1"})

    @app.errorhandler(HTTPException)
    async def http_error(error: HTTPException) -> Response:
        status = error.code or 500
        headers = {name: value for name, value in error.get_headers() if name in ("Allow", "Location")}
        if 300 <= status < 400:
            return Response(b"", status, headers)
        return await show_error(status, "invalid_request", (error.name or "error").lower(), headers)

    @app.errorhandler(Exception)
    async def failed(error: Exception) -> Response:
        log.exception("request failed", error=type(error).__name__)
        return await show_error(500, "server_error", "internal error")


HEADINGS = {
    400: "That request was not understood",
    403: "That is not allowed",
    404: "There is no such page",
    405: "That is not how this page is used",
    410: "This link has ended",
    413: "That was too much",
    431: "That was too much",
    429: "Too many attempts",
    500: "Something went wrong on our side",
    503: "We will be right back",
}


async def show_error(
    status: int,
    code: str,
    message: str,
    headers: dict[str, str] | None = None,
    extra: dict[str, Any] | None = None,
) -> Response:
    family = family_of(asked().path)
    if family is Family.PAGE:
        return await page(
            "error.html",
            status=status,
            headers={"Referrer-Policy": "no-referrer", **(headers or {})},  # it has no form
            page_title=HEADINGS.get(status, "Error"),
            heading=HEADINGS.get(status, "Error"),
            message=message[:1].upper() + message[1:],
            request_id=g.request_id,
            back="/",
            back_text="To the start page",
        )
    return reply(error_body(family, code, message, extra or {}), status, headers)
