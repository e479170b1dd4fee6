"""Users that other sections name: those of the same document are there by then."""

from sso.accounts.model import login_key
from sso.db.statement import Statement
from sso.db.transaction import Runner
from sso.perm.errors import InvalidInput

_NAMED = Statement("SELECT user_id FROM users WHERE user_id = :name OR login_key = :login_key")


async def user_named(runner: Runner, name: str, where: str) -> str:
    """The user id for a user id or login. The two never look alike: one is digits, the other holds an ``@``."""
    found: str | None = await runner.value(_NAMED, name=name, login_key=login_key(name))
    if found is None:
        raise InvalidInput(f"{where}: there is no such user")
    return found
