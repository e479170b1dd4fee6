"""The groups of the document, and its introduction."""

INTRODUCTION = """\
Single sign-on and permissions. [openapi.json](/openapi.json) is this document for programs.

Bodies are JSON or, where it is listed, a form. Errors under `/api/` and `/proxy/api/` are
`{"status": "ERROR", "error": "…"}`, errors under `/proxy/oauth/` are `{"error": "…", "error_description": "…"}`, and
other paths answer with a page. Every response has the header `X-Request-Id`, which identifies its line in the log.
"""

TAGS = {
    "Management": "Users, applications, clients, keys and the audit trail, for administrators and their programs.",
    "Permissions": "Applications, projects, groups, roles, schemas, and the effective permissions of users.",
    "Login": "Sign-in of programs with a password or a session token.",
    "Game sessions": "Sign-in from a game, which the player confirms in a browser.",
    "OAuth and OpenID Connect": "Sign-in to sites and devices, and tokens of service clients.",
    "Keys": "The public keys that verify tokens.",
    "Sign-in pages": "Pages on which people sign in and register.",
    "Account page": "The page on which people change their account.",
    "Service": "Health, metrics, and files of the pages.",
}
