"""Verifies user JWTs offline, in the process of a game server: ``sso.client.PlayerVerifier``."""
