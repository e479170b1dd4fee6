"""Game sessions (§4.3): the game shows a link and polls; the poll gets the login once the user has confirmed it."""
