/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/client.c - the process from which the supervisor tells of deaths, and from which
 * somebody stops the job, and lets it go on once it is stopped. */
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "tests/sim/world.h"

#include <stdio.h>
#include <string.h>

/* A person's patience with an answer: without it each answer would bring the next question. */
enum { ASK_AGAIN_MS = TICK_MS };

static void send(process *client, uint16_t kind, const ProtobufCMessage *body)
{
    wf_msg *m = NULL;
    wf_err err;

    if (!client->alive || wf_sim_stands_still(client))
        return;
    wf_assert(wf_net_msg(client->net, kind, &m, &err) == WF_OK);
    wf_assert(wf_control_put(m, body, &err) == WF_OK);
    wf_assert(wf_net_send(client->net, client->to_master, WF_LANE_CONTROL, 0, &m, &err) == WF_OK);
}

/* Sent once, and lost if the master is not there: then it finds the silence. */
void wf_sim_tell(process *client, const process *dead, uint64_t life)
{
    Weft__Died body = WEFT__DIED__INIT;
    char session[24];

    snprintf(session, sizeof session, "%lu", (unsigned long)client->sim->session);
    body.session = session;
    body.role = dead->task.role;
    body.index = dead->task.index;
    body.pid = life;
    body.reason = "killed by signal 9";
    send(client, WF_DIED, &body.base);
    if (client->alive)
        wf_sim_run_process(client);
}

static void ask(process *client, const char *command, int64_t from_step)
{
    Weft__Ask body = WEFT__ASK__INIT;

    client->asked_ns = client->sim->now_ns;
    body.command = (char *)command;
    body.job = client->sim->job;
    body.from_step = from_step;
    send(client, WF_ASK, &body.base);
}

/* From which step a job that is over is to go on: from one of a person's choice, but once. Who asks
 * without one takes back what was asked before. */
static int64_t choose_step(wf_sim *s, bool stopped)
{
    oracle *o = &s->oracle;

    if (stopped && s->spec.goes_back && !o->went_back) {
        o->went_back = true;
        o->from_step = wf_sim_old_step(s);
        o->from_era = o->era;
    } else if (!stopped || o->from_era != o->era) {
        o->from_step = -1;
    }
    return o->from_step;
}

/* Asks until it is so: an answer may be lost. */
void wf_sim_client_advance(process *client)
{
    wf_sim *s = client->sim;
    const process *master = &s->procs[0];
    const char *state = master->alive ? wf_master_job_state(master->master, s->job) : "";
    bool stopped = strcmp(state, "stopped") == 0;

    if (client->asked_ns && s->now_ns < client->asked_ns + ASK_AGAIN_MS * MS)
        return;

    /* A disk that fails at each try of the last checkpoint ends the job, as a step that fails does:
     * a person mends what was wrong. */
    if (stopped || (strcmp(state, "failed") == 0 &&
                    (s->spec.disk_errors || s->spec.stuck_per_mille || s->spec.trouble_per_mille ||
                     s->spec.unfit || s->spec.start_fails_per_mille))) {
        s->stop_wanted = false;
        s->recovered = stopped;
        ask(client, "recover", choose_step(s, stopped));
    } else if (s->recovered && s->stop_again && strcmp(state, "running") == 0) {
        s->stop_again = false;
        s->stop_wanted = true;
    } else if (s->stop_wanted && state[0]) {
        ask(client, "stop", -1);
    }
}
