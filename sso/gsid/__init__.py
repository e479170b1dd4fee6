"""Game sessions: a game shows a link, holds one request, and has the player's login once it is confirmed (§4.3)."""
