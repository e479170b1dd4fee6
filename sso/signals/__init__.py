"""Signals about users for relying parties: which change is which event, stored in the transaction of the change."""
