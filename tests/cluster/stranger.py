# SPDX-License-Identifier: Apache-2.0
"""The bytes of weft's wire, as a stranger may write them: ZMTP 3 (rfc.zeromq.org/23), and the header of
common/wire/header.h, right or not.

    s = Speaker(port)
    s.say(HELLO_KIND, hello("worker", 0, "master"), incarnation=7, sequence=1)
    s.hear(REFUSE_KIND)
"""
import socket
import struct

import weftlib  # noqa: F401  (looks in tests/kit too)
from zmtp import (CLIENT, COMMAND, FIELDS, GREETING_BYTES, HEADER, HEADER_BYTES,  # noqa: F401
                  HELLO_KIND, INDEX_FIELD, LONG, MASTER, MORE, PS, ROLE_FIELD, WORKER)

# Kinds, as in common/wire/grammar.h.
WELCOME_KIND, REFUSE_KIND, RESET_KIND = 2, 3, 4
REGISTER_KIND, FAULT_KIND, PUSH_KIND, DIED_KIND = 16, 24, 67, 82
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)


def crc_of_byte(crc):
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc


CRC_TABLE = [crc_of_byte(byte) for byte in range(256)]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def header(kind=1, control=b"", claim=None, **words):
    """A message's first frame, with a right checksum, claiming `claim` control bytes."""
    fields = dict.fromkeys(FIELDS, 0)
    fields.update(magic=0x54464557, version=1, kind=kind, incarnation=7, sequence=1,
                  control_bytes=len(control) if claim is None else claim)
    fields.update(words)
    head = struct.pack(HEADER, *(fields[name] for name in FIELDS))
    return head[:60] + struct.pack("<I", crc32c(head + control)) + control


def frame(body, more=False, size=None):
    """A ZMTP frame; `size` is what it claims."""
    return bytes([LONG | more]) + struct.pack(">Q", len(body) if size is None else size) + body


def ready(kind):
    body = b"\x05READY"
    for name, value in ((b"Socket-Type", kind), (b"Identity", b"")):
        body += bytes([len(name)]) + name + struct.pack(">I", len(value)) + value
    return bytes([COMMAND, len(body)]) + body


HELLO = GREETING + ready(b"DEALER")


def varint(n):
    out = b""
    while n > 0x7F:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def body(*fields):
    """Protobuf bytes of (number, value) pairs; a value is a number or a text."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            out += varint(number << 3 | 2) + varint(len(value.encode())) + value.encode()
    return out


def hello(role, index, to_role, to_index=0, cluster="test", pid=4242):
    """What a hello says (control.proto)."""
    return body((1, 1), (2, 1), (3, cluster), (ROLE_FIELD, role), (INDEX_FIELD, index), (6, pid), (7, to_role),
                (8, to_index), (9, "x"))


def part_table(*parts):
    """A push's table (common/wire/parts.h) of (slice, frame, offset, bytes, checksum)."""
    table = struct.pack("<II", len(parts), 0)
    for piece, at, offset, size, checksum in parts:
        table += struct.pack("<IBBHQQQ", piece, 0, at, 0, offset, size, checksum)
    return table


class Speaker:
    """A connection to a port, after ZeroMQ's handshake."""

    def __init__(self, port, seconds=20):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=seconds)
        self.socket.sendall(HELLO)
        self._take(GREETING_BYTES)
        self._frame()  # READY

    def close(self):
        self.socket.close()

    def _take(self, n):
        data = b""
        while len(data) < n:
            more = self.socket.recv(n - len(data))
            if not more:
                raise ConnectionError("the other side has closed the connection")
            data += more
        return data

    def _frame(self):
        flags = self._take(1)[0]
        size = struct.unpack(">Q", self._take(8))[0] if flags & LONG else self._take(1)[0]
        return flags, self._take(size)

    def say(self, kind, control=b"", frames=(), **words):
        data = frame(header(kind, control, **words), more=bool(frames))
        for i, one in enumerate(frames):
            data += frame(one, more=i + 1 < len(frames))
        self.socket.sendall(data)

    def hear(self, *kinds):
        """The next message of one of these kinds: its header's fields and its control bytes."""
        while True:
            flags, data = self._frame()
            if flags & COMMAND:
                continue
            fields = dict(zip(FIELDS, struct.unpack(HEADER, data[:HEADER_BYTES])))
            while flags & MORE:
                flags, _ = self._frame()
            if fields["kind"] in kinds:
                return fields, data[HEADER_BYTES:]
