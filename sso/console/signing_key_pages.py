"""Signing keys: the list, a new key in place of the one that signs, and the end of a key."""

from typing import Any

from quart import Blueprint, Response

from sso.console.deletion_pages import Consequences, DeletionPage, StoredRecord, add_deletion
from sso.console.form_pages import Form, FormPage, add_form
from sso.console.list_pages import ListPage, Record, Variables, add_list
from sso.console.sections import SIGNING_KEYS
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit
from sso.core.algorithms import CHEAP_ALGORITHMS

KEYS, KEY = "/signing-keys", "/signing-keys/<kid>"
CSV_COLUMNS = ("kid", "algorithm", "side", "state", "created", "signs_from", "retires", "retired")


def signing_key_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(SIGNING_KEYS)
    keys = ListPage(
        SIGNING_KEYS,
        KEYS,
        "keys",
        "signing_keys/list.html",
        CSV_COLUMNS,
        (),
        page=_values,
    )
    show_list = add_list(console, routes, keys)

    async def show(visit: ConsoleVisit, variables: Variables, _: Form | None, /, **problem: Any) -> Response:
        return await show_list(visit, variables, **problem)

    rotate = FormPage(
        SIGNING_KEYS,
        "/rotate",
        "POST",
        KEYS,
        _new_key,
        show,
        "signing-key-rotated",
        lambda _, __: SIGNING_KEYS.path,
    )
    add_form(console, routes, rotate)
    add_deletion(console, routes, RETIREMENT)
    return routes


async def _consequences(_visit: ConsoleVisit, stored: StoredRecord, _: Variables) -> Consequences:
    key = stored.data
    tokens = "refresh tokens, and ID tokens of clients that chose it" if key["side"] else "JWTs and ID tokens"
    ends = [
        f"Every token that it has signed becomes invalid at once: {tokens}.",
        "Games and sites that hold such tokens sign their users in again.",
    ]
    return Consequences(key["kid"], ends, "This cannot be undone: a retired key does not come back.", SIGNING_KEYS.path)


RETIREMENT = DeletionPage(
    SIGNING_KEYS,
    "/<kid>/retire",
    KEY,
    "signing key",
    "signing-key-retired",
    lambda _: SIGNING_KEYS.path,
    _consequences,
    verb="Retire",
)


async def _values(_visit: ConsoleVisit, _variables: Variables) -> Record:
    return {"side_algorithms": CHEAP_ALGORITHMS}


def _new_key(form: Form, _variables: Variables) -> Record:
    """``series`` is the main key with an algorithm, or the side key of an algorithm: ``RS256``, ``side ES256``."""
    side, _, algorithm = form.get("series", "").rpartition(" ")
    return {"algorithm": algorithm, "side": side == "side"}
