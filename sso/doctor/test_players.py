"""Whether accounts with a shared password can sign in."""

from collections.abc import Iterator

from sso.config import Settings
from sso.core.findings import Finding
from sso.core.test_players import IS_TEST_PLAYER_SQL, TEST_PLAYERS
from sso.db.standalone import fetch_value

NAME = "test players"
_ENABLED = f"SELECT count(*) FROM users WHERE {IS_TEST_PLAYER_SQL} AND NOT disabled"
_IDS, _LOGINS = (", ".join(f"'{text}'" for text in texts) for texts in (TEST_PLAYERS.keys(), TEST_PLAYERS.values()))
_OTHERS = f"""SELECT coalesce(string_agg(user_id, ', ' ORDER BY user_id), '') FROM users
    WHERE (user_id IN ({_IDS}) OR login_key IN ({_LOGINS})) AND NOT {IS_TEST_PLAYER_SQL}"""


def test_players(settings: Settings, dsn: str | None) -> Iterator[Finding]:
    """``dsn`` is None if the database cannot be used."""
    if settings.test_player_password is None:
        yield _without_the_setting(fetch_value(dsn, _ENABLED) if dsn else 0)
        return
    advice = "unset SSO_TEST_PLAYER_PASSWORD where real players sign in: the next start disables these accounts"
    yield Finding(NAME, False, "accounts with a shared password can sign in", advice, warning=True)
    if others := fetch_value(dsn, _OTHERS) if dsn else "":
        detail = f"ordinary accounts have the id or the login of one, which is therefore missing: {others}"
        yield Finding(NAME, False, detail, "change the login of these accounts, or do without them", warning=True)


def _without_the_setting(enabled: int) -> Finding:
    detail = f"{enabled} can sign in, although SSO_TEST_PLAYER_PASSWORD is not set" if enabled else "there are none"
    return Finding(NAME, not enabled, detail, "restart the service: each start disables them", warning=True)
