/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/einsum.c */
#include "common/graph/einsum.h"
#include "common/base/size.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { NO_LABEL = 255 };

typedef struct reader {
    const char *equation, *p;
    uint8_t of_letter[256];       /* NO_LABEL: not seen yet */
    uint8_t of_dots[WF_MAX_RANK]; /* counted from the last axis that "..." covers */
    uint32_t n_labels, n_dots;
    uint32_t uses[256]; /* of a letter, in the operands */
} reader;

static wf_status bad(const reader *r, const char *why, wf_err *err)
{
    return wf_fail(err, WF_SHAPE, NULL, "the equation \"%.80s\": %s", r->equation, why);
}

static bool ends(char c)
{
    return c == 0 || c == ',' || c == '-';
}

/* Letters and at most one "..." up to the next comma, arrow or end; *dots is where it stands, or
 * -1.
 */
static wf_status letters(reader *r, char text[WF_MAX_RANK], uint32_t *n, int *dots, wf_err *err)
{
    *n = 0;
    *dots = -1;
    for (; !ends(*r->p); r->p++) {
        if (*r->p == ' ')
            continue;
        if (strncmp(r->p, "...", 3) == 0 && *dots < 0) {
            *dots = (int)*n;
            r->p += 2;
            continue;
        }
        if (!isalpha((unsigned char)*r->p))
            return bad(r, "it may hold letters, one \"...\" a term, commas and \"->\"", err);
        if (*n == WF_MAX_RANK)
            return bad(r, "a term has too many letters", err);
        text[(*n)++] = *r->p;
    }
    return WF_OK;
}

static uint8_t label_of(reader *r, char letter)
{
    uint8_t *label = &r->of_letter[(unsigned char)letter];

    if (*label == NO_LABEL)
        *label = (uint8_t)r->n_labels++;
    return *label;
}

/* Puts a term's labels in place; `covered` axes are those of "...". */
static wf_status place(reader *r, const char text[], uint32_t n, int dots, uint32_t covered,
                       wf_einsum_term *t, wf_err *err)
{
    if (n + covered > WF_MAX_RANK)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "%u axes, and weft has %d at most", n + covered,
                       WF_MAX_RANK);
    t->rank = 0;
    for (uint32_t i = 0; i <= n; i++) {
        for (uint32_t k = covered; dots == (int)i && k-- > 0;)
            t->label[t->rank++] = r->of_dots[k];
        if (i < n)
            t->label[t->rank++] = label_of(r, text[i]);
    }
    return WF_OK;
}

static wf_status operand(reader *r, uint32_t rank, wf_einsum_term *t, wf_err *err)
{
    char text[WF_MAX_RANK];
    uint32_t n, covered;
    int dots;

    WF_TRY(letters(r, text, &n, &dots, err));
    if (n > rank || (dots < 0 && n != rank))
        return wf_fail(err, WF_SHAPE, NULL,
                       "the equation \"%.80s\" names %u axes of an operand that has %u",
                       r->equation, n, rank);
    covered = dots < 0 ? 0 : rank - n;
    while (r->n_dots < covered)
        r->of_dots[r->n_dots++] = (uint8_t)r->n_labels++;
    for (uint32_t i = 0; i < n; i++)
        r->uses[(unsigned char)text[i]]++;
    return place(r, text, n, dots, covered, t, err);
}

/* Without an arrow: what "..." covers, then the letters that occur once, in order. */
static wf_status implied(reader *r, wf_einsum_term *t, wf_err *err)
{
    char text[WF_MAX_RANK];
    uint32_t n = 0;

    for (int c = 0; c < 256; c++) {
        if (r->uses[c] != 1)
            continue;
        if (n == WF_MAX_RANK)
            return bad(r, "the result has too many axes", err);
        text[n++] = (char)c;
    }
    return place(r, text, n, 0, r->n_dots, t, err);
}

static wf_status result(reader *r, wf_einsum_term *t, wf_err *err)
{
    char text[WF_MAX_RANK];
    uint32_t n, seen = 0;
    int dots;

    if (strncmp(r->p, "->", 2) != 0)
        return bad(r, "\"->\" is missing before the result", err);
    r->p += 2;
    WF_TRY(letters(r, text, &n, &dots, err));
    if (*r->p)
        return bad(r, "something follows the result", err);
    for (uint32_t i = 0; i < n; i++)
        if (!r->uses[(unsigned char)text[i]])
            return bad(r, "the result names an axis that no operand has", err);
    WF_TRY(place(r, text, n, dots, dots < 0 ? 0 : r->n_dots, t, err));
    for (uint32_t i = 0; i < t->rank; i++) {
        if (seen >> t->label[i] & 1u)
            return bad(r, "the result names an axis twice", err);
        seen |= 1u << t->label[i];
    }
    return WF_OK;
}

wf_status wf_einsum_parse(const char *equation, uint32_t n_in, const uint32_t ranks[],
                          wf_einsum *out, wf_err *err)
{
    reader r = {.equation = equation, .p = equation};

    memset(r.of_letter, NO_LABEL, sizeof r.of_letter);
    *out = (wf_einsum){.n_in = n_in};
    if (n_in > WF_EINSUM_OPERANDS)
        return wf_fail(err, WF_UNSUPPORTED, "make it several of two operands each",
                       "%u operands; weft has Einsum of one and of two", n_in);
    for (uint32_t i = 0; i < n_in; i++) {
        if (i && *r.p++ != ',')
            return bad(&r, "it has fewer terms than there are operands", err);
        WF_TRY(operand(&r, ranks[i], &out->in[i], err));
    }
    if (*r.p == ',')
        return bad(&r, "it has more terms than there are operands", err);
    WF_TRY(*r.p ? result(&r, &out->out, err) : implied(&r, &out->out, err));
    out->n_labels = r.n_labels;
    return WF_OK;
}
