"""A restored service does not erase at once what was to be erased some time after the backup."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sso.backup import BackupError
from sso.backup.erasure_times import moment_of
from tests.backup.archives import members, rewritten
from tests.kit.backups import sso
from tests.kit.postgres import Postgres, execute, fetch

USERS = """
    INSERT INTO users (user_id, login, login_key, disabled, deletion_by, deletion_due) VALUES
        ('1', 'a@example.com', 'a@example.com', true, 'user', now() + interval '9 days'),
        ('2', 'b@example.com', 'b@example.com', true, 'erasing', now() + interval '9 days'),
        ('3', '', 'GUEST 3', false, NULL, NULL),
        ('4', 'd@example.com', 'd@example.com', false, NULL, NULL);
    INSERT INTO device_keys (digest, id, user_id, of_guest, last_used) VALUES
        ('k3', 'k3', '3', true, now() - interval '80 days'), ('k4', 'k4', '4', false, now() - interval '80 days');
    INSERT INTO sign_ins (id, user_id, last_used, expires)
        VALUES ('s', '3', now() - interval '70 days', now() + interval '1 hour');
    INSERT INTO user_merges (user_id, into_id, at, moved)
        VALUES ('3', '4', now() - interval '6 days', '{"keys": ["k"]}');
    INSERT INTO oauth_clients (client_id, registered_by, registration_used) VALUES
        ('registered', 'open', now() - interval '70 days'), ('added', '', NULL);
    INSERT INTO node_workers (worker, node, host, pid, version, schema_version, base_url, workers, held_polls, sockets,
        clock_offset, started, last_seen, expires)
        VALUES ('w', 'web1', '', 1, '', '', '', 1, 0, 0, 0, now(), now(), now() + interval '1 day');
"""
DAYS_LEFT = """SELECT array_agg(CAST(extract(epoch FROM deletion_due - now()) / 86400 AS int) ORDER BY user_id)
    FROM users WHERE deletion_due IS NOT NULL"""
DAYS_UNUSED = """SELECT array_agg(CAST(extract(epoch FROM now() - last_used) / 86400 AS int) ORDER BY user_id)
    FROM device_keys"""
DAYS_CLIENTS_UNUSED = """SELECT array_agg(CAST(extract(epoch FROM now() - registration_used) / 86400 AS int)
    ORDER BY client_id) FROM oauth_clients"""
DAYS_SINCE_MERGE = "SELECT CAST(extract(epoch FROM at - now()) / 86400 AS int) FROM user_merges"


def test_restored_users_and_clients_have_as_much_time_left_as_before(postgres_server: Postgres, tmp_path: Path) -> None:
    """Since the backup, a user may have cancelled a deletion, a guest have played, and a client have been used."""
    source, target = postgres_server.fresh(), postgres_server.empty()
    execute(source, USERS)
    made, old = tmp_path / "made.backup", tmp_path / "old.backup"
    done = sso(tmp_path, "backup", str(made), "--no-keys", SSO_DATABASE_URL=source)
    assert done.returncode == 0, done.stderr
    manifest = json.loads(members(made)["manifest.json"])
    manifest["created"] = (datetime.now(UTC) - timedelta(days=60)).isoformat(timespec="seconds")
    rewritten(made, old, {"manifest.json": json.dumps(manifest).encode()})
    done = sso(tmp_path, "restore", str(old), "--unauthenticated", SSO_DATABASE_URL=target)
    assert done.returncode == 0, done.stderr
    assert "by the time since the backup: 1 closed accounts, 1 guests, 1 merged users, 1 clients" in done.stderr
    assert fetch(target, DAYS_LEFT) == [69, 9], "an erasure that has begun goes on"
    assert fetch(target, DAYS_UNUSED) == [10, 80], "the latest use of a guest counts, and accounts are not erased"
    assert fetch(target, DAYS_SINCE_MERGE) == 54
    assert fetch(target, DAYS_CLIENTS_UNUSED) == [None, 10], "a client with sign-ins since then is not deleted"
    assert fetch(target, "SELECT count(*) FROM node_workers") == 0, "the nodes of the backup are not silent ones"


def test_time_of_a_backup_must_be_one() -> None:
    assert moment_of("2026-11-15T12:00:00").tzinfo is UTC
    for text in ("", "yesterday", "2026-11-15' OR true --"):
        with pytest.raises(BackupError, match="created is not a time"):
            moment_of(text)
