/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/hashed_disk.c - a bucket whose rows beyond a limit lie in files, beside one without a
 * limit: pushes, pulls, copies, and states that are saved and loaded, in any order, give the same
 * bits. Memory stays bounded while the table grows to many times its limit, and a disk without room
 * refuses a push whole. */
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/row_key.h"
#include "common/base/size.h"
#include "files.h"
#include "ps/hashed.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

enum { WIDTH = 6, IDS = 500, MOST = 60, ROUNDS = 700, NEVER = 1u << 31 };

static test_folder folder;

/* ---- parts: keys of bucket 0, in rising order ---- */

typedef struct named {
    uint64_t keys[IDS];
    float values[IDS * WIDTH];
    wf_slice_part part;
} named;

static uint64_t key_of(uint64_t i)
{
    return i << 48 | i * 0x9E3779B97F4A7C15u >> 16;
}

static void name_rows(named *n, uint64_t rows)
{
    n->part = (wf_slice_part){.incarnation = 7,
                              .step = 1,
                              .values = n->values,
                              .n = rows * WIDTH,
                              .rows = {rows, (const uint8_t *)n->keys}};
}

static void name_all(named *n)
{
    for (uint64_t i = 0; i < IDS; i++)
        n->keys[i] = key_of(i);
    name_rows(n, IDS);
}

/* Some ids, low numbers more often than high ones, among ever more of them. */
static void draw(named *n, wf_rng_key key, uint64_t round)
{
    uint64_t known = WF_MIN((uint64_t)IDS, 40 + round), rows = 0;
    double scale = 4 + 20 * wf_rng_f64(key, round * 4000);

    for (uint64_t i = 0; i < known && rows < MOST; i++)
        if (wf_rng_f64(key, round * 4000 + 1 + i) < scale / ((double)i + scale))
            n->keys[rows++] = key_of(i);
    for (uint64_t i = 0; i < rows * WIDTH; i++)
        n->values[i] = (float)wf_rng_f64(key, round * 4000 + 1000 + i) - 0.5F;
    name_rows(n, rows);
}

/* ---- slices ---- */

static wf_status try_open(const wf_opt *opt, wf_row_policy policy, wf_slice **out, wf_err *err)
{
    const wf_slice like = {
        .id = 3, .count = WIDTH, .row = WIDTH, .trainable = true, .policy = policy};

    return wf_slice_new(&wf_slice_hashed, &like, opt, out, err);
}

static wf_slice *open_slice(const wf_opt *opt, wf_row_policy policy)
{
    wf_slice *s = NULL;

    policy.first = (wf_distribution){WF_UNIFORM, 0, 0.05};
    policy.seed = 77;
    policy.stream = 88;
    policy.rounding = 99;
    assert_int_equal(try_open(opt, policy, &s, NULL), WF_OK);
    return s;
}

static const wf_hashed *hashed(const wf_slice *s)
{
    return (const wf_hashed *)s;
}

static uint32_t n_cold(const wf_slice *s)
{
    return wf_cold_rows_n(&hashed(s)->cold);
}

static void push(wf_slice *s, const wf_opt *opt, const named *n)
{
    assert_int_equal(s->ops->check(s, &n->part, NULL), WF_OK);
    assert_int_equal(wf_slice_apply(s, opt, &n->part, NULL), WF_OK);
}

static wf_status read_all(void *arg, const wf_slice *s, const char *slot, void **out,
                          uint64_t *bytes, wf_err *err)
{
    const wf_slice *copy = arg;
    wf_slice_array arrays[WF_SLICE_ARRAYS];
    uint32_t n = copy->ops->save(copy, arrays);

    for (uint32_t i = 0; i < n; i++)
        if (strcmp(arrays[i].slot ? arrays[i].slot : "", slot ? slot : "") == 0) {
            *out = malloc(arrays[i].bytes + 1);
            memcpy(*out, arrays[i].data, arrays[i].bytes);
            *bytes = arrays[i].bytes;
            return WF_OK;
        }
    return wf_fail(err, WF_NOTFOUND, NULL, "slice %u has no %s", s->id, slot);
}

static wf_dtype dtype_of_copy(void *arg, const wf_slice *s)
{
    (void)s;
    return wf_slice_dtype(arg);
}

