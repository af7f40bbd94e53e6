/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/client.c - the process from which the supervisor tells of deaths, and from which
 * somebody stops the job, and lets it go on once it is stopped. */
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "tests/sim/world.h"

#include <string.h>

static void send(process *client, uint16_t kind, const ProtobufCMessage *body)
{
    wf_msg *m = NULL;
    wf_err err;

    if (!client->alive || client->frozen)
        return;
    wf_assert(wf_net_msg(client->net, kind, &m, &err) == WF_OK);
    wf_assert(wf_control_put(m, body, &err) == WF_OK);
    wf_assert(wf_net_send(client->net, client->to_master, WF_LANE_CONTROL, 0, &m, &err) == WF_OK);
}

/* Sent once, and lost if the master is not there: then it finds the silence. */
void wf_sim_tell(process *client, const process *dead, uint64_t life)
{
    Weft__Died body = WEFT__DIED__INIT;

    body.role = dead->task.role;
    body.index = dead->task.index;
    body.pid = life;
    body.reason = "killed by signal 9";
    send(client, WF_DIED, &body.base);
    if (client->alive)
        wf_sim_run_process(client);
}

static void ask(process *client, const char *command)
{
    Weft__Ask body = WEFT__ASK__INIT;

    body.command = (char *)command;
    body.job = client->sim->job;
    body.from_step = -1;
    send(client, WF_ASK, &body.base);
}

/* Asks until it is so: an answer may be lost. */
void wf_sim_client_advance(process *client)
{
    wf_sim *s = client->sim;
    const process *master = &s->procs[0];
    const char *state = master->alive ? wf_master_job_state(master->master, s->job) : "";

    /* A disk that fails at each try of the last checkpoint ends the job: a person mends the disk.
     */
    if (strcmp(state, "stopped") == 0 ||
        (strcmp(state, "failed") == 0 && (s->spec.disk_errors || s->spec.stuck_per_mille))) {
        s->stop_wanted = false;
        ask(client, "recover");
    } else if (s->stop_wanted && state[0]) {
        ask(client, "stop");
    }
}
