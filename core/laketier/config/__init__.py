"""Typed settings: every key, default and doc in one place; it may use `spi` and `kit`."""

from laketier.config.lake import LakeConfig, lake_reference, parse_lake_config
from laketier.config.options import document, parse_options
from laketier.config.origins import flatten, from_environment, from_spark_options, load_config, read_yaml
from laketier.config.parsing import KeyDoc

__all__ = [
    "KeyDoc",
    "LakeConfig",
    "document",
    "flatten",
    "from_environment",
    "from_spark_options",
    "lake_reference",
    "load_config",
    "parse_lake_config",
    "parse_options",
    "read_yaml",
]
