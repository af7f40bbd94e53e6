/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/job.c - a job file: its keys, and what must hold between them. */
#include "common/base/file.h"
#include "common/conf/codec.h"
#include "common/conf/conf.h"
#include "common/conf/data.h"
#include "common/conf/item.h"
#include "common/conf/losses.h"
#include "common/conf/place.h"
#include "common/conf/placement.h"
#include "common/conf/read.h"
#include "common/conf/set.h"
#include "common/conf/tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t LARGEST = (uint64_t)INT64_MAX;

static wf_status read_name(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;

    WF_TRY(wf_read_text(r, node, &j->name, err));
    if (!wf_job_name_ok(j->name))
        return wf_read_fail(
            r, node, err, WF_USAGE, NULL,
            "the job's name \"%.80s\" is made of a-z, 0-9, '.', '_' and '-', has at "
            "most %d letters, and does not begin with a dot",
            j->name, WF_JOB_NAME_MAX);
    return WF_OK;
}

/* ---- model ---- */

static wf_status read_dims(wf_conf_reader *r, const wf_tree *node, wf_conf_input *in, wf_err *err)
{
    const wf_tree *t = node->kind == WF_TREE_LIST ? node->first : node;
    size_t n = node->kind == WF_TREE_LIST ? node->n : 1;

    if (n >= WF_COUNT(in->dims))
        return wf_read_fail(r, node, err, WF_USAGE, NULL,
                            "input \"%.64s\" has %zu axes; with the batch at most 8 may be",
                            in->name, n);
    for (size_t i = 0; i < n; i++, t = t->next)
        WF_TRY(wf_read_i64(r, t, 1, INT32_MAX, &in->dims[i], err));
    in->rank = (uint32_t)n;
    return WF_OK;
}

static wf_status read_shape(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    return read_dims(r, node, into, err);
}

static wf_status read_dtype(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    static const char *const dtypes[] = {"float32", "int32", "int64", "uint8"};
    wf_conf_input *in = into;

    WF_TRY(wf_read_text(r, node, &in->dtype, err));
    for (size_t i = 0; i < WF_COUNT(dtypes); i++)
        if (strcmp(dtypes[i], in->dtype) == 0)
            return WF_OK;
    return wf_read_unknown(r, node, "dtype of an input", in->dtype, dtypes, WF_COUNT(dtypes), err);
}

/* {shape: [1], dtype: int64} */
static wf_status read_described(wf_conf_reader *r, const wf_tree *node, wf_conf_input *in,
                                wf_err *err)
{
    static const wf_key keys[] = {
        {"shape", WF_KEY_CALL, .read = read_shape, .required = true},
        {"dtype", WF_KEY_CALL, .read = read_dtype},
        {0},
    };

    return wf_read_map(r, node, "an input", keys, in, err);
}

static wf_status read_inputs(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;
    wf_conf_input *inputs;

    if (node->kind != WF_TREE_MAP || node->n == 0)
        return wf_read_fail(r, node, err, WF_USAGE, "write it as {x: [784]}",
                            "\"input\" must be a map of names and shapes, without the batch axis");
    inputs = wf_arena_array(r->arena, node->n, sizeof *inputs);
    if (!inputs)
        return wf_fail_nomem(err, node->n * sizeof *inputs);
    for (const wf_tree *t = node->first; t; t = t->next) {
        wf_conf_input *in = &inputs[j->n_inputs++];

        in->name = t->key->text;
        in->line = t->line;
        if (t->kind == WF_TREE_MAP)
            WF_TRY(read_described(r, t, in, err));
        else
            WF_TRY(read_dims(r, t, in, err));
    }
    j->inputs = inputs;
    return WF_OK;
}

static wf_status read_layers(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;

    if (node->kind != WF_TREE_LIST || node->n == 0)
        return wf_read_fail(r, node, err, WF_USAGE, "put a dash before each layer",
                            "\"layers\" must be a list");
    return wf_read_items(r, node, "layer", wf_layer_rows, &j->layers, &j->n_layers, err);
}

static wf_status read_outputs(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;

    j->outputs_line = node->line;
    WF_TRY(wf_read_words(r, node, &j->outputs, &j->n_outputs, err));
    if (!j->n_outputs)
        return wf_read_fail(r, node, err, WF_USAGE, "leave it out for the last layer",
                            "\"outputs\" names no layer");
    return WF_OK;
}

