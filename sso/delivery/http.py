"""Sends an item as an HTTP request."""

from collections.abc import Mapping
from typing import Any

from sso.core.outgoing_http import AddressRefused, NoAnswer, OutgoingClient
from sso.delivery.due_queue import Failure


async def post(client: OutgoingClient, url: str, headers: Mapping[str, str], **content: Any) -> Failure | None:
    """Returns None if the receiver has accepted the request. An address that is refused is not tried again."""
    try:
        answer = await client.send("POST", url, headers, **content)
    except AddressRefused as error:
        return Failure(str(error), can_be_retried=False)
    except NoAnswer as error:
        return Failure(str(error))
    except Exception as error:  # one item must not stop the others
        return Failure(type(error).__name__)
    return None if 200 <= answer.status < 300 else Failure(f"status {answer.status}")
