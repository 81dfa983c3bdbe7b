"""A worker in a process of its own: `state_child.py acquire URL ID ROUNDS` or `state_child.py hold URL ID`."""

from __future__ import annotations

import os
import sys
import time

from laketier.service.state import StateStore, Success, Worker


def main(kind: str, url: str, id: str, rounds: str = "0") -> None:
    worker = Worker(id, "here", os.getpid(), "0")
    with StateStore.open(url) as store:
        print("ready", flush=True)
        sys.stdin.readline()
        if kind == "hold":
            leases = store.acquire(worker, 3, 2)
            print(*(f"{lease.table.id}:{lease.fence}" for lease in leases), flush=True)
            time.sleep(600)  # killed meanwhile
        for _ in range(int(rounds)):
            leases = store.acquire(worker, 4, 600)
            leases = store.heartbeat(worker, leases, 600)
            for lease in leases:
                print(f"{lease.table.id}:{lease.fence}", flush=True)
            lost = store.finish_all([(lease, Success(force_completed=True, rows=1)) for lease in leases])
            assert lost == (), lost


if __name__ == "__main__":
    main(*sys.argv[1:])