static wf_status read_model(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    static const wf_key keys[] = {
        {"onnx", WF_KEY_PATH, .offset = offsetof(wf_job_conf, onnx)},
        {"input", WF_KEY_CALL, .read = read_inputs},
        {"layers", WF_KEY_CALL, .read = read_layers},
        {"outputs", WF_KEY_CALL, .read = read_outputs},
        {0},
    };
    wf_job_conf *j = into;

    j->model_line = node->line;
    WF_TRY(wf_read_map(r, node, "the model", keys, j, err));
    if (j->onnx && (j->n_inputs || j->n_layers || j->n_outputs))
        return wf_read_fail(r, node, err, WF_USAGE, "keep one of the two",
                            "the model is an onnx file or a list of layers, not both");
    if (!j->onnx && !(j->n_inputs && j->n_layers))
        return wf_read_fail(r, node, err, WF_USAGE, NULL,
                            "the model wants \"input\" and \"layers\", or \"onnx\"");
    return WF_OK;
}

/* ---- what to start from, and what to leave as it is ---- */

static wf_status read_freeze(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;

    j->freeze_line = node->line;
    return wf_read_words(r, node, &j->freeze, &j->n_freeze, err);
}

static wf_status read_trainable(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;

    j->trainable_line = node->line;
    return wf_read_words(r, node, &j->trainable, &j->n_trainable, err);
}

static wf_status read_renames(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_conf_weights *w = into;
    struct wf_conf_rename *map;

    if (node->kind != WF_TREE_MAP)
        return wf_read_fail(r, node, err, WF_USAGE, "write it as {dense/kernel: fc.weight}",
                            "\"map\" gives the model's variables their names in the file");
    map = wf_arena_array(r->arena, node->n, sizeof *map);
    if (!map)
        return wf_fail_nomem(err, node->n * sizeof *map);
    for (const wf_tree *t = node->first; t; t = t->next) {
        struct wf_conf_rename *row = &map[w->n_map++];

        row->variable = t->key->text;
        row->line = t->line;
        WF_TRY(wf_read_text(r, t, &row->tensor, err));
    }
    w->map = map;
    return WF_OK;
}

static wf_status read_weights(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    static const wf_key keys[] = {
        {"file", WF_KEY_PATH, .offset = offsetof(wf_conf_weights, file), .required = true},
        {"map", WF_KEY_CALL, .read = read_renames},
        {"strict", WF_KEY_BOOL, .offset = offsetof(wf_conf_weights, strict), .usual = "true"},
        {0},
    };
    wf_job_conf *j = into;

    j->weights.line = node->line;
    if (node->kind == WF_TREE_TEXT) {
        j->weights.strict = true;
        return wf_read_path(r, node, &j->weights.file, err);
    }
    return wf_read_map(r, node, "\"weights\"", keys, &j->weights, err);
}

/* ---- how to train ---- */

static wf_status read_logits(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;
    bool yes;

    if (node->kind == WF_TREE_TEXT && strcmp(node->text, "auto") == 0) {
        j->from_logits = WF_AUTO;
        return WF_OK;
    }
    if (wf_read_bool(r, node, &yes, NULL) != WF_OK)
        return wf_read_fail(r, node, err, WF_USAGE, NULL, "\"from_logits\" is auto, true or false");
    j->from_logits = yes ? WF_YES : WF_NO;
    return WF_OK;
}

static wf_status read_optimizer(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;

    return wf_read_free_item(r, node, "optimizer", &j->optimizer, err);
}

/* Whether it was said is known by its line. */
static wf_status read_staleness(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    enum { MOST = 1000000 };
    wf_job_conf *j = into;
    uint64_t n = 0;

    WF_TRY(wf_read_u64(r, node, 0, MOST, &n, err));
    j->staleness = (uint32_t)n;
    j->staleness_line = node->line;
    return WF_OK;
}

static const char *const modes[] = {"async", "ssp", "bsp", NULL};

static const wf_key consistency_keys[] = {
    {"mode", WF_KEY_ONLY, .offset = offsetof(wf_job_conf, mode), .known = modes, .usual = "async"},
    {"pipeline", WF_KEY_U32, .offset = offsetof(wf_job_conf, pipeline), .most = 2, .usual = "0"},
    {"staleness", WF_KEY_CALL, .read = read_staleness},
    {"staleness_aware", WF_KEY_BOOL, .offset = offsetof(wf_job_conf, staleness_aware)},
    {"backup_workers", WF_KEY_U32, .offset = offsetof(wf_job_conf, backup_workers), .most = 1000,
     .usual = "0"},
    {0},
};

