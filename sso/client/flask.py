"""Flask: decorators that put the player of a request into ``g.player``, and require a rule.

::

    players = FlaskPlayers(PlayerVerifier(url), SsoClient(url, ServiceClient(client_id, secret)), application_id=10)

    @app.get("/inventory")
    @players.signed_in
    def inventory(): return {"user_id": g.player.user_id}

    @app.post("/kick")
    @players.may("chat.kick")
    def kick(): ...
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from flask import g, jsonify, request

from sso.client.player_guard import PlayerDenied, PlayerGuard

View = TypeVar("View", bound=Callable[..., Any])


class FlaskPlayers(PlayerGuard):
    def signed_in(self, view: View) -> View:
        return _guarded(view, lambda: self.player(request.headers))

    def may(self, rule: str) -> Callable[[View], View]:
        return lambda view: _guarded(view, lambda: self.player_with(request.headers, rule))


def _guarded(view: View, find_player: Callable[[], Any]) -> View:
    @wraps(view)
    def guarded(*arguments: Any, **named: Any) -> Any:
        try:
            g.player = find_player()
        except PlayerDenied as denied:
            return jsonify(error=denied.text), denied.status, denied.headers
        return view(*arguments, **named)

    return cast(View, guarded)
