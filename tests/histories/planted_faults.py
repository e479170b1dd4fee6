"""The faults that are planted, by their group. Each breaks one invariant."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PlantedFault:
    """Texts of modules that are replaced, and the invariant whose violation the checker must find."""

    name: str
    invariant: str
    edits: tuple[tuple[str, str, str], ...]  # module, old text, new text


def _fault(name: str, invariant: str, *edits: tuple[str, str, str]) -> PlantedFault:
    return PlantedFault(name, invariant, edits)


STATEMENTS = "oauth/tokens/statements.py"
CLAIMS = "gsid/claim_store.py"
SECOND_FACTORS = "accounts/second_factor/store.py"
LINKS = "accounts/mailed_link_store.py"
COMPLETION = "accounts/registration/completion.py"
LIMITS = "perm/stores/user_limits.py"

USED_TWICE = (
    _fault(
        "a code is redeemed twice",
        "An authorization code is used at most once.",
        (STATEMENTS, "k.redeemed IS NULL AND s.is_redeemable", "s.is_redeemable"),
    ),
    _fault(
        "a refresh token is used twice",
        "A refresh token is used at most once.",
        (STATEMENTS, "g.id = s.grant_id AND g.head = s.token_id\n", "g.id = s.grant_id\n"),
    ),
    _fault(
        "the result of a game session is returned again",
        "The result of a game session is used at most once.",
        (
            CLAIMS,
            "SET claimed_until = NULL FROM locked",
            "SET claimed_until = NULL, status = 'confirmed' FROM locked",
        ),
    ),
    _fault("a device gets tokens twice", "A device code is used at most once."),  # by the same edit
    _fault(
        "a recovery code is used twice",
        "A recovery code is used at most once.",
        (
            SECOND_FACTORS,
            "DELETE FROM recovery_codes WHERE user_id = :user_id AND digest = :digest RETURNING digest",
            "SELECT digest FROM recovery_codes WHERE user_id = :user_id AND digest = :digest",
        ),
    ),
    _fault(
        "a link resets the password twice",
        "A link to reset a password is used at most once.",
        ("accounts/password_reset/reset.py", "if await self._links.use(tx, PURPOSE, secret) is None:", "if False:"),
        (
            "accounts/password_reset/reset.py",
            "reset.user, password_hash, BY_RESET, reset.user.valid_from)",
            "current, password_hash, BY_RESET, current.valid_from)",
        ),
        (
            "accounts/password_reset/reset.py",
            "            await lock_user(tx, reset.user.user_id)\n",
            "            current = await lock_user(tx, reset.user.user_id)\n",
        ),
    ),
    _fault(
        "an invitation creates two accounts",
        "An invitation is used at most once.",
        (COMPLETION, "if await self._links.use(tx, link.purpose, link.secret) is None:", "if False:"),
        (COMPLETION, "tx, link.login, password_hash", 'tx, f"{id(link)}{link.login}", password_hash'),
    ),
    _fault(
        "a ticket of a store signs in twice",
        "The ticket of a store is used at most once.",
        (
            "upstream/tickets/player_store.py",
            "if not await use_nonce(tx, provider.provider_id, account.ticket_id, account.life_s):",
            "if False:",
        ),
    ),
)
LOST = (
    _fault(
        "a refresh token is refused at once",
        "A refresh token that was acknowledged and not used works.",
        (STATEMENTS, "AND g.head_exp > t AND g.ends > t\n", "AND g.head_exp < t\n"),
    ),
    _fault(
        "the result of a game session is never returned",
        "The result of a game session that was acknowledged and not used works.",
        (
            CLAIMS,
            "AND u.valid_from = s.valid_from AND NOT u.disabled\n        RETURNING",
            "AND u.valid_from = s.valid_from AND u.disabled\n        RETURNING",
        ),
        (
            CLAIMS,
            "SELECT u.valid_from = s.valid_from AND NOT u.disabled FROM",
            "SELECT u.valid_from = s.valid_from AND u.disabled FROM",
        ),
    ),
    _fault("a device never gets its tokens", "A device code that was acknowledged and not used works."),
    _fault(
        "a recovery code is refused at once",
        "A recovery code that was acknowledged and not used works.",
        (
            SECOND_FACTORS,
            "WHERE user_id = :user_id AND digest = :digest RETURNING digest",
            "WHERE user_id = :user_id AND digest = :digest AND false RETURNING digest",
        ),
    ),
    _fault(
        "a link to reset a password is refused at once",
        "A link to reset a password that was acknowledged and not used works.",
        (LINKS, "expires > now()\n    RETURNING user_id", "expires < now()\n    RETURNING user_id"),
    ),
    _fault("an invitation is refused at once", "An invitation that was acknowledged and not used works."),
)
LOST_CODES = (
    _fault(
        "a code is refused at once",
        "An authorization code that was acknowledged and not used works.",
        (
            STATEMENTS,
            "ON k.n = item.n AND k.expires > now()",
            "ON k.n = item.n AND k.expires < now()",
        ),
    ),
)
GOES_ON = (
    _fault(
        "a reused refresh token ends nothing",
        "A refresh token of a grant is refused after an earlier one was used again.",
        (
            STATEMENTS,
            'delete_grants("WHERE g.id = :grant_id AND g.client_id = :client_id")',
            '"SELECT id FROM oauth_grants WHERE id = :grant_id AND client_id = :client_id"',
        ),
    ),
    _fault(
        "a revoked grant goes on",
        "An access token is refused after its grant was revoked.",
        (
            "oauth/tokens/revocation.py",
            "        if only_current:\n",
            "        if only_current:\n            return True\n",
        ),
    ),
    _fault(
        "the token of a disabled user signs in",
        "A token is refused after its user was disabled.",
        ("accounts/disabling.py", "if before and disabled:", "if False:"),
        ("accounts/session_token_statements.py", "AND NOT s.ended AND NOT u.disabled AND", "AND NOT s.ended AND"),
        ("accounts/guarded_statements.py", "AND NOT disabled ORDER BY", "ORDER BY"),
    ),
)
ABOVE_LIMIT = (
    _fault(
        "a role has too many users",
        "A role never has more users than its limit.",
        (LIMITS, "> max(limit, before[name])", "> max(limit + 1, before[name])"),
    ),
    _fault("a project has too many members", "A role in projects never has more members than its limit."),
    _fault(
        "an application has too many keys",
        "An application never has more access keys than its limit.",
        ("perm/stores/access_keys.py", ">= MAX_ACCESS_KEYS:", "> MAX_ACCESS_KEYS:"),
    ),
    _fault(
        "a user has too many projects",
        "A user never has more projects than the limit.",
        (
            "perm/stores/projects.py",
            "count_authored(tx, author) >= max_projects",
            "count_authored(tx, author) > max_projects",
        ),
    ),
    _fault(
        "an account accepts too many guesses",
        "After 5 wrong codes each further attempt waits twice as long.",
        ("accounts/login/rate_limit.py", "FREE_FAILURES = 5", "FREE_FAILURES = 11"),
    ),
)
ADMINISTRATION = (
    _fault(
        "the last administrator goes",
        "An administrator is left.",
        (
            "perm/changes/last_administrators.py",
            "            self.administered = await read_root_administration(tx)\n",
            "            pass\n",
        ),
    ),
    _fault(
        "a change is missing in the stream",
        "The change stream has every effective change once, in commit order.",
        ("accounts/disabling.py", 'if "disabled" in before:', 'if "disabled" in before and int(user_id) % 5:'),
    ),
)
PLANTED_FAULTS = {
    "used twice": USED_TWICE,
    "lost": LOST,
    "lost codes": LOST_CODES,
    "goes on": GOES_ON,
    "above limit": ABOVE_LIMIT,
    "administration": ADMINISTRATION,
}
