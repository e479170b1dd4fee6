"""What Keycloak creates in each realm for itself, which has no counterpart here."""

from sso.cli.user_files.model import JsonObject, text_of

MASTER = "master"
CLIENTS = frozenset(("account", "account-console", "admin-cli", "broker", "realm-management", "security-admin-console"))
UNUSED_ROLES = ("offline_access", "uma_authorization")  # what they allow, every user may do here
MASTER_ROLES = ("admin", "create-realm")  # of the realm master: they administer Keycloak
AUTHORIZATION_ROLE = "uma_protection"  # of each client with authorization services
_HARMLESS_CLIENTS = ("account", "account-console", "broker")


class BuiltIn:
    """Knows the parts that Keycloak has created in this realm."""

    def __init__(self, realm: JsonObject) -> None:
        name, default = text_of(realm, "realm"), realm.get("defaultRole")
        self._is_master = name == MASTER
        self._default_roles = {f"default-roles-{name.lower()}"}
        if isinstance(default, dict):
            self._default_roles.add(text_of(default, "name"))

    def is_client(self, client_id: str) -> bool:
        """The realm master has a client for each realm, such as ``tanks-realm``."""
        return client_id in CLIENTS or (self._is_master and client_id.endswith("-realm"))

    def is_role(self, name: str) -> bool:
        """``name`` is that of a role of the realm, or ``client/role``."""
        client, slash, role = name.partition("/")
        if slash and (self.is_client(client) or role == AUTHORIZATION_ROLE):
            return True
        return name in UNUSED_ROLES or name in self._default_roles or (self._is_master and name in MASTER_ROLES)

    def administers(self, name: str) -> bool:
        """Whether users with the role can administer Keycloak."""
        client, slash, _ = name.partition("/")
        if slash:
            return self.is_client(client) and client not in _HARMLESS_CLIENTS
        return self._is_master and name in MASTER_ROLES

    def is_default(self, name: str) -> bool:
        """Whether new users get what the role is composed of."""
        return name in self._default_roles
