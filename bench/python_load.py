"""The load if wrk is not installed: the same command line and the same line of JSON, but slower.

It is started as a separate process: python_load.py URL QUESTIONS OFFSET SECONDS CONNECTIONS HEADER...
"""

import asyncio
import json
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import uvloop


class Client:
    """Keeps connections busy, one request at a time on each, until the time is up."""

    def __init__(self, requests: list[bytes], offset: int, until: float) -> None:
        self._requests = requests
        self._at = offset
        self._until = until
        self.seconds: list[float] = []
        self.bytes = self.failed = 0

    async def run(self, host: str, port: int) -> None:
        reader, writer = await asyncio.open_connection(host, port, limit=2**20)
        try:
            while time.perf_counter() < self._until:
                self._at = (self._at + 1) % len(self._requests)
                began = time.perf_counter()
                writer.write(self._requests[self._at])
                self.failed += not await self._answer(reader)
                self.seconds.append(time.perf_counter() - began)
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b"transfer-encoding: chunked" in head:
            while size := int(await reader.readuntil(b"\r\n"), 16):
                await reader.readexactly(size + 2)
                self.bytes += size
            await reader.readexactly(2)
        else:
            size = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
            await reader.readexactly(size)
            self.bytes += size
        return head[9:12] == b"200"


def _requests(url: str, questions: str, headers: list[str]) -> list[bytes]:
    shared = "".join(f"{header}\r\n" for header in (f"Host: {urlsplit(url).netloc}", *headers))
    encoded = []
    for line in Path(questions).read_text().splitlines():
        path, _, body = line.partition("\t")
        method = "POST" if body else "GET"
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        encoded.append(f"{method} {path} HTTP/1.1\r\n{shared}{length}\r\n{body}".encode())
    return encoded


async def main(url: str, questions: str, offset: str, seconds: str, connections: str, *headers: str) -> None:
    began = time.perf_counter()
    client = Client(_requests(url, questions, list(headers)), int(offset), began + float(seconds))
    host, _, port = urlsplit(url).netloc.rpartition(":")
    await asyncio.gather(*(client.run(host, int(port)) for _ in range(int(connections))))
    took = sorted(client.seconds)
    result = {
        "requests": len(took),
        "seconds": time.perf_counter() - began,
        "p50": took[len(took) // 2],
        "p99": took[len(took) * 99 // 100],
        "bytes": client.bytes,
        "failed": client.failed,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
