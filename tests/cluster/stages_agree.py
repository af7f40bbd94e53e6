# SPDX-License-Identifier: Apache-2.0
"""A step of a divided model for which the stages wait for each other before they update: gradients are clipped by the
norm of those of all stages, and a step with NaN is dropped by all of them.

    stages_agree.py WEFT [TEST...]
"""
import re

from weftlib import Cluster, check, main, needs, one_sentence

needs("numpy", "onnx", "safetensors")
import numpy as np  # noqa: E402
from losses import saved_weights  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from stages import AUTO, FOUR, RECORDS, TWO, check_same, losses, one_worker, trained, write_job  # noqa: E402

SKIP = "on_nan: skip"
TWICE = TWO.replace("micro_batches: 4", "micro_batches: 4\n" + SKIP)


def gradients_are_clipped_by_the_norm_of_all_stages(weft):
    """With the bits of one worker."""
    free, alone = one_worker(weft), one_worker(weft, clip=0.6)
    check(alone[0] != free[0], "nothing is clipped")
    for how, workers in ((TWO, 2), (FOUR, 4), (AUTO, 3)):
        check_same(trained(weft, how, workers=workers, clip=0.6), alone, how)
    alone = one_worker(weft, SKIP, clip=0.6)
    check_same(trained(weft, TWICE, workers=2, clip=0.6), alone, "with on_nan: skip")
    loose = one_worker(weft, clip=1e6)
    check_same(trained(weft, TWO, workers=2, clip=1e6), loose, "a norm that no gradients have")
    check(loose[0] == free[0], "a norm that no gradients have changes losses")


def dropped(c, job="divided"):
    return c.job(job)["dropped_steps"]


def a_step_with_nan_is_dropped_by_all_stages(weft):
    """One of each epoch, whose losses are NaN; those behind it are the same as with one worker, and so are the weights:
    no stage has applied any of it."""
    epochs = 4
    alone = one_worker(weft, SKIP, epochs=epochs, bad=RECORDS // 3)
    bad = [step for step in alone[0] if alone[0][step] == "nan"]
    check(len(bad) == epochs, f"{len(bad)} steps of one worker are bad")
    for how, workers, clip in ((TWO, 2, 0), (FOUR, 4, 0), (AUTO, 3, 0.6)):
        if clip:
            alone = one_worker(weft, SKIP, epochs=epochs, bad=RECORDS // 3, clip=clip)
        with Cluster(weft, ps=0, workers=workers) as c:
            write_job(c, f"{how}\n{SKIP}", epochs=epochs, bad=RECORDS // 3, clip=clip)
            c.must("up")
            c.must("train", "divided.yaml")
            ours = losses(c), saved_weights(c, "divided")
            check(dropped(c) == epochs, f"{how}: {dropped(c)} steps are dropped")
        check_same(ours, alone, how)
        check(all(np.isfinite(w).all() for w in ours[1].values()), f"{how}: NaN in the weights")


def root_model():
    """Where a record of x is zeros, the loss is finite, and the gradient of w is not, since a root has no slope there; where
    one of b is NaN, the loss is, and gradients are not."""
    node, info = helper.make_node, helper.make_tensor_value_info
    graph = helper.make_graph(
        [node("MatMul", ["x", "w"], ["y"]), node("Sqrt", ["y"], ["r"]), node("MatMul", ["r", "v"], ["s"]),
         node("Add", ["s", "b"], ["t"]), node("ReduceMean", ["t"], ["loss"], keepdims=0)], "root",
        [info("x", TensorProto.FLOAT, ["n", 4]), info("b", TensorProto.FLOAT, ["n", 1])], [info("loss", TensorProto.FLOAT, [])],
        [numpy_helper.from_array(np.ones((4, 1), np.float32), "w"), numpy_helper.from_array(np.ones((1, 1), np.float32), "v")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def write_root(c, how, options="", loss=False):
    """options: more of the optimizer's. loss: it is bad, and not a gradient."""
    x = np.random.default_rng(1).uniform(0.5, 1.5, (256, 4)).astype(np.float32)
    b = np.zeros((256, 1), np.float32)
    if loss:
        b[100] = np.nan
    else:
        x[100] = 0
    np.save(c.path("x.npy"), x)
    np.save(c.path("b.npy"), b)
    with open(c.path("root.onnx"), "wb") as f:
        f.write(root_model())
    c.write("root.yaml", "job: root\nmodel: {onnx: root.onnx}\nloss: loss\nepochs: 2\n"
            "data: {format: npy, train: {x: x.npy, b: b.npy}, split_records: 32}\nseed: 1\n"
            f"optimizer: {{sgd: {{learning_rate: 0.001{options}}}}}\n{how}\n")
    c.env["WEFT_LOSS_LOG"] = c.path("losses")


ROOT = "place: {w: worker/0, v: worker/1}\nbatch: 8\nmicro_batches: "


def a_bad_gradient_or_loss_of_one_stage_stops_all(weft):
    """The loss is a number, and the gradients of the other stage are, which it does not apply either; or the loss alone is
    none."""
    for loss in False, True:
        got = []
        for workers, how, options in ((1, "strategy: local\nbatch: 2", ", gradient_accumulation_steps: 4"), (2, f"{ROOT}4", "")):
            with Cluster(weft, ps=0, workers=workers) as c:
                write_root(c, f"{how}\n{SKIP}", options, loss)
                c.must("up")
                c.must("train", "root.yaml")
                check(dropped(c, "root") == 2, f"{how}: {dropped(c, 'root')} steps are dropped")
                got.append((losses(c), saved_weights(c, "root")))
        check(list(got[0][0].values()).count("nan") == 2 * loss, f"{got[0][0]}")
        check_same(got[1], got[0], "stages", 64)
    for options in "", ", global_clipnorm: 1":
        for loss, words in ((False, 'stage 0 of 2, on worker/0: the gradient of "w" has NaN or infinity'), (True, "loss is no number")):
            with Cluster(weft, ps=0, workers=2) as c:
                write_root(c, f"{ROOT}4", options, loss)
                c.must("up")
                said = one_sentence(c.must("train", "root.yaml", code=1).err.strip().split("\n")[-1])
                check(re.search(rf"step \d+: {words}", said), said)


def whoever_is_killed_the_losses_stay(weft):
    """Also while stages wait for each other before they update: that is most of a step of so small a model."""
    kinds = {"epochs": 80, "every_steps": 50, "clip": 0.6, "bad": RECORDS // 3}
    alone = one_worker(weft, SKIP, **kinds)
    with Cluster(weft, ps=0, workers=4) as c:
        write_job(c, f"{FOUR}\n{SKIP}", **kinds)
        c.must("up")
        training = c.start("train", "divided.yaml")
        for generation, task in enumerate(("worker/3", "worker/0", "worker/2"), 1):
            c.until_job("divided", lambda j: j["state"] == "running" and j["step"] > 100 * generation, "runs")
            c.kill(task)
            c.until_job("divided", lambda j: j["state"] != "recovering" and j["generation"] > generation,
                        f"goes back after the death of {task}")
        result = c.end_of(training, 120)
        check(result.code == 0, f"{result}")
        check_same((losses(c), saved_weights(c, "divided")), alone, "killed", 4000)


if __name__ == "__main__":
    main([gradients_are_clipped_by_the_norm_of_all_stages, a_step_with_nan_is_dropped_by_all_stages,
          a_bad_gradient_or_loss_of_one_stage_stops_all, whoever_is_killed_the_losses_stay])
