"""The private parts of Quart and Werkzeug that sso.web depends on still exist and work as expected.

A failure after an upgrade names the file that has to be adapted.
"""

import dis
from collections.abc import Callable
from contextvars import ContextVar
from types import FunctionType
from typing import Any

import pytest
from quart import Quart, Response
from quart import globals as quart_globals
from quart.asgi import ASGIHTTPConnection, ASGIWebsocketConnection
from quart.ctx import AppContext, RequestContext, WebsocketContext, _BaseRequestWebsocketContext
from quart.routing import QuartMap
from quart.wrappers.request import Request
from quart.wrappers.response import DataBody
from quart.wrappers.websocket import Websocket
from quart_trio import QuartTrio
from quart_trio.asgi import TrioASGIHTTPConnection
from quart_trio.wrappers import TrioRequest
from quart_trio.wrappers.request import TrioBody
from werkzeug.datastructures import Headers
from werkzeug.routing import Rule
from werkzeug.sansio.response import Response as BaseResponse

from sso.web.fast_quart.app import MatchingRule
from tests.kit.private_dependencies import changed, code_digest

CONTEXT, REQUEST, APP, WEBSOCKET = (
    f"sso/web/fast_quart/{name}.py" for name in ("context", "request", "app", "websocket")
)
# Names that we override, set or call, and the function of the library that must use them.
USED_NAMES = [
    (AppContext.push, "_cv_tokens", CONTEXT),
    (_BaseRequestWebsocketContext._push_appctx, "_cv_tokens", CONTEXT),
    (RequestContext.push, "_push_appctx", CONTEXT),
    (_BaseRequestWebsocketContext._push, "match_request", CONTEXT),
    (TrioBody.__init__, "_data", REQUEST),
    (TrioBody.__init__, "_max_content_length", REQUEST),
    (TrioBody.__init__, "_must_raise", REQUEST),
    (TrioBody.append, "_max_content_length", REQUEST),
    (TrioRequest.get_data, "body", REQUEST),
    (TrioASGIHTTPConnection.handle_request, "_send_response", APP),
    (TrioASGIHTTPConnection.__call__, "handle_messages", APP),
    (DataBody.__init__, "begin", APP),
    (DataBody.__init__, "end", APP),
    (ASGIWebsocketConnection.handle_websocket, "_accepted", WEBSOCKET),
    (ASGIWebsocketConnection.handle_websocket, "_closed", WEBSOCKET),
    (Websocket.receive, "_receive", WEBSOCKET),
]
# Methods that are replaced by shorter versions, which must follow a change of the original.
REPLACED_METHODS = [
    (QuartTrio.handle_request, "d15a1ca293fc62d8", APP),
    (QuartTrio.full_dispatch_request, "727dc843d76629ca", APP),
    (Quart.dispatch_request, "b262d1403d73b869", APP),
    (Quart.preprocess_request, "db06e1d1e76baaaa", APP),
    (Quart.finalize_request, "692b58fccf2daa5b", APP),
    (Quart.process_response, "0f1860857e29aed5", APP),
    (AppContext.push, "258046086676b93f", CONTEXT),
    (AppContext.pop, "5cd984e692a73b9d", CONTEXT),
    (RequestContext.__init__, "ee913bfc06ddc402", CONTEXT),
    (_BaseRequestWebsocketContext.__init__, "116c9b5678f7ada1", CONTEXT),
    (Response.__init__, "ad683b0a4a02cafd", "sso/web/response.py"),
    (BaseResponse.__init__, "5595d3c1017e4943", "sso/web/response.py"),
    (RequestContext.push, "514ffc1946ac878d", CONTEXT),
    (RequestContext.pop, "9a935c5a5d4452d1", CONTEXT),
    (_BaseRequestWebsocketContext._push, "207b8f4f0b8f3eae", CONTEXT),
    (QuartTrio.handle_websocket, "79c868333189c199", APP),
    (QuartTrio.full_dispatch_websocket, "729b696d8698ebe8", APP),
    (Quart.dispatch_websocket, "e6bda44224c75cdb", APP),
    (Quart.preprocess_websocket, "5a64354af8a60eb2", APP),
    (Quart.finalize_websocket, "65933c902d887f82", APP),
    (Quart.postprocess_websocket, "b96e2cc009c288b9", APP),
    (WebsocketContext.push, "35d28dd45d6c2b6a", CONTEXT),
    (WebsocketContext.pop, "718d3b53267a71d8", CONTEXT),
]
# The attributes that Request.__init__ sets. FastRequest sets them itself, as it does not call that method.
REQUEST_ATTRIBUTES = {
    "body", "body_timeout", "_cached_json", "_files", "_form", "_parsing_lock", "_send_push_promise",
}  # fmt: skip


