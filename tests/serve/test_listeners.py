"""Reading the addresses to listen on, and opening them."""

import os
import socket
import stat
from pathlib import Path

import pytest

from sso.core.bind_address import Bind, parse_bind, parse_binds
from sso.serve.listeners import BindError, listen, listening


@pytest.mark.parametrize(
    ("text", "bind", "url_host"),
    [
        ("127.0.0.1:8000", Bind("127.0.0.1", 8000), "127.0.0.1:8000"),
        ("LocalHost:0", Bind("localhost", 0), "localhost:0"),
        ("sso_1.internal:65535", Bind("sso_1.internal", 65535), "sso_1.internal:65535"),
        ("[0:0:0:0:0:0:0:1]:8000", Bind("::1", 8000), "[::1]:8000"),
        ("[::]:80", Bind("::", 80), "[::]:80"),
        ("unix:/run/sso.sock", Bind(path="/run/sso.sock"), None),
        ("unix:/run/a:b", Bind(path="/run/a:b"), None),
    ],
)
def test_bind_is_read(text: str, bind: Bind, url_host: str | None) -> None:
    assert parse_bind(text) == bind
    assert bind.url_host() == url_host
    assert parse_bind(str(bind)) == bind


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected host:port"),
        ("8000", "expected host:port"),
        ("localhost", "expected host:port"),
        ("[::1]", "expected host:port"),
        (":8000", "host is missing"),
        ("::1:8000", "in brackets"),
        ("[127.0.0.1]:80", "not an IPv6 address"),
        ("[::g]:80", "not an IPv6 address"),
        ("256.0.0.1:80", "not an IPv4 address"),
        ("127.1:80", "not an IPv4 address"),
        ("a b:80", "not a host name"),
        ("http://localhost:80", "not a host name"),
        ("-a:80", "not a host name"),
        ("localhost:", "the port must be"),
        ("localhost:http", "the port must be"),
        ("localhost:65536", "the port must be"),
        ("localhost:-1", "the port must be"),
        ("localhost:+1", "the port must be"),
        ("localhost:8_0", "the port must be"),
        ("localhost:٨٠", "the port must be"),
        ("unix:", "absolute path"),
        ("unix:run/sso.sock", "absolute path"),
        ("unix:/run/", "absolute path"),
        ("unix:/" + "a" * 107, "longer than 107"),
    ],
)
def test_wrong_bind_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason.replace("[", r"\[")):
        parse_bind(text)


def test_several_binds_are_separated_by_commas() -> None:
    assert parse_binds("127.0.0.1:1, [::1]:1,unix:/a") == (Bind("127.0.0.1", 1), Bind("::1", 1), Bind(path="/a"))
    assert len(parse_binds("127.0.0.1:0,127.0.0.1:0")) == 2


@pytest.mark.parametrize("text", ["", "127.0.0.1:1,", "127.0.0.1:1,127.0.0.1:1", "unix:/a,unix:/a"])
def test_empty_and_repeated_binds_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_binds(text)


def test_listener_takes_connections_and_does_not_block() -> None:
    with listen(Bind("127.0.0.1", 0)) as listener:
        bound = Bind("127.0.0.1", 0).bound(listener)
        assert bound.port > 0
        assert not listener.getblocking()
        with pytest.raises(BlockingIOError):
            listener.accept()
        with socket.create_connection((bound.host, bound.port), timeout=5):
            pass


def test_v6_listener_leaves_v4_to_others() -> None:
    try:
        v6 = listen(Bind("::", 0))
    except BindError as error:
        pytest.skip(str(error))
    with v6, listen(Bind("0.0.0.0", v6.getsockname()[1])):
        assert v6.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 1


def test_name_is_resolved() -> None:
    with listen(Bind("localhost", 0)) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


def test_address_in_use_is_one_clear_line() -> None:
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


def test_unix_socket_somebody_answers_on_is_left_alone(tmp_path: Path) -> None:
    bind = Bind(path=str(tmp_path / "s"))
    with listen(bind, backlog=0), socket.socket(socket.AF_UNIX) as client:
        with pytest.raises(BindError, match="already in use"):
            listen(bind)
        with pytest.raises(BindError, match="already in use"):  # its backlog is full by now
            listen(bind)
        client.setblocking(False)
        with pytest.raises(BlockingIOError):
            client.connect(bind.path)


def test_other_file_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("precious")
    with pytest.raises(BindError, match="not a socket"):
        listen(Bind(path=str(path)))
    assert path.read_text() == "precious"


def test_missing_directory_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(BindError, match="No such file or directory"):
        listen(Bind(path=str(tmp_path / "no" / "s")))


def test_listening_tidies_up(tmp_path: Path) -> None:
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


def test_listening_leaves_the_file_of_a_successor(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with listening((Bind(path=str(path)),)):
        path.rename(tmp_path / "moved")  # keeps its inode number taken
        successor = listen(Bind(path=str(path)))
    with successor:
        assert path.is_socket()
