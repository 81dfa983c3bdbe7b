"""What can be broken, and the tests that have to notice."""

from __future__ import annotations

import importlib.util
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from laketier_verification.mutants.source import Module

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "artifacts" / "mutants"
_PLAIN = ("-m", "not spark and not deep and not slow")
_ON_LOCALFILE = ("-k", "not delta and not iceberg and not lance and not killed")
"""The rules of rounds are the same on every format, and localfile is the fastest."""
_ROUNDS = (
    "tests/unit/rounds",
    "tests/unit/config",
    *(
        f"tests/integration/sources/test_{name}.py"
        for name in (
            "log_round",
            "keyed_rounds",
            "rounds_out_of_time",
            "schema_changes",
            "dead_letter_staging",
            "landing_rounds",
        )
    ),
)


@dataclass(frozen=True)
class Target:
    """``packages``: modules, or packages with all that is in them, ``but`` some modules and some functions, the latter
    as ``module:function``. ``tests``: arguments of pytest. ``paths``: folders that this process and those that
    it starts import from, too."""

    name: str
    packages: tuple[str, ...]
    tests: tuple[str, ...]
    but: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()

    @property
    def by_the_suite(self) -> bool:
        """The tests are those that any format has to pass, and not our own."""
        return "laketier_conformance" in self.tests

    def modules(self) -> Mapping[str, Module]:
        """By name."""
        found: dict[str, Module] = {}
        for package in self.packages:
            for name in _within(package):
                spec = importlib.util.find_spec(name)
                assert spec is not None, name
                assert spec.origin is not None, name
                if name not in self.but and not name.endswith(".__main__"):
                    without = (each.removeprefix(f"{name}:") for each in self.but if each.startswith(f"{name}:"))
                    found[name] = Module(name, Path(spec.origin), frozenset(without))
        return found


def _within(package: str) -> list[str]:
    """The module itself, and where it is a package all that is in it, at any depth."""
    spec = importlib.util.find_spec(package)
    assert spec is not None, package
    inner = (f"{package}.{each.name}" for each in pkgutil.iter_modules(spec.submodule_search_locations or []))
    return [package, *(name for each in inner for name in _within(each))]


def _suite(formats: str, *packages: str, but: tuple[str, ...] = (), paths: tuple[Path, ...] = ()) -> Target:
    """By the suite on some formats, of which the first gives the target its name."""
    tests = ("--pyargs", "laketier_conformance", f"--lake-format={formats}", "--lake-lanes=bare")
    return Target(formats.partition(",")[0], packages, tests, but, paths)


def _own(format: str) -> Target:
    """The same code by the plugin's own tests. What it shares with others is the business of the kit's."""
    return Target(f"{format}-own", (f"laketier_{format}",), (f"plugins/{format}/tests", *_PLAIN), _harnesses(format))


def _harnesses(format: str) -> tuple[str, ...]:
    """What a plugin has for the suite and for tests alone."""
    return tuple(
        f"laketier_{format}.{name}" for name in ("conformance", "harness", "foreign_deletes", "foreign_tables")
    )


_MANIFESTS = (
    "laketier.kit.manifests",
    "laketier.kit.local_store",
    "laketier.kit.staged",
    "laketier.kit.durable",
    "laketier.kit.warehouse",
)
"""What Feather and localfile share."""
_ON_REQUEST = tuple(
    f"laketier.kit.{name}"
    for name in (
        *("manifests.expiry", "manifests.folding", "manifests.growth", "manifests.open_files", "manifests.versions"),
        *(
            f"manifests.maintenance:ManifestMaintenance.{name}"
            for name in ("open_files", "finish_open_files", "_open", "expire")
        ),
        *("manifests.committer:ManifestCommitter._finish", "manifests.committer:_continues"),
        *(f"manifests.log:ManifestLog.{name}" for name in ("_refuse_dropped", "_refuse_taken_over")),
        *(f"manifests.committer:ManifestCommitter.{name}" for name in ("_fold", "_rewrite")),
        "manifests.catalog:ManifestCatalog.create_of",
        *("manifests.description:_field_to_plain", "manifests.description:_field_from_plain"),
        *("manifests.manifest:origin_of", "manifests.manifest:_folded_paths", "manifests.manifest:_open_entries"),
        *("durable:fsync_published", "staged:refuse_live"),
    )
)
"""What a format of manifests may ask for: Feather does not, and localfile does: files that grow or are folded, tables
made of files that lie there, partitions that are transformed, formats of files, storage without folders, the
versions of documents with any of these; and the end of old snapshots. The last two are for other formats: Delta and
Lance, and those whose log lists a file any number of times."""
_POOR = Path(__file__).parent / "poor"
"""A format of manifests that declares nothing, so that the suite asks for each refusal."""
_RICH = Path(__file__).parent / "rich"
"""The local file format with what a format may ask of the kit, so that the suite reaches these branches of what all
formats share. Only functions of whole features are left to localfile's own target, as above."""
_DURABLE = ("laketier.kit.durable",)
"""What the table libraries leave to each plugin. Some of it no format of manifests needs."""
TARGETS = {
    target.name: target
    for target in (
        _suite(
            "feather,feather-poor,localfile-rich",
            "feather_lake.plugin",
            *_MANIFESTS,
            but=_ON_REQUEST,
            paths=(_POOR, _RICH),
        ),
        _suite("localfile", "laketier_localfile", *_MANIFESTS, but=_harnesses("localfile")),
        *(_suite(name, f"laketier_{name}", *_DURABLE, but=_harnesses(name)) for name in ("delta", "iceberg", "lance")),
        Target(
            "tiering",
            ("laketier.tiering",),
            ("tests/unit/tiering", "tests/unit/rounds", "tests/unit/maintenance", *_PLAIN),
        ),
        Target(
            "spi",
            ("laketier.spi",),
            ("tests/unit/spi", "tests/unit/tiering", "tests/unit/kit", "tests/unit/config", *_PLAIN),
        ),
        Target(
            "rounds",
            ("laketier.rounds",),
            ("tests/unit/rounds", "tests/unit/config", *_ROUNDS, *_PLAIN, *_ON_LOCALFILE),
        ),
        *(_own(name) for name in ("localfile", "delta", "iceberg", "lance")),
        Target(
            "kit",
            ("laketier.kit", "laketier.kit.manifests"),
            ("tests/unit/kit", "plugins/localfile/tests", "tests/third_party/feather", *_PLAIN),
        ),
    )
}