@pytest.mark.parametrize(
    ("function", "name", "file"), USED_NAMES, ids=lambda value: getattr(value, "__qualname__", value)
)
def test_quart_uses_the_names_that_are_overridden(function: Callable[..., Any], name: str, file: str) -> None:
    assert isinstance(function, FunctionType)
    assert name in _names(function), f"{function.__qualname__} no longer uses {name}: adapt {file}"


def _names(function: FunctionType) -> set[str]:
    """The names in a function and in the functions inside it."""
    codes = [function.__code__]
    for code in codes:
        codes += [constant for constant in code.co_consts if hasattr(constant, "co_names")]
    return {name for code in codes for name in code.co_names}


@pytest.mark.parametrize(
    ("method", "digest", "file"), REPLACED_METHODS, ids=lambda value: getattr(value, "__qualname__", "")
)
def test_methods_of_quart_that_are_replaced_have_not_changed(
    method: Callable[..., Any], digest: str, file: str
) -> None:
    library = "quart-trio" if method.__module__.startswith("quart_trio") else "quart"
    assert code_digest(method) == digest, changed(library, method.__qualname__, file)


@pytest.mark.parametrize("name", ["_cv_app", "_cv_request", "_cv_websocket"])
def test_quart_keeps_its_contexts_in_context_variables(name: str) -> None:
    variable = getattr(quart_globals, name, None)
    assert isinstance(variable, ContextVar), f"quart.globals.{name} is no ContextVar: adapt sso/web/request.py"


async def test_context_variables_of_quart_hold_the_contexts_of_the_current_request() -> None:
    app: Quart = QuartTrio("private")
    async with app.test_request_context("/") as context:
        adapt = "adapt sso/web/request.py and sso/web/middleware.py"
        assert quart_globals._cv_request.get() is context, adapt
        assert quart_globals._cv_request.get().request is context.request, adapt
        assert quart_globals._cv_app.get().app is app, adapt
        assert quart_globals._cv_app.get().g is not None, adapt


def test_constructor_of_requests_sets_no_further_attributes() -> None:
    attributes = _attributes_set(Request.__init__)
    assert attributes == REQUEST_ATTRIBUTES, f"FastRequest must set the same attributes: adapt {REQUEST}"


def _attributes_set(function: Callable[..., Any]) -> set[str]:
    return {i.argval for i in dis.get_instructions(function) if i.opname == "STORE_ATTR"}


def test_body_of_a_response_has_its_data() -> None:
    body = Response(b"abc").response
    assert isinstance(body, DataBody), f"the body of a response is a {type(body)}: adapt {APP}"
    assert (body.data, body.begin, body.end) == (b"abc", 0, 3), f"adapt {APP}"


def test_werkzeug_keeps_headers_in_a_list() -> None:
    headers = Headers([("A", "1")])
    files = "sso/web/security_headers.py and sso/web/fast_quart/request.py"
    assert getattr(headers, "_list", None) == [("A", "1")], f"adapt {files}"
    headers._list.append(("B", "2"))
    assert headers["b"] == "2", f"adapt {files}"


def test_asgi_connection_sends_responses_without_its_scope() -> None:
    """FastQuart._stream passes an empty scope."""
    used = "scope" in _names(TrioASGIHTTPConnection._send_response) | _names(ASGIHTTPConnection._send_response)  # type: ignore[arg-type]
    assert not used, f"_send_response uses the scope: adapt _stream in {APP}"


def test_werkzeug_compiles_the_builders_of_a_rule_with_one_method() -> None:
    file = "sso/web/fast_quart/rule.py"
    rule = MatchingRule("/a/<name>", endpoint="a")
    QuartMap([rule])
    for builder in (rule._build, rule._build_unknown):
        with pytest.raises(NotImplementedError, match="/a/<name>"):
            builder({"name": "b"})
    assert "_compile_builder" in Rule.compile.__code__.co_names, changed("werkzeug", "Rule._compile_builder", file)
