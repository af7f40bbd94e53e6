/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_stage.h - a master on a disk in memory, and players who speak to it over a
 * transport in memory: one ps, two workers, a client. Players answer as the protocol has it, but
 * compute and save nothing; tests tell them what to say of it. No clock: stage_turn moves the time.
 */
#ifndef WF_TESTS_UNIT_MASTER_STAGE_H
#define WF_TESTS_UNIT_MASTER_STAGE_H

#include "common/wire/control.pb-c.h"
#include "master/master.h"
#include "tests/kit/memdisk.h"
#include "tests/kit/memnet.h"
#include "tests/kit/model.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    STAGE_PS = 1,
    STAGE_WORKERS = 2,
    STAGE_PLAYERS = 16,
    STAGE_RECORDS = 64,
    STAGE_KINDS = WF_N_KINDS
};

/* What a player says when it is asked to do something: an empty `what` is success. */
typedef struct stage_answer {
    wf_status status;
    const char *what;
} stage_answer;

typedef struct stage_player {
    wf_task task;
    uint64_t incarnation, records, digest; /* of its data */
    wf_net *net;
    wf_peer *to_master;
    bool silent;  /* answers nothing but the hello */
    bool absent;  /* neither hears nor speaks: after a second its link is forgotten */
    bool lazy;    /* a worker that never comes to a step's end */
    bool untuned; /* a ps that never says it has another learning rate */
    stage_answer ready, evaluated, saved;
    uint32_t evaluates_before; /* so many evaluations succeed whatever `evaluated` is */
    uint64_t eval_records;     /* that a worker says it has when it starts; 0: not known yet */
    uint64_t eval_found;       /* and with an evaluation's result */
    uint32_t round;            /* of data that grows: that it has open; 0: none */
    uint32_t round_files;      /* that it was told with it */
    ProtobufCBinaryData eval_sums;
    /* what it was told, and holds */
    uint16_t job, generation;
    uint32_t view;
    char job_name[65]; /* "": none */
    uint64_t job_id;
    Weft__Split split;           /* id UINT64_MAX: none; a lazy one keeps it */
    uint32_t dealt;              /* splits, of this generation */
    uint32_t heard[STAGE_KINDS]; /* messages, by kind */
    uint32_t dismissed_how;
    uint32_t move_slice, move_to, move_version;   /* of the last order to give a slice away */
    uint32_t view_since, view_members, view_left; /* of the last view that a ps was told */
    wf_err refused;
    /* a client's last answer */
    wf_err answer;
    bool answered;
} stage_player;

typedef struct stage {
    wf_memnet nets;
    wf_memdisk *disk;
    int64_t now_ns;
    const char *session;
    size_t journal_least; /* see wf_master_conf */
    /* work that is held until stage_finish; before stage_raise */
    bool two_ps; /* the cluster has ps/1, too; before stage_raise */
    bool holds_syncs, holds_slow;
    wf_work *sync, *slow;
    wf_master *master;
    wf_net *net;
    wf_model_spec model;
    /* what compiling comes to, for jobs whose text begins with "bad"; `others` is the name that is
     * found in files of the text "others"; `wide` the bytes of a digest of the text "wide" */
    stage_answer compiled;
    const char *others;
    size_t wide;
    uint32_t compiles;
    const wf_listed *files; /* [n_files]: what a listing finds */
    size_t n_files;
    wf_status listing;   /* what it comes to */
    char note[1024];     /* the last event of a job, as JSON */
    char forgotten[256]; /* names of jobs whose files were to go, each with a blank */
    stage_player players[STAGE_PLAYERS];
    uint32_t n_players;
    /* what the master's last turn came to; after a failure it takes no more turns */
    wf_status rc;
    wf_err err;
} stage;

/* A stage with a master, and nobody else. */
stage *stage_new(void);
void stage_free(stage **s);
/* cmocka's set-up and tear-down, with the stage as state. */
int stage_begin(void **state);
int stage_end(void **state);
/* The master begins; with what is on the disk. Its status is s->rc. */
void stage_raise(stage *s);
/* The master's process ends; links break when it speaks again. */
void stage_kill(stage *s);
/* Work that was held is done; then everybody takes turns. */
void stage_finish(stage *s, wf_work **w);
/* A player that says hello; its place is kept until the end. */
stage_player *stage_enter(stage *s, wf_role role, uint32_t index, uint64_t incarnation);
void stage_leave(stage_player *p);
/* One ps, two workers and a client, which are players 0 to 3. */
void stage_cast(stage *s);

/* Everybody takes turns until nobody has anything left to say; then ms of time pass. */
void stage_turn(stage *s, int64_t ms);
/* Turns of 100 ms, so many ms in all. */
void stage_wait(stage *s, int64_t ms);
/* Turns of 20 ms until the job is in that state; a failed test if it does not come to that. */
void stage_until(stage *s, const char *job, const char *state);
void stage_submit(stage *s, const char *job, const char *text);
/* A job of the ledger model is submitted, and runs. */
void stage_run(stage *s, const char *job);
/* The cast, and job "one", whose workers stay at their splits: nothing moves by itself. */
void stage_begin_lazy(stage *s);
/* A lazy worker says that it holds nothing: it is started anew, and trains. */
void stage_let_train(stage_player *p);
void stage_let_all_train(stage *s);

void stage_say(stage_player *p, uint16_t kind, const ProtobufCMessage *body);
/* The same with header fields of the test's choice; takes *m. */
wf_msg *stage_message(stage_player *p, uint16_t kind);
void stage_send(stage_player *p, wf_msg **m);

Weft__Ask stage_ask_of(const char *command, const char *job);
/* The client (player 3) asks; what it was answered, NULL if nothing. */
const wf_err *stage_ask(stage *s, const Weft__Ask *ask);
/* The same of a command that succeeds. */
void stage_do(stage *s, const char *command, const char *job);
/* The answer has this status and these words, is one sentence, and nothing else has changed:
 * neither in what `weft status` shows nor in the journal. */
void stage_refused(stage *s, const Weft__Ask *ask, wf_status status, const char *words);
/* What the master shows, without times; the caller frees it. */
char *stage_picture(stage *s);
/* The picture is what it was; takes `before`. */
void stage_still_shows(stage *s, char *before);
/* p sends *m; the master takes it, and neither the picture nor the journal changes. */
void stage_changes_nothing(stage *s, stage_player *p, wf_msg **m);
/* How often the picture has these words. */
uint32_t stage_count(stage *s, const char *words);
/* A number or text of the job's picture, as JSON has it; the caller frees it. */
char *stage_job_field(stage *s, const char *job, const char *field);
/* That one has these words. */
void stage_job_says(stage *s, const char *job, const char *field, const char *words);
size_t stage_journal_bytes(stage *s);
/* The snapshot that a master writes which begins from a copy of the disk; the caller frees it. */
char *stage_replayed(stage *s, size_t *bytes);

/* Between the files of the stage: settings of a net; one turn of a player, false if it was idle. */
wf_net_conf stage_net_conf(stage *s, wf_task self, uint64_t incarnation);
bool stage_play(stage *s, stage_player *p);

/* A row of cmocka's list. */
#define STAGED(test) cmocka_unit_test_setup_teardown(test, stage_begin, stage_end)

#endif
