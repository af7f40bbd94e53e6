# SPDX-License-Identifier: Apache-2.0
"""cli.py WEFT CKPT_TOOL - the commands that need no running cluster: words, exit codes, results."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import zlib

import unrun
from unrun import JOB

WEFT, CKPT_TOOL = map(os.path.abspath, sys.argv[1:3])


def weft(*words, code=0, says="", cwd=None):
    done = subprocess.run([WEFT, *words], capture_output=True, text=True, cwd=cwd, timeout=60)
    text = done.stdout + done.stderr
    assert done.returncode == code, f"{words}: exit {done.returncode}, wanted {code}\n{text}"
    assert re.search(says, text), f"{words}: said {text!r}, wanted {says!r}"
    if code:
        assert done.stderr.splitlines()[-1].startswith("weft: "), done.stderr
    return done.stdout


def check_words():
    commands = re.findall(r"^  weft (\w+)", weft(), re.M)
    assert {"up", "down", "graph", "run", "grad", "ckpt", "export"} <= set(commands), commands
    for command in commands:
        help_text = weft("help", command)
        assert help_text == weft(command, "--help")
        assert len(help_text.splitlines()) <= 40
    weft("--version", says=r"weft \d+\.\d+")
    weft("verson", code=2, says='did you mean "weft version"')
    weft("help", "verson", code=2)
    weft("serve", "m", code=3, says='"serve" is not built yet; run weft export')
    weft("help", "serve", code=3, says='"serve" is not built yet')
    weft("export", "x", "--int8", code=3, says="not built yet; export as it is")
    weft("ckpt", "export", "x", code=3, says='"weft ckpt export" is not built yet; use weft export')
    weft("top", code=3, says="not built yet; use weft status --watch")
    weft("ckpt", "lss", code=2, says='did you mean "ls"')
    weft("train", code=2, says="weft train needs JOB.yaml")
    for topic in re.findall(r"\w+", re.search(r"weft help\n  (.*)", weft()).group(1)):
        assert len(weft("help", topic).splitlines()) > 5, topic
    weft("graph", code=2, says="needs JOB")
    weft("graph", "--aftr", "x", "m", code=2, says="did you mean --after")


def check_manual(folder):
    """The manual page has every command; bash completes commands, verbs and options."""
    page = weft("help", "--man")
    commands = re.findall(r"^  weft (\w+)", weft(), re.M)
    assert re.findall(r"^\.SS (\w+)", page, re.M) == commands
    if shutil.which("man") and shutil.which("groff"):
        (folder / "weft.1").write_text(page)
        done = subprocess.run(["man", "--warnings", "-l", str(folder / "weft.1")], text=True,
                              capture_output=True, env={**os.environ, "MANWIDTH": "100"})
        assert done.returncode == 0 and not done.stderr, done
        for command in commands:  # roff has changed nothing of what help prints
            for line in weft("help", command).splitlines():
                assert not line.strip() or line.strip() in done.stdout, line
    (folder / "weft.bash").write_text(weft("help", "--completion", "bash"))
    for line, want in {"trai": "train", "ckpt ": "ls show verify", "train --re": "--resume",
                       "doctor --": "--json --cluster --help", "help los": "losses",
                       "train ": ""}.items():
        words = ["weft", *line.split(" ")]
        script = (f"source {folder / 'weft.bash'}; COMP_WORDS=({' '.join(repr(w) for w in words)}); "
                  f"COMP_CWORD={len(words) - 1}; _weft; echo ${{COMPREPLY[@]}}")
        done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True)
        assert done.stdout.strip() == want, (line, done)
    weft("help", "--completion", "fish", code=2, says="it is bash or zsh")
    zsh = weft("help", "--completion=zsh")
    assert zsh.startswith("#compdef weft") and all(f"'{c}:" in zsh for c in commands), zsh


def check_version():
    line = weft("version")
    assert weft("-v") == weft("-V") == weft("--version") == line and line.count("\n") == 1, line
    told = json.loads(weft("version", "--json"))
    assert line.startswith(f"weft {told['weft']}  "), (line, told)
    assert told["compiler"] in line and told["libraries"]["openblas"] in line, (line, told)
    assert all(re.match(r"\d+\.\d+", v) for v in told["libraries"].values()), told


def check_doctor(folder):
    """What `weft up` would fail on."""
    here = folder / "doctor"
    here.mkdir()
    weft("doctor", says="no cluster here yet", cwd=here)
    with socket.socket() as s, socket.socket() as other:
        s.bind(("127.0.0.1", 0))
        s.listen()
        other.bind(("127.0.0.1", 0))
        taken, free = s.getsockname()[1], other.getsockname()[1]
        other.close()
        (here / "cluster.yaml").write_text(
            f"cluster: d\nmaster: {{address: 'tcp://127.0.0.1:{taken}'}}\n"
            f"ps: [{{address: 'tcp://127.0.0.1:{free}'}}]\n"
            "workers: [{address: 'ipc://w.sock'}]\nstate_dir: /proc/none\n")
        weft("doctor", says=rf"warn master cannot have tcp://127.0.0.1:{taken}: it is in use by "
                            rf"process {os.getpid()} ", cwd=here)
        rows = json.loads(weft("doctor", "--json", cwd=here))
    wrong = {row["check"] for row in rows if not row["ok"]}
    assert wrong == {"ports", "state_dir", "checkpoint_dir"}, rows
    assert not (here / ".weft").exists()
    weft("doctor", "--cluster", "none.yaml", says="warn .*none.yaml", cwd=here)


def check_bad_files(folder):
    bad = folder / "bad.yaml"
    bad.write_text(JOB.replace("optimizer:", "optimiser:"))
    weft("graph", str(bad), code=2, says=r'bad.yaml:\d+: unknown key "optimiser"; did you mean')
    bad.write_text(JOB + "replicas: 1\n")
    weft("graph", str(bad), code=3, says="bad.yaml:10: .*not built yet")
    bad.write_text(JOB.replace("    - dense", "   - dense: ["))
    weft("graph", str(bad), code=2, says=r"bad.yaml:\d+: not YAML")
    weft("graph", str(folder / "none.yaml"), code=1, says="there is no job file")
    weft("graph", str(folder / "none.onnx"), code=1, says="none.onnx")
    weft("export", "nobody", "-o", "x.onnx", code=1, says='no job "nobody"', cwd=folder)
    weft("down", code=1, says="is not up", cwd=folder)
    weft("logs", "ps", code=1, says="there is no log of ps", cwd=folder)


def check_stages(folder):
    listed = weft("graph", str(folder / "job.yaml"), "--passes").split("AFTER IT\n")[1]
    passes = [line.split()[0] for line in listed.splitlines()]
    assert passes[0] == "import" and "prune" in passes, passes
    for name in passes:
        out = folder / f"{name}.onnx"
        weft("graph", str(folder / "job.yaml"), "--after", name, "-o", str(out))
        assert out.stat().st_size > 100
    weft("graph", str(folder / "job.yaml"), "--after", "prun", code=2, says="prune")


def check_narrow(folder):
    """Types of what nodes make, in a job that computes in bfloat16 and in one that does not."""
    layers = re.sub(r"units: \d+", "units: 512", JOB).replace("batch: 2", "batch: 64")
    layers = layers.replace("  layers:\n", "  layers:\n    - dense: {units: 512}\n")
    (folder / "wide.yaml").write_text(layers)
    (folder / "narrow.yaml").write_text(layers + "compute: bfloat16\n")
    said = weft("graph", str(folder / "narrow.yaml"), "--after", "precision", "--values",
                says=r"kept in bfloat16: \d+ of \d+ values between nodes \(--values lists them\)")
    assert re.search(r"^\S+ +(Linear|Gemm) +bfloat16\[batch, 512\]$", said, re.M), said
    said = weft("graph", str(folder / "wide.yaml"), "--after", "precision", "--values")
    assert "bfloat16" not in said and re.search(r"^\S+ +(Linear|Gemm) +float32\[batch, 512\]$", said, re.M), said


def check_source(folder):
    """A model's file by itself: what it is, and weights that no loss has judged yet."""
    file = str(folder / "import.onnx")  # a stage of check_stages
    said = weft("graph", file, says=r"^import.onnx: opset 18 \(weft [\d.]+\), 2 variables "
                r"\(28 parameters, 112 B\), inputs x\[batch,6\]\n")
    assert re.search(r"^dense/kernel .* weights +-$", said, re.M) and "unused" not in said, said
    assert re.search(r"^2 variables, 28 parameters, 112 B$", said, re.M) and "PASS" not in said, said