/* Another slice from the copy of one; the same state. */
static wf_slice *load(const wf_slice *copy, const wf_opt *opt, wf_row_policy policy)
{
    wf_slice_source from = {.arg = (void *)copy, .dtype = dtype_of_copy, .read_all = read_all};
    wf_slice *s = open_slice(opt, policy);

    s->updates = copy->updates;
    assert_int_equal(s->ops->load(s, &from, false, NULL), WF_OK);
    return s;
}

static wf_slice *fork_of(const wf_slice *s)
{
    wf_slice *copy = NULL;

    assert_int_equal(wf_slice_fork(s, &copy, NULL), WF_OK);
    return copy;
}

/* ---- comparisons ---- */

static void compare_pulls(const wf_slice *a, const wf_slice *b)
{
    float of_a[IDS * WIDTH], of_b[IDS * WIDTH];
    named all;

    name_all(&all);
    a->ops->answer_rows(a, &all.part.rows, of_a);
    b->ops->answer_rows(b, &all.part.rows, of_b);
    assert_memory_equal(of_a, of_b, sizeof of_a);
}

/* The order of rows among them. */
static void compare_copies(const wf_slice *a, const wf_slice *b)
{
    wf_slice_array of_a[WF_SLICE_ARRAYS], of_b[WF_SLICE_ARRAYS];
    uint32_t n = a->ops->save(a, of_a);

    assert_int_equal(n, b->ops->save(b, of_b));
    for (uint32_t i = 0; i < n; i++) {
        assert_string_equal(of_a[i].slot ? of_a[i].slot : "", of_b[i].slot ? of_b[i].slot : "");
        assert_int_equal(of_a[i].bytes, of_b[i].bytes);
        assert_memory_equal(of_a[i].data, of_b[i].data, of_a[i].bytes);
    }
}

/* The last use of the newest row of a set that has some. */
static uint32_t last_used(const wf_row_set *set)
{
    wf_row_use at = wf_row_set_first(set), newest = at;

    for (; at.row != WF_NO_RECORD; at = wf_row_set_next(set, at))
        newest = at;
    return newest.used;
}

/* H1, H2, H3 */
static void check_sets(const wf_slice *s)
{
    const wf_hashed *h = hashed(s);
    const wf_row_set *cold = &h->cold.heads;

    assert_true(h->rows.records.n <= h->base.policy.max_rows);
    for (uint32_t i = 0; i < cold->records.n; i++) {
        uint64_t key = wf_row_set_key(cold, (int32_t)i);

        assert_int_equal(wf_row_set_find(&h->rows, key), WF_NO_RECORD);
        assert_int_equal(wf_row_set_find(&h->waiting, key), WF_NO_RECORD);
    }
    if (cold->records.n)
        assert_true(h->rows.records.n > 0 && last_used(cold) <= wf_row_set_first(&h->rows).used);
}

/* ---- the same bits ---- */

static void replace(wf_slice **s, wf_slice *by)
{
    wf_slice_free(s);
    *s = by;
}

static void run(const char *rule, wf_row_policy policy, uint64_t seed)
{
    const wf_rng_key key = {seed, wf_rng_fold_str(0, rule)};
    wf_row_policy plain = policy;
    wf_slice *ours, *theirs, *our_copy = NULL, *their_copy = NULL;
    uint32_t most_cold = 0;
    wf_opt opt;
    named n;

    policy.disk = folder.path;
    plain.max_rows = 0;
    plain.evict_after = policy.evict_after ? policy.evict_after : NEVER; /* in the order of use */
    assert_int_equal(wf_opt_init(&opt, rule, 0, NULL, NULL, NULL), WF_OK);
    ours = open_slice(&opt, policy);
    theirs = open_slice(&opt, plain);
    ours->updates = theirs->updates = UINT32_MAX - ROUNDS / 2; /* an era of row_order.h ends */
    for (uint64_t round = 0; round < ROUNDS; round++) {
        double p = wf_rng_f64(key, UINT64_MAX - round);

        draw(&n, key, round);
        push(ours, &opt, &n);
        push(theirs, &opt, &n);
        check_sets(ours);
        most_cold = WF_MAX(most_cold, n_cold(ours));
        assert_int_equal(ours->bytes, theirs->bytes);
        if (p < 0.3)
            compare_pulls(ours, theirs);
        if (p > 0.9)
            assert_true(ours->ops->digest(ours) == theirs->ops->digest(theirs));
        if (our_copy) /* of an earlier instant, whatever came */
            compare_copies(our_copy, their_copy);
        if (p < 0.04) {
            replace(&our_copy, fork_of(ours));
            replace(&their_copy, fork_of(theirs));
        }
        if (p < 0.01)
            replace(&ours, load(our_copy, &opt, policy));
        else if (p < 0.02) /* a job whose limit was added, or has gone */
            replace(&ours, load(their_copy, &opt, policy));
        else if (p < 0.03)
            replace(&theirs, load(our_copy, &opt, plain));
    }
    compare_pulls(ours, theirs);
    assert_true(most_cold > 2 * policy.max_rows || policy.evict_after);
    assert_true(most_cold > 0);
    wf_slice_free(&our_copy);
    wf_slice_free(&their_copy);
    wf_slice_free(&ours);
    wf_slice_free(&theirs);
}

