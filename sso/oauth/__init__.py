"""OAuth 2.0 and OpenID Connect: web sites sign their users in."""
