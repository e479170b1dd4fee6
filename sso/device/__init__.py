"""Device authorization (RFC 8628): a device is a game session whose client gets OAuth tokens."""
