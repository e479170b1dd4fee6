"""How many requests of one caller a worker holds at a time: streams of server-sent events, and long polls."""

from typing import Self
from weakref import WeakSet

from sso.admin.caller import AdminCaller
from sso.admin.errors import TooManyHeldRequests

MAX_HELD = 10  # for a user, or for all service clients of an application; also in the text of TooManyHeldRequests
RETRY_S = 5


class HeldRequests:
    def __init__(self) -> None:
        self._places: WeakSet[HeldPlace] = WeakSet()

    def begin(self, caller: AdminCaller) -> "HeldPlace":
        """Returns a place for a request. Raises TooManyHeldRequests if the caller has none left."""
        actor = caller.actor
        holder = f"user {actor.user_id}" if actor.user_id else f"application {actor.service_id}"
        if sum(place.holder == holder for place in self._places) >= MAX_HELD:
            raise TooManyHeldRequests(RETRY_S)
        place = HeldPlace(self._places, holder)
        self._places.add(place)
        return place


class HeldPlace:
    """Is held until its ``with`` block ends, or until nothing refers to it.

    The body of a response may be discarded before it begins; then no block of it runs.
    """

    def __init__(self, places: WeakSet["HeldPlace"], holder: str) -> None:
        self._places = places
        self.holder = holder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._places.discard(self)
