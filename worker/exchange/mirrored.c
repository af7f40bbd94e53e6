/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/mirrored.c - variables of a model's replicas.
 *
 * Replicas that share the memory of the host share its variables too: they are those of
 * exchange/local.c, and the trainer adds up what the replicas compute (worker/gradients.h). So are
 * those of devices that update none (wf_updates_of).
 *
 * Else each device has a copy: weights, slots and gradients, as exchange/local_device.c has them.
 * At the end of a step the devices add up their gradients, and each makes the same update of the
 * same bits, so that copies stay equal. The first is what checkpoints and evaluations see.
 */
#include "worker/exchange/local_state.h"

#include <stdlib.h>

typedef struct mirrored {
    wf_local first; /* first */
    wf_exchange_ops ops;
    wf_exchange **others; /* [n_others], each a wf_local; opened from the first on */
    uint32_t n_others;
    wf_device_group *group;
    wf_stream **streams;         /* [1 + n_others]: of the copies */
    wf_group_segment **segments; /* [1 + n_others][n_variables] */
} mirrored;

static uint32_t count_copies(const mirrored *m)
{
    return 1 + m->n_others;
}

static wf_exchange *copy_of(mirrored *m, uint32_t i)
{
    return i == 0 ? &m->first.base : m->others[i - 1];
}

static wf_exchange *of_replica(wf_exchange *x, uint32_t replica)
{
    return copy_of((mirrored *)x, replica);
}

static wf_status push(wf_exchange *x, uint32_t step, uint32_t number, wf_err *err)
{
    mirrored *m = (mirrored *)x;

    for (uint32_t i = 0; i < count_copies(m); i++)
        WF_TRY(wf_local_ops.push(copy_of(m, i), step, number, err));
    return WF_OK;
}

/* Lists the gradients of a copy that were pushed. */
static size_t list_pushed(const wf_local *l, wf_group_segment out[])
{
    size_t n = 0;

    for (uint32_t i = 0; i < l->n_variables; i++) {
        const wf_local_variable *v = &l->variables[i];

        if (v->pushed)
            out[n++] = (wf_group_segment){v->count, v->gradient->data};
    }
    return n;
}

/* Queues the sums on the streams of updates: these come behind. */
static wf_status add_up(mirrored *m, wf_err *err)
{
    size_t n = 0;

    for (uint32_t i = 0; i < count_copies(m); i++)
        n = list_pushed((const wf_local *)copy_of(m, i), m->segments[i]);
    if (n == 0)
        return WF_OK;
    return wf_err_wrap(err,
                       m->first.conf.place.groups->sum(m->group, m->streams, n,
                                                       (const wf_group_segment *const *)m->segments,
                                                       err),
                       "adding up gradients");
}

static wf_status end_step(wf_exchange *x, uint32_t step, wf_err *err)
{
    mirrored *m = (mirrored *)x;

    WF_TRY(add_up(m, err));
    for (uint32_t i = 0; i < count_copies(m); i++)
        WF_TRY(wf_local_ops.end_step(copy_of(m, i), step, err));
    return WF_OK;
}

static wf_status tune(wf_exchange *x, double learning_rate, wf_err *err)
{
    mirrored *m = (mirrored *)x;

    for (uint32_t i = 0; i < count_copies(m); i++)
        WF_TRY(wf_local_ops.tune(copy_of(m, i), learning_rate, err));
    return WF_OK;
}

/* ---- beginning and end ---- */

/* No copy goes before all have ended what they do together. */
static void mirrored_free(wf_exchange *x)
{
    mirrored *m = (mirrored *)x;

    for (uint32_t i = 0; m->group && i < count_copies(m); i++) {
        wf_err ignored;
        wf_status rc = wf_stream_wait(m->streams[i], &ignored);

        (void)rc; /* a failure was told by the step that waited for it, or the job is over */
    }
    if (m->group)
        m->first.conf.place.groups->close(&m->group);
    for (uint32_t i = 0; m->others && i < m->n_others; i++)
        wf_exchange_free(&m->others[i]);
    for (uint32_t i = 0; m->segments && i < count_copies(m); i++)
        free(m->segments[i]);
    free(m->others);
    free(m->segments);
    free(m->streams);
    wf_local_close(&m->first);
    free(m);
}

