"""Previews of the sign-in pages with the brand of the service or of a client, before it is saved."""
