/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/states.c - life cycles: an edge that a table does not have ends the process, and each
 * header draws the very edges of its table. */
#include "common/log/states.h"
#include "common/base/file.h"
#include "common/base/size.h"
#include "common/base/text.h"
#include "master/cut/cut.h"
#include "master/epoch/epoch.h"
#include "master/job/job.h"
#include "master/member/member.h"
#include "master/placement/placement.h"
#include "ps/life.h"
#include "supervisor/life.h"
#include "worker/life.h"

#include <ctype.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A life cycle is named here, and its header draws it. */
static const struct drawing {
    const char *header;
    const wf_states *states;
} drawings[] = {
    {"master/cut/cut.h", &wf_cut_states},
    {"master/epoch/epoch.h", &wf_epoch_states},
    {"master/job/job.h", &wf_job_states},
    {"master/member/member.h", &wf_member_states},
    {"master/member/member.h", &wf_part_states},
    {"master/placement/placement.h", &wf_balance_states},
    {"ps/life.h", &wf_ps_states},
    {"ps/life.h", &wf_move_states},
    {"supervisor/life.h", &wf_life_states},
    {"worker/life.h", &wf_worker_states},
    {"worker/life.h", &wf_hold_states},
    {"worker/life.h", &wf_chief_states},
};

static const char *root;

/* ---- what a header draws ---- */

enum { MOST_EVENTS = 64, MOST_STATES = 32, MOST_TEXT = 16384, UNDRAWN = -1 };

typedef struct drawn {
    int to[MOST_EVENTS][MOST_STATES];
    char why[256]; /* the first thing that is wrong; "": nothing */
} drawn;

static void complain(drawn *d, const char *what, const char *text)
{
    if (!d->why[0])
        snprintf(d->why, sizeof d->why, "%s \"%.150s\"", what, text);
}

static char *trim(char *text)
{
    char *end = text + strlen(text);

    while (isspace((unsigned char)*text))
        text++;
    while (end > text && isspace((unsigned char)end[-1]))
        *--end = 0;
    return text;
}

static int find(const char *const names[], uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return (int)i;
    return -1;
}

static void draw(drawn *d, const wf_states *s, char *from, const char *event, const char *to)
{
    int e = find(s->events, s->n_events, event), t = find(s->names, s->n, to);
    char *rest = from, *name;

    if (e < 0)
        complain(d, "unknown event", event);
    if (t < 0 && strcmp(to, "same") != 0)
        complain(d, "unknown state", to);
    while ((name = strsep(&rest, ",")) && !d->why[0]) {
        int f = find(s->names, s->n, trim(name));

        if (f < 0)
            complain(d, "unknown state", trim(name));
        else if (d->to[e][f] != UNDRAWN)
            complain(d, "drawn twice: event", event);
        else
            d->to[e][f] = t < 0 ? f : t;
    }
}

/* "a, b --e--> c --f--> d" */
static void read_chain(drawn *d, const wf_states *s, char *chain)
{
    char *from = chain, *event = strstr(chain, "--");

    if (!event)
        complain(d, "no edge in", chain);
    while (event && !d->why[0]) {
        char *to = strstr(event + 2, "-->"), *next;
        char copy[64];

        if (!to)
            return complain(d, "no arrow behind", event);
        *event = *to = 0;
        next = strstr(to + 3, "--");
        if (next)
            *next = 0;
        snprintf(copy, sizeof copy, "%s",
                 trim(to + 3)); /* `from` is cut up; this may be the next */
        draw(d, s, trim(from), trim(event + 2), copy);
        from = to + 3;
        event = next;
        if (next)
            *next = '-';
    }
}

/* Takes the lines of the drawing out of a header's text, one chain each; one that ends in a comma
 * goes on in the next line. */
static void read_drawing(drawn *d, const wf_states *s, const char *text)
{
    char head[64], chain[1024] = "";
    const char *line;

    memset(d->to, 0xff, sizeof d->to);
    d->why[0] = 0;
    snprintf(head, sizeof head, "life cycle of %s:\n", s->name);
    line = strstr(text, head);
    if (!line)
        return complain(d, "no line ends in", head);
    for (line += strlen(head); !d->why[0]; line += strcspn(line, "\n") + 1) {
        size_t n = strcspn(line, "\n"), used = strlen(chain);

        if (n <= 3 || !line[n])
            return;
        snprintf(chain + used, sizeof chain - used, "%.*s", (int)n - 2, line + 2);
        if (line[n - 1] == ',')
            continue;
        read_chain(d, s, chain);
        chain[0] = 0;
    }
}

static void compare(drawn *d, const wf_states *s)
{
    char edge[128];

    for (uint32_t e = 0; e < s->n_events; e++)
        for (uint32_t f = 0; f < s->n; f++) {
            int to = wf_states_next(s, f, e);

            if (to == d->to[e][f])
                continue;
            snprintf(edge, sizeof edge, "%s --%s--> %s", s->names[f], s->events[e],
                     to < 0 ? "" : s->names[to]);
            complain(d, to < 0 ? "drawn, and not in the table:" : "drawn otherwise, or not at all:",
                     edge);
        }
}

/* ---- tests ---- */

