"""The pages that need no key."""

import sankofa.mcp.refusals
from sankofa.model.errors import Problem
from sankofa.rest.pages import problems


def test_every_problem_of_every_surface_is_explained() -> None:
    assert sankofa.mcp.refusals.ContentTooLarge in problems()
    assert all(problem.__doc__ and problem.__doc__.startswith(str(problem.status)) for problem in problems())


def test_no_two_problems_share_a_page() -> None:
    slugs = [problem.slug for problem in problems()]
    assert len(slugs) == len(set(slugs))
    assert Problem not in problems()
