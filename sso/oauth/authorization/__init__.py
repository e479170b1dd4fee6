"""Authorization requests: from the browser, or pushed by the client, until the client gets a code."""
