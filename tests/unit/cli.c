/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/cli.c - words of the command line, tables, texts, and the lock of the supervisor. */
#include "cmd/cli/cli.h"
#include "cmd/cli/later.h"
#include "cmd/cli/progress.h"
#include "cmd/cli/super.h"
#include "cmd/cli/table.h"
#include "cmd/cli/term.h"
#include "cmd/cli/verbs.h"
#include "common/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct got {
    bool json;
    const char *out;
    wf_words inputs, operands;
    wf_err err;
} got;

static wf_status parse(got *g, size_t least, size_t most, char *words[])
{
    const wf_flag flags[] = {{"json", 0, .set = &g->json},
                             {"output", 'o', .value = &g->out},
                             {"input", 0, .words = &g->inputs},
                             {0}};
    int argc = 0;

    *g = (got){0};
    while (words[argc])
        argc++;
    return wf_args(flags, argc, words, least, most, &g->operands, &g->err);
}

#define WORDS(...) ((char *[]){(char *)"cmd", __VA_ARGS__, NULL})
#define W(text) ((char *)text)

static void options_stand_anywhere(void **state)
{
    got g;

    (void)state;
    assert_int_equal(parse(&g, 1, 1, WORDS(W("-o"), W("f"), W("m"), W("--json"))), WF_OK);
    assert_string_equal(g.out, "f");
    assert_true(g.json);
    assert_string_equal(g.operands.word[0], "m");
    assert_int_equal(parse(&g, 0, 0, WORDS(W("--output=a=b"))), WF_OK);
    assert_string_equal(g.out, "a=b");
    assert_int_equal(parse(&g, 0, 0, WORDS(W("-of"))), WF_OK);
    assert_string_equal(g.out, "f");
    assert_int_equal(parse(&g, 2, 2, WORDS(W("--"), W("--json"), W("-"))), WF_OK);
    assert_false(g.json);
}

static void a_list_takes_what_looks_like_one(void **state)
{
    got g;

    (void)state;
    assert_int_equal(parse(&g, 1, 1,
                           WORDS(W("m.onnx"), W("--input"), W("x=a"), W("y=b"), W("-o"), W("d"),
                                 W("--input"), W("z=c"))),
                     WF_OK);
    assert_int_equal(g.inputs.n, 3);
    assert_string_equal(g.inputs.word[2], "z=c");
    assert_string_equal(g.operands.word[0], "m.onnx");
}

static void wrong_words_are_named(void **state)
{
    got g;

    (void)state;
    assert_int_equal(parse(&g, 0, 0, WORDS(W("--jsn"))), WF_USAGE);
    assert_string_equal(g.err.hint, "did you mean --json?");
    assert_int_equal(parse(&g, 0, 0, WORDS(W("--json=1"))), WF_USAGE);
    assert_int_equal(parse(&g, 0, 0, WORDS(W("--output"))), WF_USAGE);
    assert_int_equal(parse(&g, 0, 0, WORDS(W("extra"))), WF_USAGE);
    assert_non_null(strstr(g.err.what, "\"extra\" is one word too many"));
    assert_int_equal(parse(&g, 2, 3, WORDS(W("one"))), WF_USAGE);
    assert_non_null(strstr(g.err.what, "needs 2 words"));
}

static void numbers_are_bounded(void **state)
{
    static const char *const bad[] = {"", "-1", "1x", "0x10", "99999999999999999999", "11", " 5"};
    unsigned long long n;
    wf_err err;

    (void)state;
    assert_int_equal(wf_arg_u64("--n", "10", 1, 10, &n, &err), WF_OK);
    assert_int_equal(n, 10);
    for (size_t i = 0; i < WF_COUNT(bad); i++)
        assert_int_equal(wf_arg_u64("--n", bad[i], 1, 10, &n, &err), WF_USAGE);
}

static void every_command_has_its_help(void **state)
{
    const wf_cmd *cmd;

    (void)state;
    for (size_t i = 0; (cmd = wf_cmd_at(i)); i++) {
        size_t lines = 0;

        for (const char *p = cmd->usage; *p; p++)
            lines += *p == '\n';
        assert_in_range(lines, 2, 40);
        assert_int_equal(strncmp(cmd->usage, "weft ", 5), 0);
        assert_true(strlen(cmd->help) < 70);
        assert_ptr_equal(wf_cmd_find(cmd->name), cmd);
    }
}

