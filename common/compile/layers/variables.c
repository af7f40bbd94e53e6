/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/variables.c - variables of layers: first values, and what regularizers add
 * to the loss for them. */
#include "common/base/row_key.h"
#include "common/compile/layers/layer.h"
#include "common/compile/model.h"
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 192 };
static const size_t most_variable_bytes = (size_t)1 << 31; /* what one ONNX file can hold */
static const size_t most_table_bytes = (size_t)1 << 42;    /* its rows are on many ps */

/* The word before "_initializer" and "_regularizer" for a part. */
static void stem_of(const char *part, char *stem, size_t size)
{
    const char *slash = strrchr(part, '/');
    char *tail;

    snprintf(stem, size, "%s", slash ? slash + 1 : part);
    tail = strstr(stem, "_kernel");
    if (tail)
        *tail = '\0';
}

static wf_status full_name(const wf_layer *l, const char *part, char *name)
{
    if (snprintf(name, NAME_BYTES, "%s/%s", l->name, part) >= NAME_BYTES)
        return wf_fail(l->e.err, WF_USAGE, "give it a shorter name",
                       "the layer's name is too long");
    return WF_OK;
}

/* The initializer of a part: what the layer's option says, or *word, which becomes `otherwise`. */
static const wf_conf_item *initializer_of(const wf_layer *l, const char *part,
                                          const char *otherwise, wf_conf_item *word)
{
    char stem[64], option[96];
    const wf_conf_option *how;

    stem_of(part, stem, sizeof(stem));
    snprintf(option, sizeof(option), "%s_initializer", stem);
    how = wf_conf_find(l->item, option);
    *word = (wf_conf_item){.type = how && !how->item ? how->text : otherwise};
    return how && how->item ? how->item : word;
}

static bool is_table(const wf_layer *l, const char *name)
{
    for (size_t i = 0; i < l->model->n_tables; i++)
        if (fnmatch(l->model->tables[i].match, name, 0) == 0)
            return true;
    return false;
}

static wf_status note_seeded(wf_layer *l, const char *name, const wf_distribution *first,
                             const wf_tensor *blank)
{
    wf_seeded *s = wf_arena_alloc(l->g->arena, sizeof(*s));

    if (!s)
        return wf_fail_nomem(l->e.err, sizeof(*s));
    *s = (wf_seeded){.name = wf_arena_strdup(l->g->arena, name),
                     .first = *first,
                     .blank = blank->data,
                     .next = l->facts.seeded};
    if (!s->name)
        return wf_fail_nomem(l->e.err, NAME_BYTES);
    l->facts.seeded = s;
    return WF_OK;
}

/* A table's content, which a ps computes: *out stays NULL where an initializer needs all of it. */
static wf_status blank_values(wf_layer *l, const char *name, const wf_conf_item *how, uint32_t rank,
                              const int64_t dims[], wf_tensor **out)
{
    wf_distribution first;
    bool has = false;
    wf_status rc;

    WF_TRY(wf_initial_of_shape(how, rank, dims, &has, &first, l->e.err));
    if (!has)
        return WF_OK;
    WF_TRY(wf_tensor_new_blank(WF_F32, rank, dims, out, l->e.err));
    rc = note_seeded(l, name, &first, *out);
    if (rc != WF_OK)
        wf_tensor_free(out);
    return rc;
}

static wf_status check_size(const wf_layer *l, const char *name, uint32_t rank,
                            const int64_t dims[], size_t most)
{
    char text[64];
    int64_t elems;

    if (wf_dims_elems(rank, dims, &elems) && (size_t)elems <= most / sizeof(float))
        return WF_OK;
    return wf_fail(l->e.err, WF_UNSUPPORTED,
                   most == most_variable_bytes ? "make the layer smaller, or name it in \"tables\""
                                               : "make the table smaller",
                   "variable \"%s\" of float32%s is larger than %zu GiB", name,
                   wf_dims_str(rank, dims, text, sizeof(text)), most >> 30);
}

static wf_status first_values(wf_layer *l, const char *part, uint32_t rank, const int64_t dims[],
                              const char *otherwise, const wf_fans *fans, wf_tensor **out)
{
    char name[NAME_BYTES];
    wf_conf_item word;
    wf_status rc;

    WF_TRY(full_name(l, part, name));
    if (!fans && is_table(l, name)) {
        WF_TRY(check_size(l, name, rank, dims, most_table_bytes));
        WF_TRY(blank_values(l, name, initializer_of(l, part, otherwise, &word), rank, dims, out));
        if (*out)
            return WF_OK;
    }
    WF_TRY(check_size(l, name, rank, dims, most_variable_bytes));
    WF_TRY(wf_tensor_new(WF_F32, rank, dims, out, l->e.err));
    if (l->model->is_blank)
        return WF_OK;
    rc = wf_initialize(initializer_of(l, part, otherwise, &word), fans, l->seed, name, *out,
                       l->e.err);
    if (rc != WF_OK)
        wf_tensor_free(out);
    return rc;
}

wf_tensor *wf_layer_first(wf_layer *l, const char *part, uint32_t rank, const int64_t dims[],
                          const char *otherwise, const wf_fans *fans)
{
    wf_tensor *t = NULL;

    if (l->e.rc == WF_OK)
        wf_layer_stop(l, first_values(l, part, rank, dims, otherwise, fans, &t));
    return t;
}

