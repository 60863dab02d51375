"""A TCP proxy on this machine that can cut connections at a chosen byte."""

import asyncio
import socket
import ssl
import struct
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from tests.faults.harness.connection_cuts import GIVE_UP_AFTER, AfterCut, ConnectionCutError, Cut, Side

Done = TypeVar("Done")
CHUNK = 65536


class Proxy:
    """Forwards bytes to a port of this machine, on a thread of its own. Use it as a context manager."""

    def __init__(self, upstream: int, *, tls: ssl.SSLContext | None = None) -> None:
        self.upstream = upstream
        self.tls = tls
        self.port = 0
        self.cuts: list[Cut] = []
        self._loop = asyncio.new_event_loop()
        self._wires: set[Wire] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.listen()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(
        self, *words: bytes, side: Side = Side.REQUEST, after: int = 0, then: AfterCut = AfterCut.RESET
    ) -> Cut:
        """Plan a cut."""
        cut = Cut(words, side, after, then)
        self.cuts.append(cut)
        return cut

    def listen(self) -> None:
        """Accept connections, at the same port as before."""
        self._do(self._listen())

    def refuse(self) -> None:
        """Refuse new connections; open ones continue."""
        self._do(self._refuse())

    def sever(self) -> None:
        """Reset every open connection; new ones are accepted."""
        self._do(self._sever())

    @contextmanager
    def away(self) -> Iterator[None]:
        """Within the block, open connections are reset and new ones refused."""
        self.refuse()
        self.sever()
        try:
            yield
        finally:
            self.listen()

    def take_cut(self, sent: bytes) -> tuple[Cut, int] | None:
        """The planned cut whose words these are, and where its last word begins; removes it from the plan."""
        for cut in self.cuts:
            place = cut.end_of(sent)
            if place is not None:
                self.cuts.remove(cut)
                return cut, place
        return None

    def _do(self, work: Coroutine[Any, Any, Done]) -> Done:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(GIVE_UP_AFTER)

    async def _listen(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=128)
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        # Not asyncio's own server: closing it loses a connection that was just accepted.
        self._loop.add_reader(self._listener, self._accept)

    async def _refuse(self) -> None:
        if self._listener.fileno() >= 0:
            self._loop.remove_reader(self._listener)
            self._listener.close()

    async def _sever(self) -> None:
        for wire in list(self._wires):
            wire.reset()
        for task in self._tasks:
            task.cancel()

    async def _end(self) -> None:
        await self._refuse()
        for wire in list(self._wires):
            wire.free()
        await self._sever()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._loop.shutdown_default_executor()

    def _accept(self) -> None:
        accepted, _ = self._listener.accept()
        task = self._loop.create_task(self._connect(accepted))
        self._tasks.add(task)
        task.add_done_callback(partial(self._end_of_connection, accepted))

    def _end_of_connection(self, accepted: socket.socket, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if accepted.fileno() >= 0:  # severed before it was handled
            _reset(accepted)
            accepted.close()

    async def _connect(self, accepted: socket.socket) -> None:
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        with suppress(OSError):  # no TLS, or no server
            transport, _ = await self._loop.connect_accepted_socket(lambda: protocol, accepted, ssl=self.tls)
            writer = asyncio.StreamWriter(transport, protocol, reader, self._loop)
            try:
                server = await asyncio.open_connection("127.0.0.1", self.upstream)
            except (OSError, asyncio.CancelledError):
                _reset(accepted)
                transport.abort()
            else:
                await self._carry(Wire(self, (reader, writer), server))

    async def _carry(self, wire: "Wire") -> None:
        self._wires.add(wire)
        try:
            await wire.carry()
        finally:
            self._wires.discard(wire)


@contextmanager
def proxied(address: str) -> Iterator[tuple[Proxy, str]]:
    """A proxy in front of a server of this machine, and the server's address through it."""
    port = urlsplit(address).port
    assert port is not None
    with Proxy(port) as proxy:
        yield proxy, address.replace(f":{port}", f":{proxy.port}", 1)


End = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Wire:
    """One connection with its two directions."""

    def __init__(self, proxy: Proxy, client: End, server: End) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._said = b""  # bytes sent by the client, while a planned cut may match them
        self._cut: Cut | None = None
        self._left = 0  # bytes until the cut

    async def carry(self) -> None:
        """Carry bytes both ways until both ends are closed, or the wire is cut."""
        ways = [asyncio.ensure_future(self._requests()), asyncio.ensure_future(self._answers())]
        try:
            await asyncio.gather(*ways)
        except OSError:
            self.reset()
        except ConnectionCutError as torn:
            if torn.then is not AfterCut.CLOSE:
                self.reset()
        finally:
            for way in ways:
                way.cancel()
            for _, writer in (self._client, self._server):
                writer.close()

    def free(self) -> None:
        """Release a connection stalled for a test that has ended."""
        if self._cut is not None:
            self._cut.tear()

    def reset(self) -> None:
        """Reset both sides (RST)."""
        for _, writer in (self._client, self._server):
            _reset(writer.get_extra_info("socket"))
            writer.transport.abort()

    async def _requests(self) -> None:
        while data := await self._client[0].read(CHUNK):
            if self._cut is None:
                self._listen_in(data)
            await self._pass(data, Side.REQUEST, self._server[1])
        await _half_close(self._server[1])

    async def _answers(self) -> None:
        while data := await self._server[0].read(CHUNK):
            await self._pass(data, Side.ANSWER, self._client[1])
        await _half_close(self._client[1])

    def _listen_in(self, data: bytes) -> None:
        self._said = self._said + data if self._proxy.cuts else b""
        taken = self._proxy.take_cut(self._said)
        if taken is None:
            return
        self._cut, place = taken
        passed = len(self._said) - len(data)
        self._left = self._cut.after + (max(0, place - passed) if self._cut.side is Side.REQUEST else 0)

    async def _pass(self, data: bytes, side: Side, to: asyncio.StreamWriter) -> None:
        if self._cut is None or self._cut.side is not side:
            return await _write(to, data)
        await _write(to, data[: self._left])
        data, self._left = data[self._left :], max(0, self._left - len(data))
        if self._left == 0:
            cut, self._cut, self._said = self._cut, None, b""
            await self._happen(cut)
            await _write(to, data)
        return None

    async def _happen(self, cut: Cut) -> None:
        cut.reached.set()
        if cut.then is AfterCut.STALL:
            self._cut, self._left = cut, 0  # so that stopping the proxy releases it
            await asyncio.get_running_loop().run_in_executor(None, cut.freed.wait, GIVE_UP_AFTER)
            self._cut = None
            if cut.goes_on:
                return
        raise ConnectionCutError(cut.then)


async def _write(to: asyncio.StreamWriter, data: bytes) -> None:
    if data:
        to.write(data)
        await to.drain()


async def _half_close(writer: asyncio.StreamWriter) -> None:
    if writer.can_write_eof():
        writer.write_eof()
    else:
        writer.close()


def _reset(connection: Any) -> None:
    """Make the close of this connection a reset (RST)."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
