/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/call.c - see call.h. */
#include "common/onnx/call.h"
#include "common/base/size.h"
#include "common/graph/infer.h"
#include "common/onnx/proto.h"

wf_status wf_call_need_rank(const wf_call *c, uint32_t i, int32_t least, int32_t most, wf_err *err)
{
    int32_t rank = c->in[i]->rank;

    if (rank < 0)
        return wf_fail(err, WF_UNSUPPORTED, "export it with that shape",
                       "how many axes its input %u has is not known", i);
    if (rank < least || rank > most)
        return wf_fail(err, WF_SHAPE, NULL, "its input %u has %d axes, and must have %d to %d", i,
                       rank, least, most);
    return WF_OK;
}

wf_status wf_call_need_ints(const wf_call *c, uint32_t i, uint32_t least, uint32_t most,
                            int64_t values[], uint32_t *n, wf_err *err)
{
    wf_elem elems[WF_MAX_CARRIED];

    if (!wf_value_elems(c->in[i], elems, n))
        return wf_fail(err, WF_UNSUPPORTED, "make it a constant",
                       "its input %u is known only during the run", i);
    if (*n < least || *n > most)
        return wf_fail(err, WF_SHAPE, NULL, "its input %u has %u elements, and must have %u to %u",
                       i, *n, least, most);
    for (uint32_t k = 0; k < *n; k++) {
        if (!elems[k].is_known)
            return wf_fail(err, WF_UNSUPPORTED, "make it a constant",
                           "element %u of its input %u is known only during the run", k, i);
        values[k] = elems[k].value;
    }
    return WF_OK;
}

int64_t wf_call_entry(const wf_call *c, const char *list, size_t i, int64_t otherwise)
{
    size_t n;
    const int64_t *values = wf_onnx_ints(c->p, list, &n);

    return i < n ? values[i] : otherwise;
}

wf_value *wf_call_slice(wf_call *c, wf_value *x, int64_t axis, int64_t begin, int64_t end,
                        int64_t step)
{
    wf_value *in[] = {x, wf_emit_ints(c->e, 1, &begin), wf_emit_ints(c->e, 1, &end),
                      wf_emit_ints(c->e, 1, &axis), wf_emit_ints(c->e, 1, &step)};

    return x && in[4] ? wf_emit_op(c->e, "Slice", 5, in, 0, NULL) : NULL;
}

wf_value *wf_call_concat(wf_call *c, wf_value *a, wf_value *b, int64_t axis)
{
    wf_attr along = wf_attr_int("axis", axis);

    return a && b ? wf_emit_op(c->e, "Concat", 2, (wf_value *[]){a, b}, 1, &along) : NULL;
}

wf_value *wf_call_count(wf_call *c, wf_value *n)
{
    wf_value *in[] = {wf_emit_scalar(c->e, WF_I64, 0),
                      n ? wf_emit_reshape(c->e, wf_emit_cast(c->e, n, WF_I64), 0, NULL) : NULL,
                      wf_emit_scalar(c->e, WF_I64, 1)};

    return in[1] && in[2] ? wf_emit_op(c->e, "Range", 3, in, 0, NULL) : NULL;
}
