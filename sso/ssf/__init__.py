"""The Shared Signals transmitter: clients manage streams, and get the signals about their users by push or poll."""
