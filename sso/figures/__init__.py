"""Figures of the service for the admin console: small sums in the database, which all workers add to."""
