"""``laketier demo``: real input, every installed format, a driver that is killed, and readers that are not ours."""

from laketier.cli.demo.command import EPILOG, demo

__all__ = ["EPILOG", "demo"]
