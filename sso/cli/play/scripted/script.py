"""The script of a service: the requests that it expects, how it answers them, and what goes wrong meanwhile."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

MAX_SECONDS = 60.0
Seconds = Annotated[float, Field(ge=0, le=MAX_SECONDS)]


class BadScript(Exception):
    """The message names the file, the field and what is expected."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StreamStep(_Part):
    """A piece of a response that goes on."""

    wait_s: Seconds = 0
    send: str


class Step(_Part):
    """A request that must come next, and its answer."""

    path: Annotated[str, Field(pattern=r"^(GET|POST|DELETE) /\S*$")]
    fields: dict[str, Any] = {}  # that the body must have
    without: tuple[str, ...] = ()  # fields that the body must not have
    query: dict[str, str | None] = {}  # that the address must have, or must not have (null)
    request_headers: dict[str, str | None] = {}  # the same for headers of the request
    signed: bool = False  # by the key that an earlier request, or this one, has sent as public_key
    not_before_s: Seconds = 0  # after the last answer
    times: Annotated[int, Field(ge=1, le=100)] = 1  # that this request comes one after the other
    hold_s: Seconds = 0  # before the answer
    status: Annotated[int, Field(ge=200, le=599)] = 200
    answer: dict[str, Any] | str = {}  # a text is sent as it is
    headers: dict[str, str] = {}
    stream: tuple[StreamStep, ...] = ()  # instead of the answer; afterwards the response ends, or the fault happens
    fault: Literal["", "close", "reset", "half", "leave"] = ""


class SocketStep(_Part):
    """Something that happens to an open WebSocket."""

    wait_s: Seconds = 0
    send: dict[str, Any] | str | None = None
    close: Annotated[int, Field(ge=1000, le=4999)] | None = None
    fault: Literal["", "reset"] = ""


class Script(_Part):
    title: str = ""
    runs: tuple[tuple[dict[str, Any], ...], ...] = ()  # what the game does, in each run of its program
    events: tuple[dict[str, Any], ...] = ()  # what the game reports
    requests: tuple[Step, ...]
    sockets: tuple[tuple[SocketStep, ...], ...] = ()  # of each WebSocket that is opened, one after the other


def read_script(file: Path) -> Script:
    """Reads a script. Raises BadScript."""
    try:
        return Script.model_validate_json(file.read_bytes())
    except OSError as error:
        raise BadScript(f"{file}: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the document"
        raise BadScript(f"{file}: {field}: {first['msg']}") from None
