"""The report: tables, figures and all samples in one self-contained HTML file."""
