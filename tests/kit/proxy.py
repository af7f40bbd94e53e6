# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy between real processes that breaks connections as networks and hosts do.

    proxy = Proxy()
    port = proxy.route("ps/0", "127.0.0.1", real_port)   # whoever dials `port` reaches ps/0
    proxy.fault("half_open", proxy.pick(rng, to="ps/0"), rng).ended.wait()
    proxy.close()

One thread with an event loop of its own; every method may be called from any other thread. Standard
library only. A link is one accepted connection and the one that was made for it. Faults:

  half_open   one side is reset; the other stays open, is read, and hears nothing for ever
  stall       nothing passes in either direction for a while, and nothing is lost
  slow        a number of bytes a second, for a while
  cut         both sides are reset
  duplicate   a second connection to the same listener says what the dialler said first, and stays
  flip_header, flip_control, flip_payload
              one bit of the next weft header, control bytes or payload frame is changed
  reorder     the dialler's side is reset; its next connection is accepted before the listener is told
              that the old one has ended

fault() gives a Fault whose `ended` is set when the fault is over: at once where it is an instant.
`seconds` is how long a stall or slow link lasts, and how long a flip waits for such a frame. darken()
stalls every link to a task, also those that are dialled meanwhile.
"""
import asyncio
import socket
import struct
import threading
import time

from zmtp import Reader

FAULTS = ("half_open", "stall", "slow", "cut", "duplicate", "flip_header", "flip_control",
          "flip_payload", "reorder")
FIRST_BYTES = 1 << 16  # of a dialler, kept for a duplicate
BUFFER_BYTES = 1 << 20  # in a side's buffer, before the other side is read no more
TICK_S = 0.01
DUPLICATE_S = 5  # how long a duplicate stays open


class Fault:
    def __init__(self, kind, link, text):
        self.kind, self.link, self.text = kind, link, text
        self.ended, self.ended_at = threading.Event(), None

    def end(self):
        if not self.ended_at:
            self.ended_at = time.monotonic()
        self.ended.set()

    def __str__(self):
        return f"{self.text} of {self.link}"


class Side(asyncio.Protocol):
    """One of a link's two connections: "dialler" or "listener"."""

    def __init__(self, link, name):
        self.link, self.name, self.transport = link, name, None

    def connection_made(self, transport):
        self.transport = transport
        transport.set_write_buffer_limits(high=BUFFER_BYTES)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.link.made(self)

    def data_received(self, data):
        self.link.received(self, data)

    def eof_received(self):
        return False

    def connection_lost(self, why):
        self.transport = None
        self.link.lost(self)

    def pause_writing(self):
        self.link.pause(self, True)

    def resume_writing(self):
        self.link.pause(self, False)

    def reset(self):
        if not self.transport:
            return
        self.transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def write(self, data):
        if self.transport and not self.transport.is_closing():
            self.transport.write(data)


class Link:
    def __init__(self, proxy, route, number):
        self.proxy, self.route, self.number = proxy, route, number
        self.who = "?"  # whom the dialler's hello names
        self.dialler, self.listener = Side(self, "dialler"), Side(self, "listener")
        self.first, self.early = b"", b""
        self.deaf = False  # what comes in is read and forgotten
        self.held = None  # while it stalls or is slow: [(side, bytes)] in the order of arrival
        self.rate = None  # bytes/s, None: it stalls
        self.dead = False
        self.readers = {"dialler": Reader(hello=self._hello), "listener": Reader()}

    def __str__(self):
        return f"link {self.number} from {self.who} to {self.route.name}"

    def _hello(self, task):
        self.who = task

    def other(self, side):
        return self.listener if side is self.dialler else self.dialler

    def made(self, side):
        if side is self.dialler:
            if self.route.is_dark:
                self.held = []
            self.proxy.spawn(self._dial())
        else:
            self.write(side, self.early)
            self.early = b""
            if self.dead:  # the dialler has closed before this one was there
                side.transport.close()

    async def _dial(self):
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: self.listener, self.route.host, self.route.port)
        except OSError:
            self.dialler.reset()

    def write(self, side, data):
        """Passes bytes to a side, now or when the link is no longer held."""
        if self.held is not None:
            self.held.append((side, data))
        else:
            side.write(data)

    def received(self, side, data):
        if self.deaf:
            return
        if side is self.dialler and len(self.first) < FIRST_BYTES:
            self.first += data[:FIRST_BYTES - len(self.first)]
        data = self.readers[side.name].feed(data)
        if side is self.dialler and not self.listener.transport:
            self.early += data
        else:
            self.write(self.other(side), data)

    def pause(self, full, is_full):
        source = self.other(full)
        if source.transport and not source.transport.is_closing():
            (source.transport.pause_reading if is_full else source.transport.resume_reading)()

    def lost(self, side):
        """A side has closed. The other one is told, unless it is to hear nothing."""
        if not self.deaf:
            other = self.other(side)
            if other.transport:
                other.transport.close()
        if not self.dialler.transport and not self.listener.transport:
            self.dead = True
            self.proxy.links.discard(self)

    def hold(self, seconds, rate, done):
        self.held, self.rate = [], rate
        self.proxy.spawn(self._hold(seconds, done))

    async def _hold(self, seconds, done):
        end, owed = time.monotonic() + seconds, 0.0
        while time.monotonic() < end and not self.dead:
            await asyncio.sleep(TICK_S)
            owed += 0 if self.route.is_dark else (self.rate or 0) * TICK_S
            while self.held and owed >= 1:
                side, data = self.held.pop(0)
                n = min(int(owed), len(data))
                side.write(data[:n])
                owed -= n
                if n < len(data):
                    self.held.insert(0, (side, data[n:]))
                    break
        if not self.route.is_dark:
            self.release()
        done()

    def release(self):
        held, self.held = self.held or [], None
        for side, data in held:
            side.write(data)


