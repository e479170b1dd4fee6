"""Commands on the machine of the service: with its database."""
