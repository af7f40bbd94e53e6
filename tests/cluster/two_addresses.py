# SPDX-License-Identifier: Apache-2.0
"""Tasks with an address of each kind: who is on the same host takes the socket.

    two_addresses.py WEFT [TEST...]
"""
import re

from weftlib import Cluster, check, main, needs

needs("numpy")
import small  # noqa: E402

ESTABLISHED = "01"


def tcp_connections(port):
    """Connections of this host to a port of its own."""
    with open("/proc/net/tcp", encoding="ascii") as f:
        rows = [line.split() for line in f.readlines()[1:]]
    return sum(r[3] == ESTABLISHED and int(r[2].split(":")[1], 16) == port for r in rows)


def unix_connections(path):
    """Connections that were accepted at a path, and not the one that listens."""
    with open("/proc/net/unix", encoding="utf-8") as f:
        return max(0, sum(line.rstrip().endswith(path) for line in f) - 1)


def train(c, addresses):
    """Trains while the ps has these addresses, and gives the connections that it has by then."""
    text, port = c.read("cluster.yaml"), int(c.ports[1].rsplit(":", 1)[1])
    c.write("cluster.yaml", re.sub(r"(ps:\n  - \{address: )'[^']*'", rf"\g<1>{addresses}", text))
    small.write_job(c, epochs=2000)
    c.must("up")
    process = c.start("train", "small.yaml")
    c.until_job("small", lambda j: j["step"] > 200, "steps")
    found = tcp_connections(port), unix_connections(c.path("near"))
    c.must("stop", "small")
    c.end_of(process)
    c.must("down")
    return found


def the_nearer_address_is_taken(weft):
    with Cluster(weft, ps=1, workers=1, transport="tcp") as c:
        tcp, unix = train(c, f"[{c.ports[1]}, ipc://near]")
        check(tcp == 0 and unix == 1, f"{tcp} tcp connections, {unix} of the socket")


def one_address_is_as_ever(weft):
    with Cluster(weft, ps=1, workers=1, transport="tcp") as c:
        tcp, unix = train(c, c.ports[1])
        check(tcp == 1 and unix == 0, f"{tcp} tcp connections, {unix} of the socket")


main([the_nearer_address_is_taken, one_address_is_as_ever])
