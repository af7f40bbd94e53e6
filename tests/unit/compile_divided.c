/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_divided.c - a model that is divided among workers: its stages, run one after
 * the other, compute what the whole graph does, bit for bit. */
#include "common/exec/exec.h"
#include "tests/unit/compile_util.h"

#include <stdlib.h>

#define MODEL                                                                                      \
    "job: j\n"                                                                                     \
    "model:\n"                                                                                     \
    "  input: {x: [12]}\n"                                                                         \
    "  layers:\n"                                                                                  \
    "    - dense: {units: 16, activation: relu, name: block0}\n"                                   \
    "    - layer_normalization: {name: norm0}\n"                                                   \
    "    - dense: {units: 16, activation: tanh, name: block1}\n"                                   \
    "    - dropout: {rate: 0.25, name: drop}\n"                                                    \
    "    - add: {inputs: [drop, norm0], name: sum}\n"                                              \
    "    - batch_normalization: {name: norm1}\n"                                                   \
    "    - dense: {units: 16, activation: gelu, name: block2}\n"                                   \
    "    - add: {inputs: [block2, norm0], name: far}\n"                                            \
    "    - dense: {units: 5, name: head}\n"                                                        \
    "loss: sparse_categorical_crossentropy\n"                                                      \
    "metrics: [accuracy]\n"                                                                        \
    "data: {format: idx, train: {x: a.gz, y: b.gz}}\n"                                             \
    "batch: 16\n"                                                                                  \
    "seed: 3\n"                                                                                    \
    "optimizer: adam\n"

enum { RECORDS = 4, MOST = 256 };

static wf_job_conf *parse(const char *place)
{
    char *text = malloc(strlen(MODEL) + strlen(place) + 1);
    wf_job_conf *j = NULL;
    wf_err err = {0};

    assert_non_null(text);
    strcpy(text, MODEL);
    strcat(text, place);
    must(wf_job_parse(text, strlen(text), "/jobs/j.yaml", &j, &err), &err);
    free(text);
    return j;
}

/* Each has a processor and two GPUs, in that order. */
static wf_stage_workers workers_of(uint32_t n)
{
    static const char *const names[] = {"cpu", "cuda:1", "cuda:0"};
    static wf_worker_devices rows[4];

    assert_true(n <= WF_COUNT(rows));
    for (uint32_t i = 0; i < n; i++)
        rows[i] = (wf_worker_devices){names, WF_COUNT(names)};
    return (wf_stage_workers){rows, n};
}

static void spec_of(const wf_job_conf *j, wf_compile_mode mode, uint32_t n_workers, wf_model *m,
                    wf_compile_spec *spec)
{
    const wf_stage_workers of =
        j->finds_stages ? (wf_stage_workers){NULL, n_workers} : workers_of(n_workers);
    wf_stage_home homes[WF_STAGES_MOST];
    wf_err err = {0};
    uint32_t n;

    wf_compile_spec_of_job(j, mode, wf_strategy_find(j->place_line ? "stages" : "local"), 0, m,
                           spec);
    spec->train_metrics = true;
    spec->is_portable = mode == WF_COMPILE_INFER;
    spec->n_stages = mode == WF_COMPILE_INFER;
    if (!j->place_line)
        return;
    spec->is_blank = mode == WF_COMPILE_INFER;
    must(wf_stages_of_job(j, &of, homes, &n, &err), &err);
    wf_stages_put(j, homes, n, spec);
}

static wf_compiled *compiled(const char *place, wf_compile_mode mode, uint32_t n_workers)
{
    wf_job_conf *j = parse(place);
    wf_compile_spec spec;
    wf_compiled *c;
    wf_model m;

    spec_of(j, mode, n_workers, &m, &spec);
    c = compile(&spec);
    wf_job_free(&j);
    return c;
}

/* ---- running ---- */

/* What ports have held, by name: "NAME" for values, "push NAME" for what variables get. */
typedef struct store {
    struct {
        char name[160];
        wf_port port;
        void *data;
    } rows[MOST];
    size_t n;
} store;