static void what_is_not_built_says_what_to_do_instead(void **state)
{
    const char *name, *option;
    wf_err err;

    (void)state;
    for (size_t i = 0; (name = wf_later_at(i, &option)); i++) {
        if (option)
            assert_non_null(wf_cmd_find(name)); /* wf_args finds those that are built first */
        else
            assert_null(wf_cmd_find(name)); /* it is built: take the row out */
        assert_int_equal(option ? wf_later_word(name, option, &err) : wf_cmd_unknown(name, &err),
                         WF_UNSUPPORTED);
        assert_non_null(strstr(err.what, "is not built yet"));
        assert_true(strlen(err.hint) > 10);
    }
}

/* "weft stpo" is not answered with a command that ends something. */
static void no_suggestion_ends_anything(void **state)
{
    static const char *const near[] = {"stpo", "sto", "dwon", "dow", "r", "rn", "stop1"};
    static const char *const ending[] = {"stop", "down", "rm"};
    wf_err err;

    (void)state;
    for (size_t i = 0; i < WF_COUNT(ending); i++)
        assert_true(!wf_cmd_find(ending[i]) || wf_cmd_find(ending[i])->ends);
    for (size_t i = 0; i < WF_COUNT(near); i++) {
        assert_int_equal(wf_cmd_unknown(near[i], &err), WF_USAGE);
        for (size_t k = 0; k < WF_COUNT(ending); k++)
            assert_null(strstr(err.hint, ending[k]));
    }
    assert_int_equal(wf_cmd_unknown("tran", &err), WF_USAGE);
    assert_string_equal(err.hint, "did you mean \"weft train\"?");
    assert_int_equal(wf_cmd_unknown("fit", &err), WF_USAGE);
    assert_string_equal(err.hint, "did you mean \"weft train\"?");
}

static void what_a_command_can_do_comes_from_its_usage(void **state)
{
    char verb[WF_VERB];
    wf_err err;

    (void)state;
    assert_true(wf_verb_at(wf_cmd_find("ckpt"), 0, verb));
    assert_string_equal(verb, "ls");
    assert_false(wf_verb_at(wf_cmd_find("train"), 0, verb));
    assert_false(wf_verb_at(wf_cmd_find("help"), 0, verb));
    assert_int_equal(wf_verb_check("ckpt", "verify", &err), WF_OK);
    assert_int_equal(wf_verb_check("train", "verify", &err), WF_OK);
    assert_int_equal(wf_verb_check("ckpt", "lss", &err), WF_USAGE);
    assert_string_equal(err.hint, "did you mean \"ls\"?");
    assert_int_equal(wf_verb_check("data", NULL, &err), WF_USAGE);
    assert_non_null(strstr(err.hint, "digits, peek"));
}

static char *printed(void (*body)(FILE *f))
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    assert_non_null(f);
    body(f);
    fclose(f);
    return text;
}

static void print_table(FILE *f)
{
    wf_rows t = {0};

    wf_rows_add(&t, (const char *[]){"A", "LONG NAME", "Z"}, 3);
    wf_rows_add(&t, (const char *[]){"größer", NULL, "1"}, 3);
    assert_int_equal(wf_rows_print(&t, f, NULL), WF_OK);
}

static void columns_align_by_what_is_seen(void **state)
{
    char *text = printed(print_table);

    (void)state;
    assert_string_equal(text, "A       LONG NAME  Z\ngrößer  -          1\n");
    free(text);
}

static void print_progress(FILE *f)
{
    wf_progress p = {.f = f, .term = {.columns = 80}};

    for (int64_t i = 0; i <= 1000; i++) /* 1000 steps of 20 ms */
        wf_progress_show(&p, 1 + i * 20 * WF_NS_PER_MS, (double)i / 1000, "epoch 1/1", "fast");
}

