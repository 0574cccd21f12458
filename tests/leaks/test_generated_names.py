"""Generated names of persons in many scripts, in every field of a release that can name one.

The fields are those of tests/spec/test_no_person_leaks.py, which has one person in each; here there are many.
"""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live import LiveServer
from tests.spec.market import Desk, PaidCaller, package
from tests.spec.planted_persons import VISIBLE, Person, in_keys, in_parties, in_person_fields, in_texts
from tests.torture import Trial

SCRIPTS = {
    "Latin": "abdefghijklmnoprstuvwz",
    "Latin with marks": "àáâãäçèéêëìíñòóôõöùúûüšžğńǹǎɛɔŋ",
    "Arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهوي",
    "Ethiopic": "ሀለሐመሠረሰሸቀበተቸነኘአከኸወዐዘዠየደጀገጠጨጰጸፈፐ",
    "Cyrillic": "абвгдежзиклмнопрстуфхцчшщэюя",
    "Greek": "αβγδεζηθικλμνξοπρστυφχψω",
    "Hebrew": "אבגדהוזחטיכלמנסעפצקרשת",
    "Han": "王李张刘陈杨黄赵周吴徐孙马朱胡林郭何高罗",
    "Kana": "アイウエオカキクケコサシスセソタチツテト",
    "Hangul": "가나다라마바사아자차카타파하거너더러머버",
    "Devanagari": "कखगघचछजझटठडढणतथदधनपफबभमयरलवशषसह",
    "Thai": "กขคงจฉชซญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรลวศษสหอฮ",
    "N'Ko": "ߊߋߌߍߎߏߐߓߔߕߖߗߘߙߚߛߜߝߞߟߡߢߣߤߥߦ",
    "Tifinagh": "ⴰⴱⴳⴷⴹⴻⴼⴽⵀⵃⵄⵅⵇⵉⵊⵍⵎⵏⵓⵔⵕⵖⵙⵚⵛⵜⵟⵡⵢⵣ",
    "Georgian": "აბგდევზთიკლმნოპჟრსტუფქღყშჩცძწჭხჯჰ",
    "Armenian": "աբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփքօֆ",
}
GENERATORS = (in_parties, in_person_fields, in_texts, in_keys)
WORD = re.compile(r"[^\W_]+")
RUN = re.compile("[^\x00-\x1f\x7f\N{REPLACEMENT CHARACTER}]{12,}")


def somebody(number: int, script: str, chance: random.Random) -> Person:
    """Two words in a script that are no real name; Latin ones begin with `zq`, like no word."""
    letters = SCRIPTS[script]
    words = ["".join(chance.choices(letters, k=7 + number % 3)) for _ in range(2)]
    if script.startswith("Latin"):
        words = [f"zq{word}" for word in words]
    words = [word[0].title() + word[1:] for word in words]  # as names are written in scripts with capitals
    digits = f"7{number:05}0415{number % 997:03}87"
    return Person(words[0], words[1], digits, f"zqm{number}@zqh{number}.test")


def everybody(trial: Trial, count: int) -> Iterator[tuple[str, str, Person, dict[str, Any]]]:
    names = [
        (generator, label)
        for generator in GENERATORS
        for label, _ in generator(somebody(0, "Latin", trial.chance))
    ]
    trial.chance.shuffle(names)
    scripts = list(SCRIPTS)
    for number in range(count):
        generator, label = names[number % len(names)]
        script = scripts[(number // len(names) + number) % len(scripts)]
        person = somebody(number, script, trial.chance)
        content = dict(generator(person))[label]
        if content["ocid"] == "ocds-test-x":
            content["ocid"] = f"ocds-test-{number}"
        yield script, label, person, content


def words_of(text: str) -> set[str]:
    return set(WORD.findall(text.casefold()))


def text_of(content: bytes) -> str:
    """The text in a file. Bytes that are not text contain short words by chance, so these are ignored."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return "\n".join(RUN.findall(content.decode(errors="replace")))


@pytest.mark.ci
@pytest.mark.rule("GATE-4")
def test_nobody_with_a_generated_name_is_in_any_answer_file_or_line(tmp_path: Path, trial: Trial) -> None:
    desk = Desk(tmp_path, log_level="debug", editions_kept="1")
    planted = list(everybody(trial, trial.count(60, 5000)))
    owner = {
        word.casefold(): f"{script}, {label}: {person.name}"
        for script, label, person, _ in planted
        for word in (*person.tokens, person.email.partition("@")[0])
    }
    file = desk.write("people.json", package(*(content for *_, content in planted)))
    ingested, published = desk.command("ingest", "portal-za", file), desk.command("publish")
    assert (ingested.returncode, published.returncode) == (0, 0), ingested.stderr + published.stderr
    leaks: dict[str, str] = {}
    visible = False
    with desk.serve() as caller:
        surfaces = dict(answers(caller))
        surfaces["log"] = caller.server.log
    surfaces["printed"] = "".join(done.stdout + done.stderr for done in (ingested, published))
    for path in desk.home.rglob("*"):
        surfaces[f"name of {path.name}"] = path.name
        if path.is_file():
            surfaces[path.name] = text_of(path.read_bytes())
    for where, text in surfaces.items():
        words = words_of(text)
        visible = visible or VISIBLE.casefold() in words
        for word in words & owner.keys():
            leaks[f"{where}: {word}"] = owner[word]
    assert leaks == {}, sorted({owner.partition(":")[0] for owner in leaks.values()})
    assert visible, "the test can see"
    trial.saw("not found in any surface", len(planted))


def answers(caller: PaidCaller) -> Iterator[tuple[str, str]]:
    server: LiveServer = caller.server
    for form in ("application/json", "text/csv"):
        for path in ("/v1/tenders?limit=10000", "/v1/tender-parties?limit=10000", "/v1/changes?limit=10000"):
            answer = server.get(path, caller.key, accept=form)
            assert answer.status_code == 200, answer.text[:300]
            yield f"{form} {path}", answer.text
    for tool in ("search_tenders", "get_resolved_parties"):
        failed, body = caller.tool(tool, limit=10000)
        assert not failed
        yield tool, json.dumps(body, ensure_ascii=False)
