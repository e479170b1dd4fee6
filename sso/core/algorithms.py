"""The names of the signing algorithms. This module imports nothing, for the options of the command line."""

ALGORITHMS = ("RS256", "ES256", "EdDSA")
REFRESH_ALGORITHM = "EdDSA"  # the cheapest to sign; only this service reads refresh tokens
CHEAP_ALGORITHMS = ("ES256", "EdDSA")  # signing takes a tenth of the time of RS256; not every client can verify them
