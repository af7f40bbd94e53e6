/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/fragments.c - a run is cut at the edges between workers, and each piece compiled.
 *
 * A node has a worker, the arrivals that it depends on, and a stage: the most edges on a way to it
 * that go from one worker to another, or to more arrivals. Nodes of one worker, stage and set of
 * arrivals are a fragment. So what a fragment takes from others is of an earlier stage, and
 * fragments in the order of their stages can be run one after the other; and none waits for an
 * arrival that one of its nodes could do without, which another may need before it can send.
 */
#include "common/base/size.h"
#include "common/graph/op.h"
#include "common/session/remote_unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char TASK[] = "/job:worker/task:";

typedef struct piece {
    uint32_t worker, stage;
    uint64_t arrivals; /* a bit for each that it depends on */
} piece;

enum { NO_PIECE = UINT32_MAX };

typedef struct cutter {
    wf_remote_unit *u;
    uint32_t *at;    /* [u->g->n_nodes]: the piece of a node that is needed */
    uint32_t *maker; /* [u->g->n_values], by their index: the piece that makes it, or NO_PIECE */
    bool *given;     /* the same: it is wanted of the run, sent, or read by another piece */
    piece *pieces;
    size_t n;
    uint32_t sends[WF_REMOTE_FAR];    /* the pieces that Sends follow */
    uint32_t receives[WF_REMOTE_FAR]; /* the pieces that Recvs precede; NO_PIECE: a sum */
} cutter;

/* ---- pieces ---- */

static wf_status worker_of(const wf_remote_unit *u, const wf_node *n, uint32_t *out, wf_err *err)
{
    *out = u->run->worker;
    if (!n->device || strncmp(n->device, TASK, strlen(TASK)) != 0)
        return WF_OK;
    return wf_remote_worker(u, n, n->device, out, err);
}

static size_t find_piece(const cutter *c, const piece *p)
{
    size_t i = 0;

    while (i < c->n && memcmp(&c->pieces[i], p, sizeof *p) != 0)
        i++;
    return i;
}

/* The piece like p, made if there is none. */
static uint32_t get_piece(cutter *c, const piece *p)
{
    size_t at = find_piece(c, p);

    if (at == c->n)
        c->pieces[c->n++] = *p;
    return (uint32_t)at;
}

/* Where a value comes from, as if it were a piece: feeds and variables are there at once. A sum
 * comes after what is added. */
static piece source_of(const cutter *c, const wf_value *v)
{
    piece p = {.worker = c->u->run->worker};
    size_t at;

    if (c->maker[v->index] != NO_PIECE)
        return c->pieces[c->maker[v->index]];
    if (!wf_remote_arrives(c->u, v, &at))
        return p;
    p = source_of(c, c->u->arrivals[at].added);
    p.worker = c->u->run->worker;
    p.arrivals |= UINT64_C(1) << at;
    p.stage++;
    return p;
}

static bool is_free(const cutter *c, const wf_value *v)
{
    size_t at;

    return c->maker[v->index] == NO_PIECE && !wf_remote_arrives(c->u, v, &at);
}

/* The piece of a node with these inputs on worker `p->worker`. */
static void find_stage(const cutter *c, wf_value *const in[], uint32_t n, piece *p)
{
    for (uint32_t k = 0; k < n; k++)
        if (in[k])
            p->arrivals |= source_of(c, in[k]).arrivals;
    for (uint32_t k = 0; k < n; k++) {
        piece from;

        if (!in[k] || is_free(c, in[k]))
            continue;
        from = source_of(c, in[k]);
        p->stage = WF_MAX(p->stage,
                          from.stage + (from.worker != p->worker || from.arrivals != p->arrivals));
    }
}

static wf_status place_node(cutter *c, size_t i, wf_err *err)
{
    const wf_node *n = c->u->g->nodes[i];
    piece p = {0};

    WF_TRY(worker_of(c->u, n, &p.worker, err));
    find_stage(c, n->in, n->n_in, &p);
    c->at[i] = get_piece(c, &p);
    for (uint32_t k = 0; k < n->n_out; k++)
        if (n->out[k])
            c->maker[n->out[k]->index] = c->at[i];
    return WF_OK;
}

