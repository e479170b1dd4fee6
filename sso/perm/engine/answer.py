"""``data`` of a meta/data get, for each type of §4.5."""

from collections.abc import Callable, Mapping
from typing import Any

from sso.perm.engine.compiled import Application
from sso.perm.engine.effective import Effective
from sso.perm.engine.facts import PermissionFacts
from sso.perm.engine.render import Options, as_list, as_list_short, as_roles, with_options
from sso.perm.engine.tree import as_tree

TYPES = ("list", "list_short", "roles", "tree")  # the first is the default

_FLAT: Mapping[str, Callable[[Effective, Options], list[str]]] = {
    "list": as_list,
    "list_short": as_list_short,
    "roles": as_roles,
}


def answer(kind: str, application: Application, facts: PermissionFacts, effective: Effective, options: Options) -> Any:
    if kind == "tree":
        body: Any = as_tree(application.schema, facts.own, options.sections)
    else:
        body = _FLAT[kind](effective, options)
    return with_options(body, effective, options)
