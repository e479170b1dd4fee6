"""Players in games: guests, who sign in with a key of their device, and what becomes of them."""
