"""The mails about a change of the address."""

from sso.core.language import Text
from sso.mail.content import MailContent

CHANGE_LINK_S = 3600
UNDO_LINK_S = 7 * 86400


def confirmation_mail(url: str, service_name: str) -> MailContent:
    """To the new address."""
    return MailContent(
        Text("Confirm your new e-mail address for %(service)s", service=service_name),
        (Text("You asked to use this e-mail address for your account. To confirm it, open this link:"),),
        (
            Text(
                "The link works once and expires in %(minutes)s minutes. If you did not ask for it, ignore this "
                "e-mail.",
                minutes=CHANGE_LINK_S // 60,
            ),
        ),
        link=url,
        link_label=Text("Use this e-mail address"),
    )


def taken_mail(service_name: str) -> MailContent:
    """To the new address if it belongs to an account already. Only its owner learns that."""
    return MailContent(
        Text("Your e-mail address for %(service)s", service=service_name),
        (
            Text("Someone asked to use this e-mail address for another account, but it belongs to an account already."),
            Text(
                "If this was you, sign in with this address, or choose a new password with “Forgot your password?”. "
                "Otherwise you need not do anything: nothing was changed."
            ),
        ),
    )


def changed_mail(new_login: str, undo_url: str, service_name: str) -> MailContent:
    """To the old address."""
    return MailContent(
        Text("The e-mail address of your account for %(service)s was changed", service=service_name),
        (
            Text(
                "Your account now has the e-mail address %(address)s. Sign in with it from now on.", address=new_login
            ),
            Text("If this was not you, undo the change with this link:"),
        ),
        (
            Text(
                "The link works once, for %(days)s days. It restores this address, signs everyone out and removes the "
                "ways to sign in that were added since the day before the change; then you choose a new password.",
                days=UNDO_LINK_S // 86400,
            ),
        ),
        link=undo_url,
        link_label=Text("Undo the change"),
    )


def undo_requested_mail(old_login: str, time: str, service_name: str) -> MailContent:
    """To both addresses, if the account has a second factor."""
    return MailContent(
        Text("The change of your e-mail address for %(service)s will be undone", service=service_name),
        (
            Text(
                "Someone who reads the e-mails to %(address)s wants to undo the change of the e-mail address. They can "
                "do so after %(time)s.",
                address=old_login,
                time=time,
            ),
            Text(
                "If this was not you, sign in before then and make the link to undo the change invalid on your account "
                "page."
            ),
        ),
    )


def undo_ended_mail(service_name: str) -> MailContent:
    """To the old addresses."""
    return MailContent(
        Text("The change of your e-mail address for %(service)s can no longer be undone", service=service_name),
        (
            Text("The link to undo the change was made invalid on the account page, with two-step sign-in."),
            Text("If this was not you, ask support for help."),
        ),
    )


def undone_mail(service_name: str) -> MailContent:
    """To the address that the account had until the change was undone."""
    return MailContent(
        Text("The e-mail address of your account for %(service)s was changed back", service=service_name),
        (
            Text("The owner of the previous e-mail address has undone the change. This address is no longer used."),
            Text("If this was not you, ask support for help."),
        ),
    )
