# SPDX-License-Identifier: Apache-2.0
"""A run's numbers: history, history.csv, TensorBoard's event files and plots say the same."""
import csv
import json
import os
import re
import shutil
import xml.etree.ElementTree as tree

from weftlib import Cluster, check, main, needs, one_sentence, skip

needs("numpy", "onnx", "onnxruntime", "PIL", "tensorboard")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import small  # noqa: E402
from PIL import Image  # noqa: E402
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402


def history(c, word="small"):
    return json.loads(c.must("history", word, "--json").out)["epochs"]


def accumulator(c, run, part):
    """A folder of event files as TensorBoard reads it, what it purges left out."""
    a = EventAccumulator(c.path(".weft", "jobs", run, part), purge_orphaned_data=True,
                         size_guidance={"scalars": 0, "tensors": 0})
    a.Reload()
    return a


def scalars(c, run, part):
    """{tag: {step: value}}."""
    a = accumulator(c, run, part)
    return {tag: {s.step: s.value for s in a.Scalars(tag)} for tag in a.Tags()["scalars"]}


def same(single, double):
    """Whether a float32 is that number of nine digits."""
    return abs(single - double) <= 2e-7 * abs(double)


def shown(name):
    """A name of an ONNX file as TensorBoard's graph has it."""
    return name.removeprefix("/").replace(":", "_")


def edges_of_onnx(graph):
    """{(maker, reader)} of an ONNX graph: nodes, inputs and initializers by their names."""
    made = {out: n.name for n in graph.node for out in n.output}
    return {(shown(made.get(name, name)), shown(n.name)) for n in graph.node for name in n.input if name}


def all_say_the_same(weft):
    with Cluster(weft) as c:
        small.write_job(c, epochs=3, every_steps=100000, change=[
            ("slice_bytes", "callbacks: [model_checkpoint]\nslice_bytes")])
        result = c.must("train", "small.yaml")
        rows = history(c)
        check([r["epoch"] for r in rows] == [1, 2, 3] and [r["step"] for r in rows] ==
              [64, 128, 192] and all(r["learning_rate"] == 0.05 for r in rows), str(rows))
        # the last line, status and eval
        last = rows[-1]
        for name in ("loss", "accuracy"):
            shown = f"val_{name} {last['val_' + name]:.4f}"
            check(shown in result.out, f"{shown} in {result.out}")
            check(f"{name} {last['val_' + name]:.4f}" in c.must("eval", "small").out, "weft eval")
            said = f"{name} {rows[0][name]:.4f}"
            check(re.search(rf"^epoch 1/3: .*{said}.*val_{name} {rows[0]['val_' + name]:.4f}",
                            result.err, re.M), f"{said} in {result.err}")
        # history.csv
        with open(c.path(".weft", "jobs", "small#1", "history.csv"), encoding="utf-8") as f:
            written = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(f)]
        check(written == [{k: float(v) for k, v in r.items()} for r in rows], f"{written}\n{rows}")
        printed = csv.DictReader(c.must("history", "small", "--csv").out.splitlines())
        check([{k: float(v) for k, v in row.items()} for row in printed] == written, "--csv")
        # TensorBoard
        for part, prefix in (("train", ""), ("eval", "val_")):
            seen = scalars(c, "small#1", part)
            for name in ("loss", "accuracy"):
                told = {r["step"]: r[prefix + name] for r in rows}
                check(seen[name].keys() == told.keys() and
                      all(same(seen[name][n], told[n]) for n in told), f"{seen[name]}, {told}")
        # onnxruntime on each checkpoint, of which there is one after each epoch
        x, y = np.load(c.path("x.npy")), np.load(c.path("y.npy"))
        for r in rows:
            said = c.must("export", "small", "--from", str(r["step"]), "-o", c.path("m.onnx")).out
            check(re.search(r"m.onnx: [0-9.]+ KiB, input x\[batch,16\] -> output\[batch,4\], accuracy "
                            rf"{r['val_accuracy']:.4f} \(eval\); 4 weights of step-{r['step']:08d}$", said.strip()), said)
            z = onnxruntime.InferenceSession(c.path("m.onnx")).run(None, {"x": x})[0].astype(float)
            z -= z.max(axis=1, keepdims=True)
            losses = np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(y)), y]
            check(abs(losses.mean() - r["val_loss"]) < 1e-5, f"{losses.mean()}, {r}")
            check((z.argmax(axis=1) == y).mean() == r["val_accuracy"], f"{r}")


