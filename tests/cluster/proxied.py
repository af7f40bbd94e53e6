# SPDX-License-Identifier: Apache-2.0
"""A cluster whose tasks reach each other only through tests/kit/proxy.py.

Tasks dial the addresses of cluster.yaml and listen there too, so each is given a file of its own, in
which others stand with the proxy's ports: ps and workers find the master there, and workers find the ps
there, for their addresses travel from the master's file. The supervisor starts the programs beside
`weft`; here they are scripts that put the task's own file in the place of cluster.yaml.
"""
import scripts
from weftlib import Cluster, check
from proxy import Proxy  # tests/kit, where weftlib looks too

SCRIPT = """shift 2
exec "{program}" --cluster "{folder}/seen-by-{role}-$task.yaml" "$@"
"""


class ProxiedCluster(Cluster):
    def __init__(self, weft, ps=2, workers=3, more="", env=None):
        env = {**(env or {}), "WEFT_STREAMS": "0"}  # these would go past the proxy
        super().__init__(weft, ps=ps, workers=workers, transport="tcp", more=more, env=env)
        if self._knows_checksums():
            self.more += "\nchecksums: always"
            self.resize(ps)
        self.proxy = Proxy()
        self._write_files()
        self.weft = scripts.write(self.weft, self.folder, SCRIPT)

    def __exit__(self, *failure):
        try:
            super().__exit__(*failure)
        finally:
            self.proxy.close()

    def _knows_checksums(self):
        """Whether this build can be told to send checksums of payloads on one host too."""
        self.write("probe.yaml", self.read("cluster.yaml") + "checksums: always\n")
        result = self.bare("status", "--cluster", self.path("probe.yaml"))
        return "unknown key" not in result.err

    def _port(self, task, address):
        host, port = address.split("//")[1].rsplit(":", 1)
        return f"tcp://127.0.0.1:{self.proxy.route(task, host, int(port))}"

    def _write_files(self):
        real = self.read("cluster.yaml")
        behind = {self.ports[0]: self._port("master/0", self.ports[0])}
        through = {a: self._port(f"ps/{i}", a) for i, a in enumerate(self.ports[1:1 + self.n_ps])}

        def write(task, changes):
            text = real
            for old, new in changes.items():
                check(text.count(f"'{old}'") == 1, f"{old} is not once in {text}")
                text = text.replace(f"'{old}'", f"'{new}'")
            self.write(f"seen-by-{task}.yaml", text)

        write("master-0", through)
        for i in range(self.n_ps):
            write(f"ps-{i}", behind)
        for i in range(self.n_workers):
            write(f"worker-{i}", {**behind, **through})