class Route:
    def __init__(self, name, host, port):
        self.name, self.host, self.port = name, host, port
        self.server, self.waiting = None, []  # links of a reorder, to be closed after the next one
        self.is_dark = False


class Proxy:
    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.links, self.routes, self.tasks, self.numbers = set(), {}, set(), 0
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(10)

    def spawn(self, coroutine):
        """Within the loop: a task that the loop is not to forget."""
        task = self.loop.create_task(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def route(self, name, host, port):
        """Listens for those who dial `name`; gives the port to be dialled."""
        async def listen():
            r = self.routes[name] = Route(name, host, port)
            r.server = await self.loop.create_server(lambda: self._accept(r), "127.0.0.1", 0)
            return r.server.sockets[0].getsockname()[1]
        return self._call(listen())

    def _accept(self, route):
        self.numbers += 1
        link = Link(self, route, self.numbers)
        self.links.add(link)
        for old in route.waiting:
            self.loop.call_later(0.2, old.listener.reset)
        route.waiting = []
        return link.dialler

    def pick(self, rng, to=None, who=None):
        """A link that is whole, or None; `to` and `who` are names of tasks."""
        async def choose():
            fit = [k for k in self.links if k.dialler.transport and k.listener.transport and
                   not k.deaf and k.held is None and k.who != "?" and
                   (to in (None, k.route.name)) and (who in (None, k.who))]
            return rng.choice(sorted(fit, key=lambda k: k.number)) if fit else None
        return self._call(choose())

    def fault(self, kind, link, rng, seconds=1.0):
        """Does it to a link; gives a Fault."""
        async def do():
            return getattr(self, "_" + kind)(link, rng, seconds)
        return self._call(do())

    def _half_open(self, link, rng, seconds):
        side = rng.choice([link.dialler, link.listener])
        fault = Fault("half_open", link, f"half open ({side.name} reset)")
        link.deaf = True
        side.reset()
        fault.end()
        return fault

    def _stall(self, link, rng, seconds):
        fault = Fault("stall", link, f"stall of {seconds:.1f} s")
        link.hold(seconds, None, fault.end)
        return fault

    def _slow(self, link, rng, seconds):
        rate = rng.choice([300, 3000, 30000])
        fault = Fault("slow", link, f"{rate} bytes/s for {seconds:.1f} s")
        link.hold(seconds, rate, fault.end)
        return fault

    def _cut(self, link, rng, seconds):
        fault = Fault("cut", link, "cut")
        link.dialler.reset()
        link.listener.reset()
        fault.end()
        return fault

    def _duplicate(self, link, rng, seconds):
        """The first bytes again, whole or cut off, on a connection that nobody reads from."""
        said = link.first if rng.random() < 0.5 else link.first[:rng.randrange(len(link.first) + 1)]
        fault = Fault("duplicate", link, f"duplicate of the first {len(said)} bytes")
        self.spawn(self._say_again(link.route, said, fault))
        return fault

    async def _say_again(self, route, said, fault):
        try:
            reader, writer = await asyncio.open_connection(route.host, route.port)
            writer.write(said)
            await writer.drain()
            fault.end()
            await asyncio.wait_for(reader.read(-1), DUPLICATE_S)
            writer.close()
        except (OSError, asyncio.TimeoutError):
            pass
        fault.end()

    def _flip_header(self, link, rng, seconds):
        return self._flip("header", link, rng, seconds)

    def _flip_control(self, link, rng, seconds):
        return self._flip("control", link, rng, seconds)

    def _flip_payload(self, link, rng, seconds):
        return self._flip("payload", link, rng, seconds)

    def _flip(self, part, link, rng, seconds):
        """Ends with the flip, or after `seconds` if no frame of the kind has come."""
        side = rng.choice(["dialler", "listener"])
        fault = Fault("flip", link, f"flip in the {part} of what the {side} sends")
        reader = link.readers[side]
        reader.on_flip = fault.end
        reader.flip(part, rng)

        def give_up():
            if not fault.ended_at:  # what is armed by now may be the next fault's
                reader.armed = reader.flip_at = None
            fault.end()
        self.loop.call_later(seconds, give_up)
        return fault

    def _reorder(self, link, rng, seconds):
        fault = Fault("reorder", link, "reorder (old connection closed after the new one)")
        link.deaf = True
        link.dialler.reset()
        link.route.waiting.append(link)
        fault.end()
        return fault

    def darken(self, name, is_dark):
        """Nothing passes on any link to a task, as with a host that has gone dark; then all of it."""
        async def do():
            route = self.routes[name]
            route.is_dark = is_dark
            for link in self.links:
                if link.route is route and is_dark and link.held is None:
                    link.held = []
                elif link.route is route and not is_dark:
                    link.release()
        self._call(do())

    def close(self):
        async def end():
            for route in self.routes.values():
                route.server.close()
            for link in list(self.links):
                link.deaf = True
                link.dialler.reset()
                link.listener.reset()
            tasks = list(self.tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self._call(end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
