"""The Python of one page: runs blocks one by one, as a reader would paste them into ``python``.

``python page_interpreter.py ANSWERS``: reads one JSON object per block from standard input, and writes one line per
block to the descriptor ``ANSWERS``: null, or the traceback. Only the standard library is imported here, and none of its
names is seen by the page.
"""

import json
import os
import sys
import traceback
import types


def main(answers: int) -> None:
    blocks = os.fdopen(os.dup(0), encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.path[0] = ""  # as of `python` without a script, not the folder of this one
    page = sys.modules["__main__"] = types.ModuleType("__main__")
    with os.fdopen(answers, "w", encoding="utf-8", buffering=1) as out:
        for line in blocks:
            out.write(json.dumps(run(json.loads(line), vars(page))) + "\n")
    if "pyspark" in sys.modules:
        context = sys.modules["pyspark"].SparkContext._active_spark_context
        if context is not None:
            context.stop()


def run(block: dict, names: dict) -> str | None:
    try:
        # Blank lines before the code, so that a traceback names the page's own line.
        exec(compile("\n" * (block["line"] - 1) + block["code"], block["page"], "exec"), names)  # noqa: S102
    except BaseException:  # noqa: BLE001 - the test shows it
        return traceback.format_exc()
    return None


if __name__ == "__main__":
    main(int(sys.argv[1]))
