"""OpenID Connect Back-Channel Logout: tells sites that a browser session with which a user signed in has ended."""