def files_are_named_with_their_shapes(weft):
    with Cluster(weft) as c:
        small.write_job(c)
        c.must("train", "small.yaml", "--local")
        c.must("export", "small", "-o", c.path("m.onnx"))
        said = c.bare("run", "m.onnx", "--input", "x=x.npy", "-o", "out").out
        check(said == "m.onnx: 1 file written to out\n  output.npy  float32[512, 4]\n", said)
        check(np.load(c.path("out", "output.npy")).shape == (512, 4), "another shape")
        for words, passes in ((["m.onnx"], False), (["m.onnx", "--after", "import"], True)):
            said = c.bare("graph", *words).out
            check(("after pass" in said) == passes, said)


def training_is_the_mean_since_the_epoch_began(weft):
    with Cluster(weft, ps=0, workers=1) as c:
        small.write_job(c, epochs=3)
        c.env["WEFT_LOSS_LOG"] = c.path("losses")
        c.must("train", "small.yaml", "--local")
        logged = np.array([float.fromhex(line.split()[-1]) for line in c.read("losses").splitlines()])
        check(len(logged) == 192, f"{len(logged)} steps")
        for r, mean in zip(history(c), logged.reshape(3, 64).mean(axis=1)):
            check(abs(r["loss"] - mean) < 2e-6, f"{r['loss']} and {mean}")


def epochs_that_come_again_count_once(weft):
    with Cluster(weft) as c:
        small.write_job(c, epochs=60, every_steps=40)
        c.must("up")
        c.must("submit", "small.yaml")
        c.until_job("small", lambda j: j["epoch"] >= 5 and j["checkpoint"], "some epochs")
        c.kill_all()
        c.must("up")
        # The oldest may have been on its way out when all were killed.
        kept = [e["step"] for e in json.loads(c.must("ckpt", "ls", "small", "--json").out)
                if e["complete"]]
        c.must("recover", "small", "--from", str(min(kept)))
        rows = history(c)
        check([r["epoch"] for r in rows] == list(range(1, 61)), str([r["epoch"] for r in rows]))
        check(rows[-1]["generation"] == 2 and rows[0]["generation"] == 1, str(rows))
        steps = sorted(scalars(c, "small#1", "eval")["loss"])
        check(steps == [r["step"] for r in rows], f"{steps}\n{[r['step'] for r in rows]}")
        c.must("down")


def the_best_weights_are_shown_with_their_numbers(weft):
    with Cluster(weft) as c:
        # Nothing is better by 10: the first epoch stays the best, and two more are trained.
        small.write_job(c, epochs=12, change=[("slice_bytes", "callbacks: [{early_stopping: {patience"
                        ": 2, min_delta: 10, restore_best_weights: true}}]\nslice_bytes")])
        result = c.must("train", "small.yaml")
        rows = history(c)
        check([r["epoch"] for r in rows] == [1, 2, 3], str(rows))
        best = rows[0]
        shown = f"val_loss {best['val_loss']:.4f}  val_accuracy {best['val_accuracy']:.4f}"
        check(shown in result.out and f"step-{best['step']:08d}" in result.out, f"{shown}: {result}")
        check(f"loss {best['val_loss']:.4f}" in c.must("eval", "small").out, "weft eval")
        check(re.search(r"^early stopping after epoch", result.err, re.M), result.err)
        check(f"the weights after epoch {best['epoch']} are restored" in result.err, result.err)
        kept = json.loads(c.must("ckpt", "show", "small", "--json").out)["metrics"]
        check(abs(kept["val_loss"] - best["val_loss"]) < 1e-9 and kept["epoch"] == best["epoch"],
              str(kept))
        c.must("up")
        check(shown in c.must("status", "small").out, c.must("status", "small").out)
        c.must("down")


