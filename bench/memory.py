"""The memory of one worker while it gives very many different answers: does it level off?

    python -m bench.memory [--scale 3m|300k|small] [--answers 1000000]

Each request asks for another issuer on another day, so no request is repeated.
"""

import argparse
import random
import tempfile
from datetime import timedelta
from pathlib import Path

from bench.fundamentals import issue_key
from bench.history import report
from bench.load import Contender, Question, load_tool, run_round
from bench.peers import commands
from bench.world import PAST_DAY, SCALES, published_home

_SECONDS = 15.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.memory")
    parser.add_argument("--scale", choices=SCALES, default="3m")
    parser.add_argument("--answers", type=int, default=1_000_000)
    options = parser.parse_args()
    scale = SCALES[options.scale]
    home = published_home(scale, fresh=False)
    key = issue_key(home, "professional")
    issuers = [issuer for shape in scale.shapes for issuer in shape.service_ids()]
    print(f"load: {load_tool()}; own and mapped memory after each step")
    memory: list[int] = []
    with commands.sankofa(home) as server, tempfile.TemporaryDirectory() as folder:
        answered, day = 0, 0
        while answered < options.answers:
            day += 1
            random.Random(day).shuffle(issuers)
            path = Path(folder) / "questions"
            as_of = PAST_DAY - timedelta(days=day)
            path.write_text("".join(Question(f"/v1/fundamentals/{i}?as_of={as_of}").line() for i in issuers))
            one = Contender("Sankofa", server, (), {"X-API-Key": key})
            done = run_round(one, path, 0, _SECONDS)
            answered += min(round(done.rate * _SECONDS), len(issuers))
            own, mapped = server.memory()
            memory.append(own)
            print(f"{answered:12,} answers {own / 1e6:8.0f} MB own {mapped / 1e6:8.0f} MB mapped", flush=True)
    half = memory[len(memory) // 2]
    report(f"own memory of a worker after {options.answers:,} answers", memory[-1] / 1e6, unit="MB", most=250)
    report("own memory at the end to halfway", memory[-1] / half, unit="times", most=1.05)


if __name__ == "__main__":
    main()
