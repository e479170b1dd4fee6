"""ID tokens, access tokens and refresh tokens: issued, stored, bound to keys, inspected and revoked."""
