"""What new users ask, with what they would type into the search, and the page that answers."""

from typing import NamedTuple


class Question(NamedTuple):
    text: str
    search: str
    page: str  # with the heading, if the page is long
    says: str  # a part of the answer


QUESTIONS = (
    Question("How do I try it without installing anything?", "try demo", "index", "scripts/run"),
    Question("What is a project, and what is an application?", "project application", "concepts", "space of a team"),
    Question("What is a gsid?", "gsid", "glossary", "One sign-in of a player"),
    Question("How do I add the login to a Flask site?", "flask", "quickstarts/flask", "Authlib"),
    Question("How does a React app sign in?", "single-page app", "quickstarts/single_page_app", "oidc-client-ts"),
    Question("How does a television sign in?", "television", "quickstarts/device", "television"),
    Question("How does my server get a token?", "service token", "quickstarts/service", "without a user"),
    Question("How do I sign a player in from my game?", "game link", "games", "getGsid"),
    Question("Can players start without an account?", "guest", "players", "SSO_GUESTS"),
    Question("Can players use their Steam account?", "steam ticket", "providers", "Steam"),
    Question("How do I verify a player on my game server?", "verify user jwt", "interface", "To verify a user JWT"),
    Question("How do I ban a cheater?", "ban", "bans", "sso user ban"),
    Question("How do I give somebody a role?", "assign role", "first_permission", "sso role assign"),
    Question("Why may this user not do that?", "explain", "first_permission", "sso perm explain"),
    Question("Who changed this role?", "audit trail", "permissions", "The audit trail"),
    Question("How do I ask for 50 permissions at once?", "check many rules", "permissions", "up to 100 questions"),
    Question("How do I create the first administrator?", "first administrator", "console", "sso user add"),
    Question("How do I require a second factor?", "require second factor", "second_factors", "SSO_REQUIRE_2FA"),
    Question("A user has lost the phone. What now?", "phone lost", "troubleshooting", "sso user reset-2fa"),
    Question("Nobody gets mails. Why?", "mail smtp", "troubleshooting", "SSO_SMTP_URL"),
    Question("What does invalid_grant mean?", "invalid_grant", "troubleshooting", "invalid_grant"),
    Question("A game is refused with 403 and an id. Why?", "a game is refused", "troubleshooting", "sso why"),
    Question("The redirect URI is refused. Why?", "redirect URI registered", "troubleshooting", "in every character"),
    Question("How do I change the port?", "SSO_BIND port", "settings", "SSO_BIND"),
    Question("How do I put it behind nginx?", "nginx proxy", "proxy", "X-Forwarded-For"),
    Question("How do I install it on Debian?", "install debian", "deployment", "apt install"),
    Question("How do I make a backup?", "backup", "backup", "sso backup"),
    Question("How do I upgrade without an interruption?", "upgrade", "upgrade", "sso serve --replace"),
    Question("Which metrics are there?", "prometheus metrics", "metrics", "sso_logins_total"),
    Question("How many machines do I need?", "how many machines", "performance", "How many machines"),
    Question("How do I put my logo on the pages?", "logo", "branding", "logo"),
    Question("How do I get told about changes?", "webhook", "changes", "Webhook"),
    Question("How do I sign a user out of all sites?", "logout", "logout", "backchannel_logout_uri"),
    Question("How long does an access token live?", "access token lifetime", "settings", "SSO_ACCESS_TTL_S"),
    Question("How do I get the e-mail address of a user?", "email address claim", "oauth", "email_verified"),
    Question("Which scopes are there?", "scopes", "oauth", "offline_access"),
    Question("How do I change a client's secret?", "rotate client secret", "keys", "rotate-secret"),
    Question("How do I test a sign-in that fails?", "test players", "testing", "banned@player.test"),
    Question("My browser app gets a CORS error. Why?", "cors", "connect_site", "--origins"),
    Question("How does my game stay signed in?", "stay signed in", "sdk/after_sign_in", "token"),
    Question("How does a guest keep the progress?", "guest progress", "players", "Keep the progress"),
    Question("How do I kick a player out of the game?", "kick player", "bans", "the socket of a game is closed"),
    Question("How do I show a QR code?", "qr code", "sdk/consoles", "white border"),
    Question("What should I be alerted about?", "alerts", "monitoring", "alert rules"),
    Question("How do I restore a backup?", "restore", "backup", "sso restore"),
    Question("How do I keep it running if a machine fails?", "high availability", "cluster", "A node is one"),
    Question("Which versions of PostgreSQL work?", "postgresql version", "operations", "15 and 18"),
    Question("How long is data kept?", "data retention", "personal_data", "SSO_HISTORY_DAYS"),
    Question("How do I delete a user?", "delete user", "personal_data", "sso user delete"),
    Question("How do I sign a user out everywhere?", "end sessions of a user", "support", "end-sessions"),
    Question("How do I undo a change?", "undo", "console_sections", "The undo of a deletion"),
    Question("Where do I get an API key?", "api key", "permissions", "Access keys"),
    Question("Who has this role or right?", "who has this role", "permissions", "sso perm who"),
    Question("How do users sign in with Google?", "sign in with google", "providers", "accounts.google.com"),
    Question("When do I need a role, when a group?", "role group difference", "concepts", "make a group"),
    Question("Which rate limits are there?", "rate limits", "limits", "SSO_RATE_LOGIN"),
)
