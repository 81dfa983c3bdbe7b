"""``laketier new-plugin``: a distribution with a format that the suite accepts, for its author to change."""

from laketier.cli.new_plugin.command import EPILOG, new_plugin

__all__ = ["EPILOG", "new_plugin"]
