/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/nomem_master.c - the master's journal and ledger while memory ends: what was durable
 * is replayed, and every split is dealt once there is memory again. */
#include "common/log/log.h"
#include "master/epoch/ledger.h"
#include "master/job/rounds.h"
#include "master/store/journal.h"
#include "tests/kit/nomem_disk.h"
#include "tests/unit/nomem.h"

enum { BATCHES = 3, OF_BATCH = 4, RECORDS = 205, OF_SPLIT = 10, WORKERS = 8 };

typedef struct heard {
    uint32_t n, last;
    bool in_order;
} heard;

static wf_status hear(void *arg, const Weft__Record *record, wf_err *err)
{
    heard *h = arg;

    if (!record->view)
        return wrong(err, "a record of another kind");
    h->in_order &= h->n == 0 || record->view->number == h->last + 1;
    h->last = record->view->number;
    h->n++;
    return WF_OK;
}

static wf_status append(wf_journal *j, uint32_t number, wf_err *err)
{
    Weft__Record record = WEFT__RECORD__INIT;
    Weft__View view = WEFT__VIEW__INIT;
    Weft__Member member = WEFT__MEMBER__INIT, *list[] = {&member};

    member.address = (char *)"tcp://127.0.0.1:7700";
    view.number = number;
    view.members = list;
    view.n_members = 1;
    record.view = &view;
    return wf_journal_append(j, &record, err);
}

/* As the master does it: where there is no memory for a snapshot, the log goes on. */
static void add_snapshot(wf_journal *j, uint32_t number)
{
    wf_journal_begin_snapshot(j);
    wf_journal_end_snapshot(j, append(j, number, NULL) == WF_OK);
}

/* Three batches, the second with a snapshot, which is a record of its last number. *durable is the
 * last number that is on disk. */
static wf_status write_batches(wf_journal *j, uint32_t *durable, wf_err *err)
{
    uint32_t number = 0;

    for (int batch = 0; batch < BATCHES; batch++) {
        for (int i = 0; i < OF_BATCH; i++) {
            WF_TRY(append(j, number + 1, err));
            number++;
        }
        if (batch == 1)
            add_snapshot(j, number);
        WF_TRY(wf_journal_commit(j, err));
        *durable = number;
    }
    return WF_OK;
}

static wf_status write_and_replay(void *unused, wf_err *err)
{
    bool was = wf_nomem_spare(true);
    wf_memdisk *m = wf_memdisk_new();
    wf_disk *d = wf_memdisk_disk(m);
    heard h = {.in_order = true};
    wf_journal *j = NULL;
    uint32_t durable = 0;
    wf_err why = {0};
    wf_status rc;

    (void)unused;
    wf_nomem_disk(d);
    wf_nomem_spare(was);
    rc = wf_journal_open(d, "/state", 0, hear, &h, &j, err);
    if (rc == WF_OK)
        rc = write_batches(j, &durable, err);
    wf_journal_close(&j);
    wf_nomem_spare(true); /* the master begins again when there is memory */
    h = (heard){.in_order = true};
    if (wf_journal_open(d, "/state", 0, hear, &h, &j, &why) != WF_OK)
        rc = wrong(err, "not opened again: %s", why.what);
    else if (!h.in_order || h.last < durable)
        rc = wrong(err, "%u records, the last is %u; %u was durable", h.n, h.last, durable);
    wf_journal_close(&j);
    wf_memdisk_free(&m);
    wf_nomem_spare(was);
    return rc;
}

static wf_status replay(void *m, wf_err *err)
{
    heard h = {.in_order = true};
    wf_journal *j = NULL;
    wf_status rc = wf_journal_open(wf_memdisk_disk(m), "/state", 0, hear, &h, &j, err);

    if (rc == WF_OK && (!h.in_order || h.last != BATCHES * OF_BATCH))
        rc = wrong(err, "%u records, the last is %u", h.n, h.last);
    wf_journal_close(&j);
    return rc;
}

