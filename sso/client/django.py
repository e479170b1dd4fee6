"""Django: decorators that put the player of a request into ``request.player``, and require a rule.

The settings of Django have ``SSO = {"url", "client_id", "client_secret", "application_id"}``; without rules, ``url`` is
enough. ``"require_factor": True`` also requires the factor of the player's device, as header ``Factor``::

    @signed_in
    def inventory(request): return JsonResponse({"user_id": request.player.user_id})

    @may("chat.kick")
    def kick(request): ...

``PlayerMiddleware`` does the same for all views: ``request.player`` is None for requests without a JWT.
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

from sso.client.clients import SsoClient
from sso.client.credentials import ServiceClient
from sso.client.player_guard import PlayerDenied, PlayerGuard, has_jwt

View = Callable[..., HttpResponse]


@cache
def guard() -> PlayerGuard:
    """Returns the guard of this process, with the keys that it has fetched."""
    from sso.client import PlayerVerifier

    options = settings.SSO
    url, client_id = options["url"], options.get("client_id")
    sso = SsoClient(url, ServiceClient(client_id, options["client_secret"])) if client_id else None
    application_id, require_factor = options.get("application_id", 0), options.get("require_factor", False)
    return PlayerGuard(PlayerVerifier(url), sso, application_id, require_factor=require_factor)


def signed_in(view: View) -> View:
    return _guarded(view, lambda request: guard().player(request.headers))


def may(rule: str) -> Callable[[View], View]:
    return lambda view: _guarded(view, lambda request: guard().player_with(request.headers, rule))


class PlayerMiddleware:
    def __init__(self, get_response: View) -> None:
        self._get_response = get_response
        self._guarded = signed_in(get_response)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if has_jwt(request.headers):
            return self._guarded(request)
        request.player = None
        return self._get_response(request)


def _guarded(view: View, find_player: Callable[[HttpRequest], Any]) -> View:
    @wraps(view)
    def guarded(request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponse:
        try:
            request.player = find_player(request)
        except PlayerDenied as denied:
            return JsonResponse({"error": denied.text}, status=denied.status, headers=denied.headers)
        return view(request, *arguments, **named)

    return guarded
