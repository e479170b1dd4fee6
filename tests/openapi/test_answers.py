"""Calls every operation of the management API on a real server, and compares the answers with the document."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from sso.core.keys import private_pem, public_pem
from tests.kit import postgres
from tests.kit.api_document import ApiDocument, document_of
from tests.kit.browser import query as run_query
from tests.kit.builders import PASSWORD
from tests.kit.guest import Device
from tests.kit.held import Player, new_game
from tests.kit.server import NO_LIMITS, QUICK, Server, running
from tests.perm.endpoints.conftest import FACTOR, Studio, studio

__all__ = ["studio"]

RULE = {"chat": {"kick": {"value": True}}}
ADVICE = "call a new operation of the management API in this test, with an answer that has all of its fields"


@pytest.fixture(scope="module")
def server(postgres_server: postgres.Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = QUICK | NO_LIMITS | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_WORKERS": "1"}
    with running(tmp_path_factory.mktemp("answers"), **settings, SSO_REGISTRATION="invite", SSO_GUESTS="on") as server:
        yield server


class Api:
    """Calls operations by their ids."""

    def __init__(self, document: ApiDocument, client: httpx.Client, headers: dict[str, str]) -> None:
        self._document = document
        self._client = client
        self._headers = headers
        self.called: set[str] = set()

    def __call__(self, operation_id: str, body: Any = None, query: Any = None, **path: Any) -> Any:
        """Returns ``data`` of the answer."""
        operation = self._document.operations[operation_id]
        response = self._client.request(
            operation.method, operation.path.format(**path), headers=self._headers, json=body, params=query
        )
        assert response.status_code < 300, f"{operation_id}: {response.text}"
        assert self._document.check(response) == operation_id
        self.called.add(operation_id)
        return response.json().get("data")


async def test_answers_of_all_operations_are_as_the_document_says(studio: Studio) -> None:
    headers = {"Authorization": f"Bearer {studio.root.jwt}", "Factor": FACTOR}
    document = document_of(studio.server.base_url)
    api = Api(document, studio.client, headers)
    application = call_permissions(api)
    user_id = call_users(api, application, studio)
    call_projects(api, application, user_id)
    call_services(api, studio.server)
    await call_game_sessions(api, studio)
    call_state(api)
    assert set(document.operations) - api.called == set(), ADVICE


def call_permissions(api: Api) -> int:
    key = ec.generate_private_key(ec.SECP256R1())
    application: int = api("create_application", {"name": "Chat", "description": "Talk"})["application_id"]
    api("create_application", {"name": "Chat"}, {"dry_run": "1"})
    at: dict[str, Any] = {"application_id": application}
    api("update_schema", {"private_data": {"chat": {"kick": {"value": False}}}}, **at)
    api("update_schema", {"private_data": RULE}, {"dry_run": "1"}, **at)
    role = {**at, "name": "moderator"}
    api("create_role", {**role, "meta": {"private_data": RULE}, "condition": {"tag": "mod"}})
    api("update_role", {"description": "Keeps order"}, **role)
    api("get_role", **role)
    api("list_roles", query=at)
    api("get_schema", **at)
    api("list_schemas")
    access_key = api("create_access_key", {**at, "comment": "server"})["id"]
    api("list_access_keys", query=at)
    api("get_access_key", key_id=access_key)
    api("update_access_key", {"comment": "server in Oslo"}, key_id=access_key)
    api("delete_access_key", key_id=access_key)
    api(
        "update_application",
        {"service_meta": {"private_key": private_pem(key), "public_key": public_pem(key.public_key())}},
        **at,
    )
    api("get_application", **at)
    api("list_applications")
    kid = api(
        "add_application_key", {"public_key": public_pem(ec.generate_private_key(ec.SECP256R1()).public_key())}, **at
    )["kid"]
    api("list_application_keys", **at)
    api("get_application_key", kid=kid, **at)
    api("remove_application_key", kid=kid, **at)
    api("issue_service_jwt", **at)
    api("get_email_secret", **at)
    api("get_data_secret", **at)
    api("replace_application_assertions", {"assertions": ["only moderator may chat.kick"]}, **at)
    api("get_application_assertions", **at)
    api("test_assertions", {})
    api("test_condition", {"condition": {"or": [{"tag": "beta"}, {"domain": "example.com"}]}, "tags": ["beta"]})
    return application


def call_users(api: Api, application: int, studio: Studio) -> str:
    user = {"login": "ann@example.com", "password": PASSWORD, "nick": "Ann", "tags": ["mod"], "meta": {"a": 1}}
    user_id: str = api("create_user", user)["user_id"]
    at: dict[str, Any] = {"user_id": user_id}
    api("import_users", {"users": [{"login": "mia@example.com"}, {"login": "?"}]})
    api("list_users", query={"search": "ann"})
    api("get_user", **at)
    api("update_user", {"disabled": False}, **at)
    api("update_user", {"tags": []}, {"dry_run": "1"}, **at)
    api("delete_user", **at)
    api("restore_user", **at)
    scope = {"application_id": application}
    ban = api("ban_user", {"scope": scope, "until": 4102444800, "reason": "Cheating", "note": "report"}, **at)
    api("list_user_bans", **at)
    api("unban_user", ban_id=ban["id"], **at)
    api("create_role", {"application_id": application, "name": "player"})
    roles = [{"name": "player", "expired": 4102444800}]
    api("update_user_permissions", {"application_id": application, "roles": roles, "private_data": RULE}, **at)
    changes = {"application_id": application, "roles": []}
    api("update_user_permissions", changes, {"dry_run": "1"}, **at)
    for kind in ("list", "list_short", "roles", "tree"):
        api("get_user_permissions", query={"application_id": application, "type": kind, "explain": "chat.kick"}, **at)
    api("get_user_assignments", **at)
    api("list_role_holders", application_id=application)
    api("list_rule_holders", query={"rule": "chat.kick", "reason": "1"}, application_id=application)
    api("list_user_rules", query={"reason": "1"}, **at)
    Player(studio.server, "ann@example.com")  # signs in with a browser
    api("end_user_session", session_id=api("list_user_sessions", **at)[0]["id"], **at)
    login = {"login": "ann@example.com", "password": PASSWORD, "factor": FACTOR}
    assert studio.client.post("/proxy/api/login", json=login).status_code == 200
    api("end_user_game", sign_in_id=api("list_user_games", **at)[0]["ids"][0], **at)
    api("end_user_sessions", **at)
    other: str = api("create_user", {"login": "twin@example.com", "tags": ["twin"]})["user_id"]
    api("merge_user", {"into": user_id}, {"dry_run": "1"}, user_id=other)
    api("merge_user", {"into": user_id}, user_id=other)
    api("list_user_merges", **at)
    api("unmerge_user", {"from": other}, **at)
    api("impersonate_user", {"reason": "ticket 4711", "minutes": 1}, **at)
    guest = Device().sign_in(studio.client)["user_id"]
    api("merge_user", {"into": user_id}, user_id=guest)
    api("delete_user_link", link_id=api("list_user_links", **at)[0]["id"], **at)
    api("list_user_factors", **at)
    api("get_blocked_factors", **at)
    api("unblock_user_factors", **at)
    api("reset_user_factors", **at)
    api("export_user", **at)
    with ThreadPoolExecutor(1) as threads:  # the driver needs a thread without Trio
        threads.submit(
            run_query,
            studio.server,
            """INSERT INTO data_requests (request_id, kind, user_id, subject_id, application_id, state, deadline)
            VALUES ('r1', 'remove', $1, $1, $2, 'failed', now())""",
            user_id,
            application,
        ).result()
    api("retry_data_request", number=api("list_data_requests")[0]["id"])
    entries = api("list_audit_entries")
    api("get_audit_entry", entry_id=entries[0]["id"])
    last_event = api("list_changes")[-1]["id"]
    replica = {"application_id": application}
    api("get_replica_definition", **replica)
    api("list_replica_users", query={"limit": "1"}, **replica)
    api("list_replica_changes", query={"after": last_event}, **replica)
    api("create_invitation", {"login": "new@example.com"})
    api("delete_invitation", invitation_id=api("list_invitations")[0]["id"])
    return user_id


def call_projects(api: Api, application: int, user_id: str) -> None:
    project = api("create_project", {"title": "Red Dawn", "admins": ["ann@example.com"]})["id"]
    at: dict[str, Any] = {"project_id": project}
    api("update_project", {"description": "Tanks", "settings": {"allowed_domains": ["example.com"]}}, **at)
    api("get_project", **at)
    api("list_projects", query={"counts": "1"})
    other = api("create_user", {"login": "bob@example.com"})["user_id"]
    api("create_project_member", {"user_id": other, "roles": {"project": ["viewer"]}}, **at)
    member = {"user_id": other, **at}
    api("update_project_member", {"roles": {"project": [{"name": "viewer", "expired": 4102444800}]}}, **member)
    api("get_project_member", **member)
    api("list_project_members", **at)
    api("list_project_roles", **at)
    group = api("create_group", {"project_id": project, "title": "Testers"})["group_id"]
    conditions = [{"title": "Tag", "condition": {"tag": "beta"}}]
    api("update_group", {"users": [other], "conditions": conditions}, group_id=group)
    api("test_condition", {"group_id": group, "user": user_id})
    api("get_group", group_id=group)
    api("list_groups", query={"project_id": project})
    api("delete_group", group_id=group)
    api("delete_project_member", {}, {"dry_run": "1"}, **member)
    api("delete_project_member", **member)
    api("delete_project", **at)
    api("restore_project", **at)
    api("delete_role", application_id=application, name="player")
    api("delete_application", application_id=application)
    api("restore_application", application_id=application)
    api("count_condition_matches", {"conditions": [{"tag": "beta"}]})
    api("suggest_condition_values", query={"search": "be"})


def call_services(api: Api, server: Server) -> None:
    uris = ["https://shop.example.com/callback"]
    client = api("create_client", {"client_id": "shop", "profile": "oidc", "redirect_uris": uris})["client_id"]
    api("rotate_client_secret", {"overlap": 60}, client_id=client)
    api("get_client", client_id=client)
    api("list_clients")
    api("update_client", {"name": "Shop"}, client_id=client)
    api("create_client", {"client_id": "waits", "profile": "oidc", "redirect_uris": uris, "approved": False})
    api("refuse_client", client_id="waits")
    stream = {"client_id": client, "stream_id": "a-stream"}
    values = "'a-stream', $1, '{session-revoked}', now(), 'status 500', now()"
    columns = "stream_id, client_id, events, failing_since, problem, last_delivery"
    with ThreadPoolExecutor(1) as threads:
        insert = f"INSERT INTO signal_streams ({columns}) VALUES ({values})"
        threads.submit(run_query, server, insert, client).result()
    api("list_client_signal_streams", client_id=client)
    api("update_client_signal_stream", {"status": "paused", "reason": "full"}, **stream)
    api("send_example_signal", {"event": "session-revoked"}, **stream)
    api("delete_client_signal_stream", **stream)
    api("start_client_recording", client_id=client)
    recorded = {
        "endpoint": "token",
        "proof": "none",
        "method": "POST",
        "dpop": False,
        "parameters": {"code": "(3 characters)"},
        "ms": 1.5,
    }
    content = recorded | {"answer": {"status": 400, "kind": "json", "members": {"error": "invalid_grant"}}}
    columns, values = (
        "client_id, network, proven, content, expires",
        "$1, '0f1e2d3c', false, $2, now() + interval '1 h'",
    )
    insert = f"INSERT INTO oauth_recorded_requests ({columns}) VALUES ({values})"
    with ThreadPoolExecutor(1) as threads:
        threads.submit(run_query, server, insert, client, json.dumps(content)).result()
    assert api("list_client_requests", client_id=client)
    api("stop_client_recording", client_id=client)
    api("delete_client", client_id=client)
    token = api("create_registration_token", {"uses": 2, "days": 1})["id"]
    api("list_registration_tokens")
    api("delete_registration_token", token_id=token)
    api("update_brand", {"name": "Iron Foundry"})
    api("get_brand")
    api("create_identity_provider", {"id": "local", "kind": "oidc", "issuer": "http://127.0.0.1:9", "client_id": "sso"})
    api("get_identity_provider", provider_id="local")
    api("list_identity_providers")
    api("update_identity_provider", {"position": 2}, provider_id="local")
    api("test_identity_provider", provider_id="local")
    api("delete_identity_provider", provider_id="local")
    api("create_identity_provider", {"id": "game", "kind": "game_center", "client_id": "com.example.game"})
    api("test_identity_provider", provider_id="game")
    side = {"algorithm": "ES256", "side": True}
    kid = api("rotate_signing_key", side)["kid"]
    api("rotate_signing_key", side)
    api("get_signing_key", kid=kid)
    api("list_signing_keys")
    webhook = {"url": "https://tools.example.com/events", "secret": "32 random characters"}
    at = {"webhook_id": api("create_webhook", webhook)["id"]}
    api("list_webhooks")
    api("get_webhook", **at)
    api("update_webhook", {"disabled": True}, **at)
    api("list_failed_events", **at)
    api("list_dead_letters", **at)
    api("retry_failed_events", {}, **at)
    api("delete_webhook", **at)
    api("get_system")
    api("get_figures")
    api("retire_signing_key", kid=kid)


async def call_game_sessions(api: Api, studio: Studio) -> None:
    game = await new_game(studio.server, distr="steam")
    api("list_game_sessions")
    api("get_game_session", gsid=game.gsid)
    refused = studio.client.post("/proxy/api/gameSession/getGsidResult", json={"gsid": "x"})
    api("get_violation", violation_id=refused.json()["error"])
    api("terminate_game_session", gsid=game.gsid)


def call_state(api: Api) -> None:
    document = {"users": [{"login": "ann@example.com", "nick": "Anna"}]}
    api("get_state")
    api("export_state", query={"sections": "users,clients"})
    api("compare_state", document)
    api("apply_state", document, {"dry_run": "1"})
    api("save_state", document)
    api("apply_state", document)
