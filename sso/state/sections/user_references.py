"""Users that other sections refer to. The section ``users`` of the same document is applied before."""

from sso.accounts import user_directory_store
from sso.core.field_errors import FieldError, FieldPath
from sso.db.transaction import Runner


async def find_user_id(runner: Runner, name: str, path: FieldPath) -> str:
    """Returns the user id for a user id or login."""
    user_id = await user_directory_store.find_user_id(runner, name)
    if user_id is None:
        raise FieldError(path, "there is no such user")
    return user_id
