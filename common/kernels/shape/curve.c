/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/curve.c */
#include "common/kernels/shape/curve.h"
#include "common/base/cc.h"
#include "common/graph/op.h"

#include <string.h>

static const struct setting {
    const char *op, *a, *b;
    double usual_a, usual_b;
} settings[] = {
    {"Celu", "alpha", "", 1.0, 0.0},
    {"Elu", "alpha", "", 1.0, 0.0},
    {"HardSigmoid", "alpha", "beta", 0.2f, 0.5},
    {"HardSwish", "", "", 1.0f / 6, 0.5},
    {"LeakyRelu", "alpha", "", 0.01f, 0.0},
    {"Selu", "alpha", "gamma", 1.67326319217681884765625, 1.05070102214813232421875},
    {"Shrink", "lambd", "bias", 0.5, 0.0},
    {"Swish", "alpha", "", 1.0, 0.0},
    {"ThresholdedRelu", "alpha", "", 1.0, 0.0},
};

/* The row of an operation or of its gradient, whose name ends in Grad. */
static const struct setting *setting_of(const char *op)
{
    for (size_t i = 0; i < WF_COUNT(settings); i++) {
        size_t n = strlen(settings[i].op);

        if (strncmp(op, settings[i].op, n) == 0 && (!op[n] || strcmp(op + n, "Grad") == 0))
            return &settings[i];
    }
    return NULL;
}

wf_status wf_curve_prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                           wf_err *err)
{
    const struct setting *s = setting_of(prep->node->op->name);
    wf_curve *own = wf_arena_alloc(prep->arena, sizeof *own);

    (void)in, (void)out;
    if (!own)
        return wf_fail_nomem(err, sizeof *own);
    *own = (wf_curve){0};
    if (s) {
        const wf_attr *a = wf_node_attr(prep->node, s->a), *b = wf_node_attr(prep->node, s->b);

        own->a = a ? (double)a->f : s->usual_a;
        own->b = b ? (double)b->f : s->usual_b;
    }
    prep->state = own;
    return WF_OK;
}
