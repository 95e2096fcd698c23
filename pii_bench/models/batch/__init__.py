"""Batches: many requests in one job, at half the price, answered within a day."""
