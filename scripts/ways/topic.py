"""Records of Kafka: ``serve`` takes a topic into a Delta table, ``union`` reads that table and what came since.

The second argument is the program of a broker that prints its address: `plugins/kafka/laketier_kafka/mock_broker.py`.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from confluent_kafka import Producer

import laketier
from laketier.cli.app import main

SERVICE = """
name: shop
state: sqlite:///{folder}/state.db
defaults:
  sink: {{ lake.format: delta, lake.warehouse: {folder}/lake }}
  target: "shop.{{table}}"
sources:
  shop:
    type: kafka
    options: {{ bootstrap-servers: "{address}" }}
tables:
  - source: shop
    read: {{ value-format: json, columns: {{ id: int64 }} }}
"""

what, program = sys.argv[1:]
unnoticed = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "WAYS_FOLDER")}
with (
    tempfile.TemporaryDirectory() as folder,
    subprocess.Popen(
        [sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=unnoticed
    ) as broker,
):
    assert broker.stdout is not None
    address = broker.stdout.readline().strip()

    def produce(*ids: int) -> None:
        producer = Producer({"bootstrap.servers": address})
        for each in ids:
            producer.produce("orders", partition=0, value=b'{"id": %d}' % each)
        assert producer.flush(20) == 0

    service = Path(folder, "service.yaml")
    service.write_text(SERVICE.format(folder=folder, address=address))
    produce(1, 2, 3)
    command = ["laketier", "serve", str(service), "--engine", "local", "--until-idle"]
    if what == "serve":
        sys.argv = command
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise
    else:
        command[0] = str(Path(sys.executable).with_name("laketier"))
        subprocess.run(command, env=unnoticed, check=True, stdout=sys.stderr)
        produce(4, 5)
        # Older commits call it `union`.
        read = getattr(laketier, "read_union", None) or vars(laketier)["union"]
        rows = read("shop.orders", service=str(service)).read_all()
        assert sorted(rows["id"].to_pylist()) == [1, 2, 3, 4, 5]
    broker.kill()
