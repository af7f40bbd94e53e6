/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/conf_job.c - job files: what is read, and the sentence for each that is wrong. */
#include "common/base/file.h"
#include "common/conf/conf.h"
#include "conf.h"

#include <stdlib.h>

enum { MAX_PAGES = 8 };
static const char *const *page_paths; /* [n_pages], which together have a row for each key */
static int n_pages;

static const char good[] = "job: mnist-mlp\n"
                           "model:\n"
                           "  input: {x: [784]}\n"
                           "  layers:\n"
                           "    - dense: {units: 128, activation: relu, use_bias: true}\n"
                           "    - dropout: 0.25\n"
                           "    - flatten\n"
                           "    - reshape: [8, -1]\n"
                           "    - dense: {units: 10}\n"
                           "loss: sparse_categorical_crossentropy   # from_logits: auto\n"
                           "metrics: [accuracy]\n"
                           "data:\n"
                           "  format: idx\n"
                           "  train: {x: a.gz, y: /abs/b.gz}\n"
                           "  eval:  {x: c.gz, y: d.gz}\n"
                           "  map: {x: [{scale: 0.00392156862745098}, {reshape: [784]}]}\n"
                           "batch: 32\n"
                           "epochs: 10\n"
                           "optimizer: {adam: {learning_rate: 0.001, amsgrad: false}}\n"
                           "strategy: parameter_server\n"
                           "consistency: {mode: async, pipeline: 1}\n"
                           "checkpoint: {every_steps: 1000, every_seconds: 60, keep: 5}\n"
                           "seed: 7\n";

static wf_status parse(const char *text, wf_job_conf **j, wf_err *err)
{
    return wf_job_parse(text, strlen(text), "/jobs/j.yaml", j, err);
}

static void a_job_file_becomes_a_struct(void **state)
{
    wf_job_conf *j = NULL;
    wf_err err;

    (void)state;
    assert_int_equal(parse(good, &j, &err), WF_OK);
    assert_string_equal(j->name, "mnist-mlp");
    assert_int_equal(j->n_inputs, 1);
    assert_string_equal(j->inputs[0].name, "x");
    assert_int_equal(j->inputs[0].rank, 1);
    assert_int_equal(j->inputs[0].dims[0], 784);
    assert_int_equal(j->n_layers, 5);
    assert_string_equal(j->layers[0].type, "dense");
    assert_int_equal(j->layers[0].line, 5);
    assert_int_equal(wf_conf_int(&j->layers[0], "units", 0), 128);
    assert_string_equal(wf_conf_text(&j->layers[0], "activation", ""), "relu");
    assert_int_equal(wf_conf_int(&j->layers[0], "use_bias", 0), 1);
    assert_true(wf_conf_number(&j->layers[1], "rate", 0) == 0.25);
    assert_int_equal(j->layers[2].n_options, 0);
    assert_int_equal(wf_conf_find(&j->layers[3], "target_shape")->n, 2);
    assert_int_equal(wf_conf_find(&j->layers[3], "target_shape")->ints[1], -1);
    assert_int_equal(j->n_losses, 1);
    assert_string_equal(j->losses[0].item.type, "sparse_categorical_crossentropy");
    assert_int_equal(j->from_logits, WF_AUTO);
    assert_string_equal(j->metrics[0].item.type, "accuracy");
    assert_string_equal(j->train.fields[0].path, "/jobs/a.gz");
    assert_string_equal(j->train.fields[1].path, "/abs/b.gz");
    assert_int_equal(j->eval.n, 2);
    assert_string_equal(j->map[0].steps[0].type, "scale");
    assert_true(wf_conf_number(&j->map[0].steps[0], "factor", 0) == 0.00392156862745098);
    assert_int_equal(j->batch, 32);
    assert_int_equal(j->epochs, 10);
    assert_string_equal(j->optimizer.type, "adam");
    assert_int_equal(j->optimizer.n_options, 2);
    assert_true(wf_conf_number(&j->optimizer, "learning_rate", 0) == 0.001);
    assert_int_equal(j->pipeline, 1);
    assert_int_equal(j->every_steps, 1000);
    assert_int_equal(j->every_seconds, 60);
    assert_int_equal(j->keep, 5);
    assert_int_equal(j->seed, 7);
    assert_true(j->shuffle);
    wf_job_free(&j);
    assert_null(j);
}

#define MODEL "model: {onnx: m.onnx}\n"
#define DATA "data: {format: idx, train: {x: a}}\n"
#define REST DATA "batch: 8\noptimizer: sgd\n"
#define JOB "job: j\n" MODEL REST /* five lines */

static void a_field_may_have_several_files(void **state)
{
    const char *text = "job: j\n" MODEL "data: {format: npy, train: {x: [a, /b, ~/c], y: ~//d}, "
                       "map: {x: [{scale: 1/8}]}}\nbatch: 2\n"
                       "optimizer: sgd\n";
    const char *home = getenv("HOME");
    char *kept = home ? strdup(home) : NULL;
    const wf_conf_field *x;
    wf_job_conf *j = NULL;
    wf_err err;

    (void)state;
    setenv("HOME", "/home/me", 1);
    assert_int_equal(wf_job_parse(text, strlen(text), "/jobs/j.yaml", &j, &err), WF_OK);
    x = &j->train.fields[0];
    assert_string_equal(x->path, "/jobs/a");
    assert_int_equal(x->n_more, 2);
    assert_string_equal(x->more[0], "/b");
    assert_string_equal(x->more[1], "/home/me/c");
    assert_string_equal(j->train.fields[1].path, "/home/me/d");
    assert_int_equal(j->train.fields[1].n_more, 0);
    assert_true(j->map[0].steps[0].options[0].number == 0.125);
    wf_job_free(&j);
    unsetenv("HOME");
    assert_int_equal(wf_job_parse(text, strlen(text), "/jobs/j.yaml", &j, &err), WF_USAGE);
    assert_non_null(strstr(err.what, "HOME is not set"));
    if (kept)
        setenv("HOME", kept, 1);
    free(kept);
}

