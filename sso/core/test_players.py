"""What every package may know about test players: accounts with a known password that force an outcome of a sign-in.

A test player is the account that has both the id and the login below. Neither can be changed. An ordinary account that
has only one of them is no test player, and is left alone.
"""

from collections.abc import Mapping

FIRST_ID = 7357000000001
DOMAIN = "player.test"  # the domain .test is reserved for tests, so the addresses belong to nobody
NAMES = ("success", "second-factor", "blocked", "banned", "expired", "slow", "unverified")
TEST_PLAYERS: Mapping[str, str] = {str(FIRST_ID + number): f"{name}@{DOMAIN}" for number, name in enumerate(NAMES)}

PUBLIC_PASSWORD = "test-player-password"  # noqa: S105 - of the demo, and accepted on this machine only
EXAMPLE_PASSWORD = "a password that only your developers know"  # noqa: S105 - of the documentation, and never accepted

_PAIRS = ", ".join(f"('{user_id}', '{login}')" for user_id, login in TEST_PLAYERS.items())
IS_TEST_PLAYER_SQL = f"(user_id, login_key) IN ({_PAIRS})"  # a condition on a row of the table users


def is_test_player(user_id: str, login: str) -> bool:
    expected = TEST_PLAYERS.get(user_id)
    if expected is None:
        return False
    from sso.core.domains import domain_key  # slow to import, and settings need this module

    local, _, domain = login.rpartition("@")
    return f"{local.casefold()}@{domain_key(domain)}" == expected
