"""Renders an error as a page for a person: what happened, and what the person can do."""

from collections.abc import Callable, Mapping, Sequence

from quart import Response

from sso.core.language import Text
from sso.web.language import _, select_language
from sso.web.language_switcher import same_path
from sso.web.pages import page

HEADINGS = {
    400: _("We could not understand that request"),
    401: _("Please sign in again"),
    403: _("You are not allowed to do that"),
    404: _("Page not found"),
    405: _("This page cannot be used that way"),
    410: _("This link no longer works"),
    413: _("That request was too large"),
    429: _("Too many attempts"),
    431: _("That request was too large"),
    500: _("Something went wrong on our side"),
    503: _("We will be right back"),
}
ADVICE = {
    401: _("You have been signed out, or your password has been changed."),
    404: _("The address is wrong, or the page no longer exists."),
    500: _("Please try again. If this keeps happening, give support the reference below."),
    503: _("The service is briefly unavailable. Please try again in a moment."),
}


async def error_page(
    status: int,
    message: str,
    request_id: str,
    headers: Mapping[str, str],
    reason: str = "",
    *,
    heading: Text | None = None,
    developer_hint: Text | None = None,
    developer_path: str = "",
    facts: Callable[[], Sequence[tuple[Text, str]]] | None = None,
    link: tuple[str, Text] | None = None,
) -> Response:
    """Renders the page. ``message`` is shown only if it is a translatable text: other messages are for programs.

    ``heading``: in place of that of the status. ``developer_hint`` is for the developer of the site that sent the user
    here, with a page of the console on which it can be done; ``reason`` is for an operator who looks at the page.
    ``facts`` returns a list with labels, ``link`` is where the person can go from here.
    """
    select_language()  # for the facts
    heading = heading or HEADINGS.get(status, _("Error"))
    return await page(
        "error.html",
        status=status,
        headers={"Referrer-Policy": "no-referrer", **headers},  # it has no form
        here=same_path() if status != 400 else "/",  # the path of a malformed request is not repeated
        page_title=heading,
        heading=heading,
        message=message if isinstance(message, Text) else ADVICE.get(status, _("Please go back and try again.")),
        request_id=request_id,
        reason="" if developer_hint else reason,
        developer_hint=developer_hint,
        developer_path=developer_path if reason else "",
        facts=facts() if facts else (),
        link=link,
        back="/",
        back_text=_("Go to the start page"),
    )