static void losses_and_metrics_by_output(void **state)
{
    wf_job_conf *j = NULL;
    wf_err err;

    (void)state;
    assert_int_equal(parse(JOB "loss: {huber: {delta: 2.0}}\n"
                               "metrics: [mae, {auc: {curve: PR}}]\n"
                               "class_weight: {0: 1.0, 7: 5}\n",
                           &j, &err),
                     WF_OK);
    assert_int_equal(j->n_losses, 1);
    assert_null(j->losses[0].output);
    assert_string_equal(j->losses[0].item.type, "huber");
    assert_true(wf_conf_number(&j->losses[0].item, "delta", 0) == 2.0);
    assert_int_equal(j->n_metrics, 2);
    assert_string_equal(wf_conf_text(&j->metrics[1].item, "curve", ""), "PR");
    assert_int_equal(j->n_class_weights, 2);
    assert_true(j->class_weights[1].class_id == 7 && j->class_weights[1].weight == 5.0);
    wf_job_free(&j);
    assert_int_equal(parse(JOB "loss: {a: mse, b: {huber: {delta: 2.0}}}\n"
                               "loss_weights: {a: 0.3}\n"
                               "labels: {b: y}\n"
                               "sample_weight: w\n"
                               "metrics: {a: mae, b: [rmse, {auc: {name: area}}]}\n",
                           &j, &err),
                     WF_OK);
    assert_int_equal(j->n_losses, 2);
    assert_string_equal(j->losses[0].output, "a");
    assert_string_equal(j->losses[1].item.type, "huber");
    assert_true(wf_conf_number(&j->losses[1].item, "delta", 0) == 2.0);
    assert_true(j->loss_weights[0].number == 0.3);
    assert_string_equal(j->labels[0].output, "b");
    assert_string_equal(j->labels[0].text, "y");
    assert_null(j->sample_weights[0].output);
    assert_int_equal(j->n_metrics, 3);
    assert_string_equal(j->metrics[2].output, "b");
    assert_string_equal(wf_conf_text(&j->metrics[2].item, "name", ""), "area");
    wf_job_free(&j);
}

static void defaults_are_those_of_the_page(void **state)
{
    wf_job_conf *j = NULL;
    wf_err err;

    (void)state;
    assert_int_equal(parse(JOB, &j, &err), WF_OK);
    assert_string_equal(j->onnx, "/jobs/m.onnx");
    assert_int_equal(j->n_losses, 0);
    assert_int_equal(j->epochs, 1);
    assert_int_equal(j->keep, 3);
    assert_int_equal(j->slice_bytes, 4 << 20);
    assert_false(j->balance);
    assert_true(j->balance_over == 1.25 && j->balance_after_s == 5);
    assert_int_equal(j->n_pins, 0);
    assert_null(j->strategy); /* as the cluster has it */
    assert_string_equal(j->mode, "async");
    assert_int_equal(j->optimizer.n_options, 0);
    wf_job_free(&j);
}

#define LAYERS(text) "job: j\nmodel: {input: {x: [4]}, layers: [" text "]}\nloss: mse\n" REST

