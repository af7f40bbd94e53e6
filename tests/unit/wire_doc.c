/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/wire_doc.c - docs/wire.md says what the code does: the header, the kinds, and the
 * messages of its example byte by byte.
 *
 * The example's messages are what two nets send each other over a transport in memory, with a
 * header in front as the ZeroMQ transport writes it. Where the page differs, the test prints what
 * it should have.
 */
#include "common/base/file.h"
#include "common/base/size.h"
#include "common/wire/control.h"
#include "common/wire/parts.h"
#include "tests/kit/memnet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_BYTES = 512, MOST_MESSAGES = 8, MOST_ROW = 256 };

static const char *path;
static wf_bytes page;

/* ---- the page ---- */

static int read_page(void **state)
{
    wf_err err;

    (void)state;
    return wf_file_read(path, 1 << 20, &page, &err) == WF_OK ? 0 : -1;
}

static int close_page(void **state)
{
    (void)state;
    wf_bytes_close(&page);
    return 0;
}

static void expect_row(const char *row)
{
    if (!strstr(wf_bytes_str(&page), row))
        fail_msg("%s has no row \"%s\"", path, row);
}

static size_t count_rows(const char *begin)
{
    size_t n = 0;

    for (const char *at = wf_bytes_str(&page); (at = strstr(at, begin)); at++)
        n++;
    return n;
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');

    if (!end)
        fail_msg("%s ends in the middle of a block", path);
    return end + 1;
}

/* The bytes of a line "0010  ff 00  what they are"; its offset has to be `at`. */
static size_t read_line(const char *line, size_t at, uint8_t out[])
{
    char *end;
    size_t n = 0;

    assert_int_equal(strtoul(line, &end, 16), at);
    assert_int_equal(end - line, 4);
    for (end += 2; *end && strchr("0123456789abcdef", *end); end += 3) {
        out[n++] = (uint8_t)strtoul(end, NULL, 16);
        if (end[2] != ' ')
            break;
    }
    return n;
}

/* The bytes between "```hex NAME" and "```". */
static size_t read_dump(const char *name, uint8_t out[MOST_BYTES])
{
    char head[64];
    const char *line;
    size_t n = 0;

    snprintf(head, sizeof head, "```hex %s\n", name);
    line = strstr(wf_bytes_str(&page), head);
    if (!line)
        fail_msg("%s has no %s", path, head);
    for (line = next_line(line); strncmp(line, "```", 3) != 0; line = next_line(line)) {
        assert_true(n + 16 < MOST_BYTES);
        n += read_line(line, n, out + n);
    }
    return n;
}

/* ---- the example ---- */

typedef struct sent {
    uint8_t bytes[MOST_BYTES];
    size_t n;
} sent;

typedef struct world {
    wf_memnet nets;
    wf_net *ps, *worker;
    wf_peer *to_ps;
    int64_t now_ns;
    sent sent[MOST_MESSAGES];
    size_t n_sent;
} world;

/* Keeps what is sent as the ZeroMQ transport would hand it over, its parts one behind the other. */
static void carry(void *arg, const wf_packet *packet)
{
    world *w = arg;
    const wf_msg *m = packet->msg;
    wf_packet onwards = *packet;
    sent *s = &w->sent[w->n_sent++];

    assert_true(w->n_sent < MOST_MESSAGES && wf_msg_bytes(m) <= MOST_BYTES);
    wf_header_encode(&m->head, m->control, s->bytes);
    s->n = WF_HEADER_BYTES;
    if (m->head.control_bytes)
        memcpy(s->bytes + s->n, m->control, m->head.control_bytes);
    s->n += m->head.control_bytes;
    for (uint32_t i = 0; i < m->n_frames; i++) {
        memcpy(s->bytes + s->n, m->frames[i].data, m->frames[i].bytes);
        s->n += m->frames[i].bytes;
    }
    wf_mem_deliver(w->nets.mem, &onwards);
}

/* Sequences that begin at 0x1000 and 0x2000, which a person can follow. */
static uint64_t start_of(void *first)
{
    return (*(const uint64_t *)first - 1) << 2;
}

static wf_net *make_net(world *w, wf_task self, uint64_t incarnation, uint64_t pid,
                        const uint64_t *first)
{
    wf_net_conf conf = wf_memnet_conf(&w->nets, self, incarnation);

    conf.pid = pid;
    conf.random_id = start_of;
    conf.random_arg = (void *)first;
    return wf_memnet_new(&conf);
}

