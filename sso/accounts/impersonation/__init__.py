"""Support looks at the account of a player, as the player sees it.

Such a visit has a cookie and a table of its own. It is no browser session: only the account page accepts it, so no
site, game, device or console ever takes the administrator for the player.
"""