/* Layers may have written to it: so it becomes blank here, and not where it is made. */
static wf_status make_blank(const wf_layer *l, wf_tensor **t)
{
    wf_tensor *blank = NULL;

    if (!l->model->is_blank || !*t)
        return WF_OK;
    WF_TRY(wf_tensor_new_blank((*t)->dtype, (*t)->rank, (*t)->dims, &blank, l->e.err));
    wf_tensor_free(t);
    *t = blank;
    return WF_OK;
}

wf_value *wf_layer_keep(wf_layer *l, const char *part, wf_var_kind kind, wf_tensor **first)
{
    char name[NAME_BYTES], stem[64];
    wf_value *v = NULL;
    wf_status rc = l->e.rc;

    if (rc == WF_OK)
        rc = full_name(l, part, name);
    if (rc == WF_OK && kind != WF_VAR_FROZEN)
        rc = make_blank(l, first);
    if (rc == WF_OK)
        rc = wf_graph_add_variable(l->g, name, kind, first, &v, l->e.err);
    wf_tensor_free(first);
    wf_layer_stop(l, rc);
    if (rc != WF_OK)
        return NULL;
    stem_of(part, stem, sizeof(stem));
    wf_layer_penalize(l, stem, v);
    return v;
}

wf_value *wf_layer_variable(wf_layer *l, const char *part, uint32_t rank, const int64_t dims[],
                            const char *otherwise, const wf_fans *fans)
{
    wf_tensor *t = wf_layer_first(l, part, rank, dims, otherwise, fans);

    return wf_layer_keep(l, part, WF_VAR_TRAINABLE, &t);
}

static wf_status note_unbounded(wf_layer *l, const char *part, const char *otherwise)
{
    wf_unbounded *u = wf_arena_alloc(l->g->arena, sizeof(*u));
    wf_conf_item word;

    if (!u)
        return wf_fail_nomem(l->e.err, sizeof(*u));
    *u = (wf_unbounded){.name = wf_arena_printf(l->g->arena, "%s/%s", l->name, part),
                        .line = l->item->line,
                        .next = l->facts.unbounded};
    if (!u->name)
        return wf_fail_nomem(l->e.err, NAME_BYTES);
    WF_TRY(wf_initial_distribution(initializer_of(l, part, otherwise, &word), &u->first, l->e.err));
    l->facts.unbounded = u;
    return WF_OK;
}

wf_value *wf_layer_unbounded(wf_layer *l, const char *part, int64_t width, const char *otherwise)
{
    const int64_t dims[] = {WF_ROW_BUCKETS, width};
    wf_tensor *rows = NULL;

    if (l->e.rc == WF_OK)
        wf_layer_stop(l, wf_tensor_new(WF_F32, 2, dims, &rows, l->e.err));
    if (l->e.rc == WF_OK)
        wf_layer_stop(l, note_unbounded(l, part, otherwise));
    return wf_layer_keep(l, part, WF_VAR_TRAINABLE, &rows);
}

/* l1 sum |v| + l2 sum v^2 over n axes (0: all), by a regularizer; NULL when both are 0. */
static wf_value *penalty_of(wf_layer *l, const wf_conf_option *how, wf_value *v, uint32_t n,
                            const int64_t axes[])
{
    static const wf_conf_item none = {0};
    const wf_conf_item *item = how->item ? how->item : &none;
    bool one = !strcmp(how->text, "l1"), two = !strcmp(how->text, "l2");
    double l1 = wf_conf_number(item, "l1", one ? 0.01 : 0.0);
    double l2 = wf_conf_number(item, "l2", two ? 0.01 : 0.0);
    wf_value *a = NULL, *b = NULL;

    if (l1 > 0)
        a = wf_emit_scale(
            &l->e, wf_emit_reduce_sum(&l->e, wf_emit_unary(&l->e, "Abs", v), n, axes, false), l1);
    if (l2 > 0)
        b = wf_emit_scale(&l->e,
                          wf_emit_reduce_sum(&l->e, wf_emit_mul(&l->e, v, v), n, axes, false), l2);
    return a && b ? wf_emit_add(&l->e, a, b) : a ? a : b;
}

static void add_penalty(wf_layer *l, wf_value *p)
{
    if (p)
        l->facts.penalty = l->facts.penalty ? wf_emit_add(&l->e, l->facts.penalty, p) : p;
}

static const wf_conf_option *regularizer(const wf_layer *l, const char *stem)
{
    char option[96];

    snprintf(option, sizeof(option), "%s_regularizer", stem);
    return wf_conf_find(l->item, option);
}

void wf_layer_penalize(wf_layer *l, const char *stem, wf_value *v)
{
    const wf_conf_option *how = regularizer(l, stem);

    if (how)
        add_penalty(l, penalty_of(l, how, v, 0, NULL));
}

void wf_layer_penalize_activity(wf_layer *l, wf_flow out)
{
    const wf_conf_option *how = regularizer(l, "activity");
    int64_t axes[WF_MAX_RANK];
    wf_value *p;

    if (!how || !out.value)
        return;
    for (int32_t i = 1; i < out.value->rank; i++)
        axes[i - 1] = i;
    p = penalty_of(l, how, out.value, (uint32_t)out.value->rank - 1, axes);
    if (p)
        add_penalty(l, wf_emit_reduce_mean(&l->e, p, 0, NULL, false));
}
