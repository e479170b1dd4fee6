"""The mails of a registration: a link with a code, a note to the owner of an existing account, an invitation."""

from sso.core.language import Text, plural
from sso.mail.content import MailContent


def verification_mail(service_name: str, link: str, code: str, code_minutes: int) -> MailContent:
    return MailContent(
        Text("Create your account for %(service)s", service=service_name),
        (
            Text(
                "To confirm your e-mail address and create your account, enter the code on the page where you started, "
                "or open the link."
            ),
            Text("Your code is"),
        ),
        (
            Text(
                "The code works for %(minutes)s minutes, in the browser where you started. The link works once, within "
                "24 hours. Do not show them to anyone.",
                minutes=code_minutes,
            ),
            Text("If you did not ask for an account, ignore this e-mail: none will be created."),
        ),
        code=code,
        link=link,
        link_label=Text("Create your account"),
    )


def existing_account_mail(service_name: str, sign_in_link: str, reset_link: str) -> MailContent:
    return MailContent(
        Text("You already have an account for %(service)s", service=service_name),
        (
            Text("Someone, probably you, tried to create an account with this e-mail address, which already has one."),
            Text(
                "You can sign in with your password. If you have forgotten it, you can set a new one here: %(link)s",
                link=reset_link,
            ),
        ),
        (
            Text("Nothing about your account has changed."),
            Text("If this was not you, ignore this e-mail."),
        ),
        link=sign_in_link,
        link_label=Text("Sign in"),
    )


def invitation_mail(service_name: str, link: str, days: int) -> MailContent:
    return MailContent(
        Text("You are invited to %(service)s", service=service_name),
        (Text("You are invited to create an account for %(service)s with this e-mail address.", service=service_name),),
        (
            plural(
                "The link works once, within %(count)s day. Do not pass it on: it creates your account.",
                "The link works once, within %(count)s days. Do not pass it on: it creates your account.",
                days,
            ),
            Text("If you do not know why you got this e-mail, ignore it."),
        ),
        link=link,
        link_label=Text("Create your account"),
    )