def check_checkpoints(folder):
    unrun.make_checkpoints(CKPT_TOOL, folder, weft("graph", str(folder / "job.yaml")), 100, 200)
    listed = weft("ckpt", "ls", "small", cwd=folder).splitlines()
    assert len(listed) == 3 and listed[1].startswith("step-00000200"), listed
    entries = json.loads(weft("ckpt", "ls", "small", "--json", cwd=folder))
    assert [e["step"] for e in entries] == [200, 100] and entries[0]["complete"], entries
    weft("ckpt", "ls", says=r"^RUN +CHECKPOINTS +NEWEST +BEST\nsmall +2 +step-00000200 +-\n$", cwd=folder)
    assert json.loads(weft("ckpt", "ls", "--json", cwd=folder))[0]["checkpoints"] == entries
    weft("ckpt", "show", "small", says="dense/kernel +float32 +\\[6, 4\\]", cwd=folder)
    shown = json.loads(weft("ckpt", "show", "small", "100", "--json", cwd=folder))
    assert shown["global_step"] == 100
    weft("ckpt", "verify", "small", says="ok   step-00000100", cwd=folder)
    weft("ckpt", "verify", "none", code=1, says='no checkpoints of job "none"', cwd=folder)
    weft("export", "job.yaml", "-o", "out.onnx", says="; 2 weights of step-00000200$", cwd=folder)
    weft("export", "job.yaml", "-o", "old.onnx", "--from", "100", says="step-00000100", cwd=folder)
    shard = folder / "ckpt/small/step-00000200/shard-00001-of-00002.safetensors"
    spoilt = bytearray(shard.read_bytes())
    spoilt[-5] ^= 4
    shard.write_bytes(spoilt)
    weft("ckpt", "verify", "small", code=1, says="bad  step-00000200.*checksum differs", cwd=folder)
    weft("export", "job.yaml", "-o", "out.onnx", cwd=folder,
         says="step-00000200 passed over: shard-00001-of-00002.safetensors: checksum differs")
    (folder / "job.yaml").write_text(JOB.replace("units: 4", "units: 4, activation: relu"))
    weft("export", "job.yaml", "-o", "x.onnx", code=1, cwd=folder,
         says="train it as a new run, without --resume")
    (folder / "job.yaml").write_text(JOB)


