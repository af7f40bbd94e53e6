# SPDX-License-Identifier: Apache-2.0
"""The proxy itself: what it changes and what it leaves, between a plain client and a plain server."""
import random
import socket
import struct
import threading
import time

from proxy import Proxy
from zmtp import GREETING_BYTES, HEADER_BYTES, Reader

FIRST = bytes([1]) + bytes([100]) + bytes(range(100))  # MORE, 64 bytes of header and 36 of control
PAYLOAD = bytes([2]) + struct.pack(">Q", 400) + bytes(400)
COMMAND = bytes([4, 5]) + b"\x04PING"
STREAM = bytes(GREETING_BYTES) + COMMAND + (FIRST + PAYLOAD + COMMAND) * 5


def feed_in_pieces(reader, rng):
    out, at = b"", 0
    while at < len(STREAM):
        n = rng.randrange(1, 200)
        out += reader.feed(STREAM[at:at + n])
        at += n
    return out


def a_flip_changes_one_bit_of_the_part_that_was_named():
    first = GREETING_BYTES + len(COMMAND) + 2
    payload = first + 100 + 9
    limits = {"header": (first, first + HEADER_BYTES), "control": (first + HEADER_BYTES, first + 100),
              "payload": (payload, payload + 400)}
    for seed in range(300):
        rng = random.Random(seed)
        reader = Reader()
        assert feed_in_pieces(reader, rng) == STREAM
        for part, (begin, end) in limits.items():
            reader = Reader()
            reader.flip(part, rng)
            out = feed_in_pieces(reader, rng)
            changed = [i for i in range(len(out)) if out[i] != STREAM[i]]
            assert len(out) == len(STREAM) and len(changed) == 1, changed
            assert begin <= changed[0] < end, (part, changed)
            assert (out[changed[0]] ^ STREAM[changed[0]]).bit_count() == 1


class Server:
    """Accepts connections and answers each with what it was sent."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.accepted, self.ended = [], 0
        self.lock = threading.Lock()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            s, _ = self.listener.accept()
            s.settimeout(5)
            self.accepted.append(s)
            threading.Thread(target=self.echo, args=[s], daemon=True).start()

    def echo(self, s):
        try:
            while data := s.recv(1000):
                s.sendall(data)
        except TimeoutError:
            return
        except OSError:
            pass
        with self.lock:
            self.ended += 1


def connect(proxy, port, said=b"hello"):
    s = socket.create_connection(("127.0.0.1", port), timeout=5)
    s.sendall(said)
    assert s.recv(100) == said
    link = next(k for k in proxy.links if not k.deaf and k.dialler.transport and k.first == said)
    return s, link


def comes_true(condition):
    """Waits for another thread to make it so."""
    end = time.monotonic() + 5
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def is_reset(s):
    s.settimeout(0.3)
    try:
        return s.recv(1) == b""
    except ConnectionError:
        return True
    except socket.timeout:
        return False


def who_leaves_at_once_leaves_no_connection_behind():
    server, proxy = Server(), Proxy()
    port = proxy.route("echo/0", *server.listener.getsockname())
    for _ in range(50):
        s = socket.create_connection(("127.0.0.1", port), timeout=5)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
    s, _ = connect(proxy, port, b"last")
    s.close()
    assert comes_true(lambda: server.ended == len(server.accepted) > 1), \
        (server.ended, len(server.accepted))
    assert not proxy.links
    proxy.close()


def faults_do_what_they_are_called():
    server, proxy, rng = Server(), Proxy(), random.Random(1)
    port = proxy.route("echo/0", *server.listener.getsockname())
    sides = set()
    for i in range(8):
        s, link = connect(proxy, port, b"half%d" % i)
        fault = proxy.fault("half_open", link, rng)
        reset = is_reset(s)
        sides.add(reset)
        assert ("dialler" in fault.text) == reset
        if not reset:
            s.sendall(b"into the void")
    assert sides == {True, False}
    s, link = connect(proxy, port, b"stalled")
    fault, began = proxy.fault("stall", link, rng, 0.5), time.monotonic()
    s.sendall(b"later")
    assert s.recv(100) == b"later" and time.monotonic() - began >= 0.45
    assert fault.ended.wait(1)
    fault = proxy.fault("stall", link, rng, 0.2)
    proxy.darken("echo/0", True)
    s.sendall(b"dark")
    assert fault.ended.wait(1)
    s.settimeout(0.3)
    try:
        assert not s.recv(100), "it passed in the dark"
    except socket.timeout:
        pass
    proxy.darken("echo/0", False)
    s.settimeout(5)
    assert s.recv(100) == b"dark"
    fault, began = proxy.fault("slow", link, rng, 0.5), time.monotonic()
    s.sendall(bytes(100_000))
    got = 0
    while got < 100_000:
        got += len(s.recv(100_000))
    assert time.monotonic() - began >= 0.45
    before = len(server.accepted)
    proxy.fault("duplicate", link, rng).ended.wait(5)
    assert comes_true(lambda: len(server.accepted) == before + 1)
    proxy.fault("cut", link, rng)
    assert is_reset(s)
    s, link = connect(proxy, port, b"reordered")
    old = server.accepted[-1]
    proxy.fault("reorder", link, rng)
    assert is_reset(s) and old.fileno() >= 0
    again, _ = connect(proxy, port, b"again")
    again.sendall(b"x")
    assert again.recv(1) == b"x"
    proxy.close()


a_flip_changes_one_bit_of_the_part_that_was_named()
who_leaves_at_once_leaves_no_connection_behind()
faults_do_what_they_are_called()
print("the proxy breaks what it is told to, and nothing else")
