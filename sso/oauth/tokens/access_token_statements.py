"""The SQL of the token store about access tokens that were issued: whose they are, and whether they are still valid."""

from sso.db.batch.statement import BatchStatement
from sso.db.service_clients import HAS_ACTIVE_APPLICATION
from sso.db.statement import Statement
from sso.oauth.tokens.statements import CLOCK, USER_CLAIMS

REVOKE_ACCESS_TOKEN = Statement(
    """WITH service_tokens AS (
        DELETE FROM oauth_service_tokens WHERE digest = :digest AND client_id = :client_id
    )
    DELETE FROM oauth_access_tokens a USING oauth_grants g
    WHERE a.digest = :digest AND g.id = a.grant_id AND g.client_id = :client_id"""
)
FIND_ACCESS_TOKEN = BatchStatement(
    f"""WITH {CLOCK}
    SELECT item.n, u.user_id, {USER_CLAIMS}, u.phone_verified, u.valid_from,
        coalesce(a.scopes, g.scopes) AS scopes, c.client_id, c.profile, c.first_party,
        c.registered_by <> '' AS is_registered,
        CAST(floor(extract(epoch FROM a.expires)) AS bigint) AS exp, t AS now, g.auth_time, g.auth,
        g.redirect_uri = '' AS is_of_device, a.dpop_jkt, a.resources, g.claims, g.act
    FROM clock, {{items}}
    JOIN oauth_access_tokens a ON a.digest = item.digest JOIN oauth_grants g ON g.id = a.grant_id
    JOIN users u ON u.user_id = g.user_id JOIN oauth_clients c ON c.client_id = g.client_id
    WHERE a.expires > now() AND NOT u.disabled AND g.issued >= u.valid_from AND NOT c.disabled""",
    columns={"digest": "bytea"},
)
# For a user JWT that was exchanged for an access token; its verification also checks that the user is not disabled.
CHECK_ACCESS_TOKEN = BatchStatement(
    """SELECT item.n, c.first_party FROM {items}
    JOIN oauth_access_tokens a ON a.digest = item.digest AND a.expires > now() JOIN oauth_grants g ON g.id = a.grant_id
    JOIN oauth_clients c ON c.client_id = g.client_id AND NOT c.disabled
    JOIN users u ON u.user_id = g.user_id AND g.issued >= u.valid_from""",
    columns={"digest": "bytea"},
)
# A valid access token of a user or of a service, if its client belongs to the application of the resource server, or if
# it names resources.
INTROSPECT = BatchStatement(
    f"""SELECT item.n, c.client_id, c.application_id, found.sub, found.scopes, found.dpop_jkt, found.resources,
        found.auth, found.auth_time, found.act, c.application_id = item.application_id AS is_of_application,
        CAST(floor(extract(epoch FROM found.expires)) AS bigint) AS exp
    FROM {{items}} CROSS JOIN LATERAL (
        SELECT g.client_id, g.user_id AS sub, coalesce(a.scopes, g.scopes) AS scopes, a.expires, a.dpop_jkt,
            a.resources, g.auth, g.auth_time, g.act
        FROM oauth_access_tokens a JOIN oauth_grants g ON g.id = a.grant_id JOIN users u ON u.user_id = g.user_id
        WHERE a.digest = item.digest AND NOT u.disabled AND g.issued >= u.valid_from
            AND ban_in_force(u.bans, ARRAY[item.application_id]) IS NULL
        UNION ALL
        SELECT t.client_id, t.client_id, t.scopes, t.expires, t.dpop_jkt, t.resources, NULL, NULL, NULL
        FROM oauth_service_tokens t JOIN oauth_clients s USING (client_id, application_id)
        WHERE t.digest = item.digest AND 'client_credentials' = ANY (s.grant_types)
            AND {HAS_ACTIVE_APPLICATION.format("t")}
    ) found JOIN oauth_clients c ON c.client_id = found.client_id
    WHERE found.expires > now() AND NOT c.disabled AND item.application_id > 0
        AND (c.application_id = item.application_id OR cardinality(found.resources) > 0)""",
    columns={"digest": "bytea", "application_id": "int"},
)
