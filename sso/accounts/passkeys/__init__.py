"""Passkeys (WebAuthn): registration, sign-in without a password, and use as a second factor."""
