# SPDX-License-Identifier: Apache-2.0
"""The bytes of one direction of a ZMTP 3 connection (rfc.zeromq.org/23) as weft uses it, read while they
pass: where frames begin, which frame of its message each one is, and a bit of one of them changed.

A message of weft is a first frame of 64 header bytes with control bytes behind them, and payload
frames. Commands (READY, PING) are passed on as they are. The constants are for every speaker.
"""
import struct

GREETING_BYTES, HEADER_BYTES = 64, 64
MORE, LONG, COMMAND = 1, 2, 4  # flags of a frame
# A weft message's first frame begins with this, and its fields have these names (common/wire/header.h).
HEADER = "<IBBHIIQQQIHHIIII"
FIELDS = ("magic", "version", "zero", "kind", "view", "map", "incarnation", "sequence", "ack", "request",
          "job", "generation", "step", "cut", "control_bytes", "crc")
# The kind of a hello (grammar.h), the numbers of two of its fields and of roles (control.proto).
HELLO_KIND, ROLE_FIELD, INDEX_FIELD = 1, 4, 5
MASTER, PS, WORKER, CLIENT = 1, 2, 3, 4
ROLES = {MASTER: "master", PS: "ps", WORKER: "worker", CLIENT: "client"}


def varint(data, at):
    value = shift = 0
    while at < len(data):
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            break
    return value, at


def hello_task(control):
    """"worker/1", of the control bytes of a hello."""
    at, fields = 0, {}
    while at < len(control):
        tag, at = varint(control, at)
        if tag & 7 == 0:
            fields[tag >> 3], at = varint(control, at)
        elif tag & 7 == 2:
            size, at = varint(control, at)
            at += size
        else:
            break
    role = ROLES.get(fields.get(ROLE_FIELD, 0), "?")
    return f"{role}/{fields.get(INDEX_FIELD, 0)}"


class Reader:
    """One direction. feed() gives the bytes to pass on, of the same number.

    flip(part, rng) arms a change of one bit in the next frame that has such a part ("header",
    "control", "payload") and has not begun yet; on_flip() is called when it has been done. hello(task)
    is called with the task that a hello names."""

    def __init__(self, hello=None):
        self.on_hello, self.on_flip = hello, None
        self.left, self.head = GREETING_BYTES, b""  # bytes left of what is being read; an unread head
        self.state, self.more, self.begin = "greeting", False, b""
        self.armed, self.flip_at, self.flip_bit = None, None, 0

    def flip(self, part, rng):
        self.armed = (part, rng)

    def feed(self, data):
        out, at = bytearray(data), 0
        while at < len(data):
            at = getattr(self, "_" + self.state)(data, out, at)
        return bytes(out)

    def _skip(self, data, at):
        n = min(self.left, len(data) - at)
        self.left -= n
        return at + n

    def _greeting(self, data, out, at):
        at = self._skip(data, at)
        if self.left == 0:
            self.state = "flags"
        return at

    def _flags(self, data, out, at):
        self.flags = data[at]
        self.head, self.state = b"", "size"
        return at + 1

    def _size(self, data, out, at):
        want = 8 if self.flags & LONG else 1
        n = min(want - len(self.head), len(data) - at)
        self.head += data[at:at + n]
        if len(self.head) == want:
            self.left = self.head[0] if want == 1 else struct.unpack(">Q", self.head)[0]
            self.size = self.left
            self._frame_begins()
        return at + n

    def _frame_begins(self):
        self.begin, self.state = b"", "body"
        self.is_command = bool(self.flags & COMMAND)
        self.place = "command" if self.is_command else "payload" if self.more else "first"
        if not self.is_command:
            self.more = bool(self.flags & MORE)
            self._aim()
        if self.left == 0:
            self.state = "flags"

    def _aim(self):
        """Chooses the byte of this frame that is to be changed, if it is one of the armed kind."""
        if not self.armed:
            return
        part, rng = self.armed
        limits = {"header": (0, min(self.size, HEADER_BYTES)), "control": (HEADER_BYTES, self.size),
                  "payload": (0, self.size)}[part]
        if (part == "payload") != (self.place == "payload") or limits[0] >= limits[1]:
            return
        self.flip_at, self.flip_bit = rng.randrange(*limits), 1 << rng.randrange(8)
        if part == "payload" and self.size >= 4:
            # The top bit of a float's exponent: any other one of a zero would be lost in a sum.
            self.flip_at, self.flip_bit = 4 * rng.randrange(self.size // 4) + 3, 0x40
        self.armed = None

    def _body(self, data, out, at):
        passed = self.size - self.left
        n = min(self.left, len(data) - at)
        if self.flip_at is not None and passed <= self.flip_at < passed + n:
            out[at + self.flip_at - passed] ^= self.flip_bit
            self.flip_at = None
            if self.on_flip:
                self.on_flip()
        if self.on_hello and self.place == "first":
            self._look_for_hello(data[at:at + n])
        self.left -= n
        if self.left == 0:
            self.state = "flags"
        return at + n

    def _look_for_hello(self, data):
        self.begin += data
        if len(self.begin) < self.size:
            return
        if len(self.begin) >= HEADER_BYTES and self.begin[6:8] == struct.pack("<H", HELLO_KIND):
            self.on_hello(hello_task(self.begin[HEADER_BYTES:]))
            self.on_hello = None
