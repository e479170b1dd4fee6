"""POST /proxy/api/data/{link}: a game sends the data of a user that it was asked for."""

from quart import Blueprint, Response

from sso.core.errors import NotFound
from sso.personal_data.games.answers import UnusableDocument, read_characters, read_text
from sso.personal_data.games.model import MAX_ANSWER
from sso.personal_data.games.queue_store import DataQueue
from sso.web.body import InvalidBody
from sso.web.request import read_raw
from sso.web.response import reply

GONE = "the link does not exist, was used, or has expired"


def data_answer_routes(queue: DataQueue) -> Blueprint:
    routes = Blueprint("data_answers", __name__)

    @routes.post("/proxy/api/data/<link>")
    async def receive(link: str) -> Response:
        """The body is read only if the link is valid: it may be large."""
        if not await queue.is_open_link(link):
            raise NotFound(GONE)
        try:
            document = read_text(await read_raw(MAX_ANSWER))
        except UnusableDocument:
            raise InvalidBody("must be JSON") from None
        if not await queue.is_json(document):
            raise InvalidBody("must be JSON")
        if not await queue.store_called(link, document, read_characters(document)):
            raise NotFound(GONE)
        return reply({"status": "OK"})

    return routes
