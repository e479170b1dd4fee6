"""A challenge of hashing: the browser finds a number whose SHA-256 digest with the puzzle begins with zero bits.

A puzzle is signed, expires, and is accepted once. ``static/proof-of-work.js`` solves it. A browser without JavaScript
waits instead, ``WAIT_S`` seconds after the form was shown; such forms have a lower rate limit, because waiting costs a
program nothing.
"""

import base64
import hashlib
import re
from collections.abc import Mapping

from markupsafe import Markup
from msgspec import Struct

from sso.accounts.registration.store import use_puzzle
from sso.core.encryption import Keyring
from sso.core.ids import secret_token
from sso.core.language import Text, plural
from sso.core.net import Address
from sso.db.database import Database
from sso.db.rate_limit import RateLimiter
from sso.web.language import _

LIFE_S = 3600
WAIT_S = 5
WAITED_PER_MINUTE = 3  # forms without a solution, of one client network

_PURPOSE = "registration puzzle"
# The nonce, when the puzzle was issued, its difficulty in bits, and a MAC over these.
_PUZZLE = re.compile(r"([A-Za-z0-9_-]{22})\.([0-9]{1,12})\.([0-9]{1,2})\.([A-Za-z0-9_-]{43})", re.ASCII)
_SOLUTION = re.compile(r"[0-9]{1,12}", re.ASCII)


EXPIRED = _("This form was open for too long. Please send it again.")


class Puzzle(Struct, frozen=True):
    nonce: str
    issued: int
    bits: int

    @property
    def signed_text(self) -> str:
        return f"{self.nonce}.{self.issued}.{self.bits}"

    def is_solved_by(self, solution: str) -> bool:
        if not _SOLUTION.fullmatch(solution):
            return False
        hashed = hashlib.sha256(f"{self.nonce}.{solution}".encode()).digest()
        return int.from_bytes(hashed) >> (256 - self.bits) == 0


class ProofOfWork:
    def __init__(self, database: Database, keyring: Keyring, bits: int) -> None:
        self._database = database
        self._keyring = keyring
        self._bits = bits
        self._waited = RateLimiter(database, "registration without proof of work", WAITED_PER_MINUTE)

    async def issue(self, form: Mapping[str, str]) -> Markup:
        text, solution = form.get("puzzle", ""), form.get("solution", "")
        puzzle = self._parse(text)
        if puzzle is None or not self._is_fresh(puzzle):
            puzzle = Puzzle(secret_token()[:22], int(self._database.clock.now()), self._bits)
            text, solution = self._sign(puzzle), ""
        return _render(puzzle, text, solution)

    async def verify(self, form: Mapping[str, str], address: Address) -> Text | None:
        puzzle = self._parse(form.get("puzzle", ""))
        if puzzle is None or not self._is_fresh(puzzle):
            return EXPIRED
        if not puzzle.is_solved_by(form.get("solution", "")):
            left_s = puzzle.issued + WAIT_S - int(self._database.clock.now())
            left_s = left_s if left_s > 0 else await self._waited.add(address)
            if left_s > 0:
                return _wait_text(left_s)
        return None if await use_puzzle(self._database, puzzle.nonce, 2 * LIFE_S) else EXPIRED

    def _is_fresh(self, puzzle: Puzzle) -> bool:
        return self._database.clock.now() < puzzle.issued + LIFE_S

    def _sign(self, puzzle: Puzzle) -> str:
        mac = base64.urlsafe_b64encode(self._keyring.mac(_PURPOSE, puzzle.signed_text)).decode().rstrip("=")
        return f"{puzzle.signed_text}.{mac}"

    def _parse(self, text: str) -> Puzzle | None:
        """Returns the puzzle if this service has issued it."""
        match = _PUZZLE.fullmatch(text)
        if match is None:
            return None
        puzzle = Puzzle(match[1], int(match[2]), int(match[3]))
        mac = base64.urlsafe_b64decode(match[4] + "=")
        is_ours = text.startswith(f"{puzzle.signed_text}.") and self._keyring.verify_mac(
            mac, _PURPOSE, puzzle.signed_text
        )
        return puzzle if is_ours else None


def _wait_text(seconds: int) -> Text:
    return plural(
        "Please wait another second, then send the form again.",
        "Please wait another %(count)s seconds, then send the form again.",
        seconds,
    )


def _render(puzzle: Puzzle, text: str, solution: str) -> Markup:
    """Returns the fields, a bar that the script shows while it works, and a hint for browsers without JavaScript."""
    hint = plural(
        "Your browser does not run JavaScript. Please wait a second before you send this form.",
        "Your browser does not run JavaScript. Please wait %(count)s seconds before you send this form.",
        WAIT_S,
    )
    return Markup(
        '<input type="hidden" name="puzzle" value="{text}">'
        '<input type="hidden" name="solution" value="{solution}">'
        '<div class="work" data-nonce="{nonce}" data-bits="{bits}" hidden>'
        '<label for="work">{label}</label><progress id="work" max="100" value="0"></progress></div>'
        '<noscript><p class="hint">{hint}</p></noscript>'
        '<script src="/static/proof-of-work.js" defer></script>'
    ).format(
        text=text,
        solution=solution,
        nonce=puzzle.nonce,
        bits=puzzle.bits,
        label=_("Checking your browser, which takes a few seconds."),
        hint=hint,
    )
