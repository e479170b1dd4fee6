"""Webhooks: sends the events of the stream of changes to addresses that administrators have entered."""
