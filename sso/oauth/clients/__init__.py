"""Clients: what they may do, how they authenticate, and their redirect URIs."""
