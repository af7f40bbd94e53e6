/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/losses/shared.c - the table of loss functions, and formulas that several of them
 * share. */
#include "common/base/nearest.h"
#include "common/compile/losses/losses.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define WF_LOSS(name) extern const wf_loss_row wf_loss_##name;
#include "common/compile/losses.def"
#undef WF_LOSS

#define WF_LOSS(name) &wf_loss_##name,
static const wf_loss_row *const rows[] = {
#include "common/compile/losses.def"
};
#undef WF_LOSS

const char *const wf_loss_logits_words[] = {"auto", "true", "false", NULL};

const wf_loss_row *wf_loss_at(size_t i)
{
    return i < WF_COUNT(rows) ? rows[i] : NULL;
}

bool wf_same_name(const char *a, const char *b)
{
    while (true) {
        while (*a == '_')
            a++;
        while (*b == '_')
            b++;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (!*a)
            return true;
        a++;
        b++;
    }
}

void wf_option_names(const wf_option_row *options, char *text, size_t size)
{
    size_t at = 0;

    text[0] = '\0';
    for (; options && options->name && at < size; options++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "", options->name);
}

bool wf_compile_loss_at(size_t i, const char **name, const char **alias, char *options, size_t size)
{
    if (i >= WF_COUNT(rows))
        return false;
    *name = rows[i]->name;
    *alias = rows[i]->aliases[0];
    wf_option_names(rows[i]->options, options, size);
    return true;
}

const wf_loss_row *wf_loss_find(const char *name)
{
    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        if (wf_same_name(rows[i]->name, name))
            return rows[i];
        for (size_t k = 0; k < WF_COUNT(rows[i]->aliases) && rows[i]->aliases[k]; k++)
            if (wf_same_name(rows[i]->aliases[k], name))
                return rows[i];
    }
    return NULL;
}

const char *wf_loss_hint(const char *name, char hint[static WF_NEAREST_HINT])
{
    const char *names[WF_COUNT(rows)];

    for (size_t i = 0; i < WF_COUNT(rows); i++)
        names[i] = rows[i]->name;
    return wf_nearest_hint(name, names, WF_COUNT(rows), "weft help losses", hint);
}

double wf_goal_number(const wf_goal *g, const char *name, double otherwise)
{
    return g->item ? wf_conf_number(g->item, name, otherwise) : otherwise;
}

wf_value *wf_loss_clipped(wf_emit *e, wf_value *p)
{
    wf_value *in[3];

    if (!p)
        return NULL;
    in[0] = p;
    in[1] = wf_emit_scalar(e, p->dtype, 1e-7);
    in[2] = wf_emit_scalar(e, p->dtype, 1 - 1e-7);
    return wf_emit_op(e, "Clip", 3, in, 0, NULL);
}

wf_value *wf_loss_class_probabilities(wf_emit *e, wf_value *p)
{
    const int64_t last[] = {-1};

    wf_value *sum = wf_emit_reduce_sum(e, p, 1, last, true);

    /* All zeros stay what they are, and are held off zero with the others. */
    sum = sum ? wf_emit_binary(e, "Max", sum, wf_emit_scalar(e, sum->dtype, 1e-7)) : NULL;
    return wf_loss_clipped(e, wf_emit_div(e, p, sum));
}

wf_value *wf_loss_smoothed(wf_emit *e, const wf_goal *g, double even)
{
    double s = wf_goal_number(g, "label_smoothing", 0.0);

    if (s == 0.0)
        return g->labels;
    return wf_emit_add(e, wf_emit_scale(e, g->labels, 1.0 - s),
                       wf_emit_scalar(e, g->labels->dtype, s * even));
}

wf_value *wf_loss_difference(wf_emit *e, const wf_goal *g)
{
    return wf_emit_sub(e, g->scores, g->labels);
}

wf_value *wf_loss_signs(wf_emit *e, const wf_goal *g)
{
    wf_dtype dtype = g->labels->dtype;
    wf_value *zero = wf_emit_binary(e, "Equal", g->labels, wf_emit_scalar(e, dtype, 0.0));

    return wf_emit_where(e, zero, wf_emit_scalar(e, dtype, -1.0), g->labels);
}

wf_value *wf_loss_binary_values(wf_emit *e, const wf_goal *g)
{
    wf_value *y = wf_loss_smoothed(e, g, 0.5), *p, *one, *hit, *miss;

    if (g->scores_are_logits) {
        wf_attr none = wf_attr_string("reduction", "none");
        wf_value *in[2] = {g->scores, y};

        return wf_emit_op(e, "SigmoidCrossEntropy", 2, in, 1, &none);
    }
    p = wf_loss_clipped(e, g->scores);
    one = wf_emit_scalar(e, g->scores->dtype, 1.0);
    hit = wf_emit_mul(e, y, wf_emit_log(e, p));
    miss = wf_emit_mul(e, wf_emit_sub(e, one, y), wf_emit_log(e, wf_emit_sub(e, one, p)));
    return wf_emit_neg(e, wf_emit_add(e, hit, miss));
}

int64_t wf_goal_classes(const wf_goal *g)
{
    const wf_value *v = g->scores;

    return v->rank < 1 ? -1 : v->axes[g->classes_second ? 1 : v->rank - 1].size;
}

void wf_goal_rows(wf_emit *e, const wf_goal *g, wf_value **scores, wf_value **labels)
{
    wf_value *x = g->scores;
    int64_t perm[WF_MAX_RANK], classes = wf_goal_classes(g);

    if (x->rank > 2 && g->classes_second) {
        for (int64_t i = 1; i < x->rank; i++)
            perm[i] = i + 1 < x->rank ? i + 1 : 1;
        perm[0] = 0;
        x = wf_emit_transpose(e, x, perm);
    }
    *scores = g->scores->rank == 2 ? x : wf_emit_reshape(e, x, 2, (const int64_t[]){-1, classes});
    *labels =
        g->labels->rank == 1 ? g->labels : wf_emit_reshape(e, g->labels, 1, (const int64_t[]){-1});
}