/* A Recv comes in where it is placed. */
static wf_status place_receives(cutter *c, wf_err *err)
{
    for (size_t i = 0; i < c->u->n_arrivals; i++) {
        const wf_remote_arrival *a = &c->u->arrivals[i];
        piece p = {.arrivals = UINT64_C(1) << i};

        c->receives[i] = NO_PIECE;
        if (a->added)
            continue;
        WF_TRY(worker_of(c->u, a->node, &p.worker, err));
        c->receives[i] = c->maker[a->value->index] = get_piece(c, &p);
    }
    return WF_OK;
}

/* A Send is part of what makes its value, if that is where it is placed. */
static wf_status place_sends(cutter *c, wf_err *err)
{
    for (size_t i = 0; i < c->u->n_leaving; i++) {
        const wf_remote_leaving *l = &c->u->leaving[i];
        wf_value *v = l->value;
        piece p = {0};

        WF_TRY(worker_of(c->u, l->node, &p.worker, err));
        find_stage(c, &v, 1, &p);
        c->sends[i] = get_piece(c, &p);
    }
    return WF_OK;
}

wf_status wf_remote_mark_settled(wf_remote_unit *u, wf_err *err)
{
    bool *values = calloc(u->g->n_values + 1, sizeof *values);

    if (!values)
        return wf_fail_nomem(err, u->g->n_values);
    memset(u->needed, 0, u->g->n_nodes * sizeof *u->needed);
    for (size_t i = 0; i < u->n_wanted; i++)
        values[u->wanted[i]->index] = true;
    for (size_t i = 0; i < u->n_leaving; i++)
        values[u->leaving[i].value->index] = true;
    wf_remote_mark_needed(u, values);
    free(values);
    return WF_OK;
}

static wf_status place_nodes(cutter *c, wf_err *err)
{
    const wf_graph *g = c->u->g;
    wf_arena *a = c->u->r->arena;

    c->at = wf_arena_array(a, g->n_nodes + 1, sizeof *c->at);
    c->pieces = wf_arena_array(a, g->n_nodes + 2 * WF_REMOTE_FAR + 1, sizeof *c->pieces);
    c->maker = wf_arena_array(a, g->n_values + 1, sizeof *c->maker);
    c->given = wf_arena_array(a, g->n_values + 1, sizeof *c->given);
    if (!c->at || !c->pieces || !c->maker || !c->given)
        return wf_fail_nomem(err, g->n_values * sizeof *c->maker);
    for (size_t i = 0; i < g->n_values; i++)
        c->maker[i] = NO_PIECE;
    WF_TRY(place_receives(c, err));
    for (size_t i = 0; i < g->n_nodes; i++)
        if (c->u->needed[i])
            WF_TRY(place_node(c, i, err));
    return WF_OK;
}

/* A constant that is wanted or sent is given by the session's worker. */
static void place_constant(cutter *c, const wf_value *v)
{
    if (!v->producer && !v->is_input)
        c->maker[v->index] = get_piece(c, &(piece){.worker = c->u->run->worker});
}

static void place_constants(cutter *c)
{
    for (size_t i = 0; i < c->u->n_wanted; i++)
        place_constant(c, c->u->wanted[i]);
    for (size_t i = 0; i < c->u->n_leaving; i++)
        place_constant(c, c->u->leaving[i].value);
}

static int compare(const void *a, const void *b)
{
    const piece *x = a, *y = b;

    if (x->stage != y->stage)
        return x->stage < y->stage ? -1 : 1;
    if (x->worker != y->worker)
        return x->worker < y->worker ? -1 : 1;
    return x->arrivals < y->arrivals ? -1 : x->arrivals > y->arrivals;
}

/* Fragments are run in the order of stages. */
static void sort_pieces(cutter *c)
{
    piece before[WF_REMOTE_FRAGMENTS];
    uint32_t now[WF_REMOTE_FRAGMENTS];

    memcpy(before, c->pieces, c->n * sizeof *before);
    qsort(c->pieces, c->n, sizeof *c->pieces, compare);
    for (size_t i = 0; i < c->n; i++)
        now[i] = (uint32_t)find_piece(c, &before[i]);
    for (size_t i = 0; i < c->u->g->n_nodes; i++)
        if (c->u->needed[i])
            c->at[i] = now[c->at[i]];
    for (size_t i = 0; i < c->u->g->n_values; i++)
        if (c->maker[i] != NO_PIECE)
            c->maker[i] = now[c->maker[i]];
    for (size_t i = 0; i < c->u->n_leaving; i++)
        c->sends[i] = now[c->sends[i]];
    for (size_t i = 0; i < c->u->n_arrivals; i++)
        if (c->receives[i] != NO_PIECE)
            c->receives[i] = now[c->receives[i]];
}

