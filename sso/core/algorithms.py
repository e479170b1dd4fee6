"""The names of the signing algorithms. This module imports nothing, for the options of the command line."""

ALGORITHMS = ("RS256", "ES256", "EdDSA")  # of the keys of this service
CLIENT_ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA")  # with which clients may sign
FAPI_ALGORITHMS = ("PS256", "ES256", "EdDSA")  # those of them that FAPI 2.0 allows
REFRESH_ALGORITHM = "EdDSA"  # the cheapest to sign; only this service reads refresh tokens
CHEAP_ALGORITHMS = ("ES256", "EdDSA")  # signing takes a tenth of the time of RS256; not every client can verify them