def check_values(folder):
    """What was exported is x @ kernel + bias, by an independent runtime."""
    try:
        import numpy as np
        import onnxruntime
    except ImportError as missing:
        print(f"skipped: values not checked: {missing}")
        return False
    kernel = (100 + np.arange(24) * 1000).astype(np.float32).reshape(6, 4)
    bias = (100 + np.arange(4) * 1000).astype(np.float32)
    x = np.random.default_rng(2).standard_normal((3, 6)).astype(np.float32)
    session = onnxruntime.InferenceSession(str(folder / "old.onnx"))
    (y,) = session.run(None, {"x": x})
    assert np.allclose(y, x @ kernel + bias, rtol=1e-5), "onnxruntime differs"
    np.save(folder / "x.npy", x)
    weft("run", "old.onnx", "--input", "x=x.npy", "--output-dir", "out", cwd=folder)
    assert np.allclose(np.load(folder / "out" / "output.npy"), y, rtol=1e-5), "weft run differs"
    weft("run", "old.onnx", "--output-dir", "out", code=2, says='wants input "x"', cwd=folder)
    weft("run", "old.onnx", "--input", "xx=x.npy", "--output-dir", "out", code=2,
         says='did you mean "x"', cwd=folder)
    np.save(folder / "bad.npy", x[:, :5])
    weft("run", "old.onnx", "--input", "x=bad.npy", "--output-dir", "out", code=1,
         says=r"float32\[3, 5\], and input", cwd=folder)
    return True