static void close_store(store *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->rows[i].data);
    s->n = 0;
}

static size_t find(const store *s, const char *prefix, const char *name)
{
    char full[160];
    size_t i = 0;

    snprintf(full, sizeof full, "%s%s", prefix, name);
    while (i < s->n && strcmp(s->rows[i].name, full) != 0)
        i++;
    return i;
}

static void put(store *s, const char *prefix, const char *name, const wf_port *port,
                const void *data)
{
    size_t i = find(s, prefix, name);

    assert_true(i == s->n && i < MOST); /* each value is made by one stage */
    snprintf(s->rows[i].name, sizeof s->rows[i].name, "%s%s", prefix, name);
    s->rows[i].port = *port;
    s->rows[i].data = malloc(port->bytes + 1);
    assert_non_null(s->rows[i].data);
    memcpy(s->rows[i].data, data, port->bytes);
    s->n++;
}

/* Numbers that follow from the name; of integers, classes. */
static void fill(const char *name, const wf_port *port, void *to)
{
    uint64_t state = 77;

    for (const char *p = name; *p; p++)
        state = state * 31 + (uint8_t)*p;
    for (int64_t i = 0; i < port->elems; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        if (port->dtype == WF_F32)
            ((float *)to)[i] = (float)(state >> 40) / (float)(1 << 23) - 0.9f;
        else
            ((int64_t *)to)[i] = (int64_t)(state >> 40) % 5;
    }
}

static const wf_compiled_edge *edge_of(const wf_compiled *c, const char *name)
{
    for (size_t i = 0; i < c->n_edges; i++)
        if (strcmp(c->edges[i].name, name) == 0)
            return &c->edges[i];
    return NULL;
}

static wf_plan *plan_of(const wf_compiled *c, const wf_graph *g, const store *s)
{
    wf_plan_shape shapes[MOST];
    wf_plan_options o = {.shapes = shapes};
    wf_plan *p = NULL;
    wf_err err = {0};

    for (size_t i = 0; i < g->n_inputs; i++) {
        const wf_value *v = g->inputs[i];
        size_t at = find(s, "", v->name);
        wf_plan_shape *shape = &shapes[o.n_shapes++];

        *shape = (wf_plan_shape){.name = v->name, .rank = (uint32_t)v->rank};
        for (int32_t k = 0; k < v->rank; k++) {
            const wf_compiled_edge *e = edge_of(c, v->name);

            shape->dims[k] = at < s->n             ? s->rows[at].port.dims[k]
                             : v->axes[k].size < 0 ? RECORDS
                                                   : v->axes[k].size;
            if (e) /* what the list of edges says */
                assert_int_equal(shape->dims[k],
                                 e->sizes[k] < 0 ? -e->sizes[k] * RECORDS : e->sizes[k]);
        }
    }
    must(wf_plan_new(g, &o, &p, &err), &err);
    return p;
}

static void run(const wf_compiled *c, const wf_graph *g, store *s)
{
    wf_plan *p = plan_of(c, g, s);
    void *made[MOST];
    wf_err err = {0};

    for (uint32_t i = 0; i < wf_plan_n_inputs(p); i++) {
        const wf_port *port = wf_plan_input(p, i);
        size_t at = find(s, "", port->name);

        made[i] = malloc(port->bytes + 1);
        assert_non_null(made[i]);
        if (!port->variable && at < s->n)
            memcpy(made[i], s->rows[at].data, port->bytes);
        else
            fill(port->variable ? port->variable : port->name, port, made[i]);
        if (port->variable || g->n_inputs > i)
            wf_plan_bind_input(p, i, made[i]);
        if (!port->variable && at == s->n && wf_graph_value(g, port->name)->is_input)
            put(s, "", port->name, port, made[i]);
    }
    must(wf_plan_run(p, &(wf_step_key){3, 1, 2, 7}, NULL, NULL, &err), &err);
    for (uint32_t i = 0; i < wf_plan_n_outputs(p); i++) {
        const wf_port *port = wf_plan_output(p, i);

        put(s, port->variable ? "push " : "", port->variable ? port->variable : port->name, port,
            wf_plan_output_data(p, i));
    }
    for (uint32_t i = 0; i < wf_plan_n_inputs(p); i++)
        free(made[i]);
    wf_plan_free(&p);
}