/* Deals what there is; every third worker dies, the others finish what they hold. */
static void deal_round(wf_ledger *l)
{
    uint64_t id;

    for (uint64_t who = 1; who <= WORKERS; who++)
        for (int i = 0; i < 2; i++)
            if (!wf_ledger_deal(l, who, &id))
                break;
    for (uint64_t who = 1; who <= WORKERS; who++) {
        if (who % 3 == 0)
            wf_ledger_release(l, who, false);
        for (id = UINT64_MAX; wf_ledger_held(l, who, &id); id = UINT64_MAX)
            wf_ledger_finish(l, id, who);
    }
}

static wf_status deal_all(void *unused, wf_err *err)
{
    wf_ledger l = {0};
    wf_status rc = wf_ledger_begin(&l, 1, RECORDS, OF_SPLIT, err);
    bool was;

    (void)unused;
    for (int i = 0; rc == WF_OK && i < 2; i++)
        deal_round(&l);
    was = wf_nomem_spare(true);
    for (int i = 0; rc == WF_OK && i < 10 && !wf_ledger_complete(&l); i++)
        deal_round(&l);
    wf_nomem_spare(was);
    if (rc == WF_OK && (!wf_ledger_complete(&l) || wf_ledger_trained(&l) != RECORDS))
        rc = wrong(err, "%d of %d records are trained", (int)wf_ledger_trained(&l), RECORDS);
    wf_ledger_close(&l);
    return rc;
}

/* Rounds of two files and of one, and the second again from its message. */
static wf_status take_rounds(wf_rounds *r, wf_rounds *again, wf_err *err)
{
    const wf_listed list[] = {{"a", 1, 1}, {"b", 1, 1}, {"c", 1, 1}};
    wf_round_message m = {0};
    bool any = false;
    wf_status rc;

    WF_TRY(wf_rounds_see(r, list, 2, 1, 1, err));
    WF_TRY(wf_rounds_take(r, 1, 0, &any, err));
    WF_TRY(wf_rounds_see(r, list, 3, 2, 2, err));
    WF_TRY(wf_rounds_take(r, 2, 0, &any, err));
    WF_TRY(wf_round_message_make(r, &m, err));
    rc = wf_rounds_set(again, 2, m.body.files, m.body.n_files, r->earlier, r->n_earlier, err);
    if (rc == WF_OK) {
        m.body.round = 3;
        m.rows[0].path = (char *)"d";
        rc = wf_rounds_replay(again, &m.body, err);
    }
    wf_round_message_free(&m);
    return rc;
}

static wf_status grow(void *unused, wf_err *err)
{
    wf_rounds r = {0}, again = {0};
    wf_status rc = take_rounds(&r, &again, err);

    (void)unused;
    if (rc == WF_OK && (r.n_taken != 3 || strcmp(r.files[0].path, "c") != 0 || again.n_taken != 4))
        rc = wrong(err, "%d files were taken", (int)r.n_taken);
    wf_rounds_close(&r);
    wf_rounds_close(&again);
    return rc;
}

static void rounds_are_taken(void **state)
{
    (void)state;
    assert_survives(grow, NULL);
}

static void what_was_durable_is_replayed(void **state)
{
    (void)state;
    assert_survives(write_and_replay, NULL);
}

static void a_journal_is_replayed_whole_or_not_at_all(void **state)
{
    wf_memdisk *m = wf_memdisk_new();
    wf_journal *j = NULL;
    uint32_t durable = 0;

    (void)state;
    wf_nomem_disk(wf_memdisk_disk(m));
    assert_int_equal(wf_journal_open(wf_memdisk_disk(m), "/state", 0, hear, &(heard){0}, &j, NULL),
                     WF_OK);
    assert_int_equal(write_batches(j, &durable, NULL), WF_OK);
    wf_journal_close(&j);
    assert_survives(replay, m);
    wf_memdisk_free(&m);
}

static void every_split_is_dealt(void **state)
{
    (void)state;
    assert_survives(deal_all, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_durable_is_replayed),
        cmocka_unit_test(a_journal_is_replayed_whole_or_not_at_all),
        cmocka_unit_test(every_split_is_dealt),
        cmocka_unit_test(rounds_are_taken),
    };

    wf_log_init("", WF_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
