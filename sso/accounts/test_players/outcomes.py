"""The test players, and the state of the account that forces the outcome of each."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from sso.accounts.bans.operations import NewBan
from sso.accounts.user_record import UserRecord
from sso.core.test_players import DOMAIN, FIRST_ID, NAMES

TOTP_SECRET = "JBSWY3DPEHPK3PXP"  # noqa: S105 - documented, like everything about these accounts
SLOW_S = 5
BAN_END = 4102444800  # 2100-01-01


_USUAL: Mapping[str, Any] = {
    "email_verified": True,
    "email_2fa": False,
    "disabled": False,
    "tags": [],
    "purchases": [],
    "country": "",
    "lang": "en",
    "level": "0",
    "phone": "",
    "phone_verified": False,
    "meta": {},
}


class ForcedOutcome(Struct, frozen=True):
    """One test player. ``fields`` differ from those of the player whose sign-in succeeds."""

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    second_factors: frozenset[str] = frozenset()
    ban: NewBan | None = None

    @property
    def user_id(self) -> str:
        return str(FIRST_ID + NAMES.index(self.name))

    @property
    def login(self) -> str:
        return f"{self.name}@{DOMAIN}"

    @property
    def record(self) -> UserRecord:
        """The whole record, so that a restore leaves nothing that a user of the account has entered."""
        name = {"user_id": self.user_id, "login": self.login, "nick": f"Test {self.name}"}
        return UserRecord(**{**name, **_USUAL, **self.fields})


SUCCESS = ForcedOutcome("success")
SECOND_FACTOR = ForcedOutcome("second-factor", {"totp_secret": TOTP_SECRET}, frozenset({"totp"}))
BLOCKED = ForcedOutcome("blocked", {"disabled": True})
BANNED = ForcedOutcome("banned", ban=NewBan("Cheating in a ranked match", until=BAN_END))
EXPIRED = ForcedOutcome("expired", {"email_2fa": True}, frozenset({"email"}))
SLOW = ForcedOutcome("slow")
UNVERIFIED = ForcedOutcome("unverified", {"email_verified": False})
OUTCOMES = (SUCCESS, SECOND_FACTOR, BLOCKED, BANNED, EXPIRED, SLOW, UNVERIFIED)