def check_digits(folder):
    words = ("data", "digits", "digits", "--train", "50", "--test", "20", "--seed", "3")
    weft(*words, says="50 \\+ 20 images generated", cwd=folder)
    files = sorted((folder / "digits").glob("*.gz"))
    before = [f.read_bytes() for f in files]
    weft(*words, says="there already", cwd=folder)
    weft(*words, "--force", cwd=folder)
    assert [f.read_bytes() for f in files] == before
    weft("data", "peek", str(files[0]), says="20 records", cwd=folder)


def check_columns(folder):
    (folder / "t.csv").write_text("age,city,paid\n31,Oslo,1.5\n,\"a \"\"b\"\"\",2\n40,Oslo,-1\n")
    weft("data", "peek", "t.csv", says="3 records  3 columns", cwd=folder)
    weft("data", "peek", "t.csv", says="age   whole 31 to 40, mean 35.5, deviation 4.5, empty in 1 records", cwd=folder)
    weft("data", "peek", "t.csv", says="city  words \\[Oslo, \"a \\\\\"b\\\\\"\"\\]", cwd=folder)
    weft("data", "stats", "t.csv", says=r"COLUMN +KIND +LEAST +MOST +MEAN", cwd=folder)
    weft("data", "stats", "t.csv", says=r"age +whole +31 +40 +35.5 +4.5 +33.33% +2", cwd=folder)
    weft("data", "stats", "t.csv", says=r"city +words +- +- +- +- +0% +2", cwd=folder)
    weft("data", "stats", "t.csv", "--json", says='"missing_share": 0.333333333', cwd=folder)
    weft("data", "stats", code=2, says="weft data stats needs more: weft data stats FILE", cwd=folder)
    (folder / "l.txt").write_text("1 2:3\n-1 1:0.5\n")
    weft("data", "peek", "l.txt", says="libsvm  2 records  2 features, from 1", cwd=folder)
    weft("data", "stats", "l.txt", says="label +whole +-1 +1 +0 +1 +0% +2", cwd=folder)
    (folder / "j.yaml").write_text("job: j\nmodel: {input: {x: [2]}, layers: [flatten]}\nloss: mse\nbatch: 1\n"
                                   "optimizer: sgd\ndata: {format: libsvm, train: l.txt, map: {x: {scale: 2}}}\n")
    weft("data", "stats", "--job", "j.yaml", says=r"x\[1\] +whole +0 +6 +3 +3 +0% +2", cwd=folder)
    weft("data", "stats", "l.txt", "--job", "j.yaml", says=r"l.txt  libsvm  2 records", cwd=folder)
    weft("data", "peek", "t.csv", says="columns: {x: \\[age, city\\], y: paid}", cwd=folder)
    weft("data", "peek", "t.csv", says="map: {x: \\[{fill: 0}, standardise\\]}", cwd=folder)
    (folder / "u.tsv").write_text("1\t2\n3\t4\n")
    weft("data", "peek", "u.tsv", says="header: false", cwd=folder)
    (folder / "u.tsv").write_text("1\t2\n3\n")
    weft("data", "peek", "u.tsv", code=1, says="u.tsv:2: a row of 1 columns, where there are 2",
         cwd=folder)


