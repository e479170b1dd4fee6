"""Notices on the account page after a change, by the parameter ``done`` of the redirect."""

from sso.web.language import _

NOTICES = {
    "password": _("Your password has been changed. You have been signed out everywhere else."),
    "totp": _("Your authenticator app has been set up. You have been signed out everywhere else."),
    "totp-removed": _("The authenticator app has been removed. You have been signed out everywhere else."),
    "email-2fa": _("Your change has been saved. You have been signed out everywhere else."),
    "ended": _("That session has been signed out."),
    "ended-others": _("You have been signed out everywhere else."),
    "game-ended": _("You have been signed out of that game."),
    "site-removed": _("That site no longer has access to your account."),
}
