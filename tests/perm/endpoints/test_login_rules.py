"""Login at applications: login rules, permissions, e-mail secrets, service JWTs, signed addresses."""

import hashlib
import hmac
import json
import time
from typing import Any

import jwt as pyjwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from sso.core.keys import key_id
from tests.kit.builders import PASSWORD
from tests.perm.endpoints.conftest import FACTOR, ApiUser, Studio

MUTE = {"chat": {"mute": {"value": True}}}


def login(
    studio: Studio, user: ApiUser, headers: dict[str, str] | None = None, **fields: Any
) -> tuple[int, dict[str, Any]]:
    body = {"login": user.login, "password": PASSWORD, "factor": FACTOR, **fields}
    response = studio.client.post("/proxy/api/login", json=body, headers=headers or {})
    return response.status_code, response.json()


def test_app_id_and_gapp_id_give_permissions_keyed_by_application(studio: Studio) -> None:
    tanks, game = studio.application(private_data=MUTE), studio.application(public_data={"skin": {"value": "red"}})
    status, data = login(studio, studio.user(), app_id=tanks, gapp_id=game)
    assert status == 200
    assert data["permissions"] == {str(tanks): ["chat.mute"], str(game): ["skin"]}
    assert pyjwt.decode(data["jwt"], options={"verify_signature": False})["app_id"] == tanks


def test_public_data_of_a_user_is_not_listed_as_a_private_rule_at_login(studio: Studio) -> None:
    app, user = studio.application(public_data={"skin": {"value": ""}}), studio.user()
    studio.save_data(user, app, public_data=MUTE | {"skin": {"value": "red"}})
    assert login(studio, user, app_id=app)[1]["permissions"] == {str(app): ["chat.mute", "skin"]}
    studio.give_secret(user, app, public={"canWrite": "self"})
    assert login(studio, user, app_id=app)[1]["permissions"] == {str(app): ["public_data.chat.mute", "skin"]}
    moderator = {"name": "moderator", "meta": {"private_data": MUTE | {"skin": {"value": True}}}}
    assert studio.root.call("roles", action="save", application_id=app, data=moderator).status == 200
    assert login(studio, user, app_id=app)[1]["permissions"] == {str(app): ["public_data.chat.mute"]}


def test_app_id_0_means_no_application(studio: Studio) -> None:
    assert "permissions" not in login(studio, studio.user(), app_id=0, gapp_id=0)[1]


def test_login_at_an_unknown_or_removed_application_is_rejected(studio: Studio) -> None:
    removed = studio.application()
    assert studio.root.call("application", action="delete", data={"application_id": removed}).status == 200
    user = studio.user()
    assert login(studio, user, app_id=2_000_000_000)[0] == 400
    assert login(studio, user, app_id=removed)[0] == 400


def test_own_login_section_of_a_user_overrides_the_login_rules_of_the_schema(studio: Studio) -> None:
    closed = studio.application(login={"can": {"value": True}, "cannot": {"value": True}})
    user = studio.user()
    status, response = login(studio, user, app_id=closed)
    assert (status, response) == (403, {"status": "ERROR", "error": "login not allowed"})
    own = {"user_id": user.user_id, "login": {"cannot": {"value": False}}}
    assert studio.root.call("meta/data", action="save", application_id=closed, data=own).status == 200
    assert login(studio, user, app_id=closed)[0] == 200


def test_wrong_password_is_reported_before_login_not_allowed(studio: Studio) -> None:
    closed = studio.application(login={"can": {"value": False}})
    assert login(studio, studio.user(), app_id=closed, password="wrong")[0] == 401


@pytest.mark.parametrize(("login_name", "status"), [("in@Studio.example", 200), ("out@sub.studio.example", 403)])
def test_only_users_of_restricted_domains_may_log_in(studio: Studio, login_name: str, status: int) -> None:
    tanks = studio.application()
    settings = {"restricted_domains": ["studio.EXAMPLE"]}
    saved = studio.root.call("application", action="save", data={"application_id": tanks, "settings": settings})
    assert saved.status == 200
    assert login(studio, studio.user(login=login_name), app_id=tanks)[0] == status


def test_restricted_domains_are_compared_as_idn(studio: Studio) -> None:
    tanks = studio.application()
    settings = {"restricted_domains": ["straße.example"]}
    saved = studio.root.call("application", action="save", data={"application_id": tanks, "settings": settings})
    assert saved.data["application_id"] == tanks
    for login_name, status in (("a@strasse.example", 403), ("b@Straße.example", 200), ("c@xn--strae-oqa.example", 200)):
        assert login(studio, studio.user(login=login_name), app_id=tanks)[0] == status


def test_role_conditions_and_project_domains_are_compared_as_idn(studio: Studio) -> None:
    project = studio.project()
    app = studio.application(project)
    studio.role(app, "staff", "enter", condition={"domain": "straße.example"})
    studio.role(app, "guest", "look")
    group = studio.group(project, conditions=[{"title": "all", "condition": {"everyone": True}}])
    services = {str(app): {"groups": [{"group_id": group, "role": "guest", "action": "grant"}]}}
    settings = {"services": services, "allowed_domains": ["STRAßE.example", "example.com"]}
    assert studio.root.call("project", action="save", data={"id": project, "settings": settings}).status == 200
    other, same = studio.user(login="d@strasse.example"), studio.user(login="d@straße.example")
    assert studio.rules_of(other, app) == []
    assert studio.rules_of(same, app) == ["enter", "look"]


