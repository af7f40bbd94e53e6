/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/label_encoder.c - LabelEncoder of a file, whose keys have any order, as the
 * operation of the graph, whose keys rise. Of files of version 1 and 4, and from or to texts and
 * floats, it is refused. */
#include "common/onnx/call.h"
#include "common/onnx/expand.h"
#include "common/onnx/onnx.h"
#include "common/onnx/proto.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct label {
    int64_t key, value;
} label;

static int by_key(const void *a, const void *b)
{
    const label *u = a, *v = b;

    return (u->key > v->key) - (u->key < v->key);
}

/* keys and values [n] get both lists, by rising keys. */
static wf_status sort(size_t n, label list[], int64_t keys[], int64_t values[], wf_err *err)
{
    qsort(list, n, sizeof list[0], by_key);
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && list[i].key == list[i - 1].key)
            return wf_fail(err, WF_INVALID, "give each key once",
                           "its key %" PRId64 " is there twice", list[i].key);
        keys[i] = list[i].key;
        values[i] = list[i].value;
    }
    return WF_OK;
}

static wf_status sorted(wf_call *c, size_t n, const int64_t keys[], const int64_t values[],
                        wf_err *err)
{
    label *list = calloc(n + 1, sizeof *list);
    int64_t *rising = calloc(2 * n + 1, sizeof *rising);
    wf_status rc = list && rising ? WF_OK : wf_fail_nomem(err, 2 * n * sizeof *list);

    for (size_t i = 0; rc == WF_OK && i < n; i++)
        list[i] = (label){keys[i], values[i]};
    if (rc == WF_OK)
        rc = sort(n, list, rising, rising + n, err);
    if (rc == WF_OK) {
        const wf_attr attrs[] = {
            wf_attr_int("default_int64", wf_onnx_int(c->p, "default_int64", -1)),
            wf_attr_ints("keys_int64s", n, rising), wf_attr_ints("values_int64s", n, rising + n)};

        c->out[0] = wf_emit_op(c->e, "LabelEncoder", 1, c->in, 3, attrs);
    }
    free(list);
    free(rising);
    return rc;
}

static wf_status label_encoder(wf_call *c, wf_err *err)
{
    size_t n_keys, n_values;
    const int64_t *keys = wf_onnx_ints(c->p, "keys_int64s", &n_keys);
    const int64_t *values = wf_onnx_ints(c->p, "values_int64s", &n_values);

    if (!wf_onnx_has(c->p, "keys_int64s") || !wf_onnx_has(c->p, "values_int64s"))
        return wf_fail(err, WF_UNSUPPORTED, "number the labels before the model",
                       "it has no keys_int64s or no values_int64s, and weft maps int64 to int64");
    if (n_keys != n_values)
        return wf_fail(err, WF_INVALID, "give each key a value", "it has %zu keys and %zu values",
                       n_keys, n_values);
    return sorted(c, n_keys, keys, values, err);
}

static const wf_attr_row attrs[] = {
    {"classes_strings", WF_ATTR_STRINGS, false}, {"default_float", WF_ATTR_FLOAT, false},
    {"default_int64", WF_ATTR_INT, false},       {"default_string", WF_ATTR_STRING, false},
    {"default_tensor", WF_ATTR_TENSOR, false},   {"keys_floats", WF_ATTR_FLOATS, false},
    {"keys_int64s", WF_ATTR_INTS, false},        {"keys_strings", WF_ATTR_STRINGS, false},
    {"keys_tensor", WF_ATTR_TENSOR, false},      {"values_floats", WF_ATTR_FLOATS, false},
    {"values_int64s", WF_ATTR_INTS, false},      {"values_strings", WF_ATTR_STRINGS, false},
    {"values_tensor", WF_ATTR_TENSOR, false},    {0}};

/* Of all opsets, and yet a form that files have and graphs do not: the listing has the operation's
 * own row. */
const wf_expansion wf_expansion_label_encoder = {.op = {.name = "LabelEncoder",
                                                        .domain = WF_DOMAIN_ML,
                                                        .since = 2,
                                                        .n_in_min = 1,
                                                        .n_in_max = 1,
                                                        .n_out_min = 1,
                                                        .n_out_max = 1,
                                                        .no_grad_in = 1,
                                                        .attrs = attrs},
                                                 .until = WF_OPSET_NEWEST + 1,
                                                 .call = label_encoder};
