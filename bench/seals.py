"""The cost of sealing: verifying a ledger, against publishing it, in processor time.

python -m bench.seals [--scale 300k|3m|small]
"""

import argparse
import tempfile
from pathlib import Path

from bench.ingest import cost
from bench.world import CACHE, SANKOFA, SCALES, SOURCE, environment_of, files


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.seals")
    parser.add_argument("--scale", choices=SCALES, default="small")
    options = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        environment = environment_of(Path(folder) / "home")
        bulk = [str(path) for path in files(SCALES[options.scale])]
        ingest = cost([SANKOFA, "ingest", SOURCE, *bulk], environment)
        starting = cost([SANKOFA, "editions"], environment).cpu
        verify = cost([SANKOFA, "ledger", "verify"], environment)
        rows = int(ingest.output.rpartition("read ")[2].partition(",")[0])
        publish = cost([SANKOFA, "publish"], environment)
        again = cost([SANKOFA, "publish"], environment)
    for name, spent in (
        ("ingest", ingest),
        ("publish", publish),
        ("publish again", again),
        ("verify", verify),
    ):
        print(f"{name:16}{spent.cpu:8.2f} s of processor{(spent.cpu - starting) / rows * 1e6:8.2f} us a fact")
    for name, spent in (("publish", publish), ("publish again", again)):
        print(f"verifying is {(verify.cpu - starting) / spent.cpu:.1%} of {name}")


if __name__ == "__main__":
    main()
