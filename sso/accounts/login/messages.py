"""The messages of the login pages and the account page about a rejected address, password, code or passkey."""

from sso.accounts.errors import InvalidCredentials, LoginBusy, SecondFactorBlocked
from sso.accounts.form_problem import FormProblem
from sso.accounts.model import User
from sso.accounts.second_factor.codes import SecondFactors
from sso.core.errors import RetryLater
from sso.core.language import Text, plural
from sso.web.language import _

WRONG_PASSWORD = _("The e-mail address or password is incorrect.")
WRONG_CODE = _("This code is incorrect or has already been used.")
WRONG_PASSKEY = _("Your passkey was not accepted. Please try again, or sign in in another way.")
EXPIRED = _("This sign-in has expired. Please sign in again.")
PROVE_AGAIN = _("You are signed in, but you must still prove that it is you: with your password or a passkey.")
USED_CODE = _("You have already used this code. Please wait until your app shows the next one, at most 30 seconds.")
NOT_AN_ADDRESS = _("Please enter an e-mail address, such as name@example.com.")
LAST_WAY = _("Without it you could not sign in any more. Set a password first, or link another account.")
PASSWORDS_DIFFER = FormProblem(_("The new passwords do not match."), field="repeat_password")
BLOCKED = _("Too many wrong codes were entered, so this account no longer accepts codes. Ask support to unblock it.")


CODE_SENT = _("We have sent you a code. Check your e-mail.")


def next_mail_text(wait_s: int) -> Text:
    """Returns when the next mail may be sent."""
    if wait_s <= 90:
        return plural(
            "You can ask for another e-mail in %(count)s second.",
            "You can ask for another e-mail in %(count)s seconds.",
            wait_s,
        )
    return plural(
        "You can ask for another e-mail in %(count)s minute.",
        "You can ask for another e-mail in %(count)s minutes.",
        -(-wait_s // 60),
    )


def next_mail_problem(wait_s: int, field: str = "current_password") -> FormProblem:
    """Says that no mail was sent, and when the next one may be."""
    return FormProblem(next_mail_text(wait_s), 429, {"Retry-After": str(wait_s)}, field)


async def mail_code(factors: SecondFactors, user: User) -> Text | FormProblem | None:
    """Mails a code of the second factor, and returns the text that says so.

    Returns the problem if no mail was sent, and None for a user who gets no codes by mail.
    """
    if not user.email_2fa:
        return None
    try:
        wait_s = await factors.send_code(user)
    except SecondFactorBlocked as error:
        return FormProblem(BLOCKED, error.status)
    return next_mail_problem(wait_s) if wait_s else CODE_SENT


def mask_email(login: str) -> str:
    """Returns the first letter and the domain: ``a…@example.com``."""
    name, _separator, domain = login.rpartition("@")
    return f"{name[:1]}…@{domain}"


def wrong_code_message(factors: SecondFactors, user: User, code: str) -> Text:
    """Returns the text for a code that was rejected for this user, as it was read before the check."""
    return USED_CODE if factors.was_used(user, code) else WRONG_CODE


def retry_message(error: RetryLater) -> Text:
    if isinstance(error, LoginBusy):
        return _("Too many people are signing in right now. Please try again in a moment.")
    return plural(
        "Too many attempts. Please wait a second and try again.",
        "Too many attempts. Please wait %(count)s seconds and try again.",
        error.retry_after,
    )


def retry_problem(error: RetryLater, field: str = "current_password") -> FormProblem:
    return FormProblem(retry_message(error), error.status, error.headers, field)


def code_problem(
    error: InvalidCredentials | SecondFactorBlocked | RetryLater,
    factors: SecondFactors,
    user: User,
    code: str,
    field: str = "current_password",
) -> FormProblem:
    """Says why a code of a second factor was rejected."""
    if isinstance(error, RetryLater):
        return retry_problem(error, field)
    text = BLOCKED if isinstance(error, SecondFactorBlocked) else wrong_code_message(factors, user, code)
    return FormProblem(text, error.status, field=field)
