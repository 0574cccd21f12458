"""Connections of the serving side, with bounded waits.

A frozen server is the hard case: the drivers answer a timeout by asking the server to cancel, and
wait for it to agree. So the waiting here is our own, on libpq's
non-blocking calls: a connection that is silent for too long is closed from this side at once.
"""

import asyncio
import select
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from sankofa.engines.postgres_server import LATE, LOST, Refused, Server, Unanswered, pq, psycopg
from sankofa.model.errors import StoreUnavailable

_THREAD_SECONDS = 1.9
_DIAL_SECONDS = 1.7
_SILENT_SECONDS = 0.85  # then a connection is given up, while the caller has time for one more
_LOOK_SECONDS = 0.05
_MOST_LINKS = 4
_MOST_PREPARED = 64
_FORGOTTEN = ("26000", "42P05")  # no such prepared statement, or one of that name already
_NEXT_DIAL_SECONDS = 1.0  # between attempts to have one connection more


class Statement(NamedTuple):
    """Prepared once per connection, under its name."""

    name: bytes
    text: bytes


# Every read of an edition follows its keys; the planner is not to think of anything else.
_SESSION = Statement(
    b"session",
    b"SELECT set_config(name, 'off', false) FROM unnest(array['enable_seqscan', 'enable_bitmapscan', "
    b"'enable_hashjoin', 'enable_mergejoin', 'enable_material', 'jit']) AS name",
)


class _Question:
    __slots__ = ("answer", "deadline", "failure", "result", "statement")

    def __init__(
        self, answer: "asyncio.Future[pq.abc.PGresult]", deadline: float, statement: Statement
    ) -> None:
        self.answer = answer
        self.deadline = deadline
        self.statement = statement
        self.result: pq.abc.PGresult | None = None
        self.failure: Refused | None = None