static const wf_key checkpoint_keys[] = {
    {"every_steps", WF_KEY_U64, .offset = offsetof(wf_job_conf, every_steps), .least = 1,
     .most = UINT64_C(1) << 48},
    {"keep", WF_KEY_U32, .offset = offsetof(wf_job_conf, keep), .least = 1, .most = 10000,
     .usual = "3"},
    {"every_seconds", WF_KEY_U32, .offset = offsetof(wf_job_conf, every_seconds), .least = 1,
     .most = 30 * 24 * 3600},
    {"best", WF_KEY_LATER},
    {"incremental", WF_KEY_LATER},
    {0},
};

static wf_status read_on_nan(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    static const char *const words[] = {
        [WF_NAN_STOP] = "stop", [WF_NAN_SKIP] = "skip", [WF_NAN_ROLLBACK] = "rollback"};
    wf_job_conf *j = into;
    const char *word;

    WF_TRY(wf_read_text(r, node, &word, err));
    for (size_t i = 0; i < WF_COUNT(words); i++)
        if (strcmp(word, words[i]) == 0) {
            j->on_nan = (wf_on_nan)i;
            return WF_OK;
        }
    return wf_read_unknown(r, node, "on_nan", word, words, WF_COUNT(words), err);
}

static wf_status read_compute(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    const char *words[WF_COMPUTES], *word;
    wf_job_conf *j = into;

    WF_TRY(wf_read_text(r, node, &word, err));
    j->compute = wf_compute_of(word);
    if (j->compute < WF_COMPUTES)
        return WF_OK;
    for (wf_compute c = 0; c < WF_COMPUTES; c++)
        words[c] = wf_compute_name(c);
    return wf_read_unknown(r, node, "compute", word, words, WF_COUNT(words), err);
}

static wf_status read_callbacks(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;

    if (node->kind != WF_TREE_LIST || node->n > WF_CONF_MAX_CALLBACKS)
        return wf_read_fail(r, node, err, WF_USAGE, "put a dash before each",
                            "\"callbacks\" must be a list of at most %d", WF_CONF_MAX_CALLBACKS);
    return wf_read_items(r, node, "callback", wf_callback_rows, &j->callbacks, &j->n_callbacks,
                         err);
}

/* Its name is looked up by whoever compiles (common/compile/strategy.h). */
static wf_status read_strategy(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;

    j->strategy_line = node->line;
    return wf_read_text(r, node, &j->strategy, err);
}

static const char *const recoveries[] = {"full", NULL}, *const later_recoveries[] = {"partial",
                                                                                     NULL};

/* What the struct has no room for, since only one value is built. */
typedef struct wf_job_file {
    wf_job_conf job; /* first */
    const char *recovery;
} wf_job_file;

static const wf_key loss_scale_keys[] = {
    {"initial_scale", WF_KEY_U32, .offset = offsetof(wf_job_conf, initial_scale), .least = 1,
     .most = 1 << 24, .usual = "32768"},
    {"dynamic_growth_steps", WF_KEY_U32, .offset = offsetof(wf_job_conf, growth_steps), .least = 1,
     .most = UINT32_MAX, .usual = "2000"},
    {0},
};

