"""A bucket, as it is told to an author's harness."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class ObjectStore:
    """An empty bucket of a store that speaks S3, which is reached by paths and not by host names:
    ``http://host:port/bucket/key``. ``folder``: an empty one on the local disk, for what a format keeps elsewhere, such
    as a catalog."""

    endpoint: str
    bucket: str
    access_key_id: str
    secret_access_key: str = field(repr=False)
    region: str
    folder: Path

    @property
    def warehouse(self) -> str:
        """``lake.warehouse``: a folder in the bucket."""
        return f"s3://{self.bucket}/warehouse"

    @property
    def usual_options(self) -> dict[str, str]:
        """How most libraries are told of it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": self.region,
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
        }
