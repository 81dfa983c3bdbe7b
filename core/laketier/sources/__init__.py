"""Where data comes from: folders and lake tables, read whole (a `laketier.spi.LakeSource`), and logs, read on and on
(a `laketier.spi.TableLog`)."""

from laketier.sources.folder import ParquetFolder

__all__ = ["ParquetFolder"]