static const bad_text bad[] = {
    {JOB "placement: {pin: [emb]}\n", WF_USAGE, "/jobs/j.yaml:6: \"pin\" gives patterns"},
    {JOB "placement: {pin: {\"emb/*\": ps/1}}\n", WF_USAGE,
     "/jobs/j.yaml:6: \"emb/*\" must be a whole number"},
    {JOB "placement:\n  balance: true\n  pin: {a: 1, b: -1}\n", WF_USAGE,
     "/jobs/j.yaml:8: \"b\" must be a whole number"},
    {JOB "place: {a: 1}\n", WF_USAGE, "/jobs/j.yaml:6: \"1\" is no worker"},
    {JOB "place: {a: worker/0, b: worker/x}\n", WF_USAGE,
     "/jobs/j.yaml:6: \"worker/x\" is no worker"},
    {JOB "place: {a: worker/0/cuda:0, b: worker/0/tpu:1}\n", WF_USAGE,
     "/jobs/j.yaml:6: \"worker/0/tpu:1\" names no device, which is written as cuda:0 or cpu:1"},
    {JOB "place: {a: worker/0/}\n", WF_USAGE, "/jobs/j.yaml:6: \"worker/0/\" names no device"},
    {JOB "place: {a: worker/0x/cpu}\n", WF_USAGE, "/jobs/j.yaml:6: \"worker/0x/cpu\" is no worker"},
    {JOB "place: {a: ps/0}\n", WF_USAGE, "/jobs/j.yaml:6: \"ps/0\" is no worker"},
    {JOB "place: [a]\n", WF_USAGE, "/jobs/j.yaml:6: \"place\" gives patterns"},
    {JOB "place: by hand\n", WF_USAGE, "/jobs/j.yaml:6: \"place\" gives patterns"},
    {JOB "place: {}\n", WF_USAGE, "/jobs/j.yaml:6: \"place\" names no worker"},
    {JOB "micro_batches: 2\n", WF_USAGE, "/jobs/j.yaml:6: \"micro_batches\" divides batches"},
    {JOB "place: auto\nmicro_batches: 5\n", WF_USAGE,
     "/jobs/j.yaml:7: a batch of 8 is not divided by 5 micro-batches"},
    {JOB "place: auto\ncompute: float16\n", WF_UNSUPPORTED,
     "*and compute: float16 scales the loss"},
    {JOB "place: auto\ntables: [a]\n", WF_UNSUPPORTED, "*and tables lie on parameter servers"},
    {"job: j\n" MODEL DATA "batch: 8\noptimizer: {sgd: {gradient_accumulation_steps: 4}}\n"
     "place: auto\n",
     WF_UNSUPPORTED,
     "*over \"micro_batches\": raise these instead; batch: 32 with micro_batches: 4 has the "
     "records "
     "of 4 batches in each step"},
    {"job: j\n" MODEL DATA "batch: 8\noptimizer: {sgd: {gradient_accumulation_steps: 4}}\n"
     "place: auto\nmicro_batches: 2\n",
     WF_UNSUPPORTED, "*batch: 32 with micro_batches: 8 has"},
    {JOB "placement: {balanced: true}\n", WF_USAGE,
     "/jobs/j.yaml:6: unknown key \"balanced\"; did you mean \"balance\"?"},
    {JOB "placement: {balance: often}\n", WF_USAGE,
     "/jobs/j.yaml:6: \"balance\" must be true or false"},
    {JOB "placement: {over: 1}\n", WF_USAGE, "*\"over\" is 1, and may be 1.05 to 100"},
    {JOB "placement: {after_s: -1}\n", WF_USAGE, "*\"after_s\" is -1, and may be 0 to 86400"},
    {JOB "placement: {over: .nan}\n", WF_USAGE, "/jobs/j.yaml:6: \"over\""},
    {JOB "tables: [{match: \"e/*\", row: unbounded}]\n", WF_USAGE,
     "/jobs/j.yaml:6: unknown key \"row\"; did you mean \"rows\"?"},
    {JOB "tables: [{rows: unbounded}]\n", WF_USAGE, "*a table has no \"match\""},
    {JOB "tables: [{match: e, rows: many}]\n", WF_USAGE, "*unknown rows \"many\""},
    {JOB "tables: [{match: e, max_rows: 1000}]\n", WF_USAGE,
     "*\"max_rows\" is for tables with rows: unbounded"},
    {JOB "tables: [{match: e, rows: unbounded, max_rows: 63}]\n", WF_USAGE, "*\"max_rows\""},
    {JOB "tables: [{match: e, dtype: int4}]\n", WF_USAGE, "*unknown dtype \"int4\""},
    {JOB "tables: [{match: e, rows: unbounded, evict_after: 0}]\n", WF_USAGE, "*\"evict_after\""},
    {JOB "tables: [{match: e, rows: unbounded, when_full: fail}]\n", WF_USAGE,
     "*\"when_full\" is for tables with max_rows or max_bytes"},
    {JOB "tables: [{match: e, max_bytes: 1000}]\n", WF_USAGE,
     "*\"max_bytes\" is for tables with rows: unbounded"},
    {JOB "tables: [{match: e, rows: unbounded, max_bytes: 0}]\n", WF_USAGE, "*\"max_bytes\""},
    {JOB "tables: [{match: e, rows: unbounded, evict: least_frequently_used}]\n", WF_USAGE,
     "*\"evict\" is for tables with max_rows or max_bytes"},
    {JOB "tables: [{match: e, rows: unbounded, admit: bloom}]\n", WF_USAGE,
     "*with admit: bloom \"admit_after\" is from 2 to 255, not 1"},
    {JOB "tables: [{match: e, rows: unbounded, admit_after: 300, admit: bloom}]\n", WF_USAGE,
     "*\"admit_after\" is from 2 to 255, not 300"},
    {JOB "tables: [{match: e, rows: unbounded, admit_after: 2, admit_bytes: 100000}]\n", WF_USAGE,
     "*\"admit_bytes\" is for tables with admit: bloom"},
    {JOB "tables: [{match: e, rows: unbounded, admit_after: 2, admit: bloom, admit_bytes: 9}]\n",
     WF_USAGE, "*\"admit_bytes\""},
    {JOB "tables: [{match: e, rows: unbounded, max_rows: 64, evict: fifo}]\n", WF_USAGE,
     "*unknown evict \"fifo\""},
    {JOB "tables: [{match: e, rows: unbounded, max_rows: 64, evict: least_recently_used, "
         "when_full: fail}]\n",
     WF_USAGE, "*\"evict\" says which rows leave, and with when_full: fail none does"},
    {JOB "tables: [{match: e, rows: unbounded, max_bytes: 64, evict: least_frequently_used, "
         "when_full: disk}]\n",
     WF_USAGE, "*\"evict\" says which rows leave, and with when_full: disk none does"},
    {JOB "tables: [{match: e, rows: unbounded, when_full: disk}]\n", WF_USAGE,
     "*\"when_full\" is for tables with max_rows or max_bytes"},
    {JOB "codec: bf61\n", WF_USAGE, "*unknown codec \"bf61\"; did you mean \"bf16\""},
    {JOB "codec: {push: int4}\n", WF_USAGE, "*unknown push \"int4\""},
    {JOB "codec: {pull: int8}\n", WF_USAGE, "*unknown pull \"int8\""},
    {JOB "codec: {psuh: int8}\n", WF_USAGE, "*unknown key \"psuh\""},
    {JOB "codec: {match: e}\n", WF_USAGE, "*a codec wants a \"push\" or a \"pull\""},
    {JOB "codec: {push: topk, ratio: 0}\n", WF_USAGE, "*\"ratio\" is 0, and must be above 0"},
    {JOB "codec: {push: topk, ratio: 1.5}\n", WF_USAGE, "*\"ratio\" is 1.5"},
    {JOB "codec: {push: topk, ratio: much}\n", WF_USAGE, "*\"ratio\""},
    {JOB "codec: {push: int8, ratio: 0.1}\n", WF_USAGE, "*\"ratio\" is for push: topk"},
    {JOB "codec: [{push: bf16}, {match: e, push: f32}]\n", WF_USAGE,
     "*behind one for all variables"},
    {"job: j\nmodel: {input: {x: [1]}, layers: [{embedding: {input_dim: all, output_dim: 2}}]}\n",
     WF_USAGE, "/jobs/j.yaml:2: unknown input_dim \"all\""},
    {"job: j\n  model: x\n", WF_USAGE, "/jobs/j.yaml:2: not YAML"},
    {"job: \"open\n", WF_USAGE, "/jobs/j.yaml:2: not YAML"},
    {"job: Upper\n", WF_USAGE, "/jobs/j.yaml:1: the job's name \"Upper\""},
    {"job: ../../etc\n", WF_USAGE, "/jobs/j.yaml:1: the job's name"},
    {"job: j\n" REST, WF_USAGE, "/jobs/j.yaml:1: the job has no \"model\""},
    {JOB "optimiser: adam\n", WF_USAGE,
     "/jobs/j.yaml:6: unknown key \"optimiser\"; did you mean \"optimizer\"?"},
    {"job: j\n" MODEL DATA "batch: 8\noptimizer: {name: adam, learning_rate: 0.1}\n", WF_USAGE,
     "*stands before its options, and not under \"name\"; write it as {adam: {learning_rate: "
     "0.1}}"},
    {JOB "callbacks: [tensorboard]\n", WF_UNSUPPORTED,
     "*callback \"tensor_board\" is not built yet"},
    {JOB "consistency: {mode: sync}\n", WF_USAGE, "*did you mean \"bsp\"?"},
    {JOB "batch_size: 8\n", WF_USAGE, "*unknown key \"batch_size\"; did you mean \"batch\"?"},
    {JOB "zzzzzzzz: adam\n", WF_USAGE, "*unknown key \"zzzzzzzz\"; known: job, model"},
    {JOB "validation_split: 0.1\n", WF_USAGE,
     "*\"validation_split\" is no key here; write it below \"data\""},
    {JOB "every_steps: 10\n", WF_USAGE,
     "*\"every_steps\" is no key here; write it below \"checkpoint\""},
    {"job: j\n" MODEL DATA "optimizer: sgd\nbatch: -3\n", WF_USAGE,
     "/jobs/j.yaml:5: \"batch\" must be a whole number from 1 to 16777216, not -3"},
    {"job: j\n" MODEL DATA "optimizer: sgd\nbatch: \"32\"\n", WF_USAGE, "*not the quoted text 32"},
    {"job: j\n" MODEL DATA "optimizer: sgd\nbatch: 1_000\n", WF_USAGE, "*not 1_000"},
    {"job: j\n" MODEL DATA "optimizer: sgd\nbatch: 0x20\n", WF_USAGE, "*not 0x20"},
    {"job: j\n" MODEL DATA "optimizer: sgd\nbatch: 99999999999999999999\n", WF_USAGE, "*from 1 to"},
    {JOB "replicas: 1\n", WF_UNSUPPORTED,
     "/jobs/j.yaml:6: \"replicas\" is not built yet; leave it out"},
    {JOB "callbacks: [early_stopping]\n", WF_USAGE,
     "/jobs/j.yaml:6: callbacks look at the evaluation, and there is none"},
    {JOB "callbacks: early_stopping\n", WF_USAGE,
     "/jobs/j.yaml:6: \"callbacks\" must be a list of at most 8"},
    {JOB "freeze: [a, {b: c}]\n", WF_USAGE, "*/jobs/j.yaml:6: "},
    {JOB "weights: {map: {a: b}}\n", WF_USAGE, "/jobs/j.yaml:6: \"weights\" has no \"file\""},
    {JOB "weights: {file: w.onnx, map: [a]}\n", WF_USAGE, "*\"map\" gives the model's variables"},
    {JOB "consistency: {mode: bsp, staleness: 1}\n", WF_USAGE,
     "/jobs/j.yaml:6: \"staleness\" says"},
    {JOB "consistency: {mode: bsp, staleness_aware: true}\n", WF_USAGE,
     "*\"staleness_aware\" with \"mode: bsp\""},
    {JOB "consistency: {mode: ssp, staleness: 1, backup_workers: 1}\n", WF_USAGE,
     "*\"backup_workers\" says how many workers a step need not wait for"},
    {JOB "consistency: {pipeline: 3}\n", WF_USAGE,
     "*\"pipeline\" must be a whole number from 0 to 2"},
    {JOB "consistency: {staleness: 2}\n", WF_USAGE,
     "/jobs/j.yaml:6: \"staleness\" says how far workers may be apart, and with \"mode: async\""},
    {JOB "consistency: {mode: ssp}\n", WF_USAGE, "*\"mode: ssp\" wants a \"staleness\""},
    {JOB "consistency: {mode: ssp, staleness: -1}\n", WF_USAGE,
     "*\"staleness\" must be a whole number from 0 to 1000000, not -1"},
    {JOB "consistency: {mode: spp, staleness: 1}\n", WF_USAGE, "*did you mean \"ssp\"?"},
    {JOB "recovery: partial\n", WF_UNSUPPORTED, "*\"recovery: partial\" is not built yet"},
    {JOB "on_nan: never\n", WF_USAGE, "*unknown on_nan \"never\""},
    {JOB "compute: float8\n", WF_USAGE, "*unknown compute \"float8\"; did you mean \"float32\""},
    {JOB "compute: tensorfloat32\n", WF_USAGE,
     "*unknown compute \"tensorfloat32\"; did you mean \"tf32\""},
    {JOB "from_logits: maybe\n", WF_USAGE,
     "/jobs/j.yaml:6: \"from_logits\" is auto, true or false"},
    {JOB "loss: [mse, mae]\n", WF_USAGE,
     "/jobs/j.yaml:6: \"loss\" must be a word or a map, not a list"},
    {JOB "loss: {huber: {delta: [1, 2]}}\n", WF_USAGE,
     "/jobs/j.yaml:6: the option \"delta\" must be a number or a word"},
    {JOB "loss: {a: mse, b: mae}\nloss_weights: {c: 1}\n", WF_USAGE,
     "/jobs/j.yaml:7: \"loss_weights\" names the output \"c\", which has no loss"},
    {JOB "loss: {a: mse, b: mae}\nloss_weights: {a: -1}\n", WF_USAGE,
     "/jobs/j.yaml:7: \"a\" must be from 0 to 1e30, not -1"},
    {JOB "loss: {a: mse, b: mae}\nloss_weights: 3\n", WF_USAGE,
     "/jobs/j.yaml:7: \"loss_weights\" must be a map"},
    {JOB "loss: {a: mse, b: mae}\nmetrics: [mae]\n", WF_USAGE,
     "/jobs/j.yaml:7: the metric \"mae\" is of no output, and \"loss\" is by output"},
    {JOB "loss: {a: mse, b: mae}\nmetrics: {c: [mae]}\n", WF_USAGE,
     "/jobs/j.yaml:7: the metric \"mae\" is of the output \"c\", which has no loss"},
    {JOB "loss: {a: mse, b: mae}\nlabels: y\n", WF_USAGE,
     "/jobs/j.yaml:7: one field holds no labels for 2 losses"},
    {JOB "loss: {a: mse, b: mae}\nclass_weight: {0: 1}\n", WF_USAGE,
     "/jobs/j.yaml:7: \"class_weight\" is for a model with one loss, not 2"},
    {JOB "loss: mse\nclass_weight: {0: 1}\nsample_weight: w\n", WF_USAGE,
     "/jobs/j.yaml:7: \"class_weight\" and \"sample_weight\" do not go together"},
    {JOB "loss: mse\nclass_weight: {a: 1}\n", WF_USAGE,
     "*must be a whole number from 0 to 1048575, not a"},
    {JOB "loss: mse\nclass_weight: [1, 2]\n", WF_USAGE,
     "/jobs/j.yaml:7: \"class_weight\" must be a map"},
    {JOB "checkpoint: {keep: 0}\n", WF_USAGE, "*\"keep\" must be a whole number from 1"},
    {LAYERS("{dens: {units: 3}}"), WF_USAGE,
     "/jobs/j.yaml:2: unknown layer \"dens\"; did you mean "
     "\"dense\"?"},
    {LAYERS("{masking: {mask_value: 1}}"), WF_UNSUPPORTED, "*layer \"masking\" is not built yet"},
    {LAYERS("{conv2d: {filters: 3}}"), WF_USAGE, "*layer \"conv2d\" wants \"kernel_size\""},
    {LAYERS("{conv2d: {filters: 3, kernel_size: 3, padding: sam}}"), WF_USAGE,
     "*unknown padding \"sam\"; did you mean \"same\"?"},
    {LAYERS("{conv2d: {filters: 3, kernel_size: [3, [1, 2]]}}"), WF_USAGE, "*"},
    {LAYERS("{dense: {units: 3, kernel_initializer: glorot_unifrom}}"), WF_USAGE,
     "*unknown initializer \"glorot_unifrom\"; did you mean \"glorot_uniform\"?"},
    {LAYERS("{dense: {units: 3, kernel_initializer: {random_normal: {sd: 1}}}}"), WF_USAGE,
     "*unknown option of random_normal \"sd\""},
    {LAYERS("{dense: {units: 3, kernel_regularizer: {l2: -1}}}"), WF_USAGE,
     "*\"l2\" must be from 0 to 1e+30, not -1"},
    {LAYERS("{embedding: {input_dim: 3, output_dim: 2, mask_zero: true}}"), WF_USAGE,
     "*unknown option of embedding \"mask_zero\""},
    {LAYERS("{bidirectional: {layer: {dense: 3}}}"), WF_USAGE, "*unknown layer \"dense\""},
    {LAYERS("{lstm: {units: 3, activation: relu}}"), WF_USAGE, "*unknown activation \"relu\""},
    {LAYERS("{add: 3}"), WF_USAGE, "*\"add\" takes no value"},
    {LAYERS("{add: {inputs: {a: b}}}"), WF_USAGE, "*\"inputs\" must be a list of words, not a map"},
    {"job: j\nmodel: {input: {x: {shape: [4], dtype: int46}}, layers: [flatten]}\n" REST, WF_USAGE,
     "*unknown dtype of an input \"int46\"; did you mean \"int64\"?"},
    {"job: j\nmodel: {input: {x: {dtype: int64}}, layers: [flatten]}\n" REST, WF_USAGE,
     "*\"shape\""},
    {LAYERS("{dense: {unit: 3}}"), WF_USAGE,
     "/jobs/j.yaml:2: unknown option of dense \"unit\"; did you mean \"units\"?"},
    {LAYERS("{dense: {activation: relu}}"), WF_USAGE, "*layer \"dense\" wants \"units\""},
    {LAYERS("dense"), WF_USAGE, "*layer \"dense\" wants \"units\""},
    {LAYERS("{dense: {units: 0}}"), WF_USAGE,
     "*\"units\" must be a whole number from 1 to 2147483647"},
    {LAYERS("{dense: {units: many}}"), WF_USAGE, "*not many"},
    {LAYERS("{dropout: 1.5}"), WF_USAGE, "*must be from 0 to 0.999999, not 1.5"},
    {LAYERS("{dropout: nan}"), WF_USAGE, "*must be a number, not nan"},
    {LAYERS("{flatten: 3}"), WF_USAGE, "*\"flatten\" takes no value"},
    {LAYERS("{dense: {units: 3}, dropout: 0.1}"), WF_USAGE, "*each layer is one name"},
    {"job: j\nmodel: {input: {x: [4]}}\n" REST, WF_USAGE,
     "/jobs/j.yaml:2: the model wants \"input\" and \"layers\""},
    {"job: j\nmodel: {input: {x: [4]}, layers: [flatten], onnx: m}\n" REST, WF_USAGE, "*not both"},
    {"job: j\nmodel: {input: {x: [4]}, layers: [flatten]}\n" REST, WF_USAGE, "*wants a \"loss\""},
    {"job: j\nmodel: {input: {x: [0]}, layers: [flatten]}\n" REST, WF_USAGE, "*from 1 to"},
    {"job: j\n" MODEL "data: {format: ixd, train: {x: a}}\n", WF_USAGE, "*did you mean \"idx\""},
    {"job: j\n" MODEL "data: {format: text, train: {x: a}}\n", WF_USAGE,
     "/jobs/j.yaml:3: data of the format \"text\" has all fields in each file"},
    {"job: j\n" MODEL "data: {format: text, train: a, sequence_stride: 3}\n", WF_USAGE,
     "/jobs/j.yaml:3: \"sequence_stride\" is for windows"},
    {"job: j\n" MODEL "data: {format: text, train: a, sequence_length: 0}\n", WF_USAGE,
     "/jobs/j.yaml:3: \"sequence_length\" must be a whole number from 1 to 65536"},
    {"job: j\n" MODEL "data: {format: text, train: a, sequence_length: 3, columns: {y: next}}\n",
     WF_USAGE, "/jobs/j.yaml:3: \"y\" is what comes next in a text that no field reads"},
    {"job: j\n" MODEL "data: {format: text, train: a, sequence_length: 3,\n  map: {y: "
     "text_vectorization}}\n",
     WF_USAGE, "/jobs/j.yaml:4: \"y\" has the tokens of \"x\", whose text_vectorization it takes"},
    {"job: j\n" MODEL
     "data: {format: text, train: a, map: {x: [{text_vectorization: {hash: 1}}]}}\n",
     WF_USAGE, "*\"hash\" must be a whole number from 2 to"},
    {"job: j\n" MODEL "data: {format: text, train: a, new_files: wait,\n  map: {x: "
     "text_vectorization}}\n",
     WF_USAGE, "/jobs/j.yaml:4: \"text_vectorization\" learns from all training data"},
    {"job: j\n" MODEL "data: {format: libsvm, train: {x: a}}\n", WF_USAGE,
     "/jobs/j.yaml:3: data of the format \"libsvm\" has all fields in each file"},
    {"job: j\n" MODEL "data: {format: libsvm, train: a, header: false}\n", WF_USAGE,
     "/jobs/j.yaml:3: data of the format \"libsvm\" has no \"header\""},
    {"job: j\n" MODEL "data: {format: csv, train: a, columns: {x: a}, features: 3}\n", WF_USAGE,
     "/jobs/j.yaml:3: data of the format \"csv\" has no \"features\""},
    {"job: j\n" MODEL "data: {format: csv, train: a, columns: {x: a}, on_bad_line: skp}\n",
     WF_USAGE, "*unknown on_bad_line \"skp\"; did you mean \"skip\"?"},
    {"job: j\n" MODEL "data: {format: csv, train: a, columns: {x: a}, new_files: wiat}\n", WF_USAGE,
     "*unknown new_files \"wiat\"; did you mean \"wait\"?"},
    {"job: j\n" MODEL "data: {format: csv, train: a, columns: {x: a}, new_files: {poll: 1}}\n",
     WF_USAGE, "*unknown key \"poll\""},
    {"job: j\n" MODEL
     "data:\n  format: csv\n  train: a\n  columns: {x: a}\n  new_files: {poll_seconds: 0.01}\n",
     WF_USAGE, "*must be from 0.1 to 2592000, not 0.01"},
    {"job: j\n" MODEL "data: {format: csv, train: a, columns: {x: a}, new_files: wait, "
     "validation_split: 0.1}\n",
     WF_USAGE, "*\"validation_split\" holds out the end of the training data"},
    {"job: j\n" MODEL "data: {format: csv, train: a, columns: {x: a}, new_files: wait, "
     "map: {x: [standardise]}}\n",
     WF_USAGE, "*\"standardise\" learns from all training data"},
    {"job: j\n" MODEL "data: {format: csv, train: a, columns: {x: a}, new_files: wait, "
     "map: {x: [{vocabulary: 100}]}}\n",
     WF_USAGE, "*\"vocabulary\" learns from all training data"},
    {"job: j\n" MODEL "data: {format: npy, train: {x: a}, new_files: wait}\n", WF_USAGE,
     "*wants files that hold all fields of their records, and those of the format \"npy\" do not"},
    {"job: j\n" MODEL "data: {format: tfrecord, train: {x: a#x, y: b#y}, new_files: wait}\n",
     WF_USAGE, "*with \"new_files\" all fields name the same pattern of files"},
    {"job: j\n" MODEL "data: {format: synthetic, records: 5, new_files: wait}\n", WF_USAGE,
     "*wants files that hold all fields"},
    {"job: j\n" MODEL "data: {format: csv, train: a, columns: {x: a}, shard: fil}\n", WF_USAGE,
     "*unknown shard \"fil\"; did you mean \"file\"?"},
    {"job: j\n" MODEL "data: {format: synthetic, records: 9, shard: file}\n", WF_USAGE,
     "*data of the format \"synthetic\" has no files for \"shard: file\""},
    {"job: j\n" MODEL "data: {format: libsvm, train: a, on_bad_line: skip}\n", WF_USAGE,
     "*data of the format \"libsvm\" has no \"on_bad_line\""},
    {"job: j\n" MODEL "data: {format: libsvm, train: a, features: 0}\n", WF_USAGE,
     "*\"features\" must be a whole number from 1 to 16777216"},
    {"job: j\n" MODEL "data: {format: libsvm, features: 3}\n", WF_USAGE,
     "*the data has no \"train\""},
    {"job: j\n" MODEL "data: {format: csv, train: {x: a}, columns: {x: a}}\n", WF_USAGE,
     "/jobs/j.yaml:3: data of the format \"csv\" has all fields in each file"},
    {"job: j\n" MODEL "data: {format: csv, train: a}\n", WF_USAGE,
     "/jobs/j.yaml:3: the data has no \"columns\""},
    {"job: j\n" MODEL "data: {format: csv, columns: {x: a}}\n", WF_USAGE,
     "/jobs/j.yaml:3: the data has no \"train\""},
    {"job: j\n" MODEL "data: {format: csv, train: a, columns: {x: []}}\n", WF_USAGE,
     "*field \"x\" has no columns"},
    {"job: j\n" MODEL "data: {format: csv, train: a, columns: {x: a}, header: false}\n", WF_USAGE,
     "*without a header the schema names all columns"},
    {"job: j\n" MODEL "data: {format: csv, train: a, columns: {x: a}, delimiter: ab}\n", WF_USAGE,
     "*the delimiter is one character"},
    {"job: j\n" MODEL "data: {format: csv, train: a, columns: {x: a}, schema: {a: flaot32}}\n",
     WF_USAGE, "*did you mean \"float32\"?"},
    {"job: j\n" MODEL "data: {format: npy, train: a}\n", WF_USAGE,
     "*has a file for each field; write train: {x: FILE, y: FILE}"},
    {"job: j\n" MODEL "data: {format: npy, train: {x: a}, header: false}\n", WF_USAGE,
     "*data of the format \"npy\" has no \"header\""},
    {"job: j\n" MODEL "data: {format: idx}\n", WF_USAGE,
     "/jobs/j.yaml:3: the data has no \"train\""},
    {"job: j\n" MODEL "data: {format: idx, train: {x: a}, eval: {z: a}}\n", WF_USAGE,
     "*\"eval\" has a field \"z\" that \"train\" has not"},
    {"job: j\n" MODEL "data: {format: idx, train: {x: a}, map: {x: [{scal: 2}]}}\n", WF_USAGE,
     "*unknown step \"scal\"; did you mean \"scale\"?"},
    {"job: j\n" MODEL "data: {format: idx, train: {x: a}, map: {x: [{cast: float31}]}}\n", WF_USAGE,
     "*did you mean \"float32\"?"},
    {"job: j\n" MODEL "data: {format: npy, train: {x: []}}\n", WF_USAGE,
     "/jobs/j.yaml:3: \"x\" names no file"},
    {"job: j\n" MODEL "data: {format: npy, train: {x: [a, {b: c}]}}\n", WF_USAGE, "*"},
    {"job: j\n" MODEL "data: {format: npy, train: {x: $HOME/a}}\n", WF_USAGE,
     "/jobs/j.yaml:3: weft replaces no variables, as in \"$HOME/a\""},
    {"job: j\n" MODEL "data: {format: idx, train: {x: a}, validation_split: 1}\n", WF_USAGE,
     "/jobs/j.yaml:3: \"validation_split\" must be between 0 and 1, not 1"},
    {"job: j\n" MODEL "data: {format: idx, train: {x: a}, validation_split: -0.1}\n", WF_USAGE,
     "*must be between 0 and 1, not -0.1"},
    {"job: j\n" MODEL "data: {format: idx, train: {x: a}, validation_split: tenth}\n", WF_USAGE,
     "*\"validation_split\" must be a number, not tenth"},
    {"job: j\n" MODEL "data: {format: idx, train: {x: a}, eval: {x: b}, validation_split: 0.1}\n",
     WF_USAGE, "/jobs/j.yaml:3: the data has both \"eval\" and \"validation_split\""},
    {"job: j\n" MODEL "data: {format: idx, train: {x: a}, map: {x: [{scale: 1/0}]}}\n", WF_USAGE,
     "*\"scale\" must be a number, not 1/0"},
    {"job: j\n" MODEL "data: {format: idx, train: {x: a}, map: {x: [{scale: 1/2/3}]}}\n", WF_USAGE,
     "*\"scale\" must be a number, not 1/2/3"},
    {"job: j\n" MODEL "data: {format: idx, train: {x: a}, map: {x: [{scale: 1e308/1e-9}]}}\n",
     WF_USAGE, "*must be a number, not 1e308/1e-9"},
    {"job: j\n" MODEL "data: {format: idx, train: {x: a}, map: {x: [bucketise]}}\n", WF_USAGE,
     "*step \"bucketise\" wants \"bin_boundaries\""},
    {"job: j\n" MODEL "data: {format: idx, train: {x: a}, map: {x: [{bucketise: [1, 3, 2]}]}}\n",
     WF_USAGE, "/jobs/j.yaml:3: \"bin_boundaries\" has 2 behind 3"},
    {"job: j\n" MODEL "data: {format: idx, train: {x: 's3://b/x.npy'}}\n", WF_USAGE,
     "*:3: weft reads files of this host, and not \"s3://b/x.npy\""},
    {"job: j\n" MODEL "data: {format: idx, train: {x: a}, map: {x: [normalize]}}\n", WF_USAGE,
     "*unknown step \"normalize\"; did you mean \"standardise\"?"},
    {"job: j\n" MODEL "data: {format: idx, train: {x: a}, map: {x: [{bucketise: []}]}}\n", WF_USAGE,
     "*\"bin_boundaries\" has 0 numbers; 1 to 4096 may be"},
    {"job: j\n" MODEL "data: {format: idx, train: {x: a}, map: {x: [{bucketise: [0, .inf]}]}}\n",
     WF_USAGE, "*must be a number, not .inf"},
    {"job: j\n" MODEL "data: {format: idx, train: {x: a}, map: {x: [{flip: sideways}]}}\n",
     WF_USAGE, "*sideways"},
    {"job: j\n" MODEL "data: {format: synthetic}\n", WF_USAGE, "*wants its number of records"},
    {"job: j\n" MODEL DATA "batch: 8\noptimizer: {adam: {learning_rate: {cosine: x}}}\n", WF_USAGE,
     "/jobs/j.yaml:5: \"cosine\" must be a number, not x"},
    {"job: j\n" MODEL DATA "batch: 8\noptimizer: {adam: {learning_rate: fast}}\n", WF_USAGE,
     "*\"learning_rate\" must be a number, not fast"},
    {"job: j\n" MODEL DATA "batch: 8\noptimizer: {adam: 3}\n", WF_USAGE,
     "*the options of optimizer"},
    {"job: j\n" MODEL DATA "batch: 8\noptimizer: [adam, sgd]\n", WF_USAGE,
     "*each optimizer is one"},
    {"a: *b\n", WF_USAGE, "/jobs/j.yaml:1: anchors and aliases"},
    {"job: j\xff\n", WF_USAGE, "/jobs/j.yaml: byte 6: invalid"},
};

