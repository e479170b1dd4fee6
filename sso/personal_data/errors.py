"""Why an account cannot be deleted."""

from sso.core.errors import ApiError
from sso.core.language import Text


class DeletionRefused(ApiError):
    """The service or a project would be left without an administrator."""

    status = 409
    code = "conflict"

    def __init__(self, text: Text) -> None:
        super().__init__(text)
        self.text = text