class Link:
    """One connection in an event loop, several questions under way; answers come in their order."""

    def __init__(
        self, connection: pq.abc.PGconn, loop: asyncio.AbstractEventLoop, *, prepares: bool = True
    ) -> None:
        """`prepares`: whether statements are prepared once; else each question brings its own text, as a
        pooler demands that lends a server for one transaction."""
        self.loop = loop
        self._prepares = prepares
        self.pooled = False
        """Whether a statement was forgotten or known already, as happens behind such a pooler."""
        self.lost = ""
        self._connection = connection
        self._socket = connection.socket
        self._waiting: deque[_Question] = deque()
        self._prepared: set[bytes] = set()
        self._writing = False
        self._heard = self._looked = 0.0
        self._lenient = True
        self._watch: asyncio.TimerHandle | None = None
        connection.enter_pipeline_mode()
        loop.add_reader(self._socket, self._read)

    @property
    def load(self) -> int:
        return len(self._waiting)

    async def ask(self, statement: Statement, values: Sequence[bytes], deadline: float) -> pq.abc.PGresult:
        """The answer in binary. Raises Unanswered or Refused."""
        if self.lost:
            raise Unanswered(self.lost)
        question = _Question(self.loop.create_future(), deadline, statement)
        if not self._waiting:
            self._heard = self.loop.time()
        self._waiting.append(question)
        if self._watch is None:
            self._looked = self.loop.time()
            self._watch = self.loop.call_later(_LOOK_SECONDS, self._look)
        try:
            if not self._prepares:
                self._connection.send_query_params(statement.text, values, result_format=pq.Format.BINARY)
            else:
                if statement.name not in self._prepared:
                    self._prepare(statement)
                self._connection.send_query_prepared(statement.name, values, result_format=pq.Format.BINARY)
            self._connection.pipeline_sync()
            self._flush()
        except psycopg.Error:
            self.drop(LOST)
        return await question.answer

    def drop(self, reason: str) -> None:
        """Close at once and fail every question. Only the first reason counts."""
        if self.lost:
            return
        self.lost = reason
        if self._watch is not None:
            self._watch.cancel()
        with suppress(RuntimeError):  # of a loop that is closed already
            self.loop.remove_reader(self._socket)
            self.loop.remove_writer(self._socket)
        self._connection.finish()
        for question in self._waiting:
            if not question.answer.done():
                question.answer.set_exception(Unanswered(reason))
        self._waiting.clear()

    def _prepare(self, statement: Statement) -> None:
        if len(self._prepared) >= _MOST_PREPARED:  # of editions long gone
            self._connection.send_query_params(b"DEALLOCATE ALL", None)
            self._prepared.clear()
        self._connection.send_prepare(statement.name, statement.text)
        self._prepared.add(statement.name)

    def _flush(self) -> None:
        more = bool(self._connection.flush())
        if more and not self._writing:
            self.loop.add_writer(self._socket, self._write)
        elif self._writing and not more:
            self.loop.remove_writer(self._socket)
        self._writing = more

    def _write(self) -> None:
        try:
            self._flush()
        except psycopg.Error:
            self.drop(LOST)

    def _read(self) -> None:
        self._heard = self.loop.time()
        try:
            self._connection.consume_input()
            between = False  # one None ends the results of a command, two mean that there are no more
            while self._waiting and not self._connection.is_busy():
                result = self._connection.get_result()
                if result is not None:
                    self._take(result)
                elif between:
                    break
                between = result is None
        except psycopg.Error:
            self.drop(LOST)

    def _take(self, result: pq.abc.PGresult) -> None:
        question = self._waiting[0]
        if result.status == pq.ExecStatus.TUPLES_OK:
            question.result = result
        elif result.status == pq.ExecStatus.FATAL_ERROR:
            question.failure = Refused.by(result)
            self.pooled = self.pooled or question.failure.sqlstate in _FORGOTTEN
            self._prepared.discard(question.statement.name)
        elif result.status == pq.ExecStatus.PIPELINE_SYNC:
            self._waiting.popleft()
            if question.answer.done():  # its caller is gone, or got its timeout
                return
            if question.failure is None and question.result is not None:
                question.answer.set_result(question.result)
            elif question.failure is None or question.failure.passing or self.pooled:
                question.answer.set_exception(Unanswered(str(question.failure or LOST)))
            else:
                question.answer.set_exception(question.failure)

    def _look(self) -> None:
        """One timer for all questions. When our own loop was held up, it may read once before we judge."""
        self._watch = None
        if not self._waiting:
            return
        now = self.loop.time()
        held_up, self._looked = now - self._looked > 2 * _LOOK_SECONDS, now
        if held_up and self._lenient:
            self._lenient = False
        else:
            self._lenient = True
            if now - self._heard > _SILENT_SECONDS:
                self.drop(LATE)
                return
            for question in self._waiting:
                if question.deadline <= now and not question.answer.done():
                    question.answer.set_exception(Unanswered(LATE))
        self._watch = self.loop.call_later(_LOOK_SECONDS, self._look)


