"""A game client that signs its player in: `sso play`.

It knows the service by its address alone and imports nothing of it, so that it can be copied into a game as it is.
"""