static wf_status open_others(mirrored *m, const wf_exchange_conf *conf, wf_err *err)
{
    m->others = calloc(conf->place.n_others, sizeof(*m->others));
    if (!m->others)
        return wf_fail_nomem(err, conf->place.n_others * sizeof(*m->others));
    m->n_others = conf->place.n_others;
    for (uint32_t i = 0; i < m->n_others; i++) {
        wf_exchange_conf own = *conf;

        own.place.device = conf->place.others[i];
        WF_TRY(wf_local_open(&own, &m->others[i], err));
    }
    return WF_OK;
}

static wf_status make_segments(mirrored *m, wf_err *err)
{
    size_t bytes = (m->first.n_variables + (size_t)1) * sizeof(wf_group_segment);

    m->streams = calloc(count_copies(m), sizeof(*m->streams));
    m->segments = calloc(count_copies(m), sizeof(*m->segments));
    if (!m->streams || !m->segments)
        return wf_fail_nomem(err, count_copies(m) * sizeof(*m->segments));
    for (uint32_t i = 0; i < count_copies(m); i++) {
        m->streams[i] = ((wf_local *)copy_of(m, i))->on.stream;
        m->segments[i] = malloc(bytes);
        if (!m->segments[i])
            return wf_fail_nomem(err, bytes);
    }
    return WF_OK;
}

static wf_status join(mirrored *m, const wf_exchange_place *place, wf_err *err)
{
    const wf_device **devices = calloc(count_copies(m), sizeof(*devices));
    wf_status rc;

    if (!devices)
        return wf_fail_nomem(err, count_copies(m) * sizeof(*devices));
    devices[0] = place->device;
    for (uint32_t i = 0; i < m->n_others; i++)
        devices[1 + i] = place->others[i];
    rc = place->groups->open(devices, count_copies(m), &m->group, err);
    free(devices);
    return rc;
}

static wf_status open_copies(mirrored *m, const wf_exchange_conf *conf, wf_err *err)
{
    m->ops = wf_local_ops;
    m->ops.free = mirrored_free;
    m->ops.of_replica = of_replica;
    m->ops.push = push;
    m->ops.end_step = end_step;
    m->ops.tune = tune;
    WF_TRY(wf_local_init(&m->first, &m->ops, conf, err));
    WF_TRY(open_others(m, conf, err));
    WF_TRY(make_segments(m, err));
    return join(m, &conf->place, err);
}

/* Homes are the same for all variables of a job without tables, and this one has none. */
static bool are_on_devices(const wf_exchange_conf *conf)
{
    return conf->start->n_variables > 0 &&
           !wf_exchange_home(conf->start, conf->place.device, 0)->is_host;
}

static wf_status mirrored_open(const wf_exchange_conf *conf, wf_exchange **out, wf_err *err)
{
    mirrored *m;
    wf_status rc;

    if (conf->place.n_others == 0 || !are_on_devices(conf))
        return wf_local_open(conf, out, err);
    if (!conf->place.groups)
        return wf_fail(err, WF_UNSUPPORTED, "list one of them under devices in cluster.yaml",
                       "devices as %s do not add up gradients", conf->place.device->name);
    m = calloc(1, sizeof *m);
    if (!m)
        return wf_fail_nomem(err, sizeof *m);
    *out = &m->first.base;
    rc = open_copies(m, conf, err);
    if (rc != WF_OK)
        wf_exchange_free(out);
    return rc;
}

const wf_exchange_kind wf_exchange_mirrored = {
    .name = "mirrored",
    .mirrors = true,
    .open = mirrored_open,
    .home = wf_local_home,
    .device_bytes = wf_local_device_bytes,
};
