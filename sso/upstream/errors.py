"""Why a sign-in with another provider fails: a text for the player, and a reason for the log of the operator."""

from typing import ClassVar

from sso.core.errors import NotFound
from sso.core.language import Text

_ = Text


class UnknownProvider(NotFound):
    message = _("This way to sign in does not exist or was removed.")


class UpstreamError(Exception):
    """``text`` may use the name of the provider as ``%(provider)s``. The reason contains no secret."""

    status: ClassVar[int] = 401
    text: ClassVar[str] = ""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class AttemptExpired(UpstreamError):
    """The state is unknown, was used, has expired, or belongs to another browser or provider."""

    text = _("This sign-in has expired or was started in another browser. Please try again.")


class SignInDenied(UpstreamError):
    """The player or the provider refused."""

    text = _("You did not continue at %(provider)s. You can try again, or sign in another way.")


class InvalidAnswer(UpstreamError):
    """The answer of the provider cannot be trusted or understood."""

    text = _("The sign-in at %(provider)s did not work. Please try again.")


class ProviderUnavailable(UpstreamError):
    """The provider does not answer, or reports an error of its own."""

    status = 503
    text = _("%(provider)s does not answer right now. Please try again later, or sign in another way.")


class AccountDisabled(UpstreamError):
    status = 403
    text = _("This account has been disabled. Ask support for help.")