/* What leaves the piece that makes it. */
static void mark_given(cutter *c)
{
    const wf_graph *g = c->u->g;

    for (size_t i = 0; i < c->u->n_wanted; i++)
        c->given[c->u->wanted[i]->index] = true;
    for (size_t i = 0; i < c->u->n_leaving; i++)
        c->given[c->u->leaving[i].value->index] = true;
    for (size_t i = 0; i < g->n_nodes; i++)
        for (uint32_t k = 0; c->u->needed[i] && k < g->nodes[i]->n_in; k++) {
            const wf_value *v = g->nodes[i]->in[k];

            if (v && v->producer && c->maker[v->index] != c->at[i])
                c->given[v->index] = true;
        }
}

/* ---- compiling ---- */

/* A shape for each value that goes from one worker to another. */
static wf_status infer_shapes(wf_remote_unit *u, wf_err *err)
{
    for (size_t i = 0; i < wf_remote_first_variable(u); i++) {
        const wf_tensor *t = u->fed.inputs[i].content;

        if (t)
            wf_value_set_type(u->g->inputs[i], t->dtype, t->rank, t->dims);
    }
    return wf_infer(u->g, err);
}

/* An input in place of what another piece makes. */
static wf_status cut(wf_graph *g, const wf_value *from, wf_tensor **blank, wf_err *err)
{
    wf_value *old = wf_graph_value(g, from->name), *v = NULL;
    int64_t dims[WF_MAX_RANK];
    char *aside = wf_arena_printf(g->arena, "%s/sent", from->name);

    if (!aside)
        return wf_fail_nomem(err, strlen(from->name));
    if (from->rank < 0 || !wf_value_dims(from, dims))
        return wf_fail(err, WF_UNSUPPORTED, "place the nodes around it on one worker",
                       "the shape of \"%.200s\", which goes from one worker to another, follows "
                       "from what is fed",
                       from->name);
    WF_TRY(wf_tensor_new_blank(from->dtype, (uint32_t)from->rank, dims, blank, err));
    WF_TRY(wf_graph_rename_value(g, old, aside, err));
    WF_TRY(wf_graph_add_value(g, from->name, &v, err));
    wf_value_set_type(v, from->dtype, (uint32_t)from->rank, dims);
    WF_TRY(wf_graph_add_input(g, v, err));
    wf_graph_replace_uses(g, old, v);
    return WF_OK;
}

/* A piece's own copy of the graph, and what it is compiled with. */
typedef struct copy {
    wf_graph *g;
    wf_tensor **blanks; /* [n_blanks]: of values that other pieces make */
    const char **cuts;  /* [n_blanks]: their names */
    size_t n_blanks;
    const char **fetches;
    size_t n_fetches;
} copy;

static wf_status cut_input(const wf_value *v, copy *to, wf_err *err)
{
    for (size_t i = 0; i < to->n_blanks; i++)
        if (strcmp(to->cuts[i], v->name) == 0)
            return WF_OK;
    to->cuts[to->n_blanks] = v->name;
    WF_TRY(cut(to->g, v, &to->blanks[to->n_blanks], err));
    to->n_blanks++;
    return WF_OK;
}

static wf_status cut_copy(const cutter *c, size_t at, copy *to, wf_err *err)
{
    const wf_graph *g = c->u->g;

    WF_TRY(wf_graph_copy(g, &to->g, err));
    to->blanks = calloc(g->n_values + 1, sizeof(*to->blanks));
    to->cuts = calloc(g->n_values + 1, sizeof *to->cuts);
    to->fetches = calloc(g->n_values + 1, sizeof *to->fetches);
    if (!to->blanks || !to->cuts || !to->fetches)
        return wf_fail_nomem(err, g->n_values * sizeof(*to->blanks));
    for (size_t i = 0; i < to->g->n_nodes; i++)
        to->g->nodes[i]->device = NULL; /* it names a task, and none of its devices */
    for (size_t i = 0; i < g->n_values; i++)
        if (c->maker[i] == at && c->given[i] && !g->values[i]->is_input)
            to->fetches[to->n_fetches++] = g->values[i]->name;
    for (size_t i = 0; i < g->n_nodes; i++)
        for (uint32_t k = 0; c->u->needed[i] && c->at[i] == at && k < g->nodes[i]->n_in; k++) {
            const wf_value *v = g->nodes[i]->in[k];

            if (v && v->producer && c->maker[v->index] != at)
                WF_TRY(cut_input(v, to, err));
        }
    return WF_OK;
}

