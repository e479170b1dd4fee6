"""The language switcher of all pages: links to a route that remembers the choice and shows the page again."""

from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, urlencode

from jinja2 import Environment
from quart import Blueprint, Response, current_app, g, request

from sso.core.language_names import LANGUAGES, NAMES
from sso.web.language import remember_choice
from sso.web.redirects import LOCAL_PATH, safe_next, see_other

MAX_PATH = 2000
# What a form sends besides its answers: where the sign-in continues, and the link from a mail.
_STATE_FIELDS = ("next", "token")


def install(environment: Environment) -> None:
    environment.globals["page_languages"] = tuple(NAMES.items())
    environment.globals["language_names"] = NAMES


def switcher_routes() -> Blueprint:
    routes = Blueprint("language_switcher", __name__)

    @routes.get("/language")
    async def choose() -> Response:
        response = see_other(safe_next(request.args.get("back")))
        language = request.args.get("lang")
        # A link on a foreign page must not change the language.
        is_own = request.headers.get("Sec-Fetch-Site", "same-origin") in ("same-origin", "none")
        if language in LANGUAGES and is_own:
            remember_choice(response, language)
        return response

    return routes


def same_page() -> str:
    """Returns the path at which GET shows the current page again. After a form that is the page with the form."""
    if request.method in ("GET", "HEAD"):
        return _local(request.path, _safe_query(request.query_string.decode("latin-1")))
    adapter = current_app.url_map.bind("")
    path = request.path
    while path and "GET" not in adapter.allowed_methods(path):
        path = path.rpartition("/")[0]
    fields: Mapping[str, str] = g.get("form_fields") or {}
    return _local(path or "/", _safe_query(urlencode({name: fields.get(name, "") for name in _STATE_FIELDS})))


def same_path() -> str:
    """Returns the path of the current request without its query, for pages that show nothing of it."""
    return _local(request.path, "")


def _safe_query(query: str) -> str:
    """Returns the query without empty values, and with a ``next`` that is a path of this server."""
    try:
        values = parse_qsl(query, max_num_fields=100)
    except ValueError:
        return ""
    return urlencode([(name, safe_next(value) if name == "next" else value) for name, value in values])


def _local(path: str, query: str) -> str:
    path = quote(path, safe="/:@,+~")
    for candidate in (f"{path}?{query}" if query else path, path):
        if len(candidate) <= MAX_PATH and LOCAL_PATH.fullmatch(candidate):
            return candidate
    return "/"
