/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/local.c - a cluster on this host that nobody wrote down, and cluster files written.
 */
#include "common/base/file.h"
#include "common/conf/address.h"
#include "common/conf/conf.h"
#include "common/conf/ports.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

static wf_status place_task(wf_cluster_conf *c, wf_task_conf *t, const char *role, uint32_t index,
                            const uint32_t *port, wf_err *err)
{
    static const char *const cpu[] = {"cpu"};

    t->threads = 1;
    t->devices = cpu;
    t->n_devices = 1;
    if (port) {
        t->host = "127.0.0.1";
        t->port = *port;
        t->address = wf_arena_printf(c->arena, "tcp://127.0.0.1:%u", *port);
    } else {
        t->address = wf_arena_printf(c->arena, "ipc://%s/run/%s-%u", c->state_dir, role, index);
        t->path = t->address ? t->address + strlen("ipc://") : NULL;
    }
    return t->address ? WF_OK : wf_fail_nomem(err, 64);
}

static wf_status place_all(wf_cluster_conf *c, bool tcp, wf_err *err)
{
    uint32_t ports[WF_PORTS_MOST];

    tcp |= strlen(c->state_dir) + strlen("/run/worker-1023.w") > WF_IPC_MAX;
    if (tcp)
        WF_TRY(wf_ports_draw(ports, 1 + c->n_ps + c->n_workers, err));
    WF_TRY(place_task(c, &c->master, "master", 0, tcp ? &ports[0] : NULL, err));
    for (uint32_t i = 0; i < c->n_ps; i++)
        WF_TRY(place_task(c, &c->ps[i], "ps", i, tcp ? &ports[1 + i] : NULL, err));
    for (uint32_t i = 0; i < c->n_workers; i++)
        WF_TRY(
            place_task(c, &c->workers[i], "worker", i, tcp ? &ports[1 + c->n_ps + i] : NULL, err));
    return WF_OK;
}

static wf_status fill(wf_cluster_conf *c, const char *state_dir, bool tcp, wf_err *err)
{
    char here[PATH_MAX];

    if (state_dir[0] != '/' && !getcwd(here, sizeof here))
        return wf_fail_errno(err, errno, NULL, "cannot tell the current folder");
    c->name = "local";
    c->heartbeat_ms = 1000;
    c->dead_ms = 5000;
    c->stuck_ms = 60000;
    c->session_values = 1024;
    c->session_values_mib = 64;
    c->state_dir = state_dir[0] == '/' ? wf_arena_strdup(c->arena, state_dir)
                                       : wf_arena_printf(c->arena, "%s/%s", here, state_dir);
    if (!c->state_dir)
        return wf_fail_nomem(err, PATH_MAX);
    c->path = wf_arena_printf(c->arena, "%s/local.yaml", c->state_dir);
    c->checkpoint_dir = wf_arena_printf(c->arena, "%s/checkpoints", c->state_dir);
    c->ps = wf_arena_array(c->arena, c->n_ps, sizeof *c->ps);
    c->workers = wf_arena_array(c->arena, c->n_workers, sizeof *c->workers);
    if (!c->path || !c->checkpoint_dir || !c->ps || !c->workers)
        return wf_fail_nomem(err, PATH_MAX);
    return place_all(c, tcp, err);
}

wf_status wf_cluster_local(const char *state_dir, uint32_t n_ps, uint32_t n_workers, bool tcp,
                           wf_cluster_conf **out, wf_err *err)
{
    wf_arena *arena = wf_arena_new(0);
    wf_cluster_conf *c = arena ? wf_arena_alloc(arena, sizeof *c) : NULL;
    wf_status rc;

    if (!c) {
        wf_arena_free(&arena);
        return wf_fail_nomem(err, sizeof *c);
    }
    c->arena = arena;
    c->n_ps = n_ps;
    c->n_workers = n_workers;
    rc = (n_ps < 1 && n_workers > 1) || n_ps > WF_CONF_MAX_TASKS || n_workers < 1 ||
                 n_workers > WF_CONF_MAX_TASKS
             ? wf_fail(err, WF_USAGE, NULL,
                       "a cluster has 1 to %d ps and 1 to %d workers, or one worker and no ps",
                       WF_CONF_MAX_TASKS, WF_CONF_MAX_TASKS)
             : fill(c, state_dir, tcp, err);
    if (rc != WF_OK) {
        wf_arena_free(&arena);
        return rc;
    }
    *out = c;
    return WF_OK;
}

static void quote(wf_bytes *out, const char *text)
{
    wf_bytes_puts(out, "\"");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            wf_bytes_puts(out, "\\");
        wf_bytes_add(out, text, 1);
    }
    wf_bytes_puts(out, "\"");
}

static void put_task(wf_bytes *out, const wf_task_conf *t)
{
    wf_bytes_puts(out, "{address: ");
    if (t->host && t->path) {
        size_t n = strlen(t->address) - strlen("|ipc://") - strlen(t->path);

        wf_bytes_printf(out, "[\"%.*s\", ", (int)n, t->address);
        quote(out, t->address + n + 1);
        wf_bytes_puts(out, "]");
    } else {
        quote(out, t->address);
    }
    if (t->threads != 1)
        wf_bytes_printf(out, ", threads: %u", t->threads);
    if (t->n_devices != 1 || strcmp(t->devices[0], "cpu") != 0) {
        wf_bytes_puts(out, ", devices: [");
        for (uint32_t i = 0; i < t->n_devices; i++) {
            wf_bytes_puts(out, i ? ", " : "");
            quote(out, t->devices[i]);
        }
        wf_bytes_puts(out, "]");
    }
    wf_bytes_puts(out, "}\n");
}

wf_status wf_cluster_write(const wf_cluster_conf *c, const char *path, wf_err *err)
{
    wf_bytes text = {0};
    wf_status rc;

    wf_bytes_puts(&text, "cluster: ");
    quote(&text, c->name);
    wf_bytes_puts(&text, "\nmaster: ");
    put_task(&text, &c->master);
    wf_bytes_puts(&text, "ps:\n");
    for (uint32_t i = 0; i < c->n_ps; i++) {
        wf_bytes_puts(&text, "  - ");
        put_task(&text, &c->ps[i]);
    }
    wf_bytes_puts(&text, "workers:\n");
    for (uint32_t i = 0; i < c->n_workers; i++) {
        wf_bytes_puts(&text, "  - ");
        put_task(&text, &c->workers[i]);
    }
    wf_bytes_puts(&text, "state_dir: ");
    quote(&text, c->state_dir);
    wf_bytes_puts(&text, "\ncheckpoint_dir: ");
    quote(&text, c->checkpoint_dir);
    wf_bytes_printf(&text,
                    "\nheartbeat_ms: %" PRId64 "\ndead_ms: %" PRId64 "\nstuck_ms: %" PRId64
                    "\nsession_values: %u\nsession_values_mib: %u\n",
                    c->heartbeat_ms, c->dead_ms, c->stuck_ms, c->session_values,
                    c->session_values_mib);
    if (c->checksums_always)
        wf_bytes_puts(&text, "checksums: always\n");
    if (c->shared_memory_off)
        wf_bytes_puts(&text, "shared_memory: off\n");
    if (c->direct_connections_off)
        wf_bytes_puts(&text, "direct_connections: off\n");
    if (c->security_none)
        wf_bytes_puts(&text, "security: none\n");
    rc = wf_bytes_check(&text, err);
    if (rc == WF_OK)
        rc = wf_file_write(path, text.data, text.size, err);
    wf_bytes_close(&text);
    return rc;
}