static void close_copy(copy *c)
{
    for (size_t i = 0; i < c->n_blanks; i++)
        wf_tensor_free(&c->blanks[i]);
    free(c->blanks);
    free(c->cuts);
    free(c->fetches);
    wf_graph_free(&c->g);
}

static bool is_small_integer(const wf_tensor *t)
{
    return (wf_dtype_is_int(t->dtype) || t->dtype == WF_BOOL) && wf_elems(t) <= WF_MAX_CARRIED;
}

/* How much of the feeds' content is known to the compiler. */
typedef enum depth { SHAPES, SMALL_INTEGERS, ALL } depth;

/* What an input of the copy holds, for the compiler; NULL: nothing is known. */
static wf_compile_feed feed_of(const wf_remote_unit *u, const copy *c, size_t i, depth how)
{
    size_t first = wf_remote_first_variable(u), own = u->g->n_inputs;
    wf_compile_feed f = {.name = c->g->inputs[i]->name};

    if (i >= own) {
        f.content = c->blanks[i - own];
    } else if (i >= first) {
        f.content = u->blanks[i - first];
    } else {
        f.content = u->fed.inputs[i].content;
        f.is_constant =
            f.content && (how == ALL || (how == SMALL_INTEGERS && is_small_integer(f.content)));
    }
    return f;
}

static wf_status compile_to(const wf_remote_unit *u, const copy *c, depth how, wf_compiled **out,
                            wf_err *err)
{
    wf_compile_feed *feeds = calloc(c->g->n_inputs + 1, sizeof *feeds);
    wf_compile_spec spec = {.graph = c->g,
                            .mode = WF_COMPILE_RUN,
                            .fetches = c->fetches,
                            .n_fetches = c->n_fetches,
                            .feeds = feeds};
    wf_status rc;

    if (!feeds)
        return wf_fail_nomem(err, c->g->n_inputs * sizeof *feeds);
    for (size_t i = 0; i < c->g->n_inputs; i++) {
        feeds[spec.n_feeds] = feed_of(u, c, i, how);
        spec.n_feeds += feeds[spec.n_feeds].content != NULL;
    }
    wf_compiled_free(out);
    rc = wf_compile(&spec, out, err);
    free(feeds);
    return rc;
}

/* All that the compiled graph takes is there. */
static wf_status check_fed(const wf_remote_unit *u, const wf_graph *g, char unfed[WF_UNFED_NAME],
                           wf_err *err)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        for (size_t k = 0; k < wf_remote_first_variable(u); k++) {
            const char *name = g->inputs[i]->name;

            if (u->fed.inputs[k].content || strcmp(u->fed.inputs[k].name, name) != 0)
                continue;
            snprintf(unfed, WF_UNFED_NAME, "%s", name);
            return wf_fail(err, WF_USAGE, "feed it too", "%s wants input \"%.200s\"",
                           WF_REMOTE_MODEL, name);
        }
    return WF_OK;
}

/* ---- what a piece takes, receives, sends and gives ---- */

static void add_input(wf_remote_fragment *f, const char *name)
{
    for (size_t i = 0; i < f->n_receives; i++)
        if (strcmp(f->receives[i].value, name) == 0)
            return;
    for (size_t i = 0; i < f->n_inputs; i++)
        if (strcmp(f->inputs[i], name) == 0)
            return;
    f->inputs[f->n_inputs++] = name;
}

static wf_status list_receives(cutter *c, size_t at, wf_remote_fragment *f, wf_err *err)
{
    for (size_t i = 0; i < c->u->n_arrivals; i++)
        if (c->receives[i] == at)
            WF_TRY(wf_remote_fill_receive(c->u, i, &f->receives[f->n_receives++], err));
    return WF_OK;
}

