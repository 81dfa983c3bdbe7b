"""Log sources: the systems that hold logs, such as a Kafka cluster or a lake, and the plugins that reach them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from laketier.spi.log import TableLog
from laketier.spi.options import NoOptions


class LogSource(ABC):
    """A system that holds logs. Driver only."""

    @abstractmethod
    def list_tables(self) -> Sequence[str]:
        """List the tables that exist now.

        Returns:
            The names, sorted.
        """

    @abstractmethod
    def open(self, name: str, options: Any) -> TableLog:
        """Open the log of a table.

        Args:
            name: The name of the table.
            options: An instance of the plugin's ``table_options_type``.

        Returns:
            The log.

        Raises:
            TableNotFound: There is no such table.
            ConfigError: The options do not fit the table.
        """

    def close(self) -> None:
        """Release the source's resources."""
        return


@dataclass(frozen=True)
class LogSourceConfig:
    """The parameter of `LogSourcePlugin.create_source`.

    Attributes:
        name: The name that the user gave the source.
        options: The plugin's own options: a checked instance of its ``options_type``.
    """

    name: str
    options: Any = field(default_factory=NoOptions)


class LogSourcePlugin(ABC):
    """A kind of source. The hook ``laketier_source`` returns it; the entry point (group ``laketier.sources``, name =
    `identifier`) names the hook's module. Importing that module must not import the client library: import it in
    `create_source` or later. Stateless."""

    identifier: ClassVar[str]
    """The value of ``type`` in a service file. Equal to the entry point's name."""
    spi_version: ClassVar[int]
    """The version that the plugin was written for, as a number: `SOURCE_SPI_VERSION` at that time. Do not use the
    constant itself, which changes with the next laketier."""
    options_type: ClassVar[type] = NoOptions
    """The class of the source's options, such as its address: a frozen dataclass, see `laketier.spi.options`."""
    table_options_type: ClassVar[type] = NoOptions
    """The class of one table's options, such as how its records are read: a frozen dataclass."""

    @abstractmethod
    def create_source(self, config: LogSourceConfig) -> LogSource:
        """Make the source. Driver.

        Args:
            config: The name and the options.

        Returns:
            The source.

        Raises:
            ConfigError: Options contradict each other.
        """
