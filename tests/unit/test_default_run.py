"""A default run leaves out depth, never a capability."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

from tests.depth import is_marked
from tests.every import every

REPOSITORY = Path(__file__).parent.parent.parent
TESTS = REPOSITORY / "tests"
SHOWN = {
    "PostgreSQL": ("engines/test_datastore.py", "test_what_is_absorbed_is_read_back_and_absorbed_once"),
    "the same answers on files and PostgreSQL": (
        "engines/test_same_everywhere.py",
        "test_editions_and_answers_are_the_same_on_both_engines",
    ),
    "Redis": ("engines/test_redis_keyvalue.py", "test_a_restarted_server_is_used_again_at_the_next_call"),
    "a page in Chromium": (
        "web/test_browser.py",
        "test_the_slider_shows_what_the_api_gives_on_the_day_it_stands_at",
    ),
    "axe": ("web/test_browser.py", "test_every_page_is_accessible_in_both_themes_and_fits_a_phone"),
    "an MCP client": (
        "spec/test_mcp.py",
        "test_every_operation_with_a_tool_is_listed_with_its_schemas_and_as_read_only",
    ),
    "a killed ingest": (
        "faults/test_kills.py",
        "test_an_ingest_killed_anywhere_is_all_or_nothing_and_completed_by_the_next",
    ),
    "a killed publish": (
        "faults/test_kills.py",
        "test_a_publish_killed_anywhere_leaves_a_whole_edition_current",
    ),
    "a killed worker": ("faults/test_processes.py", "test_a_killed_worker_is_replaced"),
    "a killed node": (
        "nodes/test_failures_under_load.py",
        "test_a_killed_node_costs_no_more_than_it_was_answering",
    ),
    "flipped bits": (
        "engines/test_sealed_editions.py",
        "test_one_flipped_bit_in_any_file_of_an_edition_is_refused",
    ),
    "a node that follows": (
        "nodes/test_following.py",
        "test_a_node_serves_what_was_pushed_and_each_newer_edition_and_goes_on_without_its_origin",
    ),
    "Schemathesis": ("spec/test_schemathesis.py", "test_server_does_what_its_description_says"),
    "the starter world": (
        "spec/test_starter_world.py",
        "test_nigerias_gdp_of_2010_is_todays_figure_in_its_fourth_vintage",
    ),
    "the tutorial": ("unit/test_docs.py", "test_a_page_shows_the_answers_that_its_commands_give"),
    "real tenders": (
        "spec/test_real_tenders.py",
        "test_every_usable_release_is_served_once_and_nothing_else",
    ),
    "real tables of the World Bank": (
        "spec/test_real_macro.py",
        "test_a_databank_download_in_utf_16_is_read_with_its_names_and_units",
    ),
    "real filings": ("unit/sources/test_sec_fsds.py", "test_real_quarters_agree_with_a_plain_count"),
    "an example of the client": (
        "client/test_examples.py",
        "test_an_example_prints_what_is_written_beside_it",
    ),
    "S3": ("nodes/test_pushing.py", "test_editions_go_by_way_of_s3"),
    "a process of a build killed": (
        "faults/test_publish_processes.py",
        "test_a_process_that_is_killed_ends_the_publication_with_one_line",
    ),
    "a clock that is set": (
        "faults/test_clocks.py",
        "test_quotas_and_days_follow_the_clock_forwards_and_back",
    ),
    "two publishers": (
        "faults/test_two_publishers.py",
        "test_a_slow_publisher_of_an_older_ledger_never_replaces_a_newer_edition",
    ),
    "a full disk": ("faults/test_disks.py", "test_a_full_disk_is_a_line_and_the_edition_before_is_served"),
    "no outgoing connection": ("faults/test_outbound.py", "test_commands_and_a_server_connect_to_nobody"),
}
"""A test of the default run for each capability that needs something real."""


@cache
def depths_in(path: Path) -> dict[str, bool]:
    """Each test of a file, and whether it is deep."""
    text = path.read_text(encoding="utf-8")
    module = ast.parse(text)
    return {
        statement.name: "pytest.mark.deep" in text and is_marked(module, statement, "deep")
        for statement in module.body
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
        and statement.name.startswith("test_")
    }


@every("capability", SHOWN)
def test_the_default_run_keeps_a_test_of(capability: str):
    name, test = SHOWN[capability]
    assert depths_in(TESTS / name)[test] is False


def test_every_folder_keeps_most_of_its_files_in_the_default_run():
    kept: defaultdict[Path, list[bool]] = defaultdict(list)
    for path in TESTS.rglob("test_*.py"):
        kept[path.parent].append(not all(depths_in(path).values()))
    assert len(kept) > 20
    assert [folder for folder, files in kept.items() if sum(files) * 2 < len(files)] == []


def test_nothing_but_a_decorator_a_file_and_deep_after_makes_a_test_deep():
    """So what is read of the sources above is what is left out."""
    for path in TESTS.rglob("test_*.py"):
        for line in path.read_text(encoding="utf-8").splitlines() if path != Path(__file__) else ():
            if "pytest.mark.deep" in line:
                assert line in ("@pytest.mark.deep", "pytestmark = pytest.mark.deep"), path


def test_ci_skips_no_suite_for_want_of_a_service_and_runs_what_is_left_to_it():
    lines = (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    (setting,) = [n for n, line in enumerate(lines) if line.startswith("export TEST_REQUIRE_SERVICES=1 ")]
    (ci,) = [n for n, line in enumerate(lines) if line.startswith("export CI=true ")]
    assert max(setting, ci) < lines.index("make foreign") < lines.index("make test")