/* What is sent is made here, received here, or taken. */
static wf_status list_sends(cutter *c, size_t at, wf_remote_fragment *f, wf_err *err)
{
    for (size_t i = 0; i < c->u->n_leaving; i++) {
        wf_remote_send *s = &f->sends[f->n_sends];

        if (c->sends[i] != at)
            continue;
        f->n_sends++;
        WF_TRY(wf_remote_fill_send(c->u, i, s, err));
        if (c->maker[c->u->leaving[i].value->index] != at)
            add_input(f, s->value);
    }
    return WF_OK;
}

static wf_status list_ports(cutter *c, size_t at, wf_remote_fragment *f, wf_err *err)
{
    const wf_compiled *compiled = f->compiled;
    size_t n_inputs = compiled ? compiled->graph->n_inputs : 0;
    size_t n_outputs = compiled ? compiled->n_outputs : 0;
    wf_arena *a = c->u->r->arena;

    f->inputs = wf_arena_array(a, n_inputs + WF_REMOTE_FAR, sizeof *f->inputs);
    f->outputs = wf_arena_array(a, n_outputs + 1, sizeof *f->outputs);
    f->values = wf_arena_array(a, n_outputs + 1, sizeof *f->values);
    f->receives = wf_arena_array(a, c->u->n_arrivals + 1, sizeof *f->receives);
    f->sends = wf_arena_array(a, c->u->n_leaving + 1, sizeof *f->sends);
    if (!f->inputs || !f->outputs || !f->values || !f->receives || !f->sends)
        return wf_fail_nomem(err, n_outputs * sizeof *f->outputs);
    WF_TRY(list_receives(c, at, f, err));
    for (size_t i = 0; i < n_inputs; i++)
        add_input(f, compiled->graph->inputs[i]->name);
    for (size_t i = 0; i < n_outputs; i++) {
        f->outputs[f->n_outputs] = compiled->outputs[i].name;
        f->values[f->n_outputs++] = compiled->outputs[i].label;
    }
    return list_sends(c, at, f, err);
}

/* With as little of the feeds' content as suffices, so that it can be used for other feeds. */
static wf_status compile_piece(cutter *c, size_t at, char unfed[WF_UNFED_NAME], wf_err *err)
{
    wf_remote_fragment *f = &c->u->r->fragments[c->u->r->n_fragments++];
    copy own = {0};
    wf_status rc = cut_copy(c, at, &own, err);
    bool open;

    f->worker = c->pieces[at].worker;
    open = own.n_fetches > 0;
    for (depth how = SHAPES; rc == WF_OK && open && how <= ALL; how++) {
        rc = compile_to(c->u, &own, how, &f->compiled, err);
        if (rc == WF_OK)
            rc = check_fed(c->u, f->compiled->graph, unfed, err);
        c->u->r->is_for_once |= how > SHAPES;
        open = rc == WF_OK && wf_graph_is_open(f->compiled->graph);
    }
    if (rc == WF_OK)
        rc = list_ports(c, at, f, err);
    close_copy(&own);
    return rc;
}

wf_status wf_remote_compile(wf_remote_unit *u, char unfed[WF_UNFED_NAME], wf_err *err)
{
    cutter c = {.u = u};

    WF_TRY(wf_remote_mark_settled(u, err));
    WF_TRY(place_nodes(&c, err));
    place_constants(&c);
    WF_TRY(place_sends(&c, err));
    if (c.n > WF_REMOTE_FRAGMENTS)
        return wf_fail(err, WF_FULL, "place more of its nodes on one worker",
                       "the run goes from worker to worker %zu times; %d may be", c.n,
                       WF_REMOTE_FRAGMENTS);
    sort_pieces(&c);
    mark_given(&c);
    if (c.n > 1)
        WF_TRY(infer_shapes(u, err));
    u->r->fragments = wf_arena_array(u->r->arena, c.n + 1, sizeof *u->r->fragments);
    if (!u->r->fragments)
        return wf_fail_nomem(err, c.n * sizeof *u->r->fragments);
    for (size_t i = 0; i < c.n; i++)
        WF_TRY(compile_piece(&c, i, unfed, err));
    return WF_OK;
}
