"""The HTML report of a run: one self-contained file with tables, plots and raw facts."""

from farbench.report.page import Report, write_report
from farbench.report.rows import Row

__all__ = ["Report", "Row", "write_report"]
