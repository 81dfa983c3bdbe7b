"""Object stores for the suite: one that speaks S3, and a proxy before it that sees each request and decides on it."""

from laketier_conformance.stores.proxy import Fault, Proxy
from laketier_conformance.stores.store import ObjectStore
from laketier_conformance.stores.wsgi import Sent

__all__ = ["Fault", "ObjectStore", "Proxy", "Sent"]
