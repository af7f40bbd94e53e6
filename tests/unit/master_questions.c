/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_questions.c - what the stage's client asks, and what the master shows. */
#include "master_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

Weft__Ask stage_ask_of(const char *command, const char *job)
{
    Weft__Ask ask = WEFT__ASK__INIT;

    ask.command = (char *)command;
    ask.job = (char *)job;
    ask.text = "ledger";
    ask.from_step = -1;
    return ask;
}

const wf_err *stage_ask(stage *s, const Weft__Ask *ask)
{
    stage_player *client = &s->players[3];

    client->answered = false;
    stage_say(client, WF_ASK, &ask->base);
    stage_turn(s, 0);
    return client->answered ? &client->answer : NULL;
}

void stage_do(stage *s, const char *command, const char *job)
{
    Weft__Ask ask = stage_ask_of(command, job);

    assert_non_null(stage_ask(s, &ask));
    assert_int_equal(s->players[3].answer.status, WF_OK);
}

static void without_times(json_t *o)
{
    json_object_del(o, "age_s");
    json_object_del(json_object_get(o, "last_end"), "age_s");
    json_object_del(o, "elapsed_s");
    json_object_del(o, "eta_s");
}

static json_t *picture(stage *s)
{
    char *text = wf_master_status(s->master, s->now_ns);
    json_t *o = json_loads(text, 0, NULL), *row;
    size_t i;

    assert_non_null(o);
    free(text);
    without_times(json_object_get(o, "master"));
    json_array_foreach(json_object_get(o, "tasks"), i, row) without_times(row);
    json_array_foreach(json_object_get(o, "jobs"), i, row) without_times(row);
    return o;
}

char *stage_picture(stage *s)
{
    json_t *o = picture(s);
    char *text = json_dumps(o, JSON_INDENT(1) | JSON_SORT_KEYS);

    json_decref(o);
    return text;
}

void stage_still_shows(stage *s, char *before)
{
    char *after = stage_picture(s);

    assert_string_equal(before, after);
    free(before);
    free(after);
}

void stage_changes_nothing(stage *s, stage_player *p, wf_msg **m)
{
    char *before = stage_picture(s);
    size_t journal = stage_journal_bytes(s);

    stage_send(p, m);
    stage_turn(s, 0);
    if (s->rc != WF_OK)
        fail_msg("the master ended: %s", s->err.what);
    stage_still_shows(s, before);
    assert_int_equal(journal, stage_journal_bytes(s));
}

uint32_t stage_count(stage *s, const char *words)
{
    char *picture = stage_picture(s);
    uint32_t n = 0;

    for (const char *at = picture; (at = strstr(at, words)); at++)
        n++;
    free(picture);
    return n;
}

char *stage_job_field(stage *s, const char *job, const char *field)
{
    json_t *o = picture(s), *row;
    char *text = NULL;
    size_t i;

    json_array_foreach(json_object_get(o, "jobs"), i,
                       row) if (strcmp(json_string_value(json_object_get(row, "job")), job) == 0)
        text = json_dumps(json_object_get(row, field), JSON_ENCODE_ANY);
    json_decref(o);
    assert_non_null(text);
    return text;
}

void stage_job_says(stage *s, const char *job, const char *field, const char *words)
{
    char *text = stage_job_field(s, job, field);

    if (!strstr(text, words))
        fail_msg("%s of %s is %s, which does not say %s", field, job, text, words);
    free(text);
}

size_t stage_journal_bytes(stage *s)
{
    size_t size = 0;

    wf_memdisk_bytes(s->disk, "/state/journal", &size);
    return size;
}

static void is_one_sentence(const wf_err *e)
{
    size_t n = strlen(e->what);

    assert_true(n > 0);
    assert_null(strchr(e->what, '\n'));
    assert_int_not_equal(e->what[n - 1], '.');
}

void stage_refused(stage *s, const Weft__Ask *ask, wf_status status, const char *words)
{
    char *before = stage_picture(s);
    size_t journal = stage_journal_bytes(s);
    const wf_err *said = stage_ask(s, ask);

    if (s->rc != WF_OK)
        fail_msg("the master ended: %s", s->err.what);
    if (!said) {
        fail_msg("no answer where \"%s\" was expected", words);
        return; /* cmocka's failures do return, as the compiler sees it */
    }
    is_one_sentence(said);
    if (!strstr(said->what, words))
        fail_msg("\"%s\" does not say \"%s\"", said->what, words);
    assert_int_equal(said->status, status);
    stage_still_shows(s, before);
    assert_int_equal(journal, stage_journal_bytes(s));
}