def check_arrays(folder):
    try:
        import numpy as np
    except ImportError:
        print("weft data peek: numpy is not there, its files are not checked")
        return
    x = np.array([[1, 2.5], [3, np.nan], [5, 0.5]], np.float32)
    np.savez(folder / "two.npz", x=x, y=np.array([2, 0, 2]))
    np.save(folder / "x.npy", x)
    weft("data", "peek", "two.npz", says="two.npz  npz  2 arrays", cwd=folder)
    weft("data", "peek", "two.npz", says=r"two.npz#x  3 records of float32\[2\]  from 0.5 to 5  "
         r"mean 2.4  deviation 1.59374  1 NaN", cwd=folder)
    weft("data", "peek", "two.npz", says="classes  0: 1 2: 2", cwd=folder)
    weft("data", "peek", "two.npz", says="train: {x: two.npz#x, y: two.npz#y}", cwd=folder)
    weft("data", "peek", "two.npz#y", says=r"npz  3 records of int64\[\]", cwd=folder)
    weft("data", "peek", "x.npy", says=r"records  \[1, 2.5\] \[3, nan\] \[5, 0.5\]", cwd=folder)
    weft("data", "peek", "none.npy", code=1, says="none.npy: No such file or directory; check the path$",
         cwd=folder)
    for i in range(3):
        (folder / "pets" / ("cat", "dog")[i % 2]).mkdir(parents=True, exist_ok=True)
        (folder / "pets" / ("cat", "dog")[i % 2] / f"{i}.png").write_bytes(GREY)
    weft("data", "peek", "pets", says=r"images  3 records of uint8\[1, 1, 1\]  from 7 to 7", cwd=folder)
    weft("data", "peek", "pets", says='class 1 is "dog"', cwd=folder)
    weft("data", "peek", "pets", says="classes  0: 2 1: 1", cwd=folder)
    weft("data", "peek", "pets", says="train: {x: pets, y: pets#class}", cwd=folder)


def grey_png():
    """One grey pixel of 7."""
    def chunk(kind, data):
        return (len(data).to_bytes(4, "big") + kind + data +
                zlib.crc32(kind + data).to_bytes(4, "big"))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", b"\0\0\0\1\0\0\0\1\x08\0\0\0\0") +
            chunk(b"IDAT", zlib.compress(b"\0\7")) + chunk(b"IEND", b""))


def check_get(folder):
    (folder / "data.parquet").write_bytes(bytes(range(256)))
    weft("data", "get", "minst", "m", code=2, says='unknown data set "minst"; there is mnist',
         cwd=folder)
    weft("data", "get", "imdb", code=2, says="there is mnist", cwd=folder)
    weft("data", "get", code=2, says="needs more: weft data get mnist DIR", cwd=folder)
    weft("data", "get", "mnist", "a", "b", code=2, says="too many words", cwd=folder)
    weft("data", "peek", code=2, says="needs more: weft data peek FILE", cwd=folder)
    weft("data", "peek", "data.parquet", code=1, says="the format of data.parquet is unknown", cwd=folder)
    weft("data", "get", "mnist", code=1, says="data/mnist: 4 of 4 files are missing", cwd=folder)
    weft("data", "get", "mnist", "m", code=1, says="m: 4 of 4 files are missing", cwd=folder)
    weft("data", "get", "mnist", "m", code=1, cwd=folder,
         says="curl -L --output-dir m -O https://.*/mnist/t10k-labels-idx1-ubyte.gz")
    (folder / "m").mkdir()
    (folder / "m" / "t10k-labels-idx1-ubyte").write_bytes(b"\0\0\x08\1\0\0\0\2ab")
    weft("data", "get", "mnist", "m", code=1, says="2 records, not the published ones", cwd=folder)
    published = pathlib.Path(os.environ.get("WEFT_SHARED", "/nowhere"), "data", "mnist")
    if published.exists():
        weft("data", "get", "mnist", str(published), says="mnist is complete", cwd=folder)


GREY = grey_png()


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.environ.pop("WEFT_FAILPOINTS", None)
        unrun.write(folder)
        check_words()
        check_manual(folder)
        check_version()
        check_doctor(folder)
        check_bad_files(folder)
        check_stages(folder)
        check_narrow(folder)
        check_source(folder)
        check_checkpoints(folder)
        whole = check_values(folder)
        check_digits(folder)
        check_columns(folder)
        check_arrays(folder)
        check_get(folder)
    print("the command line keeps its word")
    sys.exit(0 if whole else 77)


if __name__ == "__main__":
    main()
