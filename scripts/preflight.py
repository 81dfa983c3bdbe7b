"""Says in one line what this machine lacks, before anything is downloaded.

Runs on any Python, 2.7 included: an old interpreter must get the line, not a SyntaxError.
"""

from __future__ import print_function

import os
import re
import subprocess
import sys

PYTHON = (3, 11)
JAVA = 17


def main(arguments):
    problem = python_problem() or ("--java" in arguments and java_problem())
    if problem:
        print("laketier: " + problem, file=sys.stderr)
        return 1
    return 0


def python_problem():
    if sys.version_info[:2] >= PYTHON:
        return None
    newer = newer_python()
    return "Python %s or newer is needed, %s is %s. %s" % (
        ".".join(map(str, PYTHON)),
        sys.executable,
        ".".join(map(str, sys.version_info[:3])),
        "Try: make PYTHON=%s ..." % newer
        if newer
        else "Install one (https://www.python.org/downloads/), then: make PYTHON=/path/to/python3.11 ...",
    )


def newer_python():
    """Return the newest suitable interpreter on the PATH that really starts, or None."""
    for minor in range(20, PYTHON[1] - 1, -1):
        name = "python3.%d" % minor
        if output_of([name, "-c", "import sys; print(sys.version_info[0])"]).strip() == "3":
            return name
    return None


def java_problem():
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"
    where = "JAVA_HOME=" + home if home else "the PATH"
    fix = (
        "Install one ('apt-get install openjdk-17-jre-headless', 'dnf install java-17-openjdk-headless' "
        "or 'brew install openjdk@17') or point JAVA_HOME at it."
    )
    version = re.search(r'version "(?:1\.)?(\d+)[^"]*"', output_of([java, "-version"]))
    if version is None:
        return "Java %d or newer is needed to run Spark, and %s has none. %s" % (JAVA, where, fix)
    if int(version.group(1)) < JAVA:
        return "Java %d or newer is needed to run Spark, and %s has %s. %s" % (JAVA, where, version.group(1), fix)
    return None


def output_of(command):
    """Return what a command prints on both streams; nothing when it is missing or fails."""
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError:
        return ""
    printed = process.communicate()[0].decode("utf-8", "replace")
    return printed if process.returncode == 0 else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