static void rows_in_files_have_the_bits_of_rows_in_memory(void **state)
{
    (void)state;
    run("adagrad", (wf_row_policy){.max_rows = 50}, 1);
    run("sgd", (wf_row_policy){.max_rows = 1}, 2); /* fewer than a push names */
    run("adam", (wf_row_policy){.max_rows = 70, .admit_after = 3}, 3);
    run("ftrl", (wf_row_policy){.max_rows = 20, .evict_after = 60, .admit_after = 2}, 4);
    run("adagrad", (wf_row_policy){.max_rows = 40, .dtype = WF_I8}, 5);
    run("sgd", (wf_row_policy){.max_rows = 40, .dtype = WF_BF16, .evict_after = 200}, 6);
    run("sgd", (wf_row_policy){.max_rows = 30, .admit_after = 3, .filter_bytes = 1 << 14}, 7);
}

/* ---- memory ---- */

enum { WIDE = 64, EACH = 64, LIMIT = 1 << 20 };

typedef struct wide {
    uint64_t keys[EACH];
    float values[EACH * WIDE];
    wf_slice_part part;
} wide;

/* Ids 64 at a time that were not there before; each 30th time some of long ago among them. */
static void draw_new(wide *w, uint64_t round)
{
    for (uint64_t i = 0; i < EACH; i++) {
        uint64_t of = round % 30 == 29 && i % 2 ? round / 2 : round;

        w->keys[i] = (i << 52) + (of * 0x9E3779B97F4A7C15u >> 12);
    }
    w->part = (wf_slice_part){
        .values = w->values, .n = EACH * WIDE, .rows = {EACH, (const uint8_t *)w->keys}};
}

static wf_slice *open_wide(const wf_opt *opt, wf_row_policy policy)
{
    const wf_slice like = {
        .id = 3, .count = WIDE, .row = WIDE, .trainable = true, .policy = policy};
    wf_slice *s = NULL;

    assert_int_equal(wf_slice_new(&wf_slice_hashed, &like, opt, &s, NULL), WF_OK);
    return s;
}

/* Until the keys alone fill the memory: a push is refused whole then, and the sentence says what to
 * raise. */
static void memory_is_bounded_while_a_table_grows(void **state)
{
    const wf_row_policy policies[] = {
        {.max_bytes = LIMIT, .disk = folder.path},
        {.max_bytes = LIMIT, .disk = folder.path, .dtype = WF_BF16, .admit_after = 1},
        {.max_bytes = LIMIT, .disk = folder.path, .max_rows = 500}};

    (void)state;
    for (size_t k = 0; k < WF_COUNT(policies); k++) {
        wide *w = calloc(1, sizeof *w);
        uint64_t digest, round = 0;
        wf_slice *s;
        wf_opt opt;
        wf_err err;

        assert_int_equal(wf_opt_init(&opt, "adagrad", 0, NULL, NULL, NULL), WF_OK);
        s = open_wide(&opt, policies[k]);
        for (draw_new(w, 0); s->ops->check(s, &w->part, &err) == WF_OK; draw_new(w, ++round)) {
            assert_int_equal(wf_slice_apply(s, &opt, &w->part, NULL), WF_OK);
            assert_true(wf_slice_held(s) <= LIMIT);
        }
        assert_true(round > 100 && wf_slice_on_disk(s) > 5 * LIMIT);
        assert_int_equal(err.status, WF_FULL);
        assert_non_null(strstr(err.hint, "max_bytes"));
        digest = s->ops->digest(s);
        draw_new(w, round - 1); /* known ids are trained on */
        assert_int_equal(s->ops->check(s, &w->part, NULL), WF_OK);
        assert_int_equal(wf_slice_apply(s, &opt, &w->part, NULL), WF_OK);
        assert_true(s->ops->digest(s) != digest && wf_slice_held(s) <= LIMIT);
        wf_slice_free(&s);
        free(w);
    }
}

