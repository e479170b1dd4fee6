"""Clients that register themselves, by a request or by a metadata document, and what helps them to find the service."""
