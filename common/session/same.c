/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/same.c */
#include "common/session/same.h"
#include "common/base/size.h"
#include "common/ckpt/pretrained.h"
#include "common/compile/compile.h"
#include "common/graph/op.h"

#include <stdio.h>
#include <string.h>

enum { SAYS = 480 };

/* As far as the loss is in and nothing is fused: the nodes are those of the model, the digest is
 * whole, and where the rows of unbounded tables lie is not asked yet. */
static wf_status compile(const wf_job_conf *job, wf_compiled **out, wf_err *err)
{
    wf_compile_spec spec;
    wf_model model;

    wf_compile_spec_of_job(job, WF_COMPILE_EVAL, NULL, 0, &model, &spec);
    spec.read_weights = wf_pretrained_read;
    spec.stop_after = "loss";
    return wf_compile(&spec, out, err);
}

static const wf_compiled_variable *find(const wf_compiled *c, const char *name)
{
    int64_t at = wf_compiled_find(c, name);

    return at < 0 ? NULL : &c->variables[at];
}

static bool same_shape(const wf_compiled_variable *a, const wf_compiled_variable *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
}

static const char *shape(const wf_compiled_variable *v, char *text, size_t size)
{
    char dims[128];

    snprintf(text, size, "%s%s", wf_dtype_name(v->dtype),
             wf_dims_str(v->rank, v->dims, dims, sizeof dims));
    return text;
}

static bool variables_differ(const wf_compiled *was, const wf_compiled *is, char says[SAYS])
{
    char one[160], other[160];

    for (size_t i = 0; i < was->n_variables; i++) {
        const wf_compiled_variable *v = &was->variables[i], *now = find(is, v->name);

        if (!now)
            snprintf(says, SAYS, "it had the variable \"%.100s\" %.150s, and has it no longer",
                     v->name, shape(v, one, sizeof one));
        else if (!same_shape(v, now))
            snprintf(says, SAYS, "the variable \"%.100s\" was %.150s, and is %.150s", v->name,
                     shape(v, one, sizeof one), shape(now, other, sizeof other));
        else if ((v->kind == WF_VAR_TRAINABLE) != (now->kind == WF_VAR_TRAINABLE))
            snprintf(says, SAYS, "the variable \"%.100s\" was %s, and is not now", v->name,
                     v->kind == WF_VAR_TRAINABLE ? "trained" : "frozen");
        else
            continue;
        return true;
    }
    for (size_t i = 0; i < is->n_variables; i++)
        if (!find(was, is->variables[i].name)) {
            snprintf(says, SAYS, "the variable \"%.100s\" %.150s is new", is->variables[i].name,
                     shape(&is->variables[i], one, sizeof one));
            return true;
        }
    return false;
}

static bool nodes_differ(const wf_graph *was, const wf_graph *is, char says[SAYS])
{
    for (size_t i = 0; i < was->n_nodes && i < is->n_nodes; i++) {
        const wf_node *a = was->nodes[i], *b = is->nodes[i];

        if (strcmp(a->op->name, b->op->name) == 0)
            continue;
        snprintf(says, SAYS, "\"%.100s\" was %s, and is %s", a->name, a->op->name, b->op->name);
        return true;
    }
    if (was->n_nodes == is->n_nodes)
        return false;
    snprintf(says, SAYS, "it had %zu operations, and has %zu", (size_t)was->n_nodes,
             (size_t)is->n_nodes);
    return true;
}

/* Of two models whose digests differ. */
static wf_status say_difference(const wf_compiled *was, const wf_compiled *is, const char *run,
                                wf_err *err)
{
    char says[SAYS] = "an option of a layer or of the loss";

    if (!variables_differ(was, is, says))
        (void)nodes_differ(was->graph, is->graph, says);
    return wf_fail(err, WF_MISMATCH, "change that back, or train a new run without --resume",
                   "%s was trained with another model: %s", run, says);
}

wf_status wf_job_same_model(const wf_job_conf *before, const wf_job_conf *now, const char *run,
                            wf_err *err)
{
    wf_compiled *was = NULL, *is = NULL;
    wf_status rc = compile(before, &was, err);

    if (rc == WF_OK)
        rc = compile(now, &is, err);
    if (rc == WF_OK && was->digest != is->digest)
        rc = say_difference(was, is, run, err);
    wf_compiled_free(&was);
    wf_compiled_free(&is);
    return rc;
}

/* ---- the order of records ---- */

wf_status wf_job_same_order(const wf_job_conf *before, const wf_job_conf *now, bool within,
                            const char *run, wf_err *err)
{
    const struct {
        const char *key;
        bool same;
    } rows[] = {
        {"data.validation_split", before->validation_split == now->validation_split},
        {"data.sequence_length", before->sequence_length == now->sequence_length},
        {"data.sequence_stride", before->sequence_stride == now->sequence_stride},
        {"data.records", before->synthetic_records == now->synthetic_records},
        {"seed", !within || before->seed == now->seed},
        {"data.shuffle", !within || before->shuffle == now->shuffle},
    };

    for (size_t i = 0; i < WF_COUNT(rows); i++)
        if (!rows[i].same)
            return wf_fail(err, WF_MISMATCH,
                           "change that back, or train a new run without --resume",
                           "another \"%s\" would give %s other records than those it has counted",
                           rows[i].key, run);
    return WF_OK;
}

/* ---- the optimizer's state ---- */

static bool has_slot(const wf_opt *opt, const char *name)
{
    for (uint32_t i = 0; i < wf_opt_n_slots(opt); i++)
        if (strcmp(wf_opt_slot_name(opt, i), name) == 0)
            return true;
    return false;
}

wf_status wf_job_same_slots(const wf_job_conf *before, const wf_job_conf *now, const char *run,
                            wf_err *err)
{
    wf_opt was, is;

    WF_TRY(wf_compile_optimizer_of_job(before, &was, err));
    WF_TRY(wf_compile_optimizer_of_job(now, &is, err));
    for (uint32_t i = 0; i < wf_opt_n_slots(&is); i++)
        if (!has_slot(&was, wf_opt_slot_name(&is, i)))
            return wf_fail(err, WF_MISMATCH,
                           "change the optimizer back, or train with it in a new run",
                           "the optimizer needs \"%s\" of each variable, and checkpoints of %s do "
                           "not have it",
                           wf_opt_slot_name(&is, i), run);
    return WF_OK;
}
