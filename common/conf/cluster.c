/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/cluster.c - cluster.yaml: its keys, and what must hold between the tasks. */
#include "common/base/file.h"
#include "common/base/synonyms.h"
#include "common/conf/address.h"
#include "common/conf/conf.h"
#include "common/conf/read.h"
#include "common/tensor/device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wf_status read_task_address(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    return wf_read_address(r, node, into, err);
}

static wf_status check_device(wf_conf_reader *r, const wf_tree *node, const char *name, wf_err *err)
{
    const char *meaning = wf_synonym(name, 0);
    int index;

    for (const wf_device *const *d = wf_devices; *d; d++)
        if (strcmp((*d)->name, name) == 0)
            return WF_OK;
    if (wf_device_is_gpu(name, &index) || wf_device_is_cpu(name))
        return WF_OK;
    if (meaning && wf_device_is_gpu(meaning, &index))
        return wf_read_fail(r, node, err, WF_USAGE, "write cuda:0 for the first GPU of the host",
                            "unknown device \"%.64s\"", name);
    return wf_read_fail(r, node, err, WF_USAGE,
                        "known: cpu, or cpu:0, cpu:1 and so on; and GPUs as cuda:0, cuda:1",
                        "unknown device \"%.64s\"", name);
}

static wf_status read_devices(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_task_conf *t = into;
    size_t n;

    WF_TRY(wf_read_words(r, node, &t->devices, &n, err));
    if (n == 0)
        return wf_read_fail(r, node, err, WF_USAGE, "write [cpu]", "\"devices\" names none");
    t->n_devices = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        WF_TRY(check_device(r, node, t->devices[i], err));
        for (size_t k = 0; k < i; k++)
            if (strcmp(t->devices[i], t->devices[k]) == 0)
                return wf_read_fail(r, node, err, WF_USAGE, "name each once",
                                    "the device \"%.64s\" is there twice", t->devices[i]);
    }
    return WF_OK;
}

/* Updates are made by processors. */
static wf_status read_devices_of_ps(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    const wf_task_conf *t = into;
    int index;

    WF_TRY(read_devices(r, node, into, err));
    for (uint32_t i = 0; i < t->n_devices; i++)
        if (wf_device_is_gpu(t->devices[i], &index))
            return wf_read_fail(r, node, err, WF_USAGE, "name it under devices of a worker",
                                "a ps has no use for the device \"%.64s\"", t->devices[i]);
    return WF_OK;
}

static wf_status read_task(wf_conf_reader *r, const wf_tree *node, const char *what,
                           const wf_key keys[], wf_task_conf *out, wf_err *err)
{
    static const char *const cpu[] = {"cpu"};

    out->threads = 1;
    out->devices = cpu;
    out->n_devices = 1;
    WF_TRY(wf_read_map(r, node, what, keys, out, err));
    return WF_OK;
}

typedef struct master_conf {
    wf_task_conf task; /* first: read_task fills it */
    const char *http;
} master_conf;

static wf_status read_master(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    static const wf_key keys[] = {
        {"address", WF_KEY_CALL, .read = read_task_address, .required = true},
        {"http", WF_KEY_TEXT, .offset = offsetof(master_conf, http)},
        {0},
    };
    wf_cluster_conf *c = into;
    master_conf m = {0};

    WF_TRY(read_task(r, node, "the master", keys, &m.task, err));
    c->master = m.task;
    c->http = m.http;
    return WF_OK;
}

static wf_status read_tasks(wf_conf_reader *r, const wf_tree *node, const char *what,
                            const wf_key keys[], wf_task_conf **out, uint32_t *n, wf_err *err)
{
    if (node->kind != WF_TREE_LIST || node->n == 0 || node->n > WF_CONF_MAX_TASKS)
        return wf_read_fail(
            r, node, err, WF_USAGE, "write each as - {address: tcp://127.0.0.1:7710}",
            "\"%s\" must be a list of 1 to %d tasks", wf_read_name(node), WF_CONF_MAX_TASKS);
    *out = wf_arena_array(r->arena, node->n, sizeof **out);
    if (!*out)
        return wf_fail_nomem(err, node->n * sizeof **out);
    *n = 0;
    for (const wf_tree *t = node->first; t; t = t->next)
        WF_TRY(read_task(r, t, what, keys, &(*out)[(*n)++], err));
    return WF_OK;
}

static const wf_key ps_keys[] = {
    {"address", WF_KEY_CALL, .read = read_task_address, .required = true},
    {"devices", WF_KEY_CALL, .read = read_devices_of_ps},
    {"threads", WF_KEY_U32, .offset = offsetof(wf_task_conf, threads), .least = 1, .most = 1024},
    {"host", WF_KEY_LATER},
    {"memory_limit", WF_KEY_LATER},
    {0},
};