class Links:
    """The few connections of one process, opened when they are needed, in the event loop that needs them."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._prepares = True
        self._links: list[Link] = []
        self._dialling: asyncio.Task[str] | None = None
        self._next_dial = 0.0

    async def ask(self, statement: Statement, values: Sequence[bytes], seconds: float) -> pq.abc.PGresult:
        """One round trip; a dead connection costs another try, for after a restart all of them are dead.

        Raises StoreUnavailable or Refused.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        reason = LATE
        for _ in range(_MOST_LINKS + 1):
            try:
                link = self._least_busy(loop) or await self._dialled(loop, deadline)
                return await link.ask(statement, values, deadline)
            except Unanswered as failure:
                reason = str(failure)
                self._notice_pooler()
            if loop.time() >= deadline - _LOOK_SECONDS:
                break
        raise StoreUnavailable("datastore", reason)

    def _notice_pooler(self) -> None:
        """Behind a pooler that lends a server for one transaction nothing is prepared from now on."""
        if self._prepares and any(link.pooled for link in self._links):
            self._prepares = False
            for link in self._links:
                link.drop(LOST)
            self._links = []

    def close(self) -> None:
        dialling, self._dialling = self._dialling, None
        if dialling is not None:
            with suppress(RuntimeError):  # of a loop that is closed already
                dialling.cancel()
        for link in self._links:
            link.drop(LOST)
        self._links = []

    def _least_busy(self, loop: asyncio.AbstractEventLoop) -> Link | None:
        least: Link | None = None
        for link in self._links:
            if link.lost or link.loop is not loop:
                self._links = [other for other in self._links if other is not link]
                link.drop(LOST)
            elif least is None or link.load < least.load:
                least = link
        if (
            least is not None
            and least.load
            and len(self._links) < _MOST_LINKS
            and loop.time() > self._next_dial
        ):
            self._next_dial = loop.time() + _NEXT_DIAL_SECONDS
            self._begin_to_dial(loop)
        return least

    async def _dialled(self, loop: asyncio.AbstractEventLoop, deadline: float) -> Link:
        """Join the attempt under way, or begin one; it goes on for the others if this caller leaves."""
        dialling = self._begin_to_dial(loop)
        await asyncio.wait({dialling}, timeout=deadline - loop.time())
        link = self._least_busy(loop)
        if link is None:
            raise Unanswered(dialling.result() if dialling.done() and not dialling.cancelled() else LATE)
        return link

    def _begin_to_dial(self, loop: asyncio.AbstractEventLoop) -> asyncio.Task[str]:
        dialling = self._dialling
        if dialling is None or dialling.done() or dialling.get_loop() is not loop:
            dialling = self._dialling = loop.create_task(self._dial(loop))
        return dialling

    async def _dial(self, loop: asyncio.AbstractEventLoop) -> str:
        """Add a link, or return why there is none: a task nobody awaits must not raise."""
        link: Link | None = None
        try:
            async with asyncio.timeout(_DIAL_SECONDS):
                link = Link(await self._server.dial(), loop, prepares=self._prepares)
                await link.ask(_SESSION, (), loop.time() + _DIAL_SECONDS)
        except TimeoutError:
            reason = LATE
        except (Unanswered, Refused) as failure:
            reason = str(failure)
        else:
            self._links = [*self._links, link]
            return ""
        finally:
            if link is not None and link not in self._links:
                link.drop(LATE)
        return reason


class Enquiry:
    """One connection for questions from threads, each answered or given up in time."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._connection: pq.abc.PGconn | None = None

    def rows(self, text: str, *values: str) -> list[list[str | None]]:
        """The rows, as text. Raises StoreUnavailable or Refused."""
        if not self._lock.acquire(timeout=_THREAD_SECONDS):
            raise StoreUnavailable("datastore", LATE)
        try:
            was_open = self._connection is not None
            try:
                return self._ask(text, values)
            except Unanswered as failure:
                if not was_open or str(failure) == LATE:
                    raise
                return self._ask(text, values)  # the open connection had died meanwhile
        except Unanswered as failure:
            raise StoreUnavailable("datastore", str(failure)) from None
        finally:
            self._lock.release()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.finish()

    def _ask(self, text: str, values: Sequence[str]) -> list[list[str | None]]:
        if self._connection is None:
            self._connection = self._server.connect_within_seconds()
        try:
            result = _answer(self._connection, text, values, time.monotonic() + _THREAD_SECONDS)
        except (psycopg.Error, Unanswered) as failure:
            self.close()
            raise Unanswered(str(failure) if isinstance(failure, Unanswered) else LOST) from None
        if result.status != pq.ExecStatus.TUPLES_OK:
            refused = Refused.by(result)
            if refused.passing:
                self.close()
                raise Unanswered(str(refused))
            raise refused
        return [
            [
                None if (v := result.get_value(row, column)) is None else v.decode()
                for column in range(result.nfields)
            ]
            for row in range(result.ntuples)
        ]


def _answer(connection: pq.abc.PGconn, text: str, values: Sequence[str], deadline: float) -> pq.abc.PGresult:
    connection.send_query_params(text.encode(), [value.encode() for value in values])
    poll = select.poll()
    last: pq.abc.PGresult | None = None
    while True:
        poll.register(connection.socket, select.POLLIN | (select.POLLOUT if connection.flush() else 0))
        while not connection.is_busy():
            result = connection.get_result()
            if result is None:
                if last is None:
                    raise Unanswered(LOST)
                return last
            last = result
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            raise Unanswered(LATE)
        connection.consume_input()
