"""The section "Signing keys": the keys that sign tokens."""