static void run_part(const wf_compiled *c, uint32_t stage, bool backward, store *s)
{
    wf_err err = {0};
    wf_graph *g = NULL;

    must(wf_stages_cut(c, stage, backward, &g, &err), &err);
    assert_int_equal(count_op(g, "Send") + count_op(g, "Recv"), 0);
    for (size_t i = 0; i < g->n_inputs; i++) /* it is there already, or fed */
        assert_true(find(s, "", g->inputs[i]->name) < s->n || (stage == 0 && !backward));
    if (g->n_nodes > 0)
        run(c, g, s);
    wf_graph_free(&g);
}

static void run_all(const wf_compiled *c, store *s)
{
    for (uint32_t stage = 0; stage < c->n_stages; stage++)
        run_part(c, stage, false, s);
    for (uint32_t stage = c->n_stages; stage-- > 0;)
        run_part(c, stage, true, s);
}

/* All that the whole graph gives. */
static void assert_same(const store *whole, const store *divided)
{
    for (size_t i = 0; i < whole->n; i++) {
        size_t at = find(divided, "", whole->rows[i].name);

        if (at == divided->n)
            fail_msg("the stages do not give \"%s\"", whole->rows[i].name);
        assert_int_equal(divided->rows[at].port.bytes, whole->rows[i].port.bytes);
        assert_memory_equal(divided->rows[at].data, whole->rows[i].data, whole->rows[i].port.bytes);
    }
}

static void compare(const char *place, wf_compile_mode mode, uint32_t n_workers, uint32_t n_stages)
{
    wf_compiled *one = compiled("", mode, n_workers), *divided = compiled(place, mode, n_workers);
    static store whole, parts;

    assert_int_equal(divided->n_stages, n_stages);
    run(one, one->graph, &whole);
    run_all(divided, &parts);
    assert_same(&whole, &parts);
    close_store(&whole);
    close_store(&parts);
    wf_compiled_free(&one);
    wf_compiled_free(&divided);
}

static const char two[] = "place: {\"block0/*\": worker/0, \"norm1/*\": worker/1}\n";
static const char devices[] = "place: {\"block0/*\": worker/0, \"norm1/*\": worker/0/cuda:0}\n";
static const char four[] = "place: {\"block0/*\": worker/0, \"block1/*\": worker/1,\n"
                           "        \"block2/*\": worker/2, \"head/*\": worker/3}\n";

static void stages_compute_what_the_whole_graph_does(void **state)
{
    (void)state;
    compare(two, WF_COMPILE_TRAIN, 2, 2);
    compare(devices, WF_COMPILE_TRAIN, 1, 2);
    compare(devices, WF_COMPILE_INFER, 1, 2);
    compare(four, WF_COMPILE_TRAIN, 4, 4);
    compare(four, WF_COMPILE_EVAL, 4, 4);
    compare("place: auto\nmicro_batches: 4\n", WF_COMPILE_TRAIN, 3, 3);
    compare("place: auto\n", WF_COMPILE_EVAL, 2, 2);
    compare(two, WF_COMPILE_INFER, 2, 2);
    compare(four, WF_COMPILE_INFER, 4, 4);
    compare("place: auto\nmicro_batches: 4\n", WF_COMPILE_INFER, 3, 3);
}

/* Whoever predicts reads the content of a checkpoint. */
static void inference_over_stages_has_variables_without_content(void **state)
{
    wf_compiled *c = compiled(four, WF_COMPILE_INFER, 4);
    int64_t at = wf_compiled_find(c, "head/kernel");
    const wf_tensor *t;

    (void)state;
    assert_true(at >= 0);
    t = c->variables[at].initial;
    assert_int_equal(c->variables[at].stage, 3);
    for (int64_t i = 0; i < wf_elems(t); i++)
        assert_true(wf_f32(t)[i] == 0);
    assert_int_equal(count_op(c->graph, "BatchNormalization"), 1); /* nothing is fused */
    assert_int_equal(c->edges[0].sizes[0], -1);
    wf_compiled_free(&c);
}