/* Counts of ids without a row, and rows that leave after all, go by the limit too. */
static void memory_is_bounded_where_rows_come_late_and_leave(void **state)
{
    const wf_row_policy policy = {
        .max_bytes = LIMIT, .disk = folder.path, .admit_after = 2, .evict_after = 400};
    wide *w = calloc(1, sizeof *w);
    uint64_t most = 0;
    wf_slice *s;
    wf_opt opt;

    (void)state;
    assert_int_equal(wf_opt_init(&opt, "sgd", 0, NULL, NULL, NULL), WF_OK);
    s = open_wide(&opt, policy);
    for (uint64_t round = 0; round < 2000; round++) {
        draw_new(w, round / 2 % 300 * (1 + round / 1000));
        assert_int_equal(s->ops->check(s, &w->part, NULL), WF_OK);
        assert_int_equal(wf_slice_apply(s, &opt, &w->part, NULL), WF_OK);
        assert_true(wf_slice_held(s) <= LIMIT);
        most = WF_MAX(most, wf_slice_on_disk(s));
    }
    assert_true(most > 2 * LIMIT);
    for (uint64_t round = 0; round < 400; round++) { /* all others leave, and so do their files */
        draw_new(w, 5000);
        assert_int_equal(wf_slice_apply(s, &opt, &w->part, NULL), WF_OK);
    }
    assert_int_equal(n_cold(s), 0);
    assert_true(wf_slice_on_disk(s) < most / 4);
    wf_slice_free(&s);
    free(w);
}

/* ---- a disk without room ---- */

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = WF_MIN(bytes, limit.rlim_max);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_push_without_room_on_the_disk_changes_nothing(void **state)
{
    wide *w = calloc(1, sizeof *w);
    wf_slice *s, *copy = NULL;
    uint64_t round = 0, digest;
    wf_status rc = WF_OK;
    wf_opt opt;
    wf_err err;

    (void)state;
    assert_int_equal(wf_opt_init(&opt, "adagrad", 0, NULL, NULL, NULL), WF_OK);
    s = open_wide(&opt, (wf_row_policy){.max_rows = 100, .disk = folder.path});
    signal(SIGXFSZ, SIG_IGN);
    limit_files(4096);
    do {
        digest = s->ops->digest(s);
        draw_new(w, round);
        rc = wf_slice_apply(s, &opt, &w->part, &err);
    } while (rc == WF_OK && ++round < 1000);
    assert_int_equal(rc, WF_FULL);
    assert_non_null(strstr(err.what, folder.path));
    assert_non_null(strstr(err.what, "no room"));
    assert_true(s->ops->digest(s) == digest && s->updates == round);
    assert_int_equal(wf_slice_fork(s, &copy, &err), WF_FULL);
    limit_files(RLIM_INFINITY);
    assert_int_equal(wf_slice_apply(s, &opt, &w->part, NULL), WF_OK);
    assert_int_equal(wf_slice_fork(s, &copy, NULL), WF_OK);
    wf_slice_free(&copy);
    wf_slice_free(&s);
    free(w);
}

static void a_folder_that_cannot_be_is_refused_at_once(void **state)
{
    const char *folders[] = {"/dev/null/rows", "/proc/self/rows"};
    wf_slice *s = NULL;
    wf_opt opt;
    wf_err err;

    (void)state;
    assert_int_equal(wf_opt_init(&opt, "sgd", 0, NULL, NULL, NULL), WF_OK);
    for (size_t i = 0; i < WF_COUNT(folders); i++) {
        wf_status rc = try_open(&opt, (wf_row_policy){.max_rows = 9, .disk = folders[i]}, &s, &err);

        assert_true(rc != WF_OK && strstr(err.what, folders[i]));
    }
}

static void limits_that_contradict_are_refused(void **state)
{
    const wf_row_policy bad[] = {{.disk = folder.path},
                                 {.disk = folder.path, .max_rows = 10, .fails_full = true},
                                 {.disk = folder.path, .max_rows = 10, .by_frequency = true},
                                 {.disk = folder.path,
                                  .max_bytes = 1 << 20,
                                  .evict_after = 100,
                                  .dtype = WF_I8}}; /* a row is as small as a key */
    wf_slice *s = NULL;
    wf_opt opt;
    wf_err err;

    (void)state;
    assert_int_equal(wf_opt_init(&opt, "sgd", 0, NULL, NULL, NULL), WF_OK);
    for (size_t i = 0; i < WF_COUNT(bad); i++)
        assert_int_equal(try_open(&opt, bad[i], &s, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "when it lies in a file"));
}

