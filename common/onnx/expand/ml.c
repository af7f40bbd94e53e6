/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/ml.c - see ml.h. */
#include "common/onnx/expand/ml.h"
#include "common/onnx/proto.h"

#include <string.h>

/* A vector of floats as a constant [n]. */
wf_value *wf_ml_constant(wf_call *c, const char *hint, size_t n, const float values[])
{
    wf_tensor *t = NULL;

    if (c->e->rc != WF_OK)
        return NULL;
    c->e->rc = wf_tensor_new(WF_F32, 1, (int64_t[]){(int64_t)n}, &t, c->e->err);
    if (c->e->rc != WF_OK)
        return NULL;
    memcpy(t->data, values, n * sizeof values[0]);
    return wf_emit_constant(c->e, hint, &t);
}

/* A list attribute that has one element for each feature, or one for all. */
wf_status wf_ml_list(const wf_call *c, const char *name, const float **values, size_t *n,
                     wf_err *err)
{
    const wf_value *x = c->in[0];
    int64_t features = x->rank > 0 ? x->axes[x->rank - 1].size : -1;

    *values = wf_onnx_floats(c->p, name, n);
    if (*n == 0)
        return wf_fail(err, WF_INVALID, NULL, "its list %s is empty", name);
    if (*n != 1 && features >= 0 && (int64_t)*n != features)
        return wf_fail(err, WF_SHAPE, NULL, "%s has %zu elements for %lld features", name, *n,
                       (long long)features);
    return WF_OK;
}