static uint32_t stage_of(const wf_compiled *c, const char *variable)
{
    int64_t at = wf_compiled_find(c, variable);

    assert_true(at >= 0);
    return c->variables[at].stage;
}

static void layers_that_no_pattern_names_follow_what_they_read(void **state)
{
    wf_compiled *c = compiled(four, WF_COMPILE_TRAIN, 4);

    (void)state;
    assert_int_equal(stage_of(c, "block0/bias"), 0);
    assert_int_equal(stage_of(c, "norm0/gamma"), 0);
    assert_int_equal(stage_of(c, "block1/kernel"), 1);
    assert_int_equal(stage_of(c, "norm1/gamma"), 1);
    assert_int_equal(stage_of(c, "norm1/moving_mean"), 1);
    assert_int_equal(stage_of(c, "head/kernel"), 3);
    wf_compiled_free(&c);
}

/* Labels go straight to the loss, and nothing but activations and gradients travels beside. */
static void each_edge_has_a_send_and_a_recv(void **state)
{
    wf_compiled *c = compiled(four, WF_COMPILE_TRAIN, 4);
    size_t results = 0;

    (void)state;
    for (size_t i = 0; i < c->n_edges; i++) {
        results += c->edges[i].is_result;
        if (strcmp(c->edges[i].name, "y") == 0)
            assert_true(c->edges[i].from == 0 && c->edges[i].to == 3);
        assert_true(c->edges[i].rank == 0 || c->edges[i].sizes[0] == -1);
    }
    assert_int_equal(results, 2);
    assert_non_null(edge_of(c, "y"));
    assert_int_equal(count_op(c->graph, "Send"), c->n_edges - results);
    assert_int_equal(count_op(c->graph, "Recv"), c->n_edges - results);
    wf_compiled_free(&c);
}

/* Where stages are: by worker, and by the list of a worker's devices. */
static void stages_are_in_the_order_of_the_cluster(void **state)
{
    static const struct {
        const char *place;
        uint32_t n_workers;
        const char *homes; /* between blanks */
    } cases[] = {
        {"place: {\"block0/*\": worker/0, \"head/*\": worker/1}\n", 2, "worker/0 worker/1"},
        {"place: {\"block0/*\": worker/1, \"head/*\": worker/0}\n", 2, "worker/0 worker/1"},
        {"place: {\"block0/*\": worker/0/cuda:0, \"head/*\": worker/0/cpu:0, \"a\": "
         "worker/0/cuda:0, "
         "\"b\": worker/0/cuda:1, \"c\": worker/1}\n",
         2, "worker/0/cpu worker/0/cuda:1 worker/0/cuda:0 worker/1"},
        {"place: {\"block0/*\": worker/0, \"head/*\": worker/0/cuda:0}\n", 1,
         "worker/0 worker/0/cuda:0"},
        {"place: {\"block0/*\": cuda:0, \"head/*\": cuda:1}\n", 1,
         "worker/0/cuda:1 worker/0/cuda:0"},
        {"place: auto\n", 2,
         "worker/0/cpu worker/0/cuda:1 worker/0/cuda:0 worker/1/cpu worker/1/cuda:1 "
         "worker/1/cuda:0"},
    };

    (void)state;
    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        wf_job_conf *j = parse(cases[i].place);
        const wf_stage_workers of = workers_of(cases[i].n_workers);
        wf_stage_home homes[WF_STAGES_MOST];
        char text[512] = "", one[96];
        wf_err err = {0};
        uint32_t n;

        j->micro_batches = 1;
        must(wf_stages_of_job(j, &of, homes, &n, &err), &err);
        for (uint32_t k = 0; k < n; k++) {
            strcat(text, k ? " " : "");
            strcat(text, wf_stage_home_str(&homes[k], one, sizeof one));
        }
        assert_string_equal(text, cases[i].homes);
        wf_job_free(&j);
    }
}

