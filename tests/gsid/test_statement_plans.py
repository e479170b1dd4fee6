"""Every statement finds sessions by an index, whatever the table held when PostgreSQL made the plan."""

from ipaddress import ip_address

from sso.accounts.model import LoginOptions
from sso.db.database import Database
from sso.gsid.poll_store import _FIND_CHANGED
from sso.gsid.socket_store import _HEARTBEAT
from sso.services import Services
from tests.kit.plans import assert_plan_takes_linear_time, assert_plan_uses_indexes


async def test_plan_made_for_a_small_table_uses_indexes(services: Services, database: Database) -> None:
    await assert_plans_use_indexes(services, database)
    for _ in range(2):
        await services.game_login.registration.register(LoginOptions(address=ip_address("192.0.2.1")), None)
        await assert_plans_use_indexes(services, database)


async def assert_plans_use_indexes(services: Services, database: Database) -> None:
    for table in ("game_sessions", "sign_ins", "throttle", "users"):
        await database.run_sql(f"VACUUM ANALYZE {table}", [])
    polls, sessions, sockets = (
        services.game_login.polls._store,
        services.game_login.sessions,
        services.game_login.socket_store,
    )
    claims = services.game_login.claim_leases._store
    batches = [sessions._find, sessions._read_for_page, sessions._close, sessions._deny]
    for skip_locked in (sessions._create, sessions._confirm):
        batches += [skip_locked._skipping, skip_locked._waiting]
    batches += [sessions._set_stage, polls._start, polls._set_retry_time, sockets._read]
    batches += [claims._claim, claims._renew, claims._mark_delivered]
    for sql in [*(batch._statement.sql for batch in batches), _FIND_CHANGED.sql, _HEARTBEAT.sql]:
        await assert_plan_uses_indexes(database, sql)


async def test_statements_for_all_sockets_or_polls_of_a_worker_take_linear_time(
    services: Services, database: Database
) -> None:
    for sql in (services.game_login.polls._store._start._statement.sql, _FIND_CHANGED.sql, _HEARTBEAT.sql):
        await assert_plan_takes_linear_time(database, sql)
