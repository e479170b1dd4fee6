"""/demo/mail: the mails of the demo, as their recipients would see them. Other installations have no such page."""

import trio
from quart import Blueprint, Response

from sso.core.errors import NotFound
from sso.demo.mailbox import DemoMailbox
from sso.web.pages import page

# A mail has its styles with it, as mail programs need it, and nothing else.
_MAIL_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'none'"


def demo_mail_pages(mailbox: DemoMailbox) -> Blueprint:
    pages = Blueprint("demo", __name__, url_prefix="/demo/mail")

    @pages.get("")
    async def show_list() -> Response:
        mails = await trio.to_thread.run_sync(mailbox.newest)
        return await page("demo/mails.html", page_title="Mails", mails=mails)

    @pages.get("/<name>")
    async def show_mail(name: str) -> Response:
        mail = await trio.to_thread.run_sync(mailbox.find, name)
        if mail is None:
            raise NotFound
        headers = {"Content-Security-Policy": _MAIL_POLICY}
        return Response(mail.html, headers=headers, content_type="text/html; charset=utf-8")

    return pages
