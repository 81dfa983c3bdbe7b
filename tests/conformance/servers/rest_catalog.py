"""A catalog of Iceberg's REST protocol, as far as the plugin asks it: pyiceberg's own SQL catalog behind HTTP. One
server has many catalogs, each below a path of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from http_serving import QuietHandler, port_of
from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.schema import assign_fresh_schema_ids
from pyiceberg.table import CommitTableRequest, Table

CATALOGS: list[SqlCatalog] = []
_ERRORS: dict[type[Exception], int] = {
    CommitFailedException: 409,
    TableAlreadyExistsError: 409,
    NamespaceAlreadyExistsError: 409,
    NoSuchTableError: 404,
    NoSuchNamespaceError: 404,
}
Answer = tuple[int, Any]


def _told(table: Table) -> Answer:
    metadata = json.loads(table.metadata.model_dump_json(by_alias=True))
    return 200, {"metadata-location": table.metadata_location, "metadata": metadata, "config": {}}


def _create(catalog: SqlCatalog, body: Any, namespace: str) -> Answer:
    asked = CreateTableRequest.model_validate({"location": None, "partition-spec": None, "write-order": None, **body})
    return _told(
        catalog.create_table(
            (namespace, asked.name),
            assign_fresh_schema_ids(asked.table_schema),
            asked.location,
            asked.partition_spec,
            asked.write_order,
            asked.properties,
        )
    )


def _commit(catalog: SqlCatalog, body: Any, namespace: str, name: str) -> Answer:
    asked = CommitTableRequest.model_validate(body)
    catalog.commit_table(catalog.load_table((namespace, name)), asked.requirements, asked.updates)
    return _told(catalog.load_table((namespace, name)))


def _tables(catalog: SqlCatalog, _: Any, namespace: str) -> Answer:
    listed = catalog.list_tables(namespace)
    return 200, {"identifiers": [{"namespace": list(name[:-1]), "name": name[-1]} for name in listed]}


def _namespaces(catalog: SqlCatalog, *_: Any) -> Answer:
    return 200, {"namespaces": [list(each) for each in catalog.list_namespaces()]}


def _make_namespace(catalog: SqlCatalog, body: Any) -> Answer:
    catalog.create_namespace(tuple(body["namespace"]), body.get("properties", {}))
    return 200, {"namespace": body["namespace"], "properties": {}}


def _namespace(catalog: SqlCatalog, _: Any, namespace: str) -> Answer:
    return 200, {"namespace": [namespace], "properties": dict(catalog.load_namespace_properties(namespace))}


def _drop(catalog: SqlCatalog, _: Any, namespace: str, name: str) -> Answer:
    catalog.drop_table((namespace, name))
    return 204, None


def _load(catalog: SqlCatalog, _: Any, namespace: str, name: str) -> Answer:
    return _told(catalog.load_table((namespace, name)))


_NAMESPACE, _TABLE = r"/v1/namespaces/([^/?]+)", r"/v1/namespaces/([^/?]+)/tables/([^/?]+)"
_ROUTES: dict[tuple[str, str], Callable[..., Answer]] = {
    ("GET", "/v1/config"): lambda *_: (200, {"defaults": {}, "overrides": {}}),
    ("GET", "/v1/namespaces"): _namespaces,
    ("POST", "/v1/namespaces"): _make_namespace,
    ("GET", _NAMESPACE): _namespace,
    ("HEAD", _NAMESPACE): _namespace,
    ("GET", _NAMESPACE + "/tables"): _tables,
    ("POST", _NAMESPACE + "/tables"): _create,
    ("GET", _TABLE): _load,
    ("HEAD", _TABLE): _load,
    ("POST", _TABLE): _commit,
    ("DELETE", _TABLE): _drop,
}


class Handler(QuietHandler):
    disable_nagle_algorithm = True

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        _, number, path = self.path.partition("?")[0].split("/", 2)
        code, told = 406, {"error": {"message": f"{self.command} /{path}", "type": "NotHere", "code": 406}}
        for (method, pattern), do in _ROUTES.items():
            match = re.fullmatch(pattern, f"/{path}")
            if method == self.command and match:
                try:
                    code, told = do(CATALOGS[int(number)], json.loads(body or b"null"), *match.groups())
                except tuple(_ERRORS) as error:
                    code, name = _ERRORS[type(error)], type(error).__name__
                    told = {"error": {"message": str(error), "type": name, "code": code}}
        data = b"" if told is None or self.command == "HEAD" else json.dumps(told).encode()
        self.answer(code, data, "application/json")

    do_GET = do_POST = do_HEAD = do_DELETE = _answer  # noqa: N815 - their names


def new_catalog(folder: str) -> str:
    """Where an empty one is, whose database and tables are below a folder."""
    uri = f"sqlite:///{folder}/rest.sqlite?timeout=30"
    CATALOGS.append(SqlCatalog("rest", uri=uri, warehouse=f"{folder}/warehouse", pool_size="1"))
    return f"http://127.0.0.1:{port_of(Handler)}/{len(CATALOGS) - 1}"
