"""Built-in sources, which need no client library: folders of files, and other lake tables; it may use `tables` and the
rooms below that, and knows no round."""

from laketier.connectors.folder import ParquetFolder

__all__ = ["ParquetFolder"]
