"""The checker of dataset files: whether a file, ours or foreign, holds what the format promises.

It works from what is in the file and shares no code with `pii_bench.construction`, so
that a fault of the generator is not repeated here.
"""
