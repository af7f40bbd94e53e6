/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/args.c - words of the command line, by a table. getopt_long is not used: it prints by
 * itself, and knows no nearest name. */
#include "cmd/cli/cli.h"
#include "cmd/cli/flags.h"
#include "cmd/cli/later.h"
#include "cmd/cli/verbs.h"
#include "common/base/nearest.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct scan {
    const wf_flag *flags;
    int argc, at;
    char **argv;
} scan;

static const wf_flag *find_long(const wf_flag flags[], const char *name, size_t n)
{
    for (; flags->name; flags++)
        if (strlen(flags->name) == n && strncmp(flags->name, name, n) == 0)
            return flags;
    return NULL;
}

static const wf_flag *find_letter(const wf_flag flags[], char letter)
{
    for (; flags->name; flags++)
        if (flags->letter == letter)
            return flags;
    return NULL;
}

static wf_status unknown(const scan *s, const char *word, wf_err *err)
{
    const char *names[32], *near;
    char hint[160], bare[64], dashed[72];
    size_t n = 0;

    for (; s->flags[n].name && n < WF_COUNT(names); n++)
        names[n] = s->flags[n].name;
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(word + strspn(word, "-"), "="),
             word + strspn(word, "-"));
    snprintf(dashed, sizeof dashed, "--%s", bare);
    WF_TRY(wf_later_word(s->argv[0], dashed, err));
    near = wf_nearest(bare, names, n);
    if (near)
        snprintf(hint, sizeof hint, "did you mean --%s?", near);
    else
        snprintf(hint, sizeof hint, "see \"weft help %s\"", s->argv[0]);
    return wf_fail(err, WF_USAGE, hint, "weft %s has no option %.64s", s->argv[0], word);
}

static wf_status add_word(wf_words *words, const char *word, wf_err *err)
{
    if (words->n == WF_COUNT(words->word))
        return wf_fail(err, WF_USAGE, NULL, "more than %zu words like \"%.64s\"", words->n, word);
    words->word[words->n++] = word;
    return WF_OK;
}

/* `value`: what stood behind "=", or NULL. Further words of a list follow until the next option, as
 * long as they look like NAME=FILE. */
static wf_status take(scan *s, const wf_flag *flag, const char *value, wf_err *err)
{
    if (flag->set) {
        if (value)
            return wf_fail(err, WF_USAGE, NULL, "--%s takes no value", flag->name);
        *flag->set = true;
        return WF_OK;
    }
    if (!value && s->at + 1 < s->argc)
        value = s->argv[++s->at];
    if (!value)
        return wf_fail(err, WF_USAGE, NULL, "--%s needs a value", flag->name);
    if (flag->value) {
        *flag->value = value;
        return WF_OK;
    }
    WF_TRY(add_word(flag->words, value, err));
    while (s->at + 1 < s->argc && s->argv[s->at + 1][0] != '-' && strchr(s->argv[s->at + 1], '='))
        WF_TRY(add_word(flag->words, s->argv[++s->at], err));
    return WF_OK;
}

static wf_status take_option(scan *s, wf_err *err)
{
    const char *word = s->argv[s->at];
    const wf_flag *flag;

    if (word[1] == '-') {
        size_t n = strcspn(word + 2, "=");

        flag = find_long(s->flags, word + 2, n);
        return flag ? take(s, flag, word[2 + n] == '=' ? word + 3 + n : NULL, err)
                    : unknown(s, word, err);
    }
    flag = find_letter(s->flags, word[1]);
    return flag ? take(s, flag, word[2] ? word + 2 : NULL, err) : unknown(s, word, err);
}

/* What the usage line asks for, "JOB.yaml" of "weft train JOB.yaml [--resume]"; by number for a
 * name of no command. */
static const char *needed(const char *name, size_t least, char text[static 128])
{
    const wf_cmd *cmd = wf_cmd_find(name);
    const char *from = cmd ? cmd->usage + strlen("weft ") + strlen(cmd->name) : "";
    size_t n = strcspn(from, "[\n");

    while (n > 0 && from[n - 1] == ' ')
        n--;
    if (n > 1 && n < 120)
        snprintf(text, 128, "%.*s", (int)n - 1, from + 1);
    else
        snprintf(text, 128, "%zu word%s", least, least == 1 ? "" : "s");
    return text;
}

wf_status wf_args(const wf_flag flags[], int argc, char *argv[], size_t least, size_t most,
                  wf_words *operands, wf_err *err)
{
    scan s = {flags, argc, 1, argv};
    char hint[96], more[128];
    bool options = true;

    *operands = (wf_words){0};
    if (wf_flags_asked(flags, argc, argv))
        return WF_STOPPED;
    for (; s.at < argc; s.at++) {
        if (options && strcmp(argv[s.at], "--") == 0)
            options = false;
        else if (options && argv[s.at][0] == '-' && argv[s.at][1])
            WF_TRY(take_option(&s, err));
        else
            WF_TRY(add_word(operands, argv[s.at], err));
    }
    if (operands->n > 0 || least > 0)
        WF_TRY(wf_verb_check(argv[0], operands->n ? operands->word[0] : NULL, err));
    if (operands->n >= least && operands->n <= most)
        return WF_OK;
    snprintf(hint, sizeof hint, "see \"weft help %.32s\"", argv[0]);
    if (operands->n > most)
        return wf_fail(err, WF_USAGE, hint, "weft %s: \"%.64s\" is one word too many", argv[0],
                       operands->word[most]);
    return wf_fail(err, WF_USAGE, hint, "weft %s needs %s", argv[0], needed(argv[0], least, more));
}

wf_status wf_arg_u64(const char *name, const char *text, unsigned long long least,
                     unsigned long long most, unsigned long long *out, wf_err *err)
{
    char *end = NULL;

    errno = 0;
    *out = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || *out < least || *out > most)
        return wf_fail(err, WF_USAGE, NULL,
                       "%s must be a whole number from %llu to %llu, not \"%.64s\"", name, least,
                       most, text);
    return WF_OK;
}

wf_status wf_arg_bytes(const char *name, const char *text, size_t *out, wf_err *err)
{
    static const struct {
        const char *name;
        unsigned long long bytes;
    } units[] = {{"", 1},          {"KiB", 1 << 10},      {"MiB", 1 << 20},
                 {"GiB", 1 << 30}, {"TiB", 1ULL << 40},   {"kB", 1000},
                 {"MB", 1000000},  {"GB", 1000000000ULL}, {"TB", 1000000000000ULL}};
    char *end = NULL;
    unsigned long long n;

    errno = 0;
    n = strtoull(text, &end, 10);
    end += strspn(end, " ");
    for (size_t i = 0; i < WF_COUNT(units); i++)
        if (text[0] >= '0' && text[0] <= '9' && !errno && n > 0 &&
            strcmp(end, units[i].name) == 0 && n <= SIZE_MAX / units[i].bytes) {
            *out = (size_t)(n * units[i].bytes);
            return WF_OK;
        }
    return wf_fail(err, WF_USAGE, "write it like 512MiB or 4GiB",
                   "%s must be a size, not \"%.64s\"", name, text);
}