static const wf_key job_keys[] = {
    {"job", WF_KEY_CALL, .read = read_name, .required = true},
    {"model", WF_KEY_CALL, .read = read_model, .required = true},
    {"trainable", WF_KEY_CALL, .read = read_trainable},
    {"freeze", WF_KEY_CALL, .read = read_freeze},
    {"tables", WF_KEY_CALL, .read = wf_read_tables, .keys = wf_table_keys},
    {"weights", WF_KEY_CALL, .read = read_weights},
    {"loss", WF_KEY_CALL, .read = wf_read_losses},
    {"from_logits", WF_KEY_CALL, .read = read_logits, .usual = "auto"},
    {"loss_weights", WF_KEY_CALL, .read = wf_read_loss_weights},
    {"labels", WF_KEY_CALL, .read = wf_read_labels},
    {"class_weight", WF_KEY_CALL, .read = wf_read_class_weight},
    {"sample_weight", WF_KEY_CALL, .read = wf_read_sample_weight},
    {"metrics", WF_KEY_CALL, .read = wf_read_metrics},
    {"data", WF_KEY_CALL, .read = wf_read_data, .keys = wf_data_keys, .required = true},
    {"batch", WF_KEY_U64, .offset = offsetof(wf_job_conf, batch), .least = 1, .most = 1 << 24,
     .required = true},
    {"epochs", WF_KEY_U64, .offset = offsetof(wf_job_conf, epochs), .least = 1, .most = 1000000,
     .usual = "1"},
    {"steps", WF_KEY_U64, .offset = offsetof(wf_job_conf, steps), .least = 1,
     .most = UINT64_C(1) << 48},
    {"optimizer", WF_KEY_CALL, .read = read_optimizer, .required = true},
    {"strategy", WF_KEY_CALL, .read = read_strategy},
    {"consistency", WF_KEY_MAP, .keys = consistency_keys},
    {"shard_optimizer", WF_KEY_BOOL, .offset = offsetof(wf_job_conf, shard_optimizer),
     .usual = "false"},
    {"checkpoint", WF_KEY_MAP, .keys = checkpoint_keys},
    {"keep_runs", WF_KEY_U32, .offset = offsetof(wf_job_conf, keep_runs), .least = 1, .most = 10000,
     .usual = "10"},
    {"callbacks", WF_KEY_CALL, .read = read_callbacks},
    {"recovery", WF_KEY_ONLY, .offset = offsetof(wf_job_file, recovery), .known = recoveries,
     .later = later_recoveries, .usual = "full"},
    {"on_nan", WF_KEY_CALL, .read = read_on_nan, .usual = "stop"},
    {"compute", WF_KEY_CALL, .read = read_compute, .usual = "float32"},
    {"loss_scale", WF_KEY_MAP, .keys = loss_scale_keys},
    {"deterministic", WF_KEY_BOOL, .offset = offsetof(wf_job_conf, deterministic),
     .usual = "false"},
    {"seed", WF_KEY_U64, .offset = offsetof(wf_job_conf, seed), .most = LARGEST, .usual = "0"},
    {"slice_bytes", WF_KEY_U64, .offset = offsetof(wf_job_conf, slice_bytes), .least = 1024,
     .most = 1 << 30, .usual = "4194304"},
    {"placement", WF_KEY_MAP, .keys = wf_placement_keys},
    {"replicas", WF_KEY_LATER},
    {"codec", WF_KEY_CALL, .read = wf_read_codecs, .keys = wf_codec_keys},
    {"place", WF_KEY_CALL, .read = wf_read_place},
    {"micro_batches", WF_KEY_CALL, .read = wf_read_micro_batches},
    {"memory_limit", WF_KEY_LATER},
    {0},
};

static wf_status check_consistency(const wf_conf_reader *r, const wf_tree *root,
                                   const wf_job_conf *j, wf_err *err)
{
    bool ssp = strcmp(j->mode, "ssp") == 0;

    if (ssp && !j->staleness_line)
        return wf_read_fail(r, root, err, WF_USAGE,
                            "with staleness: 3 no worker is more than three steps ahead of another",
                            "\"mode: ssp\" wants a \"staleness\" beside it");
    if (!ssp && j->staleness_line)
        return wf_fail(
            err, WF_USAGE, "write mode: ssp beside it, or leave it out",
            "%s:%d: \"staleness\" says how far workers may be apart, and with \"mode: %s\" "
            "they do not wait for each other",
            r->path, j->staleness_line, j->mode);
    for (size_t i = 0; i < j->n_tables; i++)
        if (j->tables[i].cache_rows && strcmp(j->mode, "async") != 0)
            return wf_fail(err, WF_USAGE, "take mode: async, or leave cache_rows out",
                           "%s:%d: \"cache_rows\" lets workers use rows of earlier steps, which "
                           "\"mode: %s\" rules out",
                           r->path, j->tables[i].line, j->mode);
    if (j->staleness_aware && strcmp(j->mode, "bsp") == 0)
        return wf_read_fail(
            r, root, err, WF_USAGE, "leave it out",
            "\"staleness_aware\" with \"mode: bsp\", in which no gradient is stale");
    if (j->backup_workers && strcmp(j->mode, "bsp") != 0)
        return wf_read_fail(
            r, root, err, WF_USAGE, "write mode: bsp beside it, or leave it out",
            "\"backup_workers\" says how many workers a step need not wait for, and "
            "with \"mode: %s\" it waits for none",
            j->mode);
    return WF_OK;
}

static wf_status check_job(wf_conf_reader *r, const wf_tree *root, const wf_job_conf *j,
                           wf_err *err)
{
    if (!j->onnx && !j->n_losses)
        return wf_read_fail(r, root, err, WF_USAGE,
                            "add one, like loss: sparse_categorical_crossentropy",
                            "a job with \"layers\" wants a \"loss\"");
    if (j->n_callbacks && !wf_job_evaluates(j))
        return wf_fail(err, WF_USAGE, "give the data an \"eval\"",
                       "%s:%d: callbacks look at the evaluation, and there is none", r->path,
                       j->callbacks[0].line);
    if (wf_tree_get(root, "loss_scale") && j->compute != WF_COMPUTE_F16)
        return wf_read_fail(r, wf_tree_get(root, "loss_scale"), err, WF_USAGE,
                            "write compute: float16 beside it, or leave it out",
                            "\"loss_scale\" keeps gradients in the range of float16, and "
                            "\"compute: %s\" has that of float32",
                            wf_compute_name(j->compute));
    WF_TRY(check_consistency(r, root, j, err));
    WF_TRY(wf_check_place(r, j, err));
    return wf_check_losses(r, j, err);
}

