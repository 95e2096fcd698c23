"""The folder for `--include_path` of lm-evaluation-harness: YAML tasks and their functions."""
