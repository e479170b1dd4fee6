"""The applications that a user has used: by signing in to a game or program, or at a site that belongs to one."""

from sso.accounts.merged_user_store import IDS_WITH_MERGED
from sso.db.statement import Statement
from sso.db.transaction import Runner
from sso.personal_data.games.model import Sources, UsedApplication

# Users who were merged into this one belong to it: games know their data by the old ids.
_USED = Statement(
    f"""WITH ids AS ({IDS_WITH_MERGED}),
    used AS (
        SELECT user_id, application_id FROM used_applications WHERE user_id = ANY (ARRAY(SELECT user_id FROM ids))
        UNION
        SELECT s.user_id, number FROM sign_ins s, unnest(ARRAY[s.app_id, s.gapp_id]) number
        WHERE s.user_id = ANY (ARRAY(SELECT user_id FROM ids))
        UNION
        SELECT e.user_id, CAST(number AS bigint)
        FROM account_events e, unnest(ARRAY[e.detail ->> 'app_id', e.detail ->> 'gapp_id']) number
        WHERE e.user_id = ANY (ARRAY(SELECT user_id FROM ids)) AND e.kind = 'signed_in'
        UNION
        SELECT g.user_id, c.application_id FROM oauth_grants g JOIN oauth_clients c USING (client_id)
        WHERE g.user_id = ANY (ARRAY(SELECT user_id FROM ids))
        UNION
        SELECT k.user_id, c.application_id FROM oauth_consents k JOIN oauth_clients c USING (client_id)
        WHERE k.user_id = ANY (ARRAY(SELECT user_id FROM ids))
    )
    SELECT used.user_id AS subject_id, a.application_id, a.name, a.settings -> 'gdpr' AS gdpr
    FROM used JOIN applications a ON a.application_id = used.application_id
    WHERE a.settings -> 'gdpr' IS NOT NULL ORDER BY a.application_id, used.user_id"""
)


async def used_applications(runner: Runner, user_id: str) -> list[UsedApplication]:
    """Returns the applications with ``settings.gdpr`` that the user has used."""
    return [
        UsedApplication(row["subject_id"], row["application_id"], row["name"], Sources.from_settings(row["gdpr"]))
        for row in await runner.rows(_USED, user_id=user_id)
    ]
