"""Users that other sections refer to. The section ``users`` of the same document is applied before."""

from sso.accounts.model import login_key
from sso.core.field_errors import FieldError, FieldPath
from sso.db.statement import Statement
from sso.db.transaction import Runner

_FIND = Statement("SELECT user_id FROM users WHERE user_id = :name OR login_key = :login_key")


async def find_user_id(runner: Runner, name: str, path: FieldPath) -> str:
    """Returns the user id for a user id or login. They cannot be confused: only a login contains an ``@``."""
    user_id: str | None = await runner.value(_FIND, name=name, login_key=login_key(name))
    if user_id is None:
        raise FieldError(path, "there is no such user")
    return user_id
