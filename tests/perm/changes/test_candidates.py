"""The number of users whom a write may affect, if they are too many to be evaluated."""

from sso.perm.changes.impact import MAX_COUNTED_USERS, Impact
from sso.perm.stores.affected_users import count_candidates
from sso.services import Services
from tests.kit.builders import add_user


async def test_users_who_may_be_affected_are_counted_up_to_a_limit(services: Services) -> None:
    tag = "counted"
    user_ids = [(await add_user(services)).user_id for _ in range(3)]
    await services.database.run_sql("UPDATE users SET tags = $1 WHERE user_id = ANY ($2)", [[tag], user_ids])
    nothing = {"application_id": 1, "users": [], "roles": [], "all_records": False, "purchases": [], "domains": []}
    by_tag = nothing | {"tags": [tag], "by_attribute": True}
    by_id = nothing | {"users": user_ids, "tags": [], "by_attribute": False}
    for criteria in (by_tag, by_id):
        assert [await count_candidates(services.database, criteria, limit) for limit in (2, 3, 9)] == [2, 3, 3]
    assert await count_candidates(services.database, None, 2) == 2


def test_number_that_was_not_counted_to_its_end_is_the_least() -> None:
    for count, number in ((MAX_COUNTED_USERS, "at least 50,000"), (MAX_COUNTED_USERS - 1, "49,999")):
        (warning,) = Impact.of((), {7: count}, ()).json()["warnings"]
        assert warning.startswith(f"application 7: {number} users may be affected")
