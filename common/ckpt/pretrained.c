/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/pretrained.c */
#include "common/ckpt/pretrained.h"
#include "common/ckpt/shard.h"
#include "common/onnx/onnx.h"

#include <string.h>

static wf_status read_safetensors(const char *path, wf_named_list *out, wf_err *err)
{
    wf_shard *s = NULL;
    wf_status rc = wf_shard_open(wf_disk_posix(), path, &s, err);

    for (size_t i = 0; rc == WF_OK && i < wf_shard_count(s); i++) {
        const wf_shard_tensor *from = wf_shard_at(s, i);
        wf_tensor *t = NULL;

        rc = wf_tensor_new(from->dtype, from->rank, from->dims, &t, err);
        if (rc == WF_OK)
            rc = wf_shard_read(s, from, 0, t->data, from->bytes, err);
        if (rc == WF_OK)
            rc = wf_named_add(out, from->name, &t, true, err);
        wf_tensor_free(&t);
    }
    wf_shard_close(&s);
    return rc;
}

static wf_status read_onnx(const char *path, wf_named_list *out, wf_err *err)
{
    wf_graph *g = NULL;
    wf_status rc = wf_onnx_read(path, &g, err);

    for (size_t i = 0; rc == WF_OK && i < g->n_values; i++) {
        const wf_value *v = g->values[i];
        wf_tensor *t = NULL;

        if (!v->known || v->producer)
            continue;
        rc = wf_tensor_copy(v->known, &t, err);
        if (rc == WF_OK)
            rc = wf_named_add(out, v->name, &t, v->variable != WF_VAR_NOT, err);
        wf_tensor_free(&t);
    }
    wf_graph_free(&g);
    return rc;
}

static bool ends_with(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);

    return n > m && strcmp(path + n - m, end) == 0;
}

wf_status wf_pretrained_read(const char *path, wf_named_list *out, wf_err *err)
{
    if (ends_with(path, ".safetensors"))
        return read_safetensors(path, out, err);
    if (ends_with(path, ".onnx"))
        return read_onnx(path, out, err);
    return wf_fail(err, WF_USAGE, "save them with the safetensors library",
                   "%s is no file of weights: they are read from .onnx and .safetensors", path);
}
