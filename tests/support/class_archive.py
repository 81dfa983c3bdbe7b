"""An archive of the classes of Spark, with which a JVM starts in half the time. ``python class_archive.py`` makes it
where there is none, and prints the options of a JVM that uses it.

The JVM calls this class data sharing: https://docs.oracle.com/en/java/javase/17/vm/class-data-sharing.html
It ignores an archive of another JVM, or of other jars.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr")
"""Most of what a short-lived JVM computes is its own optimisation. It tells nobody that an archive does not fit."""
QUIET = ("-Dspark.ui.enabled=false", "-Dspark.ui.showConsoleProgress=false")
"""Settings of Spark, which reads them from properties of its JVM. No test looks at its UI."""
PATIENCE_SECONDS = 300


def archive() -> Path | None:
    """The place of the archive for this interpreter's Spark and this machine's Java. None without one of them."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    if java is None or find_spec("pyspark") is None:
        return None
    real = Path(java).resolve()
    which = hashlib.sha256(f"{real} {real.stat().st_mtime_ns}".encode()).hexdigest()[:12]
    return Path(sys.prefix) / f"spark-{version('pyspark')}-{which}.jsa"


def options() -> str:
    """What the JVMs of tests are started with."""
    made = archive()
    shared = [] if made is None or not made.exists() else [f"-XX:SharedArchiveFile={made}"]
    return " ".join([*SHORT_LIVED, *QUIET, *shared])


def make() -> str | None:
    """Run the usual kinds of work once, and keep the classes that they took. Returns what went wrong: it fails nothing,
    as tests run without an archive too."""
    place = archive()
    if place is None or place.exists():
        return None
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".classes-") as folder:
        fresh = Path(folder) / place.name
        work = subprocess.run(
            [sys.executable, __file__, folder],
            env={
                **os.environ,
                "SPARK_SUBMIT_OPTS": " ".join([*SHORT_LIVED, *QUIET, f"-XX:ArchiveClassesAtExit={fresh}"]),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "PYSPARK_PYTHON": sys.executable,
                # Spark asks data sources in the driver's Python, which the Makefile names for all targets.
                "PYSPARK_DRIVER_PYTHON": sys.executable,
            },
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        if work.returncode or not fresh.exists():
            return f"no archive of Spark's classes was made, so tests take longer: {work.stderr[-400:]}"
        fresh.replace(place)
    return None


def usual_work(folder: Path) -> None:
    """Files read and written, Python in tasks, a stream into a sink in Python."""
    from pyspark.sql import functions as F  # noqa: N812

    from laketier.registry import format_names
    from laketier.spark import builder

    session = (
        builder(app_name="classes", master="local[2]")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.sql.warehouse.dir", str(folder / "tables"))
        .getOrCreate()
    )
    files = str(folder / "files")
    rows = session.range(10).select("id", F.col("id").cast("string").alias("name"), F.current_timestamp().alias("at"))
    rows.write.parquet(files)
    session.read.parquet(files).groupBy("name").count().orderBy("name").collect()
    rows.mapInArrow(lambda batches: batches, "id long, name string, at timestamp").collect()
    # Formats of others have an environment without ours.
    lake_format = "localfile" if "localfile" in format_names() else "vortex"
    keys = {"lake.format": lake_format, "lake.warehouse": str(folder / "lake"), "lake.table": "db.rows"}
    rows.write.format("laketier").options(**keys).mode("append").save()
    session.read.format("laketier").options(**keys).load().collect()
    stream = session.readStream.schema(rows.schema).parquet(files).writeStream.format("laketier")
    named = keys | {"lake.pipeline": "classes", "checkpointLocation": str(folder / "checkpoint")}
    stream.options(**named | {"lake.table": "db.stream"}).trigger(availableNow=True).start().awaitTermination()
    session.stop()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        usual_work(Path(sys.argv[1]))
    else:
        if problem := make():
            print(f"laketier: {problem}", file=sys.stderr)
        print(options())
