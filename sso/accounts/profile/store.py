"""Changes of a user's profile."""

from msgspec import Struct

from sso.accounts.history.events import EventKind, record_event
from sso.accounts.model import User
from sso.accounts.nickname import InvalidNickname, parse_nickname
from sso.accounts.profile.choices import is_country
from sso.core.language import Text, first_supported
from sso.core.language_names import LANGUAGES
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Transaction

_SAVE = Statement(
    """UPDATE users SET nick = :nick, lang = :lang, country = :country
    WHERE user_id = :user_id AND NOT disabled AND (nick, lang, country) IS DISTINCT FROM (:nick, :lang, :country)
    RETURNING user_id"""
)


class Profile(Struct, frozen=True):
    nick: str
    lang: str
    country: str  # a code of ISO 3166-1; "" if the user does not tell


class InvalidProfile(ValueError):
    """A field of the form has a value that cannot be saved."""

    def __init__(self, field: str, text: Text) -> None:
        super().__init__(text)
        self.field = field
        self.text = text


def parse_profile(user: User, form: dict[str, str]) -> Profile:
    """Returns the profile in a form. The present values of the user are accepted too. Raises InvalidProfile."""
    lang, country = form.get("lang", user.lang), form.get("country", user.country)
    try:
        nick = parse_nickname(form.get("nick", ""))
    except InvalidNickname as error:
        raise InvalidProfile("nick", error.text) from None
    if lang not in (*LANGUAGES, user.lang):
        raise InvalidProfile("lang", Text("Please choose a language from the list."))
    if country and country != user.country and not is_country(country):
        raise InvalidProfile("country", Text("Please choose a country from the list."))
    return Profile(nick, lang, country)


def chosen_language(user: User) -> str:
    """Returns the entry of the list that stands for the user's language."""
    return first_supported([user.lang]) or LANGUAGES[0]


class ProfileStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, user_id: str, profile: Profile) -> None:
        """Saves the profile. A change is added to the user's history."""
        await self._database.transaction(_save, user_id, profile)


async def _save(tx: Transaction, user_id: str, profile: Profile) -> None:
    values = {"nick": profile.nick, "lang": profile.lang, "country": profile.country}
    if await tx.value(_SAVE, user_id=user_id, **values) is not None:
        await record_event(tx, user_id, EventKind.PROFILE_CHANGED)
