"""Datasets: samples in our format, and other people's read into it."""
