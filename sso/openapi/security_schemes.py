"""The ways in which callers authenticate."""

SECURITY_SCHEMES = {
    "userJwt": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "The user JWT of POST /proxy/api/login.",
    },
    "factor": {
        "type": "apiKey",
        "in": "header",
        "name": "Factor",
        "description": "The device factor that was sent with the login.",
    },
    "serviceToken": {
        "type": "http",
        "scheme": "bearer",
        "description": "The access token of a service client (client_credentials) of the central application.",
    },
    "serviceJwt": {
        "type": "apiKey",
        "in": "header",
        "name": "Service-Jwt",
        "description": "A JWT that the application has signed, or the access token of its service client.",
    },
    "accessKey": {"type": "http", "scheme": "bearer", "description": "An access key of the application."},
    "accessToken": {"type": "http", "scheme": "bearer", "description": "An access token of POST /proxy/oauth/token."},
    "dpopToken": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "`DPoP`, a space, and an access token that is bound to a key.",
    },
    "dpopProof": {
        "type": "apiKey",
        "in": "header",
        "name": "DPoP",
        "description": "A JWT that is signed with that key (RFC 9449).",
    },
    "clientBasic": {
        "type": "http",
        "scheme": "basic",
        "description": "client_id and client_secret. Clients may send them, or client_assertion, in the body instead.",
    },
    "strictBearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "Strict clients: the SHA-1 of redirect_uri and client_secret, in hexadecimal.",
    },
    "sessionCookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "sso_session",
        "description": "The session of a browser. With https, the name begins with `__Host-`.",
    },
}
