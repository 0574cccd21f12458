"""Score the answers of an agent: how many are right, by kind of question.

    python examples/as-of-exam/score.py ANSWERS.jsonl

ANSWERS.jsonl has an object with `id` and `answer` on each line. A number is right if it has the same value
(1.50 is 1.5); another answer if it is the same text. A question without an answer counts as wrong.
"""

import json
import sys
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path

QUESTIONS = Path(__file__).with_name("questions.jsonl")


def score(answers: Mapping[int, str]) -> tuple[Counter[str], Counter[str]]:
    """How many questions of each kind there are, and how many were answered right."""
    total: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for line in QUESTIONS.read_text().splitlines():
        one = json.loads(line)
        total[one["kind"]] += 1
        right[one["kind"]] += is_right(answers.get(one["id"], ""), one["answer"])
    return total, right


def is_right(answer: str, expected: str) -> bool:
    try:
        return Decimal(answer.replace(",", "")) == Decimal(expected)
    except InvalidOperation:
        return _plain(answer) == _plain(expected)


def _plain(answer: str) -> str:
    return answer.strip().rstrip(".").casefold()


def show(total: Counter[str], right: Counter[str]) -> None:
    for kind, count in total.items():
        print(f"{kind:12} {right[kind]:4} of {count}")
    print(f"{'all':12} {sum(right.values()):4} of {sum(total.values())}")


def main(file: str) -> None:
    rows = [json.loads(line) for line in Path(file).read_text().splitlines() if line.strip()]
    show(*score({row["id"]: str(row["answer"]) for row in rows}))


if __name__ == "__main__":
    main(*sys.argv[1:])
