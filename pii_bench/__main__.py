"""`python -m pii_bench` is `pii-bench`."""

from __future__ import annotations

import sys

from pii_bench.cli import main

sys.exit(main())