static void a_model_may_be_a_graph_of_layers(void **state)
{
    static const char text[] =
        "job: j\n"
        "model:\n"
        "  input: {a: {shape: [1], dtype: int64}, b: [4, 4, 2]}\n"
        "  layers:\n"
        "    - embedding: {input_dim: 5, output_dim: 2, inputs: a}\n"
        "    - zero_padding2d: {padding: [[1, 2], [0, 3]], inputs: [b]}\n"
        "    - dense: {units: 3, kernel_initializer: {random_normal: {stddev: 0.5}},\n"
        "              bias_regularizer: {l2: 0.1}}\n"
        "    - bidirectional: {layer: {lstm: {units: 3}}}\n"
        "    - leaky_relu: 0.1\n"
        "  outputs: [p, q]\n"
        "loss: {p: mse, q: mse}\n"
        "data: {format: npy, train: {a: a.npy, b: b.npy, p: p.npy, q: q.npy}}\n"
        "batch: 8\n"
        "optimizer: sgd\n";
    wf_job_conf *j = NULL;
    wf_err err = {0};
    const wf_conf_option *o;

    (void)state;
    assert_int_equal(parse(text, &j, &err), WF_OK);
    assert_string_equal(j->inputs[0].dtype, "int64");
    assert_null(j->inputs[1].dtype);
    assert_int_equal(j->inputs[1].rank, 3);
    assert_int_equal(j->n_outputs, 2);
    assert_string_equal(j->outputs[1], "q");
    assert_int_equal(j->outputs_line, 11);
    o = wf_conf_find(&j->layers[0], "inputs");
    assert_int_equal(o->n, 1);
    assert_string_equal(o->words[0], "a");
    o = wf_conf_find(&j->layers[1], "padding");
    assert_int_equal(o->n, 4);
    assert_int_equal(o->ints[3], 3);
    o = wf_conf_find(&j->layers[2], "kernel_initializer");
    assert_string_equal(o->text, "random_normal");
    assert_true(wf_conf_number(o->item, "stddev", 0) == 0.5);
    o = wf_conf_find(&j->layers[2], "bias_regularizer");
    assert_true(wf_conf_number(o->item, "l2", 0) == 0.1);
    o = wf_conf_find(&j->layers[3], "layer");
    assert_string_equal(o->item->type, "lstm");
    assert_int_equal(wf_conf_int(o->item, "units", 0), 3);
    assert_true(wf_conf_number(&j->layers[4], "negative_slope", 0) == 0.1);
    wf_job_free(&j);
}

