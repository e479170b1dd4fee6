"""Reads files with users of other services, one user at a time, and writes those of this service."""