static const char *const door_states[] = {"open", "shut", "locked"};
static const char *const door_events[] = {"push", "turn the key"};
enum { DOOR_OPEN, DOOR_SHUT, DOOR_LOCKED };
enum { PUSH, TURN };
static const wf_edge door_edges[] = {
    {WF_STATE(DOOR_OPEN), PUSH, DOOR_SHUT},
    {WF_STATE(DOOR_SHUT), TURN, DOOR_LOCKED},
    {WF_STATE(DOOR_SHUT) | WF_STATE(DOOR_LOCKED), PUSH, WF_STATE_SAME},
};
static const wf_states door = WF_STATES("doors", door_states, door_events, door_edges);
static const char door_text[] = " * The life cycle of doors:\n"
                                " *   open --push--> shut --turn the key--> locked\n"
                                " *   shut,\n"
                                " *   locked --push--> same\n"
                                " *\n"
                                " * open --push--> locked\n";

static void the_table_says_what_follows(void **state)
{
    (void)state;
    assert_int_equal(wf_states_next(&door, DOOR_OPEN, PUSH), DOOR_SHUT);
    assert_int_equal(wf_states_next(&door, DOOR_LOCKED, PUSH), DOOR_LOCKED);
    assert_int_equal(wf_states_next(&door, DOOR_OPEN, TURN), -1);
    assert_int_equal(wf_states_next(&door, 40, PUSH), -1);
    assert_int_equal(wf_states_take(&door, DOOR_SHUT, TURN, "front"), DOOR_LOCKED);
}

static void an_edge_that_is_not_in_the_table_aborts(void **state)
{
    pid_t child = fork();
    int how;

    (void)state;
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit none = {0, 0};

        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, SIG_DFL);
        (void)!freopen("/dev/null", "w", stderr);
        wf_states_take(&door, DOOR_OPEN, TURN, "front");
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT);
}

/* What is wrong with a drawing of the door, in which `was` is replaced. */
static const char *fault_of(drawn *d, const char *was, const char *is)
{
    char text[1024];
    const char *at = strstr(door_text, was);

    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - door_text), door_text, is, at + strlen(was));
    read_drawing(d, &door, text);
    compare(d, &door);
    return d->why;
}

static void a_drawing_that_differs_is_seen(void **state)
{
    drawn d;

    (void)state;
    assert_string_equal(fault_of(&d, "", ""), "");
    assert_non_null(strstr(fault_of(&d, "push--> shut", "push--> locked"), "otherwise"));
    assert_non_null(strstr(fault_of(&d, " *   shut,\n", ""), "not at all: \"shut --push--> shut"));
    assert_non_null(strstr(fault_of(&d, "   shut,\n", "   shut, open,\n"), "drawn twice"));
    assert_non_null(strstr(fault_of(&d, "same\n", "same\n *   open --turn the key--> shut\n"),
                           "not in the table: \"open"));
    assert_non_null(strstr(fault_of(&d, "push--> shut", "kick--> shut"), "unknown event \"kick"));
    assert_non_null(strstr(fault_of(&d, "shut,\n", "ajar,\n"), "unknown state \"ajar"));
    assert_non_null(strstr(fault_of(&d, "of doors", "of gates"), "no line ends in"));
}

static void every_header_draws_its_table(void **state)
{
    static drawn d;

    (void)state;
    for (size_t i = 0; i < WF_COUNT(drawings); i++) {
        const wf_states *s = drawings[i].states;
        char path[4096];
        wf_bytes text = {0};
        wf_err err;

        snprintf(path, sizeof path, "%s/%s", root, drawings[i].header);
        assert_int_equal(wf_file_read(path, 1 << 20, &text, &err), WF_OK);
        assert_true(s->n <= MOST_STATES && s->n_events <= MOST_EVENTS);
        read_drawing(&d, s, wf_bytes_str(&text));
        compare(&d, s);
        if (d.why[0])
            fail_msg("%s, the life cycle of %s: %s", drawings[i].header, s->name, d.why);
        wf_bytes_close(&text);
    }
}

/* A state and an event have one row, and no state or event is left without any. */
static void every_table_is_sound(void **state)
{
    (void)state;
    for (size_t i = 0; i < WF_COUNT(drawings); i++) {
        const wf_states *s = drawings[i].states;
        uint32_t seen[MOST_EVENTS] = {0}, reached = 0;

        for (uint32_t k = 0; k < s->n_edges; k++) {
            const wf_edge *e = &s->edges[k];

            assert_true(e->event < s->n_events && (e->to < s->n || e->to == WF_STATE_SAME));
            assert_int_equal(e->from & ~(uint32_t)((UINT64_C(1) << s->n) - 1), 0);
            assert_int_equal(seen[e->event] & e->from, 0);
            seen[e->event] |= e->from;
            reached |= e->from | (e->to < s->n ? WF_STATE(e->to) : 0);
        }
        for (uint32_t k = 0; k < s->n_events; k++)
            assert_int_not_equal(seen[k], 0);
        assert_int_equal(reached, (UINT64_C(1) << s->n) - 1);
    }
}

int main(int argc, char *argv[])
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_says_what_follows),
        cmocka_unit_test(an_edge_that_is_not_in_the_table_aborts),
        cmocka_unit_test(a_drawing_that_differs_is_seen),
        cmocka_unit_test(every_header_draws_its_table),
        cmocka_unit_test(every_table_is_sound),
    };

    root = argc > 1 ? argv[1] : ".";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
