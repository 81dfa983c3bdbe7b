"""Object stores for the suite: one that speaks S3, and a proxy before it that sees each request and decides on it."""

from laketier_conformance.stores.proxy import Fault, Proxy, Sent
from laketier_conformance.stores.store import ObjectStore

__all__ = ["Fault", "ObjectStore", "Proxy", "Sent"]
