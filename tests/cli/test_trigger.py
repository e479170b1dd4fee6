"""sso trigger sends examples of all events and signals, signed, to a receiver on a real socket."""

import json
from pathlib import Path
from typing import Any

import jwt as pyjwt
import pytest

from sso.change_stream.events import ChangeType
from sso.core.ids import is_user_id
from sso.core.keys import GENERATE, private_pem
from sso.signals.event_types import SignalType
from tests.cli.conftest import CommandResult, run_in_process
from tests.kit.signals import event_of, names_of, push_receiver
from tests.kit.webhook_receiver import webhook_receiver

RECEIVER = "http://127.0.0.1:9/"  # nothing listens there


def trigger(*arguments: str, stdin: str = "") -> CommandResult:
    return run_in_process("trigger", *arguments, stdin=stdin, SSO_DATA_DIR="/nonexistent")


def test_trigger_sends_a_signed_example_of_each_event() -> None:
    with webhook_receiver() as receiver:
        done = trigger("all", "--to", receiver.url)
        assert done.code == 0, done.err
        first, *lines = done.out.splitlines()
        assert lines == [f"{name}: accepted" for name in ChangeType]
        assert [delivery.headers["Webhook-Event"] for delivery in receiver.deliveries] == [*ChangeType]
        for delivery in receiver.deliveries:
            assert delivery.is_signed_with(first.removeprefix("secret "))
            assert delivery.headers["Webhook-Id"] == delivery.event["id"]
            assert delivery.event.get("type", "permissions_changed") == delivery.headers["Webhook-Event"]
            assert not is_user_id(delivery.event.get("user_id") or "")
        receiver.deliveries.clear()
        receiver.status = 503
        done = trigger("user.banned", "--to", receiver.url, "--secret-stdin", stdin="hush\n")
        assert (done.code, done.out) == (1, "user_banned: status 503\n")
        [delivery] = receiver.deliveries
        assert delivery.is_signed_with("hush")
        assert delivery.event["scope"] == {"application_id": delivery.event["application_id"]}
    wrong = (
        ("nothing", "--to", receiver.url),
        ("all",),
        ("all", "--to", "ftp://localhost/"),
        ("signals",),
        ("signals", "--to", "ftp://localhost/"),
        ("signals", "--to", receiver.url, "--key", str(Path(__file__).resolve())),
    )
    for arguments in wrong:
        done = trigger(*arguments)
        assert done.code in (1, 2)
        assert "Traceback" not in done.err


def test_trigger_pushes_each_signal_as_a_token_that_its_key_set_verifies(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text(private_pem(GENERATE["ES256"]()))
    with push_receiver() as receiver:
        done = trigger("signals", "--to", receiver.url, "--client", "arcade")
        assert done.code == 0, done.err
        keys, *lines = done.out.splitlines()
        assert lines == [f"{name}: accepted" for name in SignalType]
        claims = [_verified(token, keys, audience="arcade") for token in receiver.tokens]
        assert names_of(claims) == [*SignalType]
        assert {headers["Content-Type"] for headers in receiver.headers} == {"application/secevent+jwt"}
        assert len({item["jti"] for item in claims}) == len(SignalType)
        members = dict(map(event_of, claims))
        assert members["credential-change"].keys() >= {"credential_type", "change_type", "event_timestamp"}
        assert members["assurance-level-change"]["change_direction"] == "increase"
        assert members["identifier-changed"] == {"new-value": "new@example.invalid"}
        assert members["verification"] == {}  # a state is that of a receiver's request
        assert members["stream-updated"] == {"status": "enabled", "reason": "This is an example"}
        receiver.tokens.clear()
        options = ("--to", receiver.url, "--key", str(key), "--issuer", "https://sso.test")
        outputs = [trigger("session-revoked", *options).out for _ in range(2)]
        assert outputs[0] == outputs[1]  # the same key has the same key set
        for token in receiver.tokens:
            first = _verified(token, outputs[0].splitlines()[0], audience="shop", issuer="https://sso.test")
            assert first["sub_id"]["user"] == {"format": "iss_sub", "iss": "https://sso.test", "sub": "0"}
        receiver.status, receiver.answer = 400, b'{"err": "invalid_audience"}'
        done = trigger("account-purged", *options)
        assert done.code == 1
        assert done.out.splitlines()[1] == "account-purged: rejected by the receiver: invalid_audience"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("user_disabled", "--to", RECEIVER, "--client", "shop"), "--client is for signals"),
        (("user_disabled", "--to", RECEIVER, "--key", __file__), "--key is for signals with --to"),
        (("all", "--to", RECEIVER, "--issuer", "https://sso.example.com"), "--issuer is for signals with --to"),
        (("all", "--to", RECEIVER, "--stream", "x"), "--stream is for signals without --to"),
        (("signals", "--to", RECEIVER, "--stream", "x"), "--stream is for signals without --to"),
        (("signals", "--to", RECEIVER, "--secret-stdin"), "--secret-stdin is for webhooks"),
        (("signals", "--client", "shop", "--issuer", "https://sso.test"), "--issuer is for signals with --to"),
    ],
)
def test_trigger_refuses_options_that_the_event_does_not_use(arguments: tuple[str, ...], problem: str) -> None:
    done = trigger(*arguments)
    assert (done.code, done.out) == (2, "")
    assert problem in done.err


def _verified(token: str, keys: str, audience: str, issuer: str = "https://sso.example.com") -> dict[str, Any]:
    """Verifies a token as a receiver does that knows only the key set."""
    key_set = pyjwt.PyJWKSet.from_dict(json.loads(keys.removeprefix("jwks ")))
    header = pyjwt.get_unverified_header(token)
    assert header["typ"] == "secevent+jwt"
    key = key_set[header["kid"]]
    claims: dict[str, Any] = pyjwt.decode(
        token, key, [key.algorithm_name], audience=audience, issuer=issuer, options={"require": ["iat", "jti"]}
    )
    return claims