def the_job_is_shown_beside_its_curves(weft):
    with Cluster(weft) as c:
        small.write_job(c, epochs=40, every_steps=30)
        c.must("up")
        c.must("submit", "small.yaml", "--set", "seed=3")
        c.until_job("small", lambda j: j["epoch"] >= 2 and j["checkpoint"], "a checkpoint")
        c.kill_all()
        c.must("up")
        c.must("recover", "small")
        a = accumulator(c, "small#1", "train")
        check(a.Tags()["tensors"] == ["job"] and a.Tags()["graph"], str(a.Tags()))
        check(a.SummaryMetadata("job").plugin_data.plugin_name == "text", "not for the Text plugin")
        texts = [e.tensor_proto.string_val[0].decode() for e in a.Tensors("job")]
        check(len(texts) == 1 and "units: 32" in texts[0] and "seed: 3" in texts[0], str(texts))
        # The graph is that of the exported file: nodes, what they do, edges and shapes.
        c.must("export", "small", "-o", c.path("m.onnx"))
        model = onnx.load(c.path("m.onnx")).graph
        nodes = {n.name: n for n in a.Graph().node}
        check({shown(n.name): n.op_type for n in model.node}.items() <=
              {n.name: n.op for n in nodes.values()}.items(), str(nodes))
        leaves = {shown(v.name) for v in [*model.input, *model.initializer]}
        check(set(nodes) == leaves | {shown(n.name) for n in model.node}, str(set(nodes)))
        edges = {(name.split(":")[0], n.name) for n in nodes.values() for name in n.input}
        check(edges == edges_of_onnx(model), f"{edges}\n{edges_of_onnx(model)}")
        for t in model.initializer:
            shape = nodes[shown(t.name)].attr["_output_shapes"].list.shape[0]
            check([d.size for d in shape.dim] == list(t.dims), f"{t.name}: {shape}")
        check(nodes["x"].op == "Placeholder" and
              [d.size for d in nodes["x"].attr["_output_shapes"].list.shape[0].dim] == [-1, 16], "x")
        check(a.Graph().ByteSize() < 4096, "it holds weights")
        c.must("down")