static void each_bad_job_file_gets_its_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < WF_COUNT(bad); i++) {
        wf_job_conf *j = NULL;
        wf_err err = {0};
        wf_status rc = parse(bad[i].text, &j, &err);

        check_bad(&bad[i], rc, &err);
        assert_null(j);
    }
}

static void every_cut_and_every_flip_is_refused_or_read(void **state)
{
    char text[sizeof good];

    (void)state;
    for (size_t n = 0; n < sizeof good - 1; n++) {
        wf_job_conf *j = NULL;
        wf_err err;

        if (wf_job_parse(good, n, "j.yaml", &j, &err) == WF_OK)
            wf_job_free(&j);
        for (int bit = 0; bit < 8; bit++) {
            memcpy(text, good, sizeof good);
            text[n] = (char)(text[n] ^ (1 << bit));
            if (wf_job_parse(text, sizeof good - 1, "j.yaml", &j, &err) == WF_OK)
                wf_job_free(&j);
        }
    }
}

/* Whether a row of the pages is of `key`, and holds `value`. */
static bool page_says(const char *page, const char *key, const char *value)
{
    char cell[80];

    snprintf(cell, sizeof cell, "`%s`", key);
    for (const char *line = page; (line = strstr(line, "\n| ")); line++) {
        const char *end = strchr(line + 1, '\n'), *bar = strchr(line + 3, '|');
        const char *at = strstr(line, cell), *said = value ? strstr(line, value) : line;

        if (at && bar && at < bar && said && end && said < end)
            return true;
    }
    return false;
}

