"""A workload generated although tasks fail or an executor is lost, beside one left in peace."""

import hashlib
from pathlib import Path

from streamjoin_datagen.generate import generate
from streamjoin_datagen.params import make_spec
from streamjoin_datagen.session import Session

HARMED = """
import hashlib, json, os, signal, sys
from pathlib import Path
from streamjoin_datagen import generate as generating
from streamjoin_datagen.params import make_spec

write_part = generating.write_part

def parent_of(process_id):
    return int(Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()[1])

def harming(hurt):
    def harmed(path, schema, blocks):
        from pyspark import TaskContext
        if path.name == "part-00001.parquet":
            path.write_bytes(b"half a file")  # what a lost worker may leave
            stream = path.parent.name
            first = TaskContext.get().attemptNumber() == 0
            if stream == "r.parquet" and "fail" in hurt and first:
                open(hurt["fail"], "a").close()
                raise ArithmeticError("injected")
            if stream == "s.parquet" and "kill" in hurt and not os.path.exists(hurt["kill"]):
                open(hurt["kill"], "x").close()
                # This process, PySpark's daemon, and the executor's Java.
                os.kill(parent_of(parent_of(os.getpid())), signal.SIGKILL)
                signal.pause()
        return write_part(path, schema, blocks)
    return harmed

def generate_harmed(session, harms, out):
    hurt = {name: str(out.parent / name) for name in harms}
    spec = make_spec("micro", 5, {"rate_r": 5, "rate_s": 4, "arrivals": "poisson"})
    generating.write_part = harming(hurt)
    try:
        generating.generate(spec, out, session, part_rows=700, partitions=4)
    finally:
        generating.write_part = write_part
    files = sorted(file for file in out.rglob("*") if file.is_file())
    digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    done = [name for name in harms if os.path.exists(hurt[name])]
    print(json.dumps([done, digests, [str(f.relative_to(out)) for f in files]]))
"""
"""Source of ``generate_harmed``, for a process of its own: prints the harms done, and the digests
and names of the files that are there all the same."""


def in_peace(session: Session, folder: Path) -> list[list[str]]:
    """Return the digests and names of the files of the same workload, when no task fails."""
    folder.mkdir()
    spec = make_spec("micro", 5, {"rate_r": 5, "rate_s": 4, "arrivals": "poisson"})
    generate(spec, folder / "w", session, part_rows=700, partitions=4)
    files = sorted(file for file in (folder / "w").rglob("*") if file.is_file())
    assert len(files) == 1 + 8 + 6
    digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    return [digests, [str(file.relative_to(folder / "w")) for file in files]]
