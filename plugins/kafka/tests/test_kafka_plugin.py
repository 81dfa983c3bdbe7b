"""Asking for the source imports nothing of its client."""

from __future__ import annotations

import subprocess
import sys

from laketier.registry import load_source


def test_the_client_is_not_imported_with_the_plugin() -> None:
    code = "import sys, laketier_kafka.plugin; print({'confluent_kafka', 'pyspark', 'fastavro'} & set(sys.modules))"
    command = [sys.executable, "-I", "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "set()"


def test_it_is_found_by_its_name() -> None:
    assert load_source("kafka").identifier == "kafka"
