"""The test players, and the state of the account that forces the outcome of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sso.accounts.bans.operations import NewBan
from sso.accounts.model import login_key
from sso.accounts.user_record import UserRecord
from sso.core.test_players import FIRST_ID

DOMAIN = "player.test"  # the domain .test is reserved for tests, so the addresses belong to nobody
TOTP_SECRET = "JBSWY3DPEHPK3PXP"  # noqa: S105 - documented, like everything about these accounts
SLOW_S = 5
BAN_END = 4102444800  # 2100-01-01


@dataclass(frozen=True)
class ForcedOutcome:
    """One test player. ``fields`` differ from those of the player whose sign-in succeeds."""

    number: int
    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    second_factors: frozenset[str] = frozenset()
    ban: NewBan | None = None

    @property
    def user_id(self) -> str:
        return str(FIRST_ID + self.number)

    @property
    def login(self) -> str:
        return f"{self.name}@{DOMAIN}"

    @property
    def login_key(self) -> str:
        return login_key(self.login)

    @property
    def record(self) -> UserRecord:
        usual = {"email_verified": True, "email_2fa": False, "disabled": False, "tags": [], "purchases": []}
        nick = f"Test {self.name}"
        return UserRecord(**{"user_id": self.user_id, "login": self.login, "nick": nick, **usual, **self.fields})


SUCCESS = ForcedOutcome(0, "success")
SECOND_FACTOR = ForcedOutcome(1, "second-factor", {"totp_secret": TOTP_SECRET}, frozenset({"totp"}))
BLOCKED = ForcedOutcome(2, "blocked", {"disabled": True})
BANNED = ForcedOutcome(3, "banned", ban=NewBan("Cheating in a ranked match", until=BAN_END))
EXPIRED = ForcedOutcome(4, "expired", {"email_2fa": True}, frozenset({"email"}))
SLOW = ForcedOutcome(5, "slow")
UNVERIFIED = ForcedOutcome(6, "unverified", {"email_verified": False})
OUTCOMES = (SUCCESS, SECOND_FACTOR, BLOCKED, BANNED, EXPIRED, SLOW, UNVERIFIED)
