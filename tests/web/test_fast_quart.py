"""FastQuart behaves like Quart, with either server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from quart import Response, g, request
from werkzeug.exceptions import HTTPException

from sso.web.fast_quart.app import FastQuart
from tests.kit.raw_http import RawResponse, RunningServer, serving


def build(folder: Path) -> FastQuart:
    app = FastQuart("test", static_folder=str(folder), static_url_path="/files")
    app.config.update(MAX_CONTENT_LENGTH=1000, BODY_TIMEOUT=0.2, PROPAGATE_EXCEPTIONS=False)

    @app.before_request
    async def before() -> str | None:
        assert not hasattr(g, "seen"), "values of another request are left"
        g.seen = request.path
        return "stopped" if request.path == "/stop" else None

    @app.after_request
    async def after(response: Response) -> Response:
        response.headers["X-Seen"] = g.seen
        return response

    @app.post("/data")
    async def data() -> bytes:
        first = await request.get_data()
        assert await request.get_data() == first, "the body can be read twice"
        assert isinstance(first, bytes)
        return first

    @app.post("/json")
    async def json() -> Any:
        return {"got": await request.get_json()}

    @app.post("/form")
    async def form() -> Any:
        return dict(await request.form)

    @app.post("/pieces")
    async def pieces() -> bytes:
        return b"|".join([piece async for piece in request.body])

    @app.get("/stream")
    async def stream() -> Any:
        async def numbers() -> AsyncIterator[bytes]:
            for number in range(3):
                yield b"%d" % number
                await trio.sleep(0.01)

        return numbers(), 200, {"X-Kind": "stream"}

    @app.get("/item/<int:number>")
    async def item(number: int) -> tuple[str, int]:
        return str(number), 201

    @app.get("/fail")
    async def fail() -> str:
        raise ValueError("on purpose")

    @app.get("/group")
    async def group() -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)
        return "never"

    @app.errorhandler(ValueError)
    async def value_error(error: ValueError) -> tuple[str, int]:
        return f"handled: {error}", 418

    @app.errorhandler(HTTPException)
    async def http_error(error: HTTPException) -> tuple[str, int]:
        return error.name, error.code or 500

    return app


@asynccontextmanager
async def serving_app(folder: Path) -> AsyncIterator[RunningServer]:
    app = build(folder)

    async def handler(scope: Any, receive: Any, send: Any) -> None:
        await app(scope, receive, send)

    async with serving(handler) as server:
        yield server


def post(path: str, body: bytes, *more: str) -> bytes:
    return (
        "\r\n".join((f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *more, "", "")).encode() + body
    )


async def get(server: RunningServer, path: str, method: str = "GET") -> RawResponse:
    return await server.request(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())


async def test_body_can_be_read_in_every_way(tmp_path: Path) -> None:
    async with serving_app(tmp_path) as server, await server.open() as connection:
        await connection.send(post("/data", b"hello"))
        assert (await connection.response()).body == b"hello"
        await connection.send(post("/data", b""))
        assert (await connection.response()).body == b""
        await connection.send(post("/json", b'{"a": 1}', "Content-Type: application/json"))
        assert (await connection.response()).json == {"got": {"a": 1}}
        await connection.send(post("/form", b"a=b&c=d", "Content-Type: application/x-www-form-urlencoded"))
        assert (await connection.response()).json == {"a": "b", "c": "d"}
        head, body = post("/data", b"in two pieces")[:-6], b"pieces"
        await connection.send(head, body, pause=0.05)
        assert (await connection.response()).body == b"in two pieces"
        head, body = post("/pieces", b"in two pieces")[:-6], b"pieces"
        await connection.send(head, body, pause=0.05)
        assert (await connection.response()).body == b"in two |pieces"


async def test_limits_of_size_and_time_apply_to_bodies(tmp_path: Path) -> None:
    async with serving_app(tmp_path) as server:
        for path in ("/data", "/pieces"):
            assert (await server.request(post(path, b"a" * 1001)[:200])).status == 413, path
        chunk = b"1f4\r\n" + b"a" * 500 + b"\r\n"
        head = b"POST /data HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert (await server.request(head + chunk * 3 + b"0\r\n\r\n")).status == 413
        assert (await server.request(post("/data", b"a" * 1000))).status == 200
        assert (await server.request(post("/data", b"a" * 10)[:-1])).status == 408
        assert (
            await server.request(post("/form", b"a=b", "Content-Type: application/x-www-form-urlencoded")[:-1])
        ).status == 408


async def test_routing_hooks_errors_and_files_work_as_in_quart(tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("text " * 5000)
    async with serving_app(tmp_path) as server:
        item = await get(server, "/item/7")
        assert (item.status, item.body, item.headers["x-seen"]) == (201, b"7", "/item/7")
        assert (await get(server, "/item/x")).status == 404
        assert (await get(server, "/item/7", "POST")).status == 405
        assert (await get(server, "/item/7", "HEAD")).headers["content-length"] == "1"
        assert set((await get(server, "/item/7", "OPTIONS")).headers["allow"].split(", ")) == {"GET", "HEAD", "OPTIONS"}
        assert (await get(server, "/stop")).body == b"stopped"
        assert (await get(server, "/fail")).status == (await get(server, "/group")).status == 418
        assert len((await get(server, "/files/file.txt")).body) == 25_000
        stream = await get(server, "/stream")
        assert (stream.body, stream.headers["transfer-encoding"], stream.headers["x-kind"]) == (
            b"012",
            "chunked",
            "stream",
        )


async def test_requests_of_a_connection_share_no_context(tmp_path: Path) -> None:
    async with serving_app(tmp_path) as server, await server.open() as connection:
        for path in ("/item/1", "/fail", "/nothing", "/item/2"):
            await connection.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert (await connection.response()).headers["x-seen"] == path
