"""The service's signing keys: kept sealed in the database, published before they sign, rotated without a pause."""
