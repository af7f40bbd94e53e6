/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/known.c - conditions and counts that are known while a file is read. Inference
 * follows integers; the loops of Keras's exports count in floats besides, through casts and
 * comparisons, which are worked out here for the one value that is asked for. */
#include "common/onnx/known.h"
#include "common/base/cc.h"
#include "common/graph/infer.h"
#include "common/graph/op.h"

#include <math.h>
#include <string.h>

enum { DEEPEST = 12 };
/* Whole numbers up to which f32 and f64 say the same. */
#define MOST_WHOLE 16777216.0

static bool number(const wf_value *v, int depth, double *out);

static bool compared(const wf_node *n, double a, double b, double *out)
{
    static const char *const names[] = {"Less",  "LessOrEqual", "Greater", "GreaterOrEqual",
                                        "Equal", "And",         "Or"};
    const bool is[] = {a<b, a <= b, a> b, a >= b, a == b, a != 0 && b != 0, a != 0 || b != 0};

    for (size_t i = 0; i < WF_COUNT(names); i++)
        if (strcmp(n->op->name, names[i]) == 0) {
            *out = is[i];
            return true;
        }
    return false;
}

static bool worked_out(const wf_node *n, int depth, double *out)
{
    double a, b;

    if (n->op->domain[0] || !n->n_in || !n->in[0] || !number(n->in[0], depth + 1, &a))
        return false;
    if (strcmp(n->op->name, "Cast") == 0 || strcmp(n->op->name, "Identity") == 0) {
        *out = a;
        return trunc(a) == a && fabs(a) <= MOST_WHOLE;
    }
    if (strcmp(n->op->name, "Not") == 0) {
        *out = a == 0;
        return true;
    }
    return n->n_in == 2 && n->in[1] && number(n->in[1], depth + 1, &b) && compared(n, a, b, out);
}

static bool number(const wf_value *v, int depth, double *out)
{
    wf_elem elems[WF_MAX_CARRIED];
    uint32_t n;

    if (depth > DEEPEST)
        return false;
    if (wf_value_elems(v, elems, &n)) {
        *out = n == 1 && elems[0].is_known ? (double)elems[0].value : 0;
        return n == 1 && elems[0].is_known;
    }
    if (v->producer)
        return worked_out(v->producer, depth, out);
    if (!v->known || wf_elems(v->known) != 1 || !wf_dtype_is_float(v->known->dtype) ||
        wf_dtype_size(v->known->dtype) < sizeof(float))
        return false;
    *out = v->known->dtype == WF_F32 ? (double)*(const float *)v->known->data
                                     : *(const double *)v->known->data;
    return true;
}

bool wf_onnx_known(const wf_value *v, int64_t *content)
{
    wf_elem elems[WF_MAX_CARRIED];
    uint32_t n;
    double value;

    if (wf_value_elems(v, elems, &n)) {
        if (n == 1 && elems[0].is_known)
            *content = elems[0].value;
        return n == 1 && elems[0].is_known;
    }
    if (v->dtype != WF_BOOL || !number(v, 0, &value))
        return false;
    *content = value != 0;
    return true;
}