static const wf_key worker_keys[] = {
    {"address", WF_KEY_CALL, .read = read_task_address, .required = true},
    {"devices", WF_KEY_CALL, .read = read_devices},
    {"threads", WF_KEY_U32, .offset = offsetof(wf_task_conf, threads), .least = 1, .most = 1024},
    {"host", WF_KEY_LATER},
    {"memory_limit", WF_KEY_LATER},
    {0},
};

static wf_status read_ps(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_cluster_conf *c = into;

    return read_tasks(r, node, "a ps", ps_keys, &c->ps, &c->n_ps, err);
}

static wf_status read_workers(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_cluster_conf *c = into;

    return read_tasks(r, node, "a worker", worker_keys, &c->workers, &c->n_workers, err);
}

static wf_status read_security(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_cluster_conf *c = into;

    if (node->kind == WF_TREE_TEXT && strcmp(node->text, "none") == 0) {
        c->security_none = true;
        return WF_OK;
    }
    if (wf_tree_get(node, "curve"))
        return wf_read_fail(r, node, err, WF_UNSUPPORTED,
                            "leave it out on one host, or write security: none",
                            "\"security: {curve: ...}\" is not built yet");
    return wf_read_fail(r, node, err, WF_USAGE, NULL, "\"security\" is none or {curve: FOLDER}");
}

static wf_status read_checksums(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_cluster_conf *c = into;

    c->checksums_always = node->kind == WF_TREE_TEXT && strcmp(node->text, "always") == 0;
    if (c->checksums_always ||
        (node->kind == WF_TREE_TEXT && strcmp(node->text, "between_hosts") == 0))
        return WF_OK;
    return wf_read_fail(r, node, err, WF_USAGE, NULL, "\"checksums\" is between_hosts or always");
}

static wf_status read_off(wf_conf_reader *r, const wf_tree *node, const char *key, bool *off,
                          wf_err *err)
{
    *off = node->kind == WF_TREE_TEXT && strcmp(node->text, "off") == 0;
    if (*off || (node->kind == WF_TREE_TEXT && strcmp(node->text, "on") == 0))
        return WF_OK;
    return wf_read_fail(r, node, err, WF_USAGE, NULL, "\"%s\" is on or off", key);
}

static wf_status read_shared_memory(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    return read_off(r, node, "shared_memory", &((wf_cluster_conf *)into)->shared_memory_off, err);
}

static wf_status read_direct(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    return read_off(r, node, "direct_connections",
                    &((wf_cluster_conf *)into)->direct_connections_off, err);
}

static const wf_key cluster_keys[] = {
    {"cluster", WF_KEY_TEXT, .offset = offsetof(wf_cluster_conf, name)},
    {"master", WF_KEY_CALL, .read = read_master, .required = true},
    {"ps", WF_KEY_CALL, .read = read_ps},
    {"workers", WF_KEY_CALL, .read = read_workers, .required = true},
    {"state_dir", WF_KEY_PATH, .offset = offsetof(wf_cluster_conf, state_dir)},
    {"checkpoint_dir", WF_KEY_PATH, .offset = offsetof(wf_cluster_conf, checkpoint_dir)},
    {"security", WF_KEY_CALL, .read = read_security},
    {"heartbeat_ms", WF_KEY_U64, .offset = offsetof(wf_cluster_conf, heartbeat_ms), .least = 10,
     .most = 60000},
    {"dead_ms", WF_KEY_U64, .offset = offsetof(wf_cluster_conf, dead_ms), .least = 50,
     .most = 600000},
    {"stuck_ms", WF_KEY_U64, .offset = offsetof(wf_cluster_conf, stuck_ms), .least = 500,
     .most = 86400000},
    {"checksums", WF_KEY_CALL, .read = read_checksums},
    {"shared_memory", WF_KEY_CALL, .read = read_shared_memory},
    {"direct_connections", WF_KEY_CALL, .read = read_direct},
    {"session_values", WF_KEY_U32, .offset = offsetof(wf_cluster_conf, session_values), .least = 1,
     .most = 16384},
    {"session_values_mib", WF_KEY_U32, .offset = offsetof(wf_cluster_conf, session_values_mib),
     .least = 1, .most = 1 << 20},
    {"serve", WF_KEY_LATER},
    {"replicas", WF_KEY_LATER},
    {0},
};

/* Task i of all: the master, then the ps, then the workers; NULL past the end. */
static const wf_task_conf *task_at(const wf_cluster_conf *c, size_t i, char name[32])
{
    if (i == 0) {
        snprintf(name, 32, "the master");
        return &c->master;
    }
    i--;
    if (i < c->n_ps) {
        snprintf(name, 32, "ps/%zu", i);
        return &c->ps[i];
    }
    i -= c->n_ps;
    if (i < c->n_workers) {
        snprintf(name, 32, "worker/%zu", i);
        return &c->workers[i];
    }
    return NULL;
}