static wf_status fill(wf_job_file *f, const char *text, size_t size, const char *path, wf_err *err)
{
    wf_job_conf *j = &f->job;
    wf_conf_reader r = {.path = path, .arena = j->arena};
    wf_tree *root;

    j->path = wf_arena_strdup(j->arena, path);
    if (!j->path)
        return wf_fail_nomem(err, strlen(path));
    WF_TRY(wf_read_folder(path, j->arena, &r.folder, err));
    WF_TRY(wf_tree_parse(text, size, path, j->arena, &root, err));
    WF_TRY(wf_set_apply(&r, root, err));
    WF_TRY(wf_read_map(&r, root, "the job", job_keys, f, err));
    if (j->grows && !wf_tree_get(root, "epochs"))
        j->epochs = WF_EPOCHS_ANY;
    return check_job(&r, root, j, err);
}

wf_status wf_job_parse(const char *text, size_t size, const char *path, wf_job_conf **out,
                       wf_err *err)
{
    wf_arena *arena = wf_arena_new(64 << 20);
    wf_job_file *f = arena ? wf_arena_alloc(arena, sizeof *f) : NULL;
    wf_status rc;

    if (!f) {
        wf_arena_free(&arena);
        return wf_fail_nomem(err, sizeof *f);
    }
    f->job.arena = arena;
    rc = fill(f, text, size, path, err);
    if (rc != WF_OK) {
        wf_arena_free(&arena);
        return rc;
    }
    *out = &f->job;
    return WF_OK;
}

wf_status wf_job_read(const char *path, wf_bytes *text, wf_err *err)
{
    size_t n = strlen(path);
    char hint[256];
    wf_status rc;

    if (n > 5 && strcmp(path + n - 5, ".onnx") == 0) {
        snprintf(hint, sizeof hint, "write model: {onnx: %.200s} into one", path);
        return wf_fail(err, WF_USAGE, hint, "%s is not a job file", path);
    }
    rc = wf_file_read(path, WF_CONF_MAX_BYTES, text, err);
    if (rc == WF_NOTFOUND)
        return wf_fail(err, rc,
                       "give the path of a job file; docs/quickstart.md writes a first one",
                       "there is no job file %s", path);
    if (rc == WF_OK && memchr(text->data, 0, text->size)) {
        wf_bytes_close(text);
        return wf_fail(err, WF_USAGE, "give the path of a job file, which is YAML text",
                       "%s is not a job file: it is binary", path);
    }
    return rc;
}

wf_status wf_job_load(const char *path, wf_job_conf **out, wf_err *err)
{
    wf_bytes text = {0};
    wf_status rc = wf_job_read(path, &text, err);

    if (rc == WF_OK)
        rc = wf_job_parse(wf_bytes_str(&text), text.size, path, out, err);
    wf_bytes_close(&text);
    return rc;
}

void wf_job_free(wf_job_conf **j)
{
    wf_arena *arena = *j ? (*j)->arena : NULL;

    *j = NULL;
    wf_arena_free(&arena);
}

/* Row i of a table, and of the maps in it. */
static const wf_key *key_at(const wf_key keys[], size_t *i, const char **map)
{
    for (const wf_key *key = keys; key->name; key++) {
        const wf_key *inner;

        if (key->kind == WF_KEY_MAP) {
            *map = key->name;
            inner = key_at(key->keys, i, map);
            if (inner)
                return inner;
            *map = NULL;
        } else if (key->kind != WF_KEY_LATER && (*i)-- == 0) {
            return key;
        }
    }
    return NULL;
}

bool wf_job_key_at(size_t i, const char **map, const char **name, const char **usual)
{
    static const struct {
        const char *map; /* NULL: the job */
        const wf_key *keys;
    } lists[] = {{NULL, job_keys},
                 {"tables", wf_table_keys},
                 {"codec", wf_codec_keys},
                 {"data", wf_data_keys}};
    const wf_key *key = NULL;

    *map = NULL;
    for (size_t k = 0; !key && k < WF_COUNT(lists); k++) {
        key = key_at(lists[k].keys, &i, map);
        if (key && lists[k].map)
            *map = lists[k].map;
    }
    if (!key)
        return false;
    *name = key->name;
    *usual = key->usual;
    return true;
}
