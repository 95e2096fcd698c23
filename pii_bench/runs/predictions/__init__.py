"""Predictions: raw responses read, and files of answers made elsewhere."""
