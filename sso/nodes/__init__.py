"""The nodes of one database: their heartbeats, and the list of them for `sso status` and `sso doctor`."""
