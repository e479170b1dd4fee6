"""What the account page says after a change: a form redirects to the page with the name of the notice."""

from msgspec import Struct

from sso.core.language import Text
from sso.web.language import _


class Notice(Struct, frozen=True):
    section: str  # the anchor of the section above which the notice is shown
    text: Text


NOTICES = {
    "verification-sent": Notice("email", _("We have sent you an e-mail. Open the link in it to verify your address.")),
    "email-requested": Notice(
        "email", _("We have sent an e-mail to the new address. Open the link in it to confirm the change.")
    ),
    "email-cancelled": Notice("email", _("The change of your e-mail address has been cancelled.")),
    "email-undo-ended": Notice("email", _("The link to undo the change of your e-mail address no longer works.")),
    "sign-in-notices": Notice("email", _("Your change has been saved.")),
    "registered": Notice("profile", _("Welcome! Your account has been created.")),
    "registered-flow-ended": Notice(
        "profile",
        _("Welcome! Your account has been created. The sign-in that you came from has ended: start it there again."),
    ),
    "kept": Notice("profile", _("Welcome back. Your account will not be deleted.")),
    "profile": Notice("profile", _("Your profile has been saved.")),
    "password": Notice("password", _("Your password has been changed. You have been signed out everywhere else.")),
    "totp": Notice("two-step", _("Your authenticator app has been set up. You have been signed out everywhere else.")),
    "totp-removed": Notice(
        "two-step", _("The authenticator app has been removed. You have been signed out everywhere else.")
    ),
    "email-2fa": Notice("two-step", _("Your change has been saved. You have been signed out everywhere else.")),
    "identity-linked": Notice("identities", _("Your accounts are linked. You can sign in with either.")),
    "device-key-removed": Notice("identities", _("The device can no longer sign in.")),
    "identity-unlinked": Notice("identities", _("The link has been removed.")),
    "recovery-codes": Notice("two-step", _("You have new recovery codes. The old ones no longer work.")),
    "passkey": Notice("passkeys", _("Your passkey has been added. You have been signed out everywhere else.")),
    "passkey-another": Notice("passkeys", _("Your passkey has been added.")),
    "passkey-renamed": Notice("passkeys", _("The passkey has a new name.")),
    "passkey-removed": Notice("passkeys", _("The passkey has been removed. You have been signed out everywhere else.")),
    "ended": Notice("sessions", _("That session has been signed out.")),
    "ended-others": Notice("sessions", _("You have been signed out everywhere else.")),
    "game-ended": Notice("games", _("You have been signed out of that game.")),
    "data-requested": Notice(
        "data", _("We are asking your games for your data. You can see here how far they are, and download it then.")
    ),
    "site-removed": Notice("sites", _("That site no longer has access to your account.")),
}


def account_url(done: str) -> str:
    """Returns the URL of the account page that shows this notice, at its section."""
    return f"/account?done={done}#{NOTICES[done].section}"
