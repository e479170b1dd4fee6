"""The service's signing keys: encrypted in the database, published before they sign, rotated without downtime."""
