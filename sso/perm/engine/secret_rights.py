"""The rights that ``secret_data`` gives at an application (§2.8), where the user's own record overrides the schema."""

from collections.abc import Mapping

from msgspec import Struct, field

from sso.perm.engine.records import OwnRecord, Schema
from sso.perm.engine.user_overrides import values_with_overrides

SELF, ALL, NONE = "self", "all", "none"
# The values that apply where the schema has none (§2.8).
META_DEFAULTS: Mapping[str, str] = {
    "roles.canRead": SELF,
    "roles.canWrite": NONE,
    "private.canRead": SELF,
    "private.canWrite": NONE,
    "public.canRead": ALL,
    "public.canWrite": NONE,
    "secret.canRead": NONE,
    "secret.canWrite": NONE,
}
APPLICATION_RULES = ("canCreateJwt", "canModifySchema", "canRead", "canReadSchema", "canSave", "canSeeRoleList")


class SecretRights(Struct, frozen=True):
    """The rights in the application's secret_data, where the caller's own data override them."""

    application: frozenset[str] = frozenset()  # the APPLICATION_RULES that are true
    meta: Mapping[str, str] = field(default_factory=lambda: dict(META_DEFAULTS))


NO_SECRET_RIGHTS = SecretRights()


def secret_rights(schema: Schema, own: OwnRecord, now: int) -> SecretRights:
    values = values_with_overrides(schema.secret_data, own.secret_data, "secret_data", now)
    application = frozenset(name for name in APPLICATION_RULES if values.get(f"secret_data.application.{name}") is True)
    meta = {}
    for name, default in META_DEFAULTS.items():
        value = values.get(f"secret_data.meta.{name}", default)
        meta[name] = value if value in (SELF, ALL) else NONE
    return SecretRights(application, meta)
