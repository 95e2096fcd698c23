from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pii_bench
from pii_bench.runs.kept_scores import hashed_code

_ROOT = Path(pii_bench.__file__).parent

_LIST_IMPORTED = """
import json, sys
import pii_bench.runs.evaluation
print(json.dumps([module.__file__ for name, module in sys.modules.items()
                  if name.startswith("pii_bench")]))
"""


def test_the_hash_of_kept_scores_covers_every_file_that_evaluation_imports() -> None:
    listed = subprocess.run(  # noqa: S603 -- our own interpreter and code
        [sys.executable, "-c", _LIST_IMPORTED], capture_output=True, check=True, text=True
    )
    imported = {Path(path) for path in json.loads(listed.stdout)}

    # The scores do not depend on the exports of the package, or on the wording of errors.
    without_scores = {_ROOT / "__init__.py", _ROOT / "errors.py"}
    assert _ROOT / "scorer" / "detection.py" in imported
    assert imported - without_scores <= set(hashed_code())
