"""What the service stores about a person: its export, the deletion of an account, and its erasure."""