static wf_event expect(world *w, wf_net *n, wf_event_kind kind)
{
    wf_event ev;

    wf_net_poll(n, w->now_ns);
    assert_true(wf_net_event(n, w->now_ns, &ev));
    assert_int_equal(ev.kind, kind);
    return ev;
}

static wf_msg *make_msg(wf_net *n, uint16_t kind)
{
    wf_msg *m = NULL;

    assert_int_equal(wf_net_msg(n, kind, &m, NULL), WF_OK);
    m->head.view = 3;
    m->head.map = 1;
    m->head.job = 1;
    m->head.generation = 1;
    m->head.step = 7;
    return m;
}

/* The gradient of slice 5, four numbers, a mean over 32 records, at step 7. */
static void push(world *w)
{
    static const float gradient[] = {1, -0.5F, 0.25F, 2};
    wf_msg *m = make_msg(w->worker, WF_PUSH);
    wf_buf *buf = wf_buf_new(sizeof gradient);
    wf_part part = {.slice = 5,
                    .bytes = sizeof gradient,
                    .checksum = wf_part_checksum(gradient, sizeof gradient)};

    assert_non_null(buf);
    memcpy(buf->data, gradient, sizeof gradient);
    assert_int_equal(wf_msg_add_frame(m, buf, buf->data, buf->bytes, NULL), WF_OK);
    assert_int_equal(wf_push_put(m, (wf_push_body){.records = 32}, &part, 1, NULL), WF_OK);
    assert_int_equal(wf_net_send(w->worker, w->to_ps, WF_LANE_DATA, 0, &m, NULL), WF_OK);
    wf_net_flush(w->worker, w->now_ns);
    wf_buf_unref(&buf);
}

/* The ps takes the push, and acknowledges its slice. */
static void answer(world *w)
{
    wf_event ev = expect(w, w->ps, WF_EV_MESSAGE);
    wf_msg *ok = make_msg(w->ps, WF_PUSH_OK);
    wf_part part = {.slice = 5};

    assert_int_equal(wf_slices_put(ok, &part.slice, 1, NULL), WF_OK);
    assert_int_equal(wf_net_send(w->ps, ev.peer, WF_LANE_CONTROL, 0, &ok, NULL), WF_OK);
    wf_net_free_msg(w->ps, &ev.msg);
    wf_net_flush(w->ps, w->now_ns);
}

/* The worker takes that; with nothing to send, its acknowledgement goes with a ping. */
static void acknowledge(world *w)
{
    wf_event ev = expect(w, w->worker, WF_EV_MESSAGE);

    wf_net_free_msg(w->worker, &ev.msg);
    w->now_ns += wf_net_defaults().ack_delay_ns;
    wf_net_poll(w->worker, w->now_ns);
}

static void run_example(world *w)
{
    static const uint64_t firsts[] = {0x1000, 0x2000};
    const wf_task worker0 = {WF_ROLE_WORKER, 0}, ps0 = {WF_ROLE_PS, 0};

    *w = (world){.now_ns = 1000000000};
    wf_memnet_init(&w->nets, "demo");
    wf_mem_set_carrier(w->nets.mem, carry, w);
    w->worker = make_net(w, worker0, UINT64_C(0xa1a2a3a4a5a6a7a8), 4711, &firsts[0]);
    w->ps = make_net(w, ps0, UINT64_C(0xb1b2b3b4b5b6b7b8), 4712, &firsts[1]);
    wf_memnet_listen(&w->nets, w->ps, "ps");
    w->to_ps = wf_memnet_dial(&w->nets, w->worker, ps0, "ps");
    wf_net_poll(w->worker, w->now_ns);
    expect(w, w->ps, WF_EV_UP);
    expect(w, w->worker, WF_EV_UP);
    push(w);
    answer(w);
    acknowledge(w);
    wf_net_free(&w->worker, 0);
    wf_net_free(&w->ps, 0);
    wf_memnet_close(&w->nets);
}

static void print_dump(const char *name, const sent *s)
{
    printf("```hex %s\n", name);
    for (size_t i = 0; i < s->n; i += 8) {
        printf("%04zx ", i);
        for (size_t k = i; k < s->n && k < i + 8; k++)
            printf(" %02x", s->bytes[k]);
        printf("\n");
    }
    printf("```\n");
}

static void the_example_is_what_two_tasks_send(void **state)
{
    static const char *const names[] = {"hello", "welcome", "push", "push_ok", "ping"};
    static world w;
    bool same = true;

    (void)state;
    run_example(&w);
    assert_int_equal(w.n_sent, WF_COUNT(names));
    for (size_t i = 0; i < WF_COUNT(names); i++) {
        uint8_t bytes[MOST_BYTES];
        size_t n = read_dump(names[i], bytes);

        if (n == w.sent[i].n && memcmp(bytes, w.sent[i].bytes, n) == 0)
            continue;
        print_dump(names[i], &w.sent[i]);
        same = false;
    }
    assert_true(same);
}

