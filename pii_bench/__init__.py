"""pii_bench: an open benchmark for query-aware PII masking.

The package imports nothing by itself, so that `pii_bench.scorer` stays light
for the pipelines that import it alone.
"""

__version__ = "0.1.0"
