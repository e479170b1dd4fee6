"""The attributes of users that a write changes, and the applications where they matter."""

from collections.abc import Iterator, Mapping

from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.changes.user_rows import UserAccount
from sso.perm.engine.user_facts import UserFacts

# Applications where an attribute of a user matters: in a condition of a role, or of a group that gets roles, or in
# the allowed domains of a project that gives roles. Values are compared as they are written in JSON.
_WITH_CONDITIONS = Statement(
    """WITH part AS (SELECT to_jsonb(value)::text AS text FROM unnest(CAST(:values AS text[])) AS value)
    SELECT r.application_id FROM roles r
    WHERE EXISTS (SELECT FROM part WHERE strpos(r.condition::text, part.text) > 0)
    UNION SELECT a.application_id FROM applications a JOIN projects p ON p.id = a.project_id
    WHERE p.settings -> 'services' ? a.application_id::text AND (
        EXISTS (SELECT FROM user_groups g, part WHERE g.project_id = p.id AND strpos(g.conditions::text, part.text) > 0)
        OR (:domain AND p.settings ? 'allowed_domains'))"""
)


def attributes_that_differ(
    before: Mapping[str, UserAccount], after: Mapping[str, UserAccount], *, creates_accounts: bool
) -> Iterator[tuple[str, frozenset[str]]]:
    """Returns the users whose attributes a write changed, by id.

    A user whom the write created had no attributes before.
    """
    for user_id, account in after.items():
        if user_id in before:
            if before[user_id].facts != account.facts:
                yield user_id, _changed_attributes(before[user_id].facts, account.facts)
        elif creates_accounts:
            yield user_id, _changed_attributes(UserFacts(""), account.facts)


def _changed_attributes(old: UserFacts, new: UserFacts) -> frozenset[str]:
    """Returns the strings of which a stored condition has one if the difference of the attributes matters to it."""
    domain = ("domain",) if old.domain != new.domain else ()
    user_id = ("uid",) if old.user_id != new.user_id else ()
    return frozenset((*(old.tags ^ new.tags), *(old.purchases ^ new.purchases), *domain, *user_id))


async def applications_with_conditions(tx: Transaction, attributes: frozenset[str]) -> set[int]:
    """Returns the applications where the difference of the attributes may matter."""
    rows = await tx.rows(_WITH_CONDITIONS, values=list(attributes), domain="domain" in attributes)
    return {row["application_id"] for row in rows}