static void data_may_grow(void **state)
{
    static const char head[] = "job: j\nmodel: {onnx: a}\nloss: mse\nbatch: 2\noptimizer: sgd\n";
    char text[512];
    wf_job_conf *j;
    wf_err err;

    (void)state;
    snprintf(text, sizeof text, "%s%s", head,
             "data: {format: csv, train: in/*.csv, columns: {x: a}, new_files: wait}\n");
    assert_int_equal(parse(text, &j, &err), WF_OK);
    assert_true(j->grows && j->poll_seconds == 1 && j->settle_seconds == 2);
    assert_true(j->idle_stop_seconds == 0);
    assert_int_equal(j->epochs, WF_EPOCHS_ANY);
    wf_job_free(&j);
    snprintf(text, sizeof text, "%s%s", head,
             "epochs: 3\ndata: {format: tfrecord, train: {x: in/a*#x, y: in/a*#y}, new_files: "
             "{poll_seconds: 0.5, settle_seconds: 0, idle_stop_seconds: 600}}\n");
    assert_int_equal(parse(text, &j, &err), WF_OK);
    assert_true(j->grows && j->poll_seconds == 0.5 && j->settle_seconds == 0);
    assert_true(j->idle_stop_seconds == 600);
    assert_int_equal(j->epochs, 3);
    wf_job_free(&j);
}

