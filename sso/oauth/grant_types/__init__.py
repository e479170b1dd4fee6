"""The grant types of the token endpoint."""
