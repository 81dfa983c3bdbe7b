"""Reads configuration from mappings, YAML, the environment and Spark options.

Values in code take precedence over the environment, which takes precedence over a file.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import yaml

from laketier.config.lake import PREFIX, LakeConfig, parse_lake_config
from laketier.config.references import resolved
from laketier.spi import ConfigError

ENVIRONMENT_PREFIX = "LAKETIER_"
"""``LAKETIER_FORMAT`` is ``lake.format``; ``__`` is a dot and ``_`` a dash: ``LAKETIER_X__TARGET_FILE_ROWS`` is
``lake.x.target-file-rows``."""

HTTP_TOKEN = "LAKETIER_HTTP_TOKEN"
"""The environment variable with the token of the web page of ``laketier serve``."""

_NOT_KEYS = frozenset({"LAKETIER_FAILPOINTS", "LAKETIER_CACHE_DIR", HTTP_TOKEN})

SPARK_KEYS = (
    "path", "checkpointlocation", "owner", "provider", "option.*", "spark.*", "is_managed_location", "location",
    "outputmode", "queryname", "table_type",
)  # fmt: skip
"""Keys that Spark adds by itself. They are ignored."""


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Turn nested YAML into dotted keys: ``{lake: {format: x}}`` → ``{"lake.format": x}``."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{name}.")
        else:
            flat[name] = value
    return flat


def from_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The ``lake.*`` keys that the environment sets."""
    found = {}
    for name, value in (os.environ if environment is None else environment).items():
        if name.startswith(ENVIRONMENT_PREFIX) and name not in _NOT_KEYS:
            rest = name[len(ENVIRONMENT_PREFIX) :].lower().replace("__", ".").replace("_", "-")
            found["mergeSchema" if rest == "merge-schema" else PREFIX + rest] = value
    return found


class _Checked(yaml.SafeLoader):
    """YAML's keys are unique. The library takes the last one of two, and says nothing of the other; and of a value that
    is none of its type it raises what Python does, without the place."""

    def get_single_node(self) -> yaml.Node | None:
        node = super().get_single_node()
        # As it is written: once constructed, a mapping holds what `<<` brought into it, too.
        _check_keys(node, {}, ())
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, OverflowError) as error:
            why = f"{node.tag.rpartition(':')[2]} can't have this value: {error}"
            raise yaml.constructor.ConstructorError(None, None, why, node.start_mark) from error


_MERGE = "tag:yaml.org,2002:merge"
_MOST_VALUES = 1_000_000
"""What is done with a document is done with each value, and again wherever an alias repeats it."""


def _check_keys(node: yaml.Node | None, done: dict[int, int], within: tuple[yaml.Node, ...]) -> int:
    """How many values there are, each alias counted as what it stands for. ``done``: nodes that were looked at, as an
    anchor may be used in many places. ``within``: those around it."""
    if node in within:
        raise yaml.constructor.ConstructorError(None, None, "an alias is within its own anchor", node.start_mark)
    if not isinstance(node, yaml.CollectionNode):
        return 1
    if id(node) in done:
        return done[id(node)]
    inner = node.value
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, yaml.Node] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                continue
            first = seen.setdefault(key.value, key)
            if first is not key:
                line = first.start_mark.line + 1
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} is given twice, first in line {line}", key.start_mark
                )
        inner = [part for pair in node.value for part in pair]
    count = 1 + sum(_check_keys(part, done, (*within, node)) for part in inner)
    if count > _MOST_VALUES:
        why = f"its aliases stand for more than {_MOST_VALUES:,} values"
        raise yaml.constructor.ConstructorError(None, None, why, node.start_mark)
    done[id(node)] = count
    return count


def read_yaml(path: str | Path) -> dict[str, Any]:
    """Read a YAML file whose top level is a mapping. Each ``${NAME}`` is replaced by that environment variable.

    Raises:
        ConfigError: The file can't be read (the message names line and column), or a variable is not set (the message
            names the key).
    """
    try:
        document = yaml.load(Path(path).read_text(encoding="utf-8"), _Checked)
    except FileNotFoundError as error:
        raise ConfigError("the file does not exist", where=str(path), fix="Check its path.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            "the file can't be read",
            where=str(path),
            why=str(error),
            fix="Give a file in UTF-8 that this user may read.",
        ) from error
    except RecursionError as error:
        raise ConfigError(
            "the file is nested too deeply", where=str(path), fix="Write keys and values, a few levels deep."
        ) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        why = getattr(error, "problem", None)
        raise ConfigError("the file is not YAML", where=place, why=why, fix="Correct it at this place.") from error
    if not isinstance(document, dict):
        raise ConfigError(
            "the file's top level is not a mapping", where=str(path), fix="Write keys and values, as in `name: value`."
        )
    found: dict[str, Any] = resolved(document, where=str(path))
    return found


def load_config(
    values: Mapping[str, Any] | None = None,
    *,
    file: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    formats: Collection[str] = (),
    origin: str | None = None,
    **parse: Any,
) -> LakeConfig:
    """Read a configuration from a file, the environment and a mapping, in rising order of precedence.

    Args:
        values: Keys and values, flat or nested.
        file: A YAML file.
        environment: The environment. None for the process's own.
        formats: The formats whose sections may be present.
        origin: Where ``values`` come from, for messages.
        parse: Further arguments of `parse_lake_config`.

    Returns:
        The configuration.

    Raises:
        ConfigError: A key is unknown, ill-typed or missing, or the file can't be read.
    """
    merged, origins = gathered(values, file=file, environment=environment, origin=origin)
    return parse_lake_config(
        merged, origin=", ".join(origins) or origin or "the configuration", formats=formats, **parse
    )


def gathered(
    values: Mapping[str, Any] | None,
    *,
    file: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    origin: str | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """Merge the keys of a file, the environment and a mapping, as `load_config` does, without typing them.

    Returns:
        Each key once, and the origins that give keys, for messages.

    Raises:
        ConfigError: The file can't be read.
    """
    merged: dict[str, Any] = {}
    origins = []
    if file is not None:
        _override(merged, flatten(read_yaml(file)))
        origins.append(str(file))
    from_env = from_environment(environment)
    if from_env:
        _override(merged, from_env)
        origins.append("the environment")
    if values:
        _override(merged, flatten(values))
        origins.append(origin or "the configuration")
    return merged, origins


def _override(merged: dict[str, Any], values: Mapping[str, Any]) -> None:
    """Set keys, whatever case they were given in before."""
    spelled = {key.lower(): key for key in merged}
    for key, value in values.items():
        merged.pop(spelled.get(key.lower(), key), None)
        merged[key] = value


def from_spark_options(options: Mapping[str, str], *, formats: Collection[str] = (), **parse: Any) -> LakeConfig:
    """Read the options of a Spark reader or writer. Names are case-insensitive, as streams lower-case them. ``path``,
    from ``.save("db.table")`` or ``.load``, is the table; ``lake.table`` beside it has to name the same one. Raises
    `ConfigError`."""
    values = dict(options.items())
    given = {key.lower(): value for key, value in values.items()}
    path, table = given.get("path"), given.get("lake.table")
    if path is not None and table is None:
        values["lake.table"] = path
    elif path is not None and path != table and "is_managed_location" not in given:
        raise ConfigError(
            f"two tables are named: {path!r} by the path of load, save or start, and {table!r} by lake.table",
            where="the options",
            fix="Remove one of them.",
        )
    return load_config(values, formats=formats, origin="the options", foreign=SPARK_KEYS, **parse)
