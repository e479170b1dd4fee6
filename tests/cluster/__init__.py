"""Several nodes under faults, with a ledger of every acknowledged write."""
