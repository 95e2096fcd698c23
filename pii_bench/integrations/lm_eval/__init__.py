"""The folder for lm-evaluation-harness's `--include_path`: YAML tasks and their functions."""
