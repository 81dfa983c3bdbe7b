"""Any lake format from PySpark, exactly once."""

from __future__ import annotations

__version__ = "0.1.0"