/* ---- states that cannot be ---- */

typedef struct twice {
    const wf_slice *copy;
    uint64_t from, to; /* id `to` becomes id `from` */
} twice;

static wf_status read_twice(void *arg, const wf_slice *s, const char *slot, void **out,
                            uint64_t *bytes, wf_err *err)
{
    const twice *t = arg;

    WF_TRY(read_all((void *)t->copy, s, slot, out, bytes, err));
    if (slot && strcmp(slot, "ids") == 0)
        ((int64_t *)*out)[t->to] = ((int64_t *)*out)[t->from];
    return WF_OK;
}

/* In files, in memory, or in both. */
static void a_row_that_is_there_twice_is_refused(void **state)
{
    wf_row_policy policy = {.max_rows = 10, .disk = folder.path};
    twice ids[] = {{NULL, 0, 1}, {NULL, 45, 46}, {NULL, 3, 47}};
    wf_slice *s, *copy;
    wf_opt opt;
    named n;

    (void)state;
    assert_int_equal(wf_opt_init(&opt, "sgd", 0, NULL, NULL, NULL), WF_OK);
    s = open_slice(&opt, policy);
    name_all(&n);
    name_rows(&n, 50);
    push(s, &opt, &n);
    assert_int_equal(n_cold(s), 40);
    copy = fork_of(s);
    for (size_t i = 0; i < WF_COUNT(ids); i++) {
        wf_slice_source from = {.arg = &ids[i], .read_all = read_twice};
        wf_slice *fresh = open_slice(&opt, policy);

        ids[i].copy = copy;
        fresh->updates = s->updates;
        assert_int_equal(fresh->ops->load(fresh, &from, false, NULL), WF_CORRUPT);
        wf_slice_free(&fresh);
    }
    wf_slice_free(&copy);
    wf_slice_free(&s);
}

/* ---- the array ---- */

/* Items keep their places and content while the array grows and shrinks; files go with them. */
static void an_array_of_files_gives_them_back(void **state)
{
    enum { ITEMS = 40000, BYTES = 1024 };
    uint64_t *first, all;
    wf_file_array a;

    (void)state;
    wf_file_array_init(&a, folder.path, BYTES);
    for (uint32_t n = 1; n <= ITEMS; n += 100) {
        assert_int_equal(wf_file_array_reserve(&a, n, NULL), WF_OK);
        *(uint32_t *)wf_file_array_at(&a, n - 1) = n;
    }
    first = wf_file_array_at(&a, 0);
    all = wf_file_array_on_disk(&a);
    assert_true(all >= (uint64_t)ITEMS / 100 * 100 * BYTES &&
                all < (uint64_t)ITEMS * BYTES * 5 / 4);
    assert_true(a.n_extents < 60);
    wf_file_array_fetch(&a, 0, ITEMS / 2);
    wf_file_array_trim(&a, ITEMS / 2);
    assert_true(wf_file_array_on_disk(&a) < all * 3 / 4);
    for (uint32_t n = 1; n <= ITEMS / 2; n += 100)
        assert_int_equal(*(uint32_t *)wf_file_array_at(&a, n - 1), n);
    assert_ptr_equal(first, wf_file_array_at(&a, 0));
    wf_file_array_trim(&a, 0);
    assert_true(wf_file_array_on_disk(&a) < all / 16);
    wf_file_array_close(&a);
}

static int set_up(void **state)
{
    (void)state;
    test_folder_make(&folder);
    return 0;
}

/* Nothing has a name in the folder, at any time. */
static int tear_down(void **state)
{
    (void)state;
    return rmdir(folder.path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_in_files_have_the_bits_of_rows_in_memory),
        cmocka_unit_test(memory_is_bounded_while_a_table_grows),
        cmocka_unit_test(memory_is_bounded_where_rows_come_late_and_leave),
        cmocka_unit_test(a_push_without_room_on_the_disk_changes_nothing),
        cmocka_unit_test(a_folder_that_cannot_be_is_refused_at_once),
        cmocka_unit_test(limits_that_contradict_are_refused),
        cmocka_unit_test(a_row_that_is_there_twice_is_refused),
        cmocka_unit_test(an_array_of_files_gives_them_back),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
