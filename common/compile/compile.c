/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/compile.c - the one door: the ordered table of passes, and the walk along it.
 *
 * The order is a contract: docs/compiler.md, "Order of passes", says what holds after each pass and
 * why it stands where it does.
 */
#include "common/compile/compile.h"
#include "common/base/nearest.h"
#include "common/compile/pass.h"
#include <stdlib.h>
#include <string.h>

static const wf_pass passes[] = {
    {"import", "the model with named inputs and variables, shapes inferred", wf_pass_import},
    {"weights", "first weights from a file in place, frozen variables marked", wf_pass_weights},
    {"loss", "loss and metrics attached", wf_pass_loss},
    {"mode", "Dropout on for training, gone otherwise", wf_pass_mode},
    {"recognise", "what was written out as the one operation that it is", wf_pass_recognise},
    {"tables", "of each table the rows of a batch; what computes their ids apart", wf_pass_tables},
    {"differentiate", "gradients of the loss to each trainable variable", wf_pass_differentiate},
    {"update", "gradients in the form that updates take", wf_pass_update},
    {"strategy", "variables and gradients become the ends of an exchange (Pull, Push)",
     wf_pass_strategy},
    {"prune", "only what outputs and pushes need", wf_pass_prune},
    {"infer", "every value has dtype and shape", wf_pass_infer},
    {"fold", "what is constant computed once, here", wf_pass_fold},
    {"simplify", "nodes that do nothing gone", wf_pass_simplify},
    {"cse", "equal nodes computed once", wf_pass_cse},
    {"fuse", "products with what follows them, chains of elementwise operations", wf_pass_fuse},
    {"precision", "values kept in bfloat16 or float16 between nodes, by a job that computes in it",
     wf_pass_precision},
    {"frozen", "frozen variables and large constants pulled once from parameter servers",
     wf_pass_frozen},
    {"place", "variables cut into slices, each with its ps", wf_pass_place},
    {"partition", "one graph per task", wf_pass_partition},
    {"schedule", "execution order: pulls by first use, pushes by readiness", wf_pass_schedule},
};

bool wf_compile_pass_at(size_t i, const char **name, const char **help)
{
    if (i >= WF_COUNT(passes))
        return false;
    *name = passes[i].name;
    *help = passes[i].help;
    return true;
}

/* How many passes to run. */
static wf_status last_pass(const char *name, size_t *n, wf_err *err)
{
    const char *names[WF_COUNT(passes)], *near;

    *n = WF_COUNT(passes);
    if (!name)
        return WF_OK;
    for (size_t i = 0; i < WF_COUNT(passes); i++) {
        names[i] = passes[i].name;
        if (!strcmp(names[i], name)) {
            *n = i + 1;
            return WF_OK;
        }
    }
    near = wf_nearest(name, names, WF_COUNT(names));
    return wf_fail(err, WF_USAGE,
                   "there are import, weights, loss, mode, recognise, tables, differentiate, "
                   "update, strategy, "
                   "prune, infer, fold, simplify, cse, fuse, precision, frozen, place, partition, "
                   "schedule",
                   "there is no pass \"%s\"%s%s%s", name, near ? "; did you mean \"" : "",
                   near ? near : "", near ? "\"?" : "");
}

static wf_status check_spec(const wf_compile_spec *s, wf_err *err)
{
    if (s->mode < WF_COMPILE_TRAIN || s->mode > WF_COMPILE_GRAD)
        return wf_fail(err, WF_INVALID, NULL, "there is no compile mode %d", (int)s->mode);
    if (s->strategy && (s->n_ps < s->strategy->ps_least || s->n_ps > s->strategy->ps_most))
        return wf_fail(err, WF_INVALID, "change the list of ps in cluster.yaml",
                       "strategy %s wants %u to %u parameter servers, not %u", s->strategy->name,
                       s->strategy->ps_least, s->strategy->ps_most, s->n_ps);
    if (s->batch < 0)
        return wf_fail(err, WF_INVALID, NULL, "the batch is %lld, and must not be negative",
                       (long long)s->batch);
    return WF_OK;
}

/* A RUN or INFER graph has its variables in itself, whatever the job's strategy is, unless it is
 * divided. */
static const wf_strategy *strategy_of(const wf_compile_spec *s)
{
    bool divides = s->mode == WF_COMPILE_INFER && s->n_stages > 0;

    return s->mode == WF_COMPILE_TRAIN || s->mode == WF_COMPILE_EVAL || divides ? s->strategy
                                                                                : NULL;
}

static wf_status run_passes(wf_unit *u, size_t n, wf_err *err)
{
    for (size_t i = 0; i < n; i++) {
        WF_TRY(passes[i].run(u, err));
        u->c->stage = passes[i].name;
    }
    /* place collects for itself, and needs to; after it nothing changes that the lists say. */
    if (!u->c->variables)
        WF_TRY(wf_unit_collect(u, err));
    return wf_unit_collect_uses(u, err);
}

wf_status wf_compile(const wf_compile_spec *spec, wf_compiled **out, wf_err *err)
{
    wf_status rc;
    size_t n = 0;
    wf_compile_spec own = *spec;
    wf_compiled *c;
    wf_unit u = {.spec = &own};

    *out = NULL;
    WF_TRY(check_spec(spec, err));
    WF_TRY(last_pass(spec->stop_after, &n, err));
    own.strategy = strategy_of(spec);
    c = calloc(1, sizeof(*c));
    if (!c)
        return wf_fail_nomem(err, sizeof(*c));
    u.c = c;
    c->arena = u.arena = wf_arena_new(0);
    rc = u.arena ? run_passes(&u, n, err) : wf_fail_nomem(err, sizeof(*c));
    c->graph = u.graph;
    if (rc != WF_OK)
        wf_compiled_free(&c);
    *out = c;
    return rc;
}