static void a_log_gets_a_line_each_20th(void **state)
{
    char *text = printed(print_progress);
    int lines = 0;

    (void)state;
    for (const char *p = text; *p; p++)
        lines += *p == '\n';
    assert_in_range(lines, 19, 22);
    assert_null(strchr(text, '\r'));
    free(text);
}

static void texts_read_well(void **state)
{
    char text[64];

    (void)state;
    assert_string_equal(wf_bytes_text(17, text, sizeof text), "17 B");
    assert_string_equal(wf_bytes_text(1677721, text, sizeof text), "1.6 MiB");
    assert_string_equal(wf_bytes_text(217088, text, sizeof text), "212 KiB");
    assert_string_equal(wf_count_text(31200, text, sizeof text), "31 200");
    assert_string_equal(wf_count_text(999, text, sizeof text), "999");
    assert_string_equal(wf_count_text(1234567, text, sizeof text), "1 234 567");
    assert_string_equal(wf_seconds_text(14, text, sizeof text), "0:14");
    assert_string_equal(wf_seconds_text(3753, text, sizeof text), "1:02:33");
    assert_string_equal(wf_seconds_text(-1, text, sizeof text), "-");
}

enum { N_LOOKERS = 4, N_STARTS = 300 };

static void look_for_ever(const wf_cluster_conf *conf)
{
    for (;;)
        (void)wf_super_pid(conf);
}

/* Commands that only ask whether a supervisor runs must not keep one from starting. */
static void a_look_at_the_lock_does_not_take_it(void **state)
{
    char folder[] = "/tmp/weft-lock-XXXXXX", path[64];
    wf_cluster_conf conf = {.state_dir = folder};
    pid_t lookers[N_LOOKERS];
    int failed = 0;

    (void)state;
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < N_LOOKERS; i++) {
        lookers[i] = fork();
        if (lookers[i] == 0)
            look_for_ever(&conf);
        failed += lookers[i] < 0;
    }
    for (int i = 0; i < N_STARTS; i++) {
        int fd = -1;
        wf_err err;

        if (wf_super_lock(&conf, &fd, &err) != WF_OK)
            failed++;
        else
            close(fd);
    }
    for (int i = 0; i < N_LOOKERS; i++) {
        if (lookers[i] < 0)
            continue; /* kill(-1) would mean everybody */
        kill(lookers[i], SIGKILL);
        waitpid(lookers[i], NULL, 0);
    }
    snprintf(path, sizeof path, "%s/supervisor.lock", folder);
    unlink(path);
    rmdir(folder);
    assert_int_equal(failed, 0);
}

static void one_supervisor_has_the_lock_and_is_named(void **state)
{
    char folder[] = "/tmp/weft-lock-XXXXXX", path[64], number[32];
    wf_cluster_conf conf = {.state_dir = folder};
    int fd = -1, other = -1;
    wf_err err;

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(wf_super_pid(&conf), 0);
    assert_int_equal(wf_super_lock(&conf, &fd, &err), WF_OK);
    assert_int_equal(wf_super_pid(&conf), getpid());
    assert_int_equal(wf_super_lock(&conf, &other, &err), WF_EXISTS);
    snprintf(number, sizeof number, "(supervisor %ld)", (long)getpid());
    assert_non_null(strstr(err.what, number));
    assert_int_equal(other, -1);
    close(fd);
    assert_int_equal(wf_super_pid(&conf), 0);
    snprintf(path, sizeof path, "%s/supervisor.lock", folder);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_stand_anywhere),
        cmocka_unit_test(a_list_takes_what_looks_like_one),
        cmocka_unit_test(wrong_words_are_named),
        cmocka_unit_test(numbers_are_bounded),
        cmocka_unit_test(every_command_has_its_help),
        cmocka_unit_test(what_is_not_built_says_what_to_do_instead),
        cmocka_unit_test(no_suggestion_ends_anything),
        cmocka_unit_test(what_a_command_can_do_comes_from_its_usage),
        cmocka_unit_test(columns_align_by_what_is_seen),
        cmocka_unit_test(a_log_gets_a_line_each_20th),
        cmocka_unit_test(texts_read_well),
        cmocka_unit_test(a_look_at_the_lock_does_not_take_it),
        cmocka_unit_test(one_supervisor_has_the_lock_and_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