static wf_status check_addresses(wf_conf_reader *r, const wf_cluster_conf *c, wf_err *err)
{
    char name[32], other[32];
    const wf_task_conf *t, *o;

    for (size_t i = 0; (t = task_at(c, i, name)); i++) {
        if (!wf_address_is_local(t) && !c->security_none)
            return wf_fail(err, WF_USAGE, "write security: none if the network is trusted",
                           "%s:%d: %s is at %.200s: plain text off this host", r->path, t->line,
                           name, t->address);
        for (size_t k = 0; k < i; k++) {
            o = task_at(c, k, other);
            if (wf_address_same(t, o))
                return wf_fail(err, WF_USAGE, "give each task its own port",
                               "%s:%d: %s has the address %.200s, and so has %s (line %d)", r->path,
                               t->line, name, t->address, other, o->line);
        }
    }
    return WF_OK;
}

static wf_status check_cluster(wf_conf_reader *r, const wf_tree *root, wf_cluster_conf *c,
                               wf_err *err)
{
    if (strlen(c->name) > WF_CONF_MAX_NAME)
        return wf_read_fail(r, root, err, WF_USAGE, NULL,
                            "the cluster's name has %zu letters; %d may be", strlen(c->name),
                            WF_CONF_MAX_NAME);
    if (c->dead_ms < 2 * c->heartbeat_ms)
        return wf_read_fail(r, root, err, WF_USAGE, "make it three times as long or more",
                            "\"dead_ms\" %" PRId64 " is less than two heartbeats of %" PRId64 " ms",
                            c->dead_ms, c->heartbeat_ms);
    if (c->stuck_ms < c->dead_ms)
        return wf_read_fail(r, root, err, WF_USAGE, "make it ten times as long",
                            "\"stuck_ms\" %" PRId64 " is less than \"dead_ms\" %" PRId64,
                            c->stuck_ms, c->dead_ms);
    if (!c->state_dir)
        c->state_dir = wf_arena_printf(c->arena, "%s/.weft", r->folder);
    if (c->state_dir && !c->checkpoint_dir)
        c->checkpoint_dir = wf_arena_printf(c->arena, "%s/checkpoints", c->state_dir);
    if (!c->state_dir || !c->checkpoint_dir)
        return wf_fail_nomem(err, strlen(r->folder));
    return check_addresses(r, c, err);
}

static wf_status fill(wf_cluster_conf *c, const char *text, size_t size, const char *path,
                      wf_err *err)
{
    wf_conf_reader r = {.path = path, .arena = c->arena};
    const char *base = strrchr(path, '/');
    wf_tree *root;

    c->name = "default";
    c->heartbeat_ms = 1000;
    c->dead_ms = 5000;
    c->stuck_ms = 60000;
    c->session_values = 1024;
    c->session_values_mib = 64;
    WF_TRY(wf_read_folder(path, c->arena, &r.folder, err));
    c->path = wf_arena_printf(c->arena, "%s/%s", r.folder, base ? base + 1 : path);
    if (!c->path)
        return wf_fail_nomem(err, strlen(path));
    WF_TRY(wf_tree_parse(text, size, path, c->arena, &root, err));
    WF_TRY(wf_read_map(&r, root, "the cluster", cluster_keys, c, err));
    return check_cluster(&r, root, c, err);
}

wf_status wf_cluster_parse(const char *text, size_t size, const char *path, wf_cluster_conf **out,
                           wf_err *err)
{
    wf_arena *arena = wf_arena_new(64 << 20);
    wf_cluster_conf *c = arena ? wf_arena_alloc(arena, sizeof *c) : NULL;
    wf_status rc;

    if (!c) {
        wf_arena_free(&arena);
        return wf_fail_nomem(err, sizeof *c);
    }
    c->arena = arena;
    rc = fill(c, text, size, path, err);
    if (rc != WF_OK) {
        wf_arena_free(&arena);
        return rc;
    }
    *out = c;
    return WF_OK;
}

wf_status wf_cluster_load(const char *path, wf_cluster_conf **out, wf_err *err)
{
    wf_bytes text = {0};
    wf_status rc = wf_file_read(path, WF_CONF_MAX_BYTES, &text, err);

    if (rc == WF_NOTFOUND)
        return wf_fail(err, rc, "give the path of a cluster.yaml; the README shows one",
                       "there is no cluster file %s", path);
    if (rc == WF_OK)
        rc = wf_cluster_parse(wf_bytes_str(&text), text.size, path, out, err);
    wf_bytes_close(&text);
    return rc;
}

void wf_cluster_free(wf_cluster_conf **c)
{
    wf_arena *arena = *c ? (*c)->arena : NULL;

    *c = NULL;
    wf_arena_free(&arena);
}
