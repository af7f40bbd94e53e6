/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/digest.c - XXH3-64 over what makes two models the same model.
 *
 * Operations, attributes, names, dtypes, shapes and the content of small integer constants (they
 * are shapes and axes) count; weights, other constants and what names a symbolic axis do not. Every
 * item goes in with a tag and its length, so that no two different graphs give one string of bytes.
 */
#include "common/compile/pass.h"
#include <string.h>
#include <xxhash.h>

enum { SMALL_CONSTANT = 64 };

static void put(XXH3_state_t *h, const void *data, size_t n)
{
    uint64_t size = n;

    XXH3_64bits_update(h, &size, sizeof(size));
    if (n)
        XXH3_64bits_update(h, data, n);
}

static void put_str(XXH3_state_t *h, const char *s)
{
    put(h, s ? s : "", s ? strlen(s) : 0);
}

static void put_int(XXH3_state_t *h, int64_t x)
{
    put(h, &x, sizeof(x));
}

static void put_type(XXH3_state_t *h, const wf_value *v)
{
    put_int(h, v->dtype);
    put_int(h, v->rank);
    for (int32_t i = 0; i < v->rank; i++)
        put_int(h, v->axes[i].size);
}

static void put_tensor(XXH3_state_t *h, const wf_tensor *t)
{
    put_int(h, t->dtype);
    put(h, t->dims, t->rank * sizeof(*t->dims));
    if (!wf_dtype_is_float(t->dtype) && wf_elems(t) <= SMALL_CONSTANT)
        put(h, t->data, wf_tensor_bytes(t));
}

static void put_attr(XXH3_state_t *h, const wf_attr *a)
{
    put_str(h, a->name);
    put_int(h, a->kind);
    switch (a->kind) {
    case WF_ATTR_INT:
        put_int(h, a->i);
        break;
    case WF_ATTR_FLOAT:
        put(h, &a->f, sizeof(a->f));
        break;
    case WF_ATTR_STRING:
        put_str(h, a->s);
        break;
    case WF_ATTR_TENSOR:
        put_tensor(h, a->t);
        break;
    case WF_ATTR_INTS:
        put(h, a->ints, a->n * sizeof(*a->ints));
        break;
    case WF_ATTR_FLOATS:
        put(h, a->floats, a->n * sizeof(*a->floats));
        break;
    case WF_ATTR_STRINGS:
        for (size_t i = 0; i < a->n; i++)
            put_str(h, a->strings[i]);
        break;
    case WF_ATTR_GRAPH:
        break;
    }
}

static void put_node(XXH3_state_t *h, const wf_node *n)
{
    put_str(h, n->op->domain);
    put_str(h, n->op->name);
    put_str(h, n->name);
    put_int(h, n->n_attrs);
    for (uint32_t i = 0; i < n->n_attrs; i++)
        put_attr(h, &n->attrs[i]);
    put_int(h, n->n_in);
    for (uint32_t i = 0; i < n->n_in; i++)
        put_str(h, n->in[i] ? n->in[i]->name : NULL);
    put_int(h, n->n_out);
    for (uint32_t i = 0; i < n->n_out; i++)
        put_str(h, n->out[i] ? n->out[i]->name : NULL);
}

/* Values that nodes make follow from the nodes; those that are given are named here. */
static void put_given(XXH3_state_t *h, const wf_value *v)
{
    put_str(h, v->name);
    put_int(h, v->is_input);
    put_int(h, v->variable);
    put_type(h, v);
    if (wf_value_is_constant(v))
        put_tensor(h, v->known);
}

/* A job with one loss function without options counts as it did before there were more. */
static void put_losses(XXH3_state_t *h, const wf_compile_spec *s)
{
    put_str(h, s->n_losses ? s->losses[0].item.type : s->loss);
    for (size_t i = 0; i < s->n_losses; i++) {
        const wf_conf_term *t = &s->losses[i];

        if (t->output) {
            put_str(h, t->output);
            put_str(h, t->item.type);
        }
        for (size_t k = 0; k < t->item.n_options; k++) {
            put_str(h, t->item.options[k].name);
            put_str(h, t->item.options[k].text);
        }
    }
    for (size_t i = 0; i < s->n_loss_weights; i++) {
        put_str(h, s->loss_weights[i].output);
        put(h, &s->loss_weights[i].number, sizeof(double));
    }
}

wf_status wf_graph_digest(const wf_graph *g, const wf_compile_spec *spec, uint64_t *out,
                          wf_err *err)
{
    XXH3_state_t *h = XXH3_createState();

    if (!h)
        return wf_fail_nomem(err, sizeof(uint64_t) * 72);
    XXH3_64bits_reset(h);
    for (size_t i = 0; i < g->n_values; i++)
        if (!g->values[i]->producer)
            put_given(h, g->values[i]);
    for (size_t i = 0; i < g->n_nodes; i++)
        put_node(h, g->nodes[i]);
    for (size_t i = 0; i < g->n_outputs; i++)
        put_str(h, g->outputs[i]->name);
    put_losses(h, spec);
    *out = XXH3_64bits_digest(h);
    XXH3_freeState(h);
    return WF_OK;
}
