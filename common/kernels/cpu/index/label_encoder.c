/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/index/label_encoder.c - LabelEncoder: each element is searched among the keys,
 * which rise. */
#include "common/base/rising.h"
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"

typedef struct labels {
    const int64_t *keys, *values, *x;
    int64_t *y, n, otherwise;
} labels;

static void look_up(void *arg, int64_t begin, int64_t end)
{
    const labels *l = arg;

    for (int64_t i = begin; i < end; i++) {
        int64_t at = wf_find_rising(l->keys, l->n, l->x[i]);

        l->y[i] = at < 0 ? l->otherwise : l->values[at];
    }
}

static wf_status label_encoder(const wf_run *run, const wf_tensor *const in[],
                               wf_tensor *const out[], wf_err *err)
{
    enum { EACH = 32 }; /* a search is about so much work as elements of cheap arithmetic */
    size_t n_keys, n_values;
    labels l = {.keys = wf_node_ints(run->node, "keys_int64s", &n_keys),
                .values = wf_node_ints(run->node, "values_int64s", &n_values),
                .x = in[0]->data,
                .y = out[0]->data,
                .otherwise = wf_node_int(run->node, "default_int64", -1)};

    (void)err;
    l.n = (int64_t)n_keys;
    wf_pool_for(run->pool, wf_elems(in[0]), WF_GRAIN / EACH, look_up, &l);
    return WF_OK;
}

const wf_kernel wf_kernels_label_encoder[] = {
    WF_ROW("LabelEncoder", WF_TYPE(WF_I64), label_encoder, .domain = WF_DOMAIN_ML),
    {0},
};
