/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/model.c - builds the graph of a model of layers.
 *
 * Inputs and layers, in the order of the file, are places: each has a name of its own and gives a
 * flow, which layers after it take. What a layer means is its row's, in layers/; here is who takes
 * from whom. A place that nobody takes from is a mistake and not a wish: it is refused.
 */
#include "common/compile/model.h"
#include "common/base/nearest.h"
#include "common/compile/layers/layer.h"
#include <stdio.h>
#include <string.h>

enum { MOST_NEAREST = 256, MOST_INPUTS = 64 };

/* What may be taken from: an input or a layer. */
typedef struct place {
    const char *name;
    int line;
    bool used;
    bool is_bag; /* an input of bags of ids */
    wf_flow flow;
} place;

typedef struct builder {
    const wf_model *m;
    wf_graph *g;
    uint64_t seed;
    const char *file;
    place *places; /* [n_inputs + n_layers], of which n are built */
    size_t n;
    wf_model_facts facts;
    wf_err *err;
} builder;

static place *find_place(const builder *b, const char *name)
{
    for (size_t i = 0; i < b->n; i++)
        if (!strcmp(b->places[i].name, name))
            return &b->places[i];
    return NULL;
}

static wf_status no_such_place(const builder *b, const char *name)
{
    const char *names[MOST_NEAREST], *near;
    size_t n = 0;

    for (; n < b->n && n < MOST_NEAREST; n++)
        names[n] = b->places[n].name;
    near = wf_nearest(name, names, n);
    return wf_fail(b->err, WF_USAGE, "name an input of the model or a layer that stands before",
                   "there is no layer or input \"%.64s\"%s%s%s", name,
                   near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static wf_status begin_place(builder *b, const char *name, int line)
{
    if (find_place(b, name))
        return wf_fail(b->err, WF_USAGE, "give each layer and input a name of its own",
                       "there are two \"%.64s\"", name);
    b->places[b->n] = (place){.name = name, .line = line};
    return WF_OK;
}

/* "dense", then "dense_1": Keras's count, by type and of nameless layers only. */
static wf_status name_layer(builder *b, size_t i, const char **out)
{
    const wf_conf_item *l = &b->m->layers[i];
    const char *given = wf_conf_text(l, "name", NULL);
    size_t before = 0;

    for (size_t k = 0; k < i; k++)
        if (!strcmp(b->m->layers[k].type, l->type) && !wf_conf_text(&b->m->layers[k], "name", NULL))
            before++;
    if (given)
        *out = wf_arena_strdup(b->g->arena, given);
    else if (before)
        *out = wf_arena_printf(b->g->arena, "%s_%zu", l->type, before);
    else
        *out = wf_arena_strdup(b->g->arena, l->type);
    if (!*out)
        return wf_fail_nomem(b->err, strlen(l->type));
    if (given && !*given)
        return wf_fail(b->err, WF_USAGE, "leave it out", "the layer's name is empty");
    return WF_OK;
}

/* The -1 that fills up a bag is a number to other layers. */
static wf_status check_bag(const builder *b, const place *p, const wf_conf_item *item)
{
    if (!p->is_bag ||
        (strcmp(item->type, "embedding") == 0 && wf_conf_text(item, "combiner", NULL)))
        return WF_OK;
    return wf_fail(
        b->err, WF_USAGE, "put an embedding with combiner: sum, mean, sqrtn or max between them",
        "the input \"%.64s\" holds bags of ids, of any number, and the layer takes rows of "
        "one length",
        p->name);
}

/* The flows that a layer takes: those it names, or that of the layer before it. */
static wf_status take(builder *b, const wf_conf_item *item, wf_flow in[], size_t *n)
{
    const wf_conf_option *names = wf_conf_find(item, "inputs");
    place *before = b->n ? &b->places[b->n - 1] : NULL;

    *n = names ? names->n : 1;
    if (*n > MOST_INPUTS)
        return wf_fail(b->err, WF_USAGE, NULL, "it names %zu inputs; %d may be", *n, MOST_INPUTS);
    if (!names) {
        if (b->n == b->m->n_inputs && b->m->n_inputs != 1)
            return wf_fail(b->err, WF_USAGE, "name one, like inputs: x",
                           "the model has %zu inputs, and the first layer does not say which it "
                           "takes",
                           b->m->n_inputs);
        before->used = true;
        in[0] = before->flow;
        return check_bag(b, before, item);
    }
    for (size_t i = 0; i < *n; i++) {
        place *p = find_place(b, names->words[i]);

        if (!p)
            return no_such_place(b, names->words[i]);
        p->used = true;
        in[i] = p->flow;
        WF_TRY(check_bag(b, p, item));
    }
    return WF_OK;
}

/* L1 and L2 of layer.h. */
static wf_status check_flow(const builder *b, wf_flow f)
{
    bool known = f.value && f.value->rank >= 1;
    char text[128];

    wf_assert(!f.channels_second || (f.value && f.value->rank >= 3));
    for (int32_t i = 1; known && i < f.value->rank; i++)
        known = f.value->axes[i].size >= 1;
    if (known)
        return WF_OK;
    return wf_fail(b->err, WF_USAGE, "make what comes before it larger",
                   "nothing is left of a record: it gives %s",
                   f.value ? wf_value_str(f.value, text, sizeof(text)) : "nothing");
}

static wf_status build_layer(builder *b, const wf_conf_item *item, const char *name)
{
    char hint[WF_NEAREST_HINT];
    const wf_layer_row *row = wf_layer_find(item->type, hint);
    wf_flow in[MOST_INPUTS], out;
    wf_layer l = {.g = b->g, .model = b->m, .item = item, .name = name, .seed = b->seed, .in = in};

    if (!row)
        return wf_fail(b->err, WF_USAGE, hint, "unknown layer");
    WF_TRY(take(b, item, in, &l.n_in));
    if (l.n_in < row->n_in_min || l.n_in > row->n_in_max)
        return wf_fail(b->err, WF_USAGE, "name them, like inputs: [a, b]",
                       "it takes %u%s inputs, not %zu", row->n_in_min,
                       row->n_in_max > row->n_in_min ? " or more" : "", l.n_in);
    l.e = wf_emit_begin(b->g, name, b->err);
    l.facts = b->facts;
    b->g->device = wf_conf_text(item, "device", NULL);
    out = row->build(&l);
    wf_layer_penalize_activity(&l, out);
    b->g->device = NULL;
    WF_TRY(wf_emit_end(&l.e));
    WF_TRY(check_flow(b, out));
    b->facts = l.facts;
    WF_TRY(begin_place(b, name, item->line));
    b->places[b->n++].flow = out;
    return WF_OK;
}

static wf_status add_layer(builder *b, size_t i)
{
    const wf_conf_item *item = &b->m->layers[i];
    const char *name = NULL;
    wf_status rc = name_layer(b, i, &name);

    if (rc == WF_OK && find_place(b, name))
        rc = begin_place(b, name, item->line);
    if (rc == WF_OK)
        rc = build_layer(b, item, name);
    return wf_err_wrap(b->err, rc, "%s:%d: layer \"%s\"", b->file, item->line, item->type);
}

static bool holds_bags(const wf_model *m, const char *input)
{
    for (size_t i = 0; i < m->n_bags; i++)
        if (strcmp(m->bags[i].ids, input) == 0)
            return true;
    for (size_t i = 0; i < m->n_pairs; i++)
        if (strcmp(m->pairs[i].name, input) == 0 && m->pairs[i].n_columns == 1 &&
            strcmp(m->pairs[i].columns[0], "indices") == 0)
            return true;
    return false;
}

static wf_status add_input(builder *b, const wf_conf_input *in, int64_t batch)
{
    int64_t dims[WF_MAX_RANK] = {-1};
    wf_dtype dtype = in->dtype ? wf_dtype_of(in->dtype) : WF_F32;
    wf_value *v;

    if (in->rank + 1 > WF_MAX_RANK)
        return wf_fail(b->err, WF_USAGE, NULL, "input \"%s\" has %u axes; %d are allowed", in->name,
                       in->rank, WF_MAX_RANK - 1);
    if (dtype == WF_NONE)
        return wf_fail(b->err, WF_USAGE, "use float32, int32, int64 or uint8",
                       "input \"%s\" has the dtype \"%.32s\"", in->name, in->dtype);
    for (uint32_t i = 0; i < in->rank; i++) {
        dims[i + 1] = in->dims[i];
        if (in->dims[i] < 1)
            return wf_fail(b->err, WF_USAGE, NULL, "input \"%s\" has an extent of %lld", in->name,
                           (long long)in->dims[i]);
    }
    WF_TRY(begin_place(b, in->name, in->line));
    WF_TRY(wf_graph_add_value(b->g, in->name, &v, b->err));
    wf_value_set_type(v, dtype, in->rank + 1, dims);
    v->axes[0].symbol = "batch";
    v->axes[0].bound = batch > 0 ? batch : -1;
    b->places[b->n].is_bag = holds_bags(b->m, in->name);
    b->places[b->n++].flow = (wf_flow){v, false};
    return wf_graph_add_input(b->g, v, b->err);
}

/* A place's value becomes an output of that name. One that is an input, or an output already, needs
 * a node first. */
static wf_status add_output(builder *b, place *p, const char *name)
{
    wf_layer l = {.g = b->g, .name = name, .e = wf_emit_begin(b->g, name, b->err)};
    wf_value *v = wf_layer_plain(&l, p->flow);
    wf_value *taken = wf_graph_value(b->g, name);

    p->used = true;
    if (v && (!v->producer || wf_is_output(b->g, v)))
        v = wf_emit_identity(&l.e, v);
    WF_TRY(wf_emit_end(&l.e));
    if (taken && taken != v)
        return wf_fail(b->err, WF_USAGE, "give the layer another name",
                       "the output \"%.64s\" has the name of another value", name);
    WF_TRY(wf_graph_rename_value(b->g, v, name, b->err));
    return wf_graph_add_output(b->g, v, b->err);
}

static wf_status add_outputs(builder *b)
{
    if (!b->m->n_outputs)
        return add_output(b, &b->places[b->n - 1], WF_MODEL_OUTPUT);
    for (size_t i = 0; i < b->m->n_outputs; i++) {
        place *p = find_place(b, b->m->outputs[i]);
        wf_status rc = p && p < b->places + b->m->n_inputs
                           ? wf_fail(b->err, WF_USAGE, "name a layer",
                                     "\"%.64s\" is an input, and no layer", p->name)
                       : p ? add_output(b, p, p->name)
                           : no_such_place(b, b->m->outputs[i]);

        WF_TRY(wf_err_wrap(b->err, rc, "%s:%d: outputs", b->file, b->m->outputs_line));
    }
    return WF_OK;
}

static wf_status check_used(const builder *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (!b->places[i].used)
            return wf_fail(b->err, WF_USAGE,
                           "take it out, or name it in \"inputs\" of a layer or in \"outputs\"",
                           "%s:%d: nobody uses %s \"%.64s\"", b->file, b->places[i].line,
                           i < b->m->n_inputs ? "input" : "the output of layer", b->places[i].name);
    return WF_OK;
}

static wf_status build_all(builder *b, int64_t batch)
{
    const wf_model *m = b->m;

    b->places = wf_arena_array(b->g->arena, m->n_inputs + m->n_layers, sizeof(*b->places));
    if (!b->places)
        return wf_fail_nomem(b->err, (m->n_inputs + m->n_layers) * sizeof(*b->places));
    for (size_t i = 0; i < m->n_inputs; i++)
        WF_TRY(wf_err_wrap(b->err, add_input(b, &m->inputs[i], batch), "%s:%d", b->file,
                           m->inputs[i].line));
    for (size_t i = 0; i < m->n_layers; i++)
        WF_TRY(add_layer(b, i));
    WF_TRY(add_outputs(b));
    return check_used(b);
}

wf_status wf_model_build(const wf_model *m, int64_t batch, uint64_t seed, wf_graph **out,
                         wf_model_facts *facts, wf_err *err)
{
    wf_status rc;
    builder b = {.m = m, .seed = seed, .file = m->file ? m->file : "model", .err = err};

    if (!m->n_inputs)
        return wf_fail(err, WF_USAGE, "write input: {x: [784]}", "%s: the model has no input",
                       b.file);
    if (!m->n_layers)
        return wf_fail(err, WF_USAGE, "add a dense layer", "%s: the model has no layers", b.file);
    WF_TRY(wf_graph_new("model", &b.g, err));
    rc = build_all(&b, batch);
    if (rc != WF_OK)
        wf_graph_free(&b.g);
    *out = b.g;
    *facts = rc == WF_OK ? b.facts : (wf_model_facts){0};
    return rc;
}
