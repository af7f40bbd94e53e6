# SPDX-License-Identifier: Apache-2.0
"""What comes in by the ports that no task of weft has sent; and a master that is not there.

    bad_peers.py WEFT [TEST...]

While a job trains, every port gets noise, in and out of ZeroMQ's framing (ZMTP 3, rfc.zeromq.org/23).
The processes that were there before are there after, no larger, and the job ends done.
"""
import os
import random
import re
import socket
import struct
import time

from weftlib import Cluster, check, main, needs, one_sentence

needs("numpy")
import small  # noqa: E402

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
HEADER_BYTES = 64
HUGE = 1 << 40


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def header(kind=1, control=b"", claim=None, **words):
    """A message's first frame, with a right checksum, claiming `claim` control bytes."""
    fields = {"version": 1, "incarnation": 7, "sequence": 1, **words}
    head = struct.pack("<IBBHIIQQQIHHIIII", 0x54464557, fields["version"], 0, kind, 0, 0,
                       fields["incarnation"], fields["sequence"], 0, 0, 0, 0, 0, 0,
                       len(control) if claim is None else claim, 0)
    return head[:60] + struct.pack("<I", crc32c(head + control)) + control


def frame(body, more=False, size=None):
    """A ZMTP frame; `size` is what it claims."""
    return bytes([2 | more]) + struct.pack(">Q", len(body) if size is None else size) + body


def ready(kind):
    body = b"\x05READY"
    for name, value in ((b"Socket-Type", kind), (b"Identity", b"")):
        body += bytes([len(name)]) + name + struct.pack(">I", len(value)) + value
    return bytes([4, len(body)]) + body


HELLO = GREETING + ready(b"DEALER")


def noises(luck):
    """Byte strings, each for a connection of its own."""
    for size in (1, 9, 10, 63, 64, 1000, 100_000):
        yield luck.randbytes(size)
    yield b"GET / HTTP/1.1\r\nHost: weft\r\n\r\n"
    for size in (1, 100, 10_000):
        yield GREETING + luck.randbytes(size)
    yield GREETING[:11]
    yield GREETING + ready(b"REQ")
    for size in (0, 1, 63, 64, 65, 5000):
        yield HELLO + frame(luck.randbytes(size))
    yield HELLO + frame(b"", more=True) * 2000 + frame(b"")
    for kind in range(64):
        yield HELLO + frame(header(kind, luck.randbytes(luck.randrange(200))))
    yield HELLO + frame(header(1, version=99))
    yield HELLO + frame(header(1, sequence=1 << 63))
    yield HELLO + frame(header(1)[:-1])
    # What claims to be huge: a frame of 2^40 bytes, control bytes of 2^32, both.
    yield HELLO + frame(header(1), size=HUGE)
    yield HELLO + frame(header(1), more=True) + frame(bytes(100), size=HUGE)
    yield HELLO + frame(header(1, claim=0xFFFFFFFF))
    yield HELLO + frame(header(1, claim=0xFFFFFFFF), size=HUGE)
    yield HELLO + bytes([4, 0xFF]) + b"\x05READY" + struct.pack(">I", 0x7FFFFFFF)


def throw(port, body):
    """Sends it all, and gives the socket, still open, or None when the peer closed it."""
    s = socket.create_connection(("127.0.0.1", port), timeout=5)
    try:
        s.sendall(body)
        return s
    except (ConnectionError, socket.timeout):
        s.close()
        return None


def noise_on_every_port_changes_nothing(weft):
    luck = random.Random(11)
    with Cluster(weft, transport="tcp") as c:
        small.write_job(c, epochs=100000, every_steps=1000)
        c.must("up")
        c.must("submit", "small.yaml")
        c.until_job("small", lambda j: j["step"] > 100, "trains")
        pids = {task: c.pid(task) for task in c.tasks()}
        memory = {task: c.most_memory(task) for task in c.tasks()}
        held = []
        for task, address in zip(["master", "ps/0", "ps/1"], c.ports):
            port = int(address.rsplit(":", 1)[1])
            for body in noises(luck):
                held.append(throw(port, body))
            check(c.pid(task) == pids[task], f"{task} has died")
        result = c.run("status", "--json")
        check(result.code == 0, str(result))
        check(c.status()["bad_messages"] > 0, "the master has counted no bad message")
        for s in filter(None, held):
            s.close()
        before = c.job("small")["step"]
        c.until_job("small", lambda j: j["step"] > before + 50, "trains on")
        c.must("stop", "small")
        job = c.job("small")
        check(job["state"] == "stopped" and job["generation"] == 1, str(job))
        check({task: c.pid(task) for task in c.tasks()} == pids, "processes changed")
        for task in c.tasks():
            grown = c.most_memory(task) - memory[task]
            check(grown < 32 << 20, f"{task} has grown by {grown} bytes")
        small.write_job(c, "next")
        c.must("train", "next.yaml")


def a_worker_of_another_cluster_is_refused(weft):
    with Cluster(weft, transport="tcp") as c:
        small.write_job(c)
        c.must("up")
        mine = c.read("cluster.yaml")
        c.write("cluster.yaml", mine.replace("cluster: test", "cluster: other"))
        result = c.must("status", code=1)
        check(re.search(r'"?test"?.*"?other"?|"?other"?.*"?test"?', one_sentence(result.err)),
              str(result))
        c.write("cluster.yaml", mine)
        c.must("status")


def a_master_that_is_not_running_is_named_at_once(weft):
    for transport in ("tcp", "ipc"):
        with Cluster(weft, transport=transport) as c:
            small.write_job(c)
            for words in (["status"], ["stop", "small"], ["submit", "small.yaml"]):
                began = time.monotonic()
                result = c.must(*words, code=1)
                sentence = one_sentence(result.err)
                check("is not running" in sentence and c.ports[0] in sentence and
                      "weft up" in sentence, sentence)
                check(time.monotonic() - began < 2, f"{words} took too long")
            check(not os.path.exists(c.path(".weft", "jobs")), "a job was kept")


main([noise_on_every_port_changes_nothing, a_worker_of_another_cluster_is_refused,
      a_master_that_is_not_running_is_named_at_once])
