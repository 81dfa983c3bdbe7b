"""The settings with which a process reaches the cluster, and the secrets among them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from laketier.spi import ConfigError
from laketier_fluss.options import FlussOptions

# Their values are words of the client, and an error that hides them says nothing.
_PUBLIC = re.compile(r"security\.protocol|security\.sasl\.mechanism|scanner\..*|remote-file\..*|connect-timeout")
_DEFAULTS = {
    # The client's own 500 records a poll cost more in calls than in records.
    "scanner.log.max-poll-records": "20000",
    "scanner.log.fetch.max-bytes-for-bucket": str(8 * 1024 * 1024),
    "connect-timeout": "10000",
}


@dataclass(frozen=True)
class Connection:
    """The settings that every process needs. Picklable and hashable; its repr shows no value that may be a secret."""

    bootstrap_servers: str
    timeout: float
    client: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, options: FlussOptions, source: str) -> Connection:
        """Raises `ConfigError` for what is missing or not the user's to set."""
        if not options.bootstrap_servers.strip():
            raise ConfigError(
                "bootstrap-servers is missing", where=source, fix="Set it to some of the servers: host:port,host:port."
            )
        if not options.timeout_seconds > 0:
            raise ConfigError(f"timeout-seconds = {options.timeout_seconds} is not more than 0", where=source)
        for key in options.client:
            if key == "bootstrap.servers" or key.startswith("writer."):
                raise ConfigError(
                    f"client.{key} is not for users to set",
                    where=source,
                    fix="Set bootstrap-servers." if key == "bootstrap.servers" else "Nothing is written to Fluss.",
                )
        return cls(options.bootstrap_servers, options.timeout_seconds, tuple(sorted(options.client.items())))

    def settings(self) -> dict[str, str]:
        """The client's properties."""
        return {**_DEFAULTS, **dict(self.client), "bootstrap.servers": self.bootstrap_servers}

    def redact(self, text: str) -> str:
        """``text`` without any value that may be a secret."""
        secrets = {value for key, value in self.client if not _PUBLIC.fullmatch(key) and value.strip()}
        for secret in sorted(secrets, key=len, reverse=True):
            # Short ones only as whole words: to blot out each "a" would leave nothing to read.
            pattern = re.escape(secret) if len(secret) > 3 else rf"(?<!\w){re.escape(secret)}(?!\w)"
            text = re.sub(pattern, "***", text)
        return text
