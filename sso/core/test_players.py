"""What every package may know about test players: accounts with a known password that force an outcome of a sign-in."""

# The ids are fixed, because a user can change every other field. They never have administrative rights.
FIRST_ID = 7357000000001
TEST_PLAYER_IDS = frozenset(str(FIRST_ID + number) for number in range(7))
PUBLIC_PASSWORD = "test-player-password"  # noqa: S105 - of the demo, and accepted on this machine only
