"""Sign-in with other providers: OpenID Connect, OAuth 2.0 with userinfo, and Steam (OpenID 2.0)."""
