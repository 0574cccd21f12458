"""What is running: the version and the commit."""

import subprocess
from pathlib import Path

import pytest

from sankofa import __version__
from sankofa.operations.build_id import build_id, commit_of_checkout

ROOT = Path(__file__).parents[3]


def git(folder: Path, *arguments: str) -> str:
    names = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", *names, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    git(root, "commit", "-q", "--allow-empty", "-m", "first")
    return root


def test_a_checkout_tells_its_commit(checkout: Path) -> None:
    first = git(checkout, "rev-parse", "HEAD")
    assert commit_of_checkout(checkout) == first
    git(checkout, "commit", "-q", "--allow-empty", "-m", "second")
    assert commit_of_checkout(checkout) == git(checkout, "rev-parse", "HEAD") != first


def test_packed_references_a_detached_head_and_a_worktree_are_read_too(checkout: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    git(checkout, "pack-refs", "--all")
    assert commit_of_checkout(checkout) == head
    git(checkout, "worktree", "add", "-q", "-b", "other", "../other")
    assert commit_of_checkout(checkout.parent / "other") == head
    git(checkout, "checkout", "-q", "--detach")
    assert commit_of_checkout(checkout) == head


def test_what_is_no_checkout_tells_nothing(tmp_path: Path) -> None:
    assert commit_of_checkout(tmp_path) == ""
    (tmp_path / ".git").write_text("gitdir: nowhere")
    assert commit_of_checkout(tmp_path) == ""


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not run from a checkout")
def test_the_build_names_the_version_and_the_commit() -> None:
    assert build_id() == f"sankofa-{__version__}+{git(ROOT, 'rev-parse', 'HEAD')}"
