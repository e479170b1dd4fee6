"""Credentials of the permission endpoints: access keys, service JWTs, signed addresses, and keys of applications."""