def nothing_is_purged_but_what_came_again(weft):
    with Cluster(weft) as c:
        small.write_job(c, epochs=60, every_steps=7)
        c.must("up")
        c.must("submit", "small.yaml")
        for epoch in (3, 12):
            c.until_job("small", lambda j: j["epoch"] >= epoch and j["checkpoint"], "some epochs")
            c.kill_all()
            c.must("up")
            if epoch == 3:
                recovering = c.start("recover", "small")
        recovering.wait()
        c.must("recover", "small")
        with open(c.path(".weft", "jobs", "small#1", "history.csv"), encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
        last = {int(r["step"]): r for r in rows}
        check(len(last) == 60 and {r["generation"] for r in rows} >= {"1", "2", "3"}, str(rows))
        for part, column in (("train", "loss"), ("eval", "val_loss")):
            kept = accumulator(c, "small#1", part).Scalars("loss")
            check([s.step for s in kept] == sorted(last), f"{part}: {[s.step for s in kept]}")
            check(all(same(s.value, float(last[s.step][column])) for s in kept), f"{part}: {kept}")


def curves_are_drawn(weft):
    with Cluster(weft) as c:
        small.write_job(c, epochs=4)
        for _ in range(2):
            c.must("train", "small.yaml")
        c.must("plot", "small#1", "small#2", "-o", c.path("c.svg"))
        root = tree.parse(c.path("c.svg")).getroot()
        lines = root.findall("{http://www.w3.org/2000/svg}polyline")
        check(len(lines) == 8, f"{len(lines)} lines")
        rows = history(c, "small#1")
        for line, name in ((lines[0], "loss"), (lines[1], "val_loss")):
            points = [tuple(map(float, p.split(","))) for p in line.get("points").split()]
            values = [r[name] for r in rows]
            check(len(points) == 4, str(points))
            check(np.corrcoef([y for _, y in points], values)[0, 1] < -0.999, f"{points} {values}")
        text = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
        check("small#2 val_accuracy" in text and "loss" in text, str(text))
        out = c.must("plot", "small", "--metric", "loss").out
        check("* small#2 loss" in out and "+ small#2 val_loss" in out and "accuracy" not in out, out)
        for words, code, says in ((["plot", "small", "--metric", "f"], 1, 'no metric "f"'),
                                  (["plot", "none"], 1, "none has no history"),
                                  (["history", "none"], 1, "none has no history"),
                                  (["plot", "small", "-o", "x.gif"], 2, "neither an SVG nor")):
            result = c.must(*words, code=code)
            check(says in one_sentence(result.err), str(result))


def curves_are_drawn_as_png(weft):
    if not shutil.which("rsvg-convert"):
        skip("rsvg-convert is not installed (package librsvg2-bin)")
    with Cluster(weft) as c:
        small.write_job(c)
        c.must("train", "small.yaml")
        c.must("plot", "small", "-o", c.path("c.svg"))
        c.must("plot", "small", "-o", c.path("c.png"))
        root = tree.parse(c.path("c.svg")).getroot()
        with Image.open(c.path("c.png")) as image:
            check(image.format == "PNG" and image.size ==
                  (2 * int(root.get("width")), 2 * int(root.get("height"))), str(image))
            blue = sum(n for n, color in image.convert("RGB").getcolors(1 << 24)
                       if color == (0x00, 0x72, 0xb2))
        check(blue > 500, f"{blue} pixels have the colour of the first run")
        # Without the program, and with one that fails: one sentence, and no file.
        os.mkdir(c.path("bin"))
        c.env["PATH"] = c.path("bin")
        said = one_sentence(c.must("plot", "small", "-o", c.path("d.png"), code=3).err)
        check("librsvg2-bin" in said and "-o FILE.svg" in said, said)
        c.write("bin/rsvg-convert", "#!/bin/sh\necho 'no fonts' >&2\nexit 1\n")
        os.chmod(c.path("bin", "rsvg-convert"), 0o755)
        said = one_sentence(c.must("plot", "small", "-o", c.path("d.png"), code=1).err)
        check("no fonts" in said, said)
        check(not [n for n in os.listdir(c.folder) if n.startswith("d.png")], "a file is left")


def a_spoilt_history_is_said(weft):
    with Cluster(weft) as c:
        small.write_job(c, epochs=2)
        c.must("train", "small.yaml")
        file = c.path(".weft", "jobs", "small#1", "history.csv")
        with open(file, encoding="utf-8") as f:
            whole = f.read()
        for text, code, says in ((whole[:-9], 0, None), (whole + "3,4\n", 1, ":4: it is no row"),
                                 (whole.replace("epoch", "e"), 1, "no history of a run"),
                                 ("", 1, "no history of a run"),
                                 (whole + ",".join(["x"] * 9) + "\n", 1, ":4: it is no row")):
            with open(file, "w", encoding="utf-8") as f:
                f.write(text)
            result = c.must("history", "small", code=code)
            check(not says or says in one_sentence(result.err), str(result))


main([all_say_the_same, files_are_named_with_their_shapes, training_is_the_mean_since_the_epoch_began, epochs_that_come_again_count_once,
      the_best_weights_are_shown_with_their_numbers, the_job_is_shown_beside_its_curves,
      nothing_is_purged_but_what_came_again, curves_are_drawn, curves_are_drawn_as_png, a_spoilt_history_is_said])
