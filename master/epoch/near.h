/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/near.h - which splits are near which hosts: by the files that their records are of,
 * and the hosts that the job file names for these. A split is near a host that has the files of at
 * least half of its records.
 *
 * Hosts are those of workers, as their addresses name them; of others nothing is known here.
 */
#ifndef WF_MASTER_EPOCH_NEAR_H
#define WF_MASTER_EPOCH_NEAR_H

#include "common/wire/control.pb-c.h"
#include "common/wire/host.h"
#include "master/epoch/ledger.h"
#include "master/job/job.h"

typedef struct wf_near {
    char (*hosts)[WF_HOST_NAME]; /* [n_hosts]; NULL: not found yet */
    uint32_t n_hosts;
    struct wf_near_file {
        char *path;
        uint64_t end;   /* of its records, among all */
        uint64_t hosts; /* a bit for each that has it near */
    } * files;          /* [n_files]; NULL: no worker has said which there are */
    size_t n_files;
    bool given_up; /* there is no memory for it, or there are too many hosts */
    bool told;     /* a worker of this generation has said which there are, if there are any */
    uint64_t dealt_near, dealt_far; /* splits, since the files are known */
} wf_near;

/* Takes the files that a worker has found, if they are not known yet. Without memory, or with too
 * many hosts, splits are dealt in order. */
void wf_near_take(wf_job *j, size_t n, Weft__FileRecords *const files[]);
/* Finds the hosts of the files, once these are known and the job is compiled, and tells the ledger.
 * Workers may say what they have found before a master that has begun anew has compiled it. */
void wf_near_settle(const wf_master *m, wf_job *j);
/* Tells the ledger of an epoch that was opened. */
void wf_near_apply(wf_job *j);
/* The number of a worker's host, or -1. */
int wf_near_host(const wf_job *j, const wf_member *who);
/* A split was dealt to a worker of that host. */
void wf_near_dealt(wf_job *j, uint64_t id, int host);
/* Forgets the files; what was dealt stays known. */
void wf_near_close(wf_near *n);

#endif
