"""Sends later, and again after a failure: mails, logout notifications and events for webhooks."""