static void what_cannot_be_divided_is_said(void **state)
{
    static const struct {
        const char *place, *says;
    } cases[] = {
        {"place: {\"block0/*\": worker/0, \"blok2/*\": worker/1}\n",
         "/jobs/j.yaml:20: place: \"blok2/*\" matches no variable of the model; there is \"block"},
        {"place: {\"block0/*\": worker/1, \"block1/*\": worker/0}\n",
         "/jobs/j.yaml:20: place: \"block1/kernel\" is on worker/0, and what it is used with"},
        {"place: {\"*\": worker/0, \"head/*\": worker/1}\n",
         "/jobs/j.yaml:20: place: worker/1 gets no variable"},
        {"place: {\"block0/*\": worker/0, \"head/*\": worker/9}\n",
         "/jobs/j.yaml:20: place: \"head/*\" is to be on worker/9, and the cluster has 4 workers"},
        {"place: {\"block0/*\": worker/0}\n", "among workers and their devices, and there is one"},
        {"place: {\"block0/*\": worker/0, \"head/*\": worker/0/cuda:2}\n",
         "/jobs/j.yaml:20: place: \"head/*\" is to be on cuda:2 of worker/0, which has cpu, "
         "cuda:1, "
         "cuda:0"},
        {"place: {\"block0/*\": worker/0, \"head/*\": cuda:1}\n",
         "/jobs/j.yaml:20: place: \"head/*\" is to be on cuda:1, and the cluster has 4 workers"},
        {"place: {\"block0/*\": worker/0/cuda:0, \"head/*\": worker/0/cuda:1}\n",
         "/jobs/j.yaml:20: place: \"head/kernel\" is on worker/0/cuda:1, and what it is used "
         "with, "},
        {"place: {\"block0/*\": worker/0/cuda:1, \"block1/*\": worker/0/cpu, \"head/*\": "
         "worker/1}\n"
         "micro_batches: 4\n",
         "comes from worker/0/cuda:1: values go from a device to those behind it in the list of "
         "the "
         "worker's devices alone"},
        {"place: {\"block0/*\": worker/0, \"head/*\": worker/0/cpu}\n",
         "/jobs/j.yaml:20: place: worker/0 and worker/0/cpu are one device under two names"},
        {"place: {\"block0/*\": worker/0/cpu:0, \"block1/*\": worker/0/cuda:1, \"head/*\": "
         "worker/0/cpu}\n",
         "/jobs/j.yaml:20: place: worker/0/cpu:0 and worker/0/cpu are one device under two names"},
        {"place: {\"*\": worker/0/cpu, \"head/*\": worker/0/cuda:0}\n",
         "/jobs/j.yaml:20: place: worker/0/cuda:0 gets no variable"},
        {"place: {\"block0/*\": worker/0, \"block1/*\": worker/1, \"head/*\": worker/2}\n",
         "a batch of 16 is not divided by the 3 micro-batches"},
    };

    (void)state;
    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        wf_job_conf *j = parse(cases[i].place);
        const wf_stage_workers of = workers_of(4);
        wf_stage_home homes[WF_STAGES_MOST];
        wf_compile_spec spec;
        wf_compiled *c = NULL;
        wf_err err = {0};
        wf_model m;
        uint32_t n;
        wf_status rc = wf_stages_of_job(j, &of, homes, &n, &err);

        if (rc == WF_OK) {
            spec_of(j, WF_COMPILE_TRAIN, 4, &m, &spec);
            rc = wf_compile(&spec, &c, &err);
        }
        assert_int_equal(rc, WF_USAGE);
        assert_says(err, cases[i].says);
        wf_job_free(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_compute_what_the_whole_graph_does),
        cmocka_unit_test(stages_are_in_the_order_of_the_cluster),
        cmocka_unit_test(inference_over_stages_has_variables_without_content),
        cmocka_unit_test(layers_that_no_pattern_names_follow_what_they_read),
        cmocka_unit_test(each_edge_has_a_send_and_a_recv),
        cmocka_unit_test(what_cannot_be_divided_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
