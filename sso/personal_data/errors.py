"""Why an account cannot be deleted."""

from sso.core.errors import ApiError
from sso.core.language import Text
from sso.perm.changes.last_administrators import LastAdministrator


class DeletionRefused(ApiError):
    """The service or a project would be left without an administrator."""

    status = 409
    code = "conflict"

    def __init__(self, error: LastAdministrator) -> None:
        self.text = only_administrator(error)
        super().__init__(self.text)


def only_administrator(error: LastAdministrator) -> Text:
    """Returns why an account can be neither disabled nor deleted."""
    if error.project_title is None:
        return Text("This account is the only administrator of the service. Make someone else an administrator first.")
    return Text(
        "This account is the only administrator of the project %(project)s. Make someone else an administrator first.",
        project=error.project_title,
    )
