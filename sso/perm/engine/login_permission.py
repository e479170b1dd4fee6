"""Whether a user may log in to an application (§2.8): the rules ``login.can`` and ``login.cannot``, and domains."""

from collections.abc import Iterable

from sso.core.domains import domain_key
from sso.perm.engine.records import OwnRecord, Schema
from sso.perm.engine.user_overrides import values_with_overrides


def login_allowed(schema: Schema, own: OwnRecord, domain: str, restricted_domains: Iterable[str], now: int) -> bool:
    """Returns whether the schema's login rules, overridden by the user's own, and the list of domains admit the user.

    Missing rules have the values of a new application: ``can`` is true, ``cannot`` is false.
    """
    values = values_with_overrides(schema.login, own.login, "login", now)
    if values.get("login.can", True) is not True or values.get("login.cannot", False) is not False:
        return False
    allowed_domains = {domain_key(name) for name in restricted_domains}
    return not allowed_domains or domain in allowed_domains