static void every_key_and_default_is_on_the_page(void **state)
{
    const char *map, *name, *usual;
    wf_bytes pages[MAX_PAGES] = {{0}};
    wf_err err;

    (void)state;
    assert_in_range(n_pages, 1, MAX_PAGES);
    for (int k = 0; k < n_pages; k++)
        assert_int_equal(wf_file_read(page_paths[k], 1 << 20, &pages[k], &err), WF_OK);
    for (size_t i = 0; wf_job_key_at(i, &map, &name, &usual); i++) {
        bool said = false;

        for (int k = 0; !said && k < n_pages; k++)
            said = page_says(wf_bytes_str(&pages[k]), name, usual) ||
                   (map && page_says(wf_bytes_str(&pages[k]), map, usual));
        if (!said)
            fail_msg("no page has a row of %s that says %s", name, usual ? usual : name);
    }
    for (int k = 0; k < n_pages; k++)
        wf_bytes_close(&pages[k]);
}

int main(int argc, char *argv[])
{
    page_paths = (const char *const *)argv + 1;
    n_pages = argc - 1;

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_and_default_is_on_the_page),
        cmocka_unit_test(a_job_file_becomes_a_struct),
        cmocka_unit_test(defaults_are_those_of_the_page),
        cmocka_unit_test(a_field_may_have_several_files),
        cmocka_unit_test(data_may_grow),
        cmocka_unit_test(losses_and_metrics_by_output),
        cmocka_unit_test(a_model_may_be_a_graph_of_layers),
        cmocka_unit_test(each_bad_job_file_gets_its_sentence),
        cmocka_unit_test(every_cut_and_every_flip_is_refused_or_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
