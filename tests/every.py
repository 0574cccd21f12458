"""Try many values in one test, which is faster than a test for each if a value costs almost nothing."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def every(
    names: str | tuple[str, ...], values: Iterable[Any], ids: object = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like `pytest.mark.parametrize`, but one test tries all values and reports each that fails."""
    parameters = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    tried = list(values)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failures: list[Exception] = []
            for value in tried:
                arguments = dict(zip(parameters, value if len(parameters) > 1 else [value], strict=True))
                try:
                    test(**fixtures, **arguments)
                except Exception as failure:
                    failure.add_note(f"with {arguments}")
                    failures.append(failure)
            assert tried, "there is nothing to try"
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(tried)} values", failures)

        own = inspect.signature(test)
        remaining = [one for name, one in own.parameters.items() if name not in parameters]
        run.__signature__ = own.replace(parameters=remaining)  # type: ignore[attr-defined]  # pytest reads it
        return run

    return decorate
