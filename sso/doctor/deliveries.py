"""Checks of what the service sends to others: logout notifications and events of webhooks."""

from sso.db.standalone import fetch_value
from sso.doctor.finding import Finding


def logout_notifications(dsn: str) -> Finding:
    failed = fetch_value(
        dsn,
        """SELECT string_agg(format('%s to %s (%s)', count, client_id, problem), '; ' ORDER BY client_id)
        FROM (SELECT client_id, count(*) AS count, max(problem) AS problem FROM logout_notifications
            WHERE next_try IS NULL AND expires > now() GROUP BY client_id) failed""",
    )
    return Finding(
        "logout notifications",
        failed is None,
        "none has failed in the last days" if failed is None else f"failed in the last days: {failed}",
        "correct backchannel_logout_uri of the client, or SSO_BACKCHANNEL_NETWORKS, or ask the operator of the site",
        warning=True,
    )


def webhooks(dsn: str) -> Finding:
    """A webhook that has been failing for some minutes, or that has failed events."""
    failing = fetch_value(
        dsn,
        """SELECT string_agg(format('%s (%s)', url, coalesce(problem, failed || ' events have failed')), '; '
            ORDER BY url)
        FROM (SELECT url, CASE WHEN failing_since < now() - interval '5 minutes' THEN problem END AS problem,
                (SELECT count(*) FROM webhook_failures f
                    WHERE f.webhook_id = w.webhook_id AND expires > now()) AS failed
            FROM webhooks w WHERE NOT disabled) deliveries
        WHERE problem IS NOT NULL OR failed > 0""",
    )
    return Finding(
        "webhooks",
        failing is None,
        "events are delivered" if failing is None else f"events are not delivered: {failing}",
        "correct the address with the console or the management API, then `sso webhook resend ID`",
        warning=True,
    )
