"""Signing keys: the list, a new key in place of the one that signs, and the end of a key."""

from typing import Any

from quart import Blueprint, Response, request

from sso.console.export_pages import add_export
from sso.console.form_error import FormError
from sso.console.sections import SIGNING_KEYS
from sso.console.users.pages import problem
from sso.console.view import ConsoleView, done
from sso.console.visit import ConsoleVisit, version_of
from sso.core.algorithms import CHEAP_ALGORITHMS
from sso.core.errors import ApiError

KEYS, KEY = "/signing-keys", "/signing-keys/<kid>"
CSV_COLUMNS = ("kid", "algorithm", "side", "state", "created", "signs_from", "retires", "retired")


def signing_key_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(SIGNING_KEYS)
    add_export(console, routes, SIGNING_KEYS, "/signing-keys", CSV_COLUMNS)

    @routes.get("")
    async def show_list() -> Response:
        return await key_list(await console.open(SIGNING_KEYS))

    async def key_list(visit: ConsoleVisit, **context: Any) -> Response:
        found = await visit.call("GET", KEYS, query={"after": request.args.get("after", "")})
        return await console.show(
            visit,
            "signing_keys/list.html",
            title="Signing keys",
            keys=[key | {"version": version_of(key)} for key in found.members["data"]],
            next=found.members.get("next"),
            side_algorithms=CHEAP_ALGORITHMS,
            **context,
        )

    @routes.post("/rotate")
    async def rotate() -> Response:
        """``series`` is the main key with an algorithm, or the side key of an algorithm: ``RS256``, ``side ES256``."""
        visit, form = await console.submitted(SIGNING_KEYS, "POST", KEYS)
        side, _, algorithm = form.get("series", "").rpartition(" ")
        try:
            await visit.call("POST", KEYS, body={"algorithm": algorithm, "side": side == "side"})
        except ApiError as error:
            return await key_list(visit, **problem(FormError.of(error)))
        return done(SIGNING_KEYS.path, "signing-key-rotated")

    @routes.post("/<kid>/retire")
    async def retire(kid: str) -> Response:
        visit, form = await console.submitted(SIGNING_KEYS, "DELETE", KEY)
        try:
            await visit.call("DELETE", KEY, kid=kid, if_match=form.get("version") or None)
        except ApiError as error:
            return await key_list(visit, **problem(FormError.of(error)))
        return done(SIGNING_KEYS.path, "signing-key-retired")

    return routes
