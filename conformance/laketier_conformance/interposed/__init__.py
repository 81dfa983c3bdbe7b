"""What a plugin's process does to files and sockets, seen and decided from outside, one system call at a time.

An author can't forget it, as the kernel tells: a filter of seccomp sends each call that may have an effect to a
supervisor (seccomp_unotify(2), Linux 5.7), with threads and child processes, whatever language made it. The supervisor
lets it happen, fails it, or kills the process before it. Writes to memory that is mapped to a file are not seen.
"""

from laketier_conformance.interposed.effects import Effect
from laketier_conformance.interposed.probe import why_not
from laketier_conformance.interposed.supervisor import Supervisor

__all__ = ["Effect", "Supervisor", "why_not"]
