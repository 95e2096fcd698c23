"""Calls to models: retried, paced, and paid for under a cap."""