def test_login_is_stored_in_nfc_and_matches_every_unicode_form(studio: Studio) -> None:
    composed, decomposed = "zo\u00eb@example.com", "zoe\u0308@example.com"
    user_id = studio.user(login=decomposed).user_id
    assert studio.user(login=composed).user_id == user_id
    for name in (composed, decomposed, composed.upper(), decomposed.upper()):
        body = {"login": name, "password": PASSWORD, "factor": FACTOR}
        response = studio.client.post("/proxy/api/login", json=body)
        assert (response.status_code, response.json().get("user_id")) == (200, user_id)
    shown = studio.server.sso("user", "show", decomposed).stdout
    assert json.loads(shown)["login"] == composed


def test_with_email_and_the_secret_of_the_application_returns_the_login(studio: Studio) -> None:
    tanks = studio.application()
    user = studio.user()
    secret = studio.server.sso("app", "email-secret", str(tanks)).stdout.split()[-1]
    assert login(studio, user, app_id=tanks, with_email=secret)[1]["login"] == user.login
    other = secret[:-1] + ("B" if secret.endswith("A") else "A")
    assert "login" not in login(studio, user, app_id=tanks, with_email=other)[1]
    assert "login" not in login(studio, user, with_email=secret)[1]  # the secret of the central application is used


def service_jwt(studio: Studio, application: int, key: ed25519.Ed25519PrivateKey, **claims: Any) -> str:
    now = int(time.time())
    payload = {
        "typ": "service_token",
        "app_id": application,
        "aud": studio.server.base_url,
        "iat": now,
        "exp": now + 60,
    }
    return pyjwt.encode(payload | claims, key, algorithm="EdDSA", headers={"kid": key_id(key.public_key())})


def application_with_key(studio: Studio, **schema: Any) -> tuple[int, ed25519.Ed25519PrivateKey]:
    key = ed25519.Ed25519PrivateKey.generate()
    application_id = studio.application(**schema)
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    data = {"application_id": application_id, "service_meta": {"public_key": pem}}
    assert studio.root.call("application", action="save", data=data).status == 200
    return application_id, key


def test_service_jwt_at_login_sets_the_application_or_must_match_it(studio: Studio) -> None:
    tanks, key = application_with_key(studio, private_data=MUTE)
    other = studio.application()
    user = studio.user()
    token = service_jwt(studio, tanks, key)
    assert login(studio, user, service_jwt=token)[1]["permissions"] == {str(tanks): ["chat.mute"]}
    assert login(studio, user, service_jwt=token, gapp_id=tanks)[0] == 200
    assert login(studio, user, service_jwt=token, app_id=other)[0] == 400
    assert login(studio, user, service_jwt="x.y.z")[0] == 400
    assert login(studio, user, service_jwt=service_jwt(studio, other, key))[0] == 400


def test_service_jwt_header_takes_precedence_over_the_field(studio: Studio) -> None:
    tanks, key = application_with_key(studio, private_data=MUTE)
    other, other_key = application_with_key(studio)
    user = studio.user()
    header, in_body = {"Service-Jwt": service_jwt(studio, tanks, key)}, service_jwt(studio, other, other_key)
    assert login(studio, user, service_jwt=in_body)[1]["permissions"] == {str(other): []}
    for fields in ({}, {"service_jwt": in_body}, {"service_jwt": "x"}):
        assert login(studio, user, header, **fields)[1]["permissions"] == {str(tanks): ["chat.mute"]}
    assert login(studio, user, header, app_id=other, service_jwt=in_body)[0] == 400
    assert login(studio, user, {"Service-Jwt": "x"}, service_jwt=in_body)[0] == 400


def signed(key: dict[str, Any], address: str, at: int | None = None) -> dict[str, str]:
    moment = at or int(time.time())
    digest = hmac.new(key["hash"].encode(), f"{address}\n{moment}".encode(), hashlib.sha256).hexdigest()
    return {"Ip": address, "Signature": f"{key['id']}:{moment}:{digest}"}


def test_signed_address_at_login_counts_for_the_application_of_the_key_only(studio: Studio) -> None:
    tanks, other = studio.application(), studio.application()
    key = studio.root.call("accessKey", action="save", application_id=tanks, data={}).data
    user = studio.user()
    status, data = login(studio, user, signed(key, "203.0.113.7"), app_id=tanks, fixed_ip="1")
    assert status == 200
    assert pyjwt.decode(data["jwt"], options={"verify_signature": False})["ips"] == ["203.0.113.7/32"]
    assert login(studio, user, signed(key, "203.0.113.7"), app_id=other)[0] == 403
    assert login(studio, user, signed(key, "203.0.113.7"))[0] == 403


def test_login_with_a_wrongly_signed_address_is_forbidden(studio: Studio) -> None:
    tanks = studio.application()
    key = studio.root.call("accessKey", action="save", application_id=tanks, data={}).data
    user = studio.user()
    good = signed(key, "203.0.113.7")
    changed = good["Signature"][:-1] + ("1" if good["Signature"].endswith("0") else "0")
    for headers in (
        {"Ip": "203.0.113.7"},
        {**good, "Ip": "203.0.113.8"},
        {**good, "Signature": changed},
        {**good, "Signature": "nonsense"},
        signed(key, "203.0.113.7", int(time.time()) - 400),
    ):
        assert login(studio, user, headers, app_id=tanks)[0] == 403
    assert (
        login(studio, user, {"Ip": "127.0.0.1"}, app_id=tanks)[0] == 200
    )  # equal to the address of the connection, so it is ignored
