"""The facts about a user that conditions compare with."""

from msgspec import Struct

from sso.core.domains import domain_key
from sso.core.net import Address
from sso.core.test_players import is_test_player


class UserFacts(Struct, frozen=True):
    user_id: str
    domain: str = ""  # see `login_domain`
    tags: frozenset[str] = frozenset()
    purchases: frozenset[str] = frozenset()
    address: Address | None = None  # of the request; without one, no ip condition holds
    cannot_administer: bool = False  # guests and test players have no administrative right, whatever the conditions say

    @classmethod
    def from_login(
        cls,
        user_id: str,
        login: str | None,
        tags: tuple[str, ...] = (),
        purchases: tuple[str, ...] = (),
        address: Address | None = None,
    ) -> "UserFacts":
        """``login`` is None for a user who does not exist, and empty for a guest."""
        powerless = login is not None and (login == "" or is_test_player(user_id, login))
        return cls(user_id, login_domain(login or ""), frozenset(tags), frozenset(purchases), address, powerless)


def login_domain(login: str) -> str:
    """Returns the part of a login after the last ``@``, in the form in which domains are compared; empty without an
    ``@``."""
    return domain_key(login.rpartition("@")[2]) if "@" in login else ""
