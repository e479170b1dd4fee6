"""Whether a user may log in to an application (§2.8): ``login.can`` and ``login.cannot``, and restricted domains."""

from collections.abc import Iterable

from sso.core.domains import domain_key
from sso.perm.engine.compiled import Schema
from sso.perm.engine.facts import OwnRecord
from sso.perm.engine.tree import overlaid_values


def may_log_in(schema: Schema, own: OwnRecord, domain: str, restricted_domains: Iterable[str], now: int) -> bool:
    """The schema's rules, overridden by the user's own; without any, the defaults of a new application."""
    said = overlaid_values(schema.login, own.login, "login", now)
    if said.get("login.can", True) is not True or said.get("login.cannot", False) is not False:
        return False
    allowed = {domain_key(name) for name in restricted_domains}
    return not allowed or domain in allowed
