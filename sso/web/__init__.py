"""HTTP concerns that all endpoints share: bodies, client addresses, errors, security headers, pages."""
