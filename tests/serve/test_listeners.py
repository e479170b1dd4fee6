"""Opening the listening sockets."""

import os
import socket
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from sso.core.bind_address import Bind
from sso.serve.listeners import BindError, listen, listening


def test_listener_accepts_connections_and_does_not_block() -> None:
    with listen(Bind("127.0.0.1", 0)) as listener:
        bound = Bind("127.0.0.1", 0).bound(listener)
        assert bound.port > 0
        assert not listener.getblocking()
        with pytest.raises(BlockingIOError):
            listener.accept()
        with socket.create_connection((bound.host, bound.port), timeout=60):
            pass


def test_ipv6_listener_does_not_occupy_the_ipv4_port() -> None:
    for _ in range(20):  # another process may use the port for IPv4
        try:
            v6 = listen(Bind("::", 0))
        except BindError as error:
            pytest.skip(str(error))
        with v6:
            assert v6.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 1
            with suppress(BindError), listen(Bind("0.0.0.0", v6.getsockname()[1])):
                return
    pytest.fail("the port of an IPv6 listener cannot be used for IPv4")


def test_name_is_resolved() -> None:
    with listen(Bind("localhost", 0)) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


def test_address_in_use_is_reported_in_one_line() -> None:
    with listen(Bind("127.0.0.1", 0)) as first:
        port = first.getsockname()[1]
        with pytest.raises(BindError) as caught:
            listen(Bind("127.0.0.1", port))
    assert str(caught.value) == f"cannot listen on 127.0.0.1:{port}: the address is already in use"


def test_address_of_another_machine_is_refused() -> None:
    with pytest.raises(BindError, match="not an address of this machine"):
        listen(Bind("192.0.2.1", 0))


def test_unknown_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(BindError, match="does not resolve"):
        listen(Bind("no-such-host.invalid", 0))


def test_unix_listener_is_open_to_its_group_only(tmp_path: Path) -> None:
    path = tmp_path / "s"
    umask = os.umask(0)
    try:
        with listen(Bind(path=str(path))) as listener:
            assert not listener.getblocking()
            assert stat.S_IMODE(path.stat().st_mode) == 0o660
            assert Bind(path=str(path)).bound(listener).path == str(path)
    finally:
        assert os.umask(umask) == 0


def test_stale_unix_socket_is_replaced(tmp_path: Path) -> None:
    bind = Bind(path=str(tmp_path / "s"))
    listen(bind).close()  # as after kill -9: the file stays
    with listen(bind), socket.socket(socket.AF_UNIX) as client:
        client.connect(bind.path)


def test_unix_socket_in_use_is_not_replaced(tmp_path: Path) -> None:
    bind = Bind(path=str(tmp_path / "s"))
    with listen(bind, backlog=0), socket.socket(socket.AF_UNIX) as client:
        with pytest.raises(BindError, match="already in use"):
            listen(bind)
        with pytest.raises(BindError, match="already in use"):  # its backlog is full now
            listen(bind)
        client.setblocking(False)
        with pytest.raises(BlockingIOError):
            client.connect(bind.path)


def test_file_that_is_no_socket_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("precious")
    with pytest.raises(BindError, match="not a socket"):
        listen(Bind(path=str(path)))
    assert path.read_text() == "precious"


def test_missing_directory_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BindError, match="No such file or directory"):
        listen(Bind(path=str(tmp_path / "no" / "s")))


def test_listening_closes_sockets_and_removes_files(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with listening((Bind("127.0.0.1", 0), Bind(path=str(path)))) as listeners:
        assert path.is_socket()
        assert len(listeners) == 2
    assert not path.exists()
    assert [listener.fileno() for listener in listeners] == [-1, -1]


def test_listening_opens_all_or_none(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with pytest.raises(BindError), listening((Bind(path=str(path)), Bind("192.0.2.1", 0))):
        pytest.fail("must not get here")
    assert not path.exists()


def test_listening_does_not_remove_the_socket_of_another_server(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with listening((Bind(path=str(path)),)):
        path.rename(tmp_path / "moved")  # keeps its inode number taken
        successor = listen(Bind(path=str(path)))
    with successor:
        assert path.is_socket()
