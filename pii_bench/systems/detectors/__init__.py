"""Detectors: each finds the PII of a text; they name no subjects."""
