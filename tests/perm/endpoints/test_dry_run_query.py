"""``?dry_run=1`` at the permission endpoints."""

from tests.perm.endpoints.conftest import FACTOR, Studio


def test_dry_run_in_the_query_changes_nothing(studio: Studio) -> None:
    app = studio.application()
    body = {"action": "save", "application_id": app, "data": {"name": "trial", "default": True}}
    headers = {"Authorization": f"Bearer {studio.root.jwt}", "Factor": FACTOR}
    for query, status in (("dry_run=1", 200), ("dry_run=true", 200), ("dry_run=yes", 400), ("dry_run=", 400)):
        answer = studio.client.post(f"/api/permissions/roles?{query}", json=body, headers=headers)
        assert answer.status_code == status, (query, answer.text)
        assert status == 400 or answer.json()["total"] == 0
    read = {"action": "get", "application_id": app, "data": {"name": "trial"}}
    assert studio.client.post("/api/permissions/roles", json=read, headers=headers).status_code == 404
    assert studio.client.post("/api/permissions/roles?dry_run=0", json=body, headers=headers).status_code == 200
    assert studio.client.post("/api/permissions/roles", json=read, headers=headers).status_code == 200
