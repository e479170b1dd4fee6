"""HTTP clients in a separate process: ``python -m scripts.benchmarks.http_load``.

… busy PORT CONNECTIONS SECONDS     requests / repeatedly; prints the number of responses
… hold PORT COUNT                   sends COUNT polls that are held, prints the seconds that it took, and waits
"""

import select
import socket
import sys
import time
from contextlib import ExitStack

import httpx
import orjson

from sso.serve.process_tuning import raise_open_file_limit

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
POLL_BODY = b'{"gsid":"' + b"a" * 43 + b'"}'
POLL = (
    b"POST /hold HTTP/1.1\r\nHost: sso.example.com\r\nUser-Agent: a launcher of some game/1.2.3\r\nAccept: */*\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(POLL_BODY) + POLL_BODY
)
AT_ONCE = 200  # connections opened at the same time


def busy(port: int, connections: int, seconds: float) -> int:
    """Counts responses. They all have the length of the first one."""
    with ExitStack() as stack, select.epoll() as epoll:
        clients: dict[int, socket.socket] = {}
        for _ in range(connections):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.send(GET)
            clients[client.fileno()] = client
            epoll.register(client, select.EPOLLIN)
        length, came, answers = 0, dict.fromkeys(clients, 0), 0
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for fd, _ in epoll.poll(1):
                data = clients[fd].recv(65536)
                length = length or len(data)
                came[fd] += len(data)
                if came[fd] >= length:
                    came[fd] = 0
                    answers += 1
                    clients[fd].send(GET)
        return answers


def hold(port: int, count: int) -> None:
    raise_open_file_limit()
    with ExitStack() as stack, httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
        client.get("/held")
        started = time.monotonic()
        for begun in range(0, count, AT_ONCE):
            batch = [stack.enter_context(_opening(port)) for _ in range(min(AT_ONCE, count - begun))]
            for connection in batch:
                _writable(connection)
                connection.send(POLL)
        while orjson.loads(client.get("/held").content)["held"] < count:
            time.sleep(0.01)
        print(time.monotonic() - started, flush=True)
        sys.stdin.readline()


def _opening(port: int) -> socket.socket:
    connection = socket.socket()
    connection.setblocking(False)
    connection.connect_ex(("127.0.0.1", port))
    return connection


def _writable(connection: socket.socket) -> None:
    poll = select.poll()
    poll.register(connection, select.POLLOUT)
    poll.poll()


def main(what: str, *numbers: str) -> None:
    if what == "busy":
        print(busy(int(numbers[0]), int(numbers[1]), float(numbers[2])))
    else:
        hold(int(numbers[0]), int(numbers[1]))


if __name__ == "__main__":
    main(*sys.argv[1:])
