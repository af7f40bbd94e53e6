/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/near.c */
#include "master/epoch/near.h"
#include "common/base/size.h"
#include "common/data/match.h"
#include "common/log/log.h"
#include "master/epoch/epoch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wf_near_close(wf_near *n)
{
    for (size_t i = 0; i < n->n_files; i++)
        free(n->files[i].path);
    free(n->hosts);
    free(n->files);
    *n = (wf_near){.dealt_near = n->dealt_near, .dealt_far = n->dealt_far};
}

/* ---- hosts ---- */

static int find_host(const wf_near *n, const char *name)
{
    for (uint32_t i = 0; name[0] && i < n->n_hosts; i++)
        if (strcmp(n->hosts[i], name) == 0)
            return (int)i;
    return -1;
}

/* The hosts of workers, each once. False without memory, or where there are too many. */
static bool list_hosts(const wf_master *m, wf_near *n)
{
    n->hosts = calloc(WF_LEDGER_HOSTS, sizeof *n->hosts);
    for (uint32_t i = 0; n->hosts && i < m->n_members; i++) {
        char name[WF_HOST_NAME];

        if (m->members[i].task.role != WF_ROLE_WORKER)
            continue;
        wf_host_of(m->members[i].address, name);
        if (!name[0] || find_host(n, name) >= 0)
            continue;
        if (n->n_hosts == WF_LEDGER_HOSTS)
            return false;
        snprintf(n->hosts[n->n_hosts++], WF_HOST_NAME, "%s", name);
    }
    return n->hosts != NULL;
}

int wf_near_host(const wf_job *j, const wf_member *who)
{
    char name[WF_HOST_NAME];

    if (!j->epoch->near.hosts)
        return -1;
    wf_host_of(who->address, name);
    return find_host(&j->epoch->near, name);
}

/* ---- files ---- */

/* The hosts that have a file near. */
static uint64_t hosts_of(const wf_near *n, const wf_prepared *p, const char *path)
{
    uint64_t hosts = 0;

    for (size_t i = 0; i < p->n_hosts; i++) {
        const struct wf_prepared_hosts *row = &p->hosts[i];

        if (!wf_data_matches(row->match, path))
            continue;
        for (size_t k = 0; k < row->n; k++) {
            int host = find_host(n, row->hosts[k]);

            if (host >= 0)
                hosts |= UINT64_C(1) << host;
        }
    }
    return hosts;
}

static bool list_files(wf_near *n, size_t n_files, Weft__FileRecords *const files[])
{
    uint64_t end = 0;

    n->files = calloc(n_files + 1, sizeof *n->files);
    for (size_t i = 0; n->files && i < n_files; i++) {
        struct wf_near_file *f = &n->files[i];

        if (__builtin_add_overflow(end, files[i]->records, &end))
            return false;
        f->end = end;
        f->path = strdup(files[i]->path);
        n->n_files++;
        if (!f->path)
            return false;
    }
    return n->files != NULL;
}

static void give_up(wf_job *j)
{
    WF_LOG_WARN("splits.anywhere", "job=%s why=\"no memory, or more than %d hosts\"", j->name,
                WF_LEDGER_HOSTS);
    wf_near_close(&j->epoch->near);
    j->epoch->near.told = j->epoch->near.given_up = true;
}

void wf_near_take(wf_job *j, size_t n_files, Weft__FileRecords *const files[])
{
    if (!j->epoch->near.files && n_files && !list_files(&j->epoch->near, n_files, files))
        give_up(j);
    j->epoch->near.told = true;
}

void wf_near_settle(const wf_master *m, wf_job *j)
{
    wf_near *n = &j->epoch->near;

    if (!n->files && !n->given_up && j->prepared && j->prepared->n_near)
        wf_near_take(j, j->prepared->n_near, j->prepared->near);
    if (!n->files || n->hosts || !j->prepared || !j->prepared->n_hosts)
        return;
    if (!list_hosts(m, n)) {
        give_up(j);
        return;
    }
    for (size_t i = 0; i < n->n_files; i++)
        n->files[i].hosts = hosts_of(n, j->prepared, n->files[i].path);
    wf_near_apply(j);
}

/* ---- splits ---- */

/* The hosts that have the files of half of records [begin, end). `*file` is the first that may hold
 * some, and moves on with them. */
static uint64_t hosts_of_split(const wf_near *n, uint64_t begin, uint64_t end, size_t *file)
{
    uint64_t records[WF_LEDGER_HOSTS] = {0}, hosts = 0, all = end - begin;

    while (*file < n->n_files && n->files[*file].end <= begin)
        ++*file;
    for (size_t i = *file; begin < end && i < n->n_files; i++) {
        uint64_t here = WF_MIN(end, n->files[i].end) - WF_MIN(begin, n->files[i].end);

        for (uint32_t h = 0; h < n->n_hosts; h++)
            records[h] += n->files[i].hosts >> h & 1 ? here : 0;
        begin += here;
    }
    for (uint32_t h = 0; h < n->n_hosts; h++)
        if (records[h] && records[h] >= all - records[h])
            hosts |= UINT64_C(1) << h;
    return hosts;
}

void wf_near_apply(wf_job *j)
{
    wf_ledger *l = &j->epoch->ledger;
    const wf_near *n = &j->epoch->near;
    uint64_t *near;
    size_t file = 0;

    if (!n->hosts || !l->n)
        return;
    near = calloc(l->n, sizeof *near);
    for (uint64_t i = 0; near && i < l->n; i++)
        near[i] = hosts_of_split(n, wf_ledger_begins(l, i), wf_ledger_ends(l, i), &file);
    if (!near || wf_ledger_place(l, n->n_hosts, near, NULL) != WF_OK)
        WF_LOG_WARN("splits.anywhere", "job=%s why=\"no memory\"", j->name);
    free(near);
}

void wf_near_dealt(wf_job *j, uint64_t id, int host)
{
    wf_near *n = &j->epoch->near;

    if (!n->hosts)
        return;
    if (wf_ledger_is_near(&j->epoch->ledger, id, host))
        n->dealt_near++;
    else
        n->dealt_far++;
}
