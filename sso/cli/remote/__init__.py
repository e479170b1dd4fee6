"""Commands on a server: with its management API, and the Python client."""
