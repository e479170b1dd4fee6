"""Users that other sections refer to. The section ``users`` of the same document is applied before."""

from sso.accounts import user_directory
from sso.db.transaction import Runner
from sso.perm.errors import InvalidInput


async def find_user_id(runner: Runner, name: str, where: str) -> str:
    """Returns the user id for a user id or login."""
    user_id = await user_directory.find_user_id(runner, name)
    if user_id is None:
        raise InvalidInput(f"{where}: there is no such user")
    return user_id
