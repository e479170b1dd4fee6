"""Checks the password of the test players when the service starts."""

from sso.config import ConfigError, Settings
from sso.core.test_players import PUBLIC_PASSWORD, TEST_PLAYERS


def check_test_player_setting(settings: Settings) -> None:
    """Raises ConfigError if the password is easy to guess. That of the demo was checked with the other settings."""
    if settings.test_player_password is None:
        return
    password = settings.test_player_password.get_secret_value()
    if password.strip().casefold() == PUBLIC_PASSWORD:
        return
    from sso.accounts.password_rules import UnacceptablePassword, check_new_password  # slow to import, and rarely used

    try:
        check_new_password(password, (*TEST_PLAYERS.values(), PUBLIC_PASSWORD, settings.brand_name or ""))
    except UnacceptablePassword as error:
        raise ConfigError(f"SSO_TEST_PLAYER_PASSWORD: {error}") from None
