"""Checks that dataset files, ours or foreign, are sound.

This package shares no code with `pii_bench.construction`, so that it does not repeat a fault of
the generator.
"""