/* ---- the tables ---- */

/* Each field has the bytes of its own places as its content. */
static void the_header_has_the_fields_of_the_table(void **state)
{
    static const struct {
        const char *name;
        size_t at, bytes;
    } fields[] = {
        {"magic", 0, 4}, {"version", 4, 1},  {"zero", 5, 1},           {"kind", 6, 2},
        {"view", 8, 4},  {"map", 12, 4},     {"incarnation", 16, 8},   {"sequence", 24, 8},
        {"ack", 32, 8},  {"request", 40, 4}, {"job", 44, 2},           {"generation", 46, 2},
        {"step", 48, 4}, {"cut", 52, 4},     {"control_bytes", 56, 4}, {"crc32c", 60, 4}};
    wf_header h = {.version = 4,
                   .kind = 0x0706,
                   .view = 0x0b0a0908,
                   .map = 0x0f0e0d0c,
                   .incarnation = UINT64_C(0x1716151413121110),
                   .sequence = UINT64_C(0x1f1e1d1c1b1a1918),
                   .ack = UINT64_C(0x2726252423222120),
                   .request = 0x2b2a2928,
                   .job = 0x2d2c,
                   .generation = 0x2f2e,
                   .step = 0x33323130,
                   .cut = 0x37363534,
                   .control_bytes = 1};
    uint8_t out[WF_HEADER_BYTES], control = 0;
    size_t end = 0;
    char row[MOST_ROW];

    (void)state;
    wf_header_encode(&h, &control, out);
    assert_memory_equal(out, "WEFT", 4);
    for (uint8_t i = 4; i < 56; i++)
        assert_int_equal(out[i], i == 5 ? 0 : i);
    assert_int_equal(wf_get_u32(out + 56), 1);
    for (size_t i = 0; i < WF_COUNT(fields); i++) {
        assert_int_equal(fields[i].at, end);
        end += fields[i].bytes;
        snprintf(row, sizeof row, "\n| %zu | %zu | u%zu | `%s` |", fields[i].at, fields[i].bytes,
                 8 * fields[i].bytes, fields[i].name);
        expect_row(row);
    }
    assert_int_equal(end, WF_HEADER_BYTES);
}

static const char *roles_of(uint8_t bits, char text[64])
{
    size_t at = 0;

    for (int role = WF_ROLE_MASTER; role < WF_N_ROLES; role++)
        if (bits & 1u << role)
            at += (size_t)snprintf(text + at, 64 - at, "%s%s", at ? ", " : "",
                                   wf_role_name((wf_role)role));
    return text;
}

static const char *size_of(size_t bytes, char text[32])
{
    if (bytes >= 1 << 20)
        snprintf(text, 32, "%zu MiB", bytes >> 20);
    else if (bytes)
        snprintf(text, 32, "%zu KiB", bytes >> 10);
    else
        snprintf(text, 32, "0");
    return text;
}

static void every_kind_has_its_row_and_no_other_has_one(void **state)
{
    char row[MOST_ROW], from[64], to[64], limit[32];

    (void)state;
    for (uint16_t kind = 0; kind < WF_N_KINDS; kind++) {
        const wf_kind_row *r = wf_kind_find(kind);

        if (r) {
            snprintf(row, sizeof row, "\n| %u | `%s` | %s | %s | %s | %u |", kind, r->name,
                     roles_of(r->from, from), roles_of(r->to, to), size_of(r->control_limit, limit),
                     r->frames_limit);
            expect_row(row);
        }
        snprintf(row, sizeof row, "\n| %u | `", kind);
        assert_int_equal(count_rows(row), r != NULL);
    }
}

static void every_reason_for_dropping_has_a_row(void **state)
{
    char row[MOST_ROW];

    (void)state;
    for (wf_bad reason = 0; reason < WF_N_BAD; reason++) {
        snprintf(row, sizeof row, "\n| `%s` |", wf_bad_name(reason));
        expect_row(row);
    }
}

int main(int argc, char *argv[])
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_is_what_two_tasks_send),
        cmocka_unit_test(the_header_has_the_fields_of_the_table),
        cmocka_unit_test(every_kind_has_its_row_and_no_other_has_one),
        cmocka_unit_test(every_reason_for_dropping_has_a_row),
    };

    path = argc > 1 ? argv[1] : "docs/wire.md";
    return cmocka_run_group_tests(tests, read_page, close_page);
}
