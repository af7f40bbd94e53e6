/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/grammar.c - the message grammar as a table; net.c refuses what is not in it. */
#include "common/wire/grammar.h"
#include "common/base/cc.h"
#include "common/wire/msg.h"

#define M (1u << WF_ROLE_MASTER)
#define P (1u << WF_ROLE_PS)
#define W (1u << WF_ROLE_WORKER)
#define C (1u << WF_ROLE_CLIENT)
#define KIB (1024u)
#define MIB (1024u * 1024u)

static const wf_kind_row rows[WF_N_KINDS] = {
    [WF_HELLO] = {WF_HELLO, "hello", P | W | C, M | P | W, 4 * KIB, 0},
    [WF_WELCOME] = {WF_WELCOME, "welcome", M | P | W, P | W | C, 4 * KIB, 0},
    [WF_REFUSE] = {WF_REFUSE, "refuse", M | P | W, P | W | C, 4 * KIB, 0},
    [WF_RESET] = {WF_RESET, "reset", M | P | W | C, M | P | W | C, 0, 0},
    [WF_PING] = {WF_PING, "ping", M | P | W | C, M | P | W | C, 0, 0},
    [WF_BEAT] = {WF_BEAT, "beat", P | W, M, 4 * KIB, 0},
    [WF_RESEND] = {WF_RESEND, "resend", M | P | W | C, M | P | W | C, 0, 0},
    [WF_BYE] = {WF_BYE, "bye", P | W | C, M | P | W, 0, 0},
    [WF_STREAM_ASK] = {WF_STREAM_ASK, "stream_ask", P | W, P | W, 0, 0},
    [WF_STREAM_AT] = {WF_STREAM_AT, "stream_at", P | W, P | W, KIB, 0},
    [WF_REGISTER] = {WF_REGISTER, "register", P | W, M, 4 * MIB, 0},
    [WF_VIEW] = {WF_VIEW, "view", M, P | W, MIB, 0},
    [WF_VIEW_OK] = {WF_VIEW_OK, "view_ok", P, M, 0, 0},
    [WF_SETUP] = {WF_SETUP, "setup", M, P, 64 * MIB, 0},
    [WF_SETUP_OK] = {WF_SETUP_OK, "setup_ok", P, M, 4 * KIB, 0},
    [WF_START] = {WF_START, "start", M, W, 256 * MIB, 0},
    [WF_START_OK] = {WF_START_OK, "start_ok", W, M, 4 * KIB, 0},
    [WF_HALT] = {WF_HALT, "halt", M, P | W, 4 * KIB, 0},
    [WF_FAULT] = {WF_FAULT, "fault", P | W, M, 4 * KIB, 0},
    [WF_DISMISS] = {WF_DISMISS, "dismiss", M, P | W, 4 * KIB, 0},
    [WF_TUNE] = {WF_TUNE, "tune", M, P | W, 4 * KIB, 0},
    [WF_TUNE_OK] = {WF_TUNE_OK, "tune_ok", P | W, M, 4 * KIB, 0},
    [WF_MOVE] = {WF_MOVE, "move", M, P, 4 * KIB, 0},
    [WF_MOVED] = {WF_MOVED, "moved", P, M, 4 * KIB, 0},
    [WF_LOAD] = {WF_LOAD, "load", P, M, 16 * KIB, 0},
    [WF_SPLIT_WANT] = {WF_SPLIT_WANT, "split_want", W, M, 4 * KIB, 0},
    [WF_SPLIT] = {WF_SPLIT, "split", M, W, 4 * KIB, 0},
    [WF_SPLIT_DONE] = {WF_SPLIT_DONE, "split_done", W, M, 64 * KIB, 0},
    [WF_SPLIT_DONE_OK] = {WF_SPLIT_DONE_OK, "split_done_ok", M, W, 64 * KIB, 0},
    [WF_PROGRESS] = {WF_PROGRESS, "progress", W, M, 16 * MIB, 0},
    [WF_EVAL] = {WF_EVAL, "eval", M, W, 4 * KIB, 0},
    [WF_EVAL_RESULT] = {WF_EVAL_RESULT, "eval_result", W, M, 16 * MIB, 0},
    [WF_ROUND] = {WF_ROUND, "round", M, W, MIB, 0},
    [WF_ROUND_OK] = {WF_ROUND_OK, "round_ok", W, M, 4 * KIB, 0},
    [WF_CUT_DUE] = {WF_CUT_DUE, "cut_due", W, M, 4 * KIB, 0},
    [WF_CUT_OPEN] = {WF_CUT_OPEN, "cut_open", M, W, MIB, 0},
    [WF_CUT_REPORT] = {WF_CUT_REPORT, "cut_report", W | M, M | W, 4 * MIB, 0},
    [WF_CUT_SAVE] = {WF_CUT_SAVE, "cut_save", W, P | W, 64 * KIB, 0},
    [WF_CUT_FORKED] = {WF_CUT_FORKED, "cut_forked", P | W, W | M, 4 * KIB, 0},
    [WF_CUT_SAVED] = {WF_CUT_SAVED, "cut_saved", P | W, W, 64 * MIB, 0},
    [WF_CUT_RESUME] = {WF_CUT_RESUME, "cut_resume", M, W, 4 * KIB, 0},
    [WF_CUT_COMMIT] = {WF_CUT_COMMIT, "cut_commit", W | M, M | W, 64 * KIB, 0},
    [WF_CUT_DONE] = {WF_CUT_DONE, "cut_done", W, M, 64 * KIB, 0},
    [WF_CUT_ABORT] = {WF_CUT_ABORT, "cut_abort", M, W, 4 * KIB, 0},
    [WF_LIST] = {WF_LIST, "list", W, P, 4 * MIB, 0},
    [WF_PULL] = {WF_PULL, "pull", W, P, 64 * KIB, WF_MAX_FRAMES},
    [WF_WEIGHTS] = {WF_WEIGHTS, "weights", P, W, 64 * KIB, WF_MAX_FRAMES},
    [WF_PUSH] = {WF_PUSH, "push", W, P, 64 * KIB, WF_MAX_FRAMES},
    [WF_PUSH_OK] = {WF_PUSH_OK, "push_ok", P, W, 64 * KIB, 0},
    [WF_DENIED] = {WF_DENIED, "denied", P, W, 4 * MIB, 0},
    [WF_LIST_OK] = {WF_LIST_OK, "list_ok", P, W, 0, 0},
    [WF_STATE] = {WF_STATE, "state", P, P, 64 * KIB, WF_MAX_FRAMES},
    [WF_CLOCK] = {WF_CLOCK, "clock", W, P, 4 * KIB, 0},
    [WF_CLOCK_OK] = {WF_CLOCK_OK, "clock_ok", P, W, 4 * KIB, 0},
    [WF_DECIDED] = {WF_DECIDED, "decided", W | P, W | P, 64 * KIB, 0},
    [WF_RING_SUMS] = {WF_RING_SUMS, "ring_sums", W, W, 64 * KIB, WF_MAX_FRAMES},
    [WF_RING_GIVEN] = {WF_RING_GIVEN, "ring_given", W, W, 64 * KIB, 0},
    [WF_RING_DONE] = {WF_RING_DONE, "ring_done", W, W, 0, 0},
    [WF_RING_PLACE] = {WF_RING_PLACE, "ring_place", W, W, 0, 0},
    [WF_RING_WEIGHTS] = {WF_RING_WEIGHTS, "ring_weights", W, W, 64 * KIB, WF_MAX_FRAMES},
    [WF_RING_VALUES] = {WF_RING_VALUES, "ring_values", W, W, 64 * KIB, WF_MAX_FRAMES},
    [WF_STATE_OK] = {WF_STATE_OK, "state_ok", P, P, 4 * KIB, 0},
    [WF_ASK] = {WF_ASK, "ask", C, M, 64 * MIB, 0},
    [WF_ANSWER] = {WF_ANSWER, "answer", M, C, 64 * MIB, 0},
    [WF_DIED] = {WF_DIED, "died", C, M, 64 * KIB, 0},
    [WF_TASKS_ASK] = {WF_TASKS_ASK, "tasks_ask", C, M | P | W, 0, 0},
    [WF_TASKS] = {WF_TASKS, "tasks", M | P | W, C, 4 * MIB, 0},
    [WF_VARIABLE] = {WF_VARIABLE, "variable", C, P, 64 * KIB, WF_MAX_FRAMES},
    [WF_VARIABLE_OK] = {WF_VARIABLE_OK, "variable_ok", P, C, 64 * KIB, WF_MAX_FRAMES},
    [WF_PLAN] = {WF_PLAN, "plan", C, W, 256 * MIB, 0},
    [WF_PLAN_OK] = {WF_PLAN_OK, "plan_ok", W, C, 4 * KIB, 0},
    [WF_RUN] = {WF_RUN, "run", C, W, MIB, WF_MAX_FRAMES},
    [WF_RUN_OK] = {WF_RUN_OK, "run_ok", W, C, MIB, WF_MAX_FRAMES},
    [WF_STAGE_START] = {WF_STAGE_START, "stage_start", W, W, 256 * MIB, 0},
    [WF_STAGE_READY] = {WF_STAGE_READY, "stage_ready", W, W, 4 * KIB, 0},
    [WF_STAGE_ROUND] = {WF_STAGE_ROUND, "stage_round", W, W, 64 * KIB, 0},
    [WF_STAGE_VALUE] = {WF_STAGE_VALUE, "stage_value", W, W, 64 * KIB, 1},
    [WF_STAGE_DONE] = {WF_STAGE_DONE, "stage_done", W, W, 4 * KIB, 0},
    [WF_STAGE_SAVE] = {WF_STAGE_SAVE, "stage_save", W, W, 64 * KIB, 0},
    [WF_STAGE_SAVED] = {WF_STAGE_SAVED, "stage_saved", W, W, 64 * MIB, 0},
    [WF_STAGE_TUNE] = {WF_STAGE_TUNE, "stage_tune", W, W, 4 * KIB, 0},
    [WF_STAGE_STOP] = {WF_STAGE_STOP, "stage_stop", W, W, 0, 0},
    [WF_TAKE] = {WF_TAKE, "take", C, W, 16 * KIB, 0},
    [WF_TAKE_OK] = {WF_TAKE_OK, "take_ok", W, C, 64 * KIB, WF_MAX_FRAMES},
    [WF_CONTAINED_ASK] = {WF_CONTAINED_ASK, "contained_ask", C, P, 4 * KIB, 0},
    [WF_CONTAINED] = {WF_CONTAINED, "contained", P, C, 4 * MIB, 0},
    [WF_STAGE_SUMS] = {WF_STAGE_SUMS, "stage_sums", W, W, 4 * MIB, 0},
    [WF_STAGE_APPLY] = {WF_STAGE_APPLY, "stage_apply", W, W, 4 * KIB, 0},
    [WF_PROCESSES] = {WF_PROCESSES, "processes", C, M, MIB, 0},
    [WF_HUNG] = {WF_HUNG, "hung", M, C, 4 * KIB, 0},
};

const wf_kind_row *wf_kind_find(uint16_t kind)
{
    return kind < WF_N_KINDS && rows[kind].name ? &rows[kind] : NULL;
}

const char *wf_kind_name(uint16_t kind)
{
    const wf_kind_row *row = wf_kind_find(kind);

    return row ? row->name : "?";
}
