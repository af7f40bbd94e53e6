/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/text.c */
#include "common/base/text.h"

#include <stdint.h>
#include <string.h>

/* The bytes of the UTF-8 character at `at`, and the character; 0 bytes when it is none. */
static size_t decode(const unsigned char *at, uint32_t *character)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = at[0] < 0x80       ? 1
               : at[0] >> 5 == 6  ? 2
               : at[0] >> 4 == 14 ? 3
               : at[0] >> 3 == 30 ? 4
                                  : 0;

    if (n < 2) {
        *character = at[0];
        return n;
    }
    *character = at[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if (at[i] >> 6 != 2) /* the string's end too */
            return 0;
        *character = *character << 6 | (at[i] & 0x3fu);
    }
    return *character < least[n] || *character > 0x10ffff || *character >> 11 == 0x1b ? 0 : n;
}

static bool is_harmless(uint32_t c, bool keep_lines)
{
    if (c == '\n')
        return keep_lines;
    if (c < 0x20 || (c >= 0x7f && c < 0xa0))
        return false;
    /* marks and overrides of direction, separators of lines */
    return c != 0x61c && c != 0x200e && c != 0x200f && !(c >= 0x2028 && c <= 0x202e) &&
           !(c >= 0x2066 && c <= 0x2069);
}

size_t wf_text_escape(const char *in, bool keep_lines, char *out, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *at = (const unsigned char *)in;
    size_t used = 0;

    while (*at) {
        uint32_t character;
        size_t n = decode(at, &character);
        bool plain = n > 0 && is_harmless(character, keep_lines);

        n = n ? n : 1;
        if ((plain ? n : 4 * n) >= size - used)
            break;
        for (size_t i = 0; i < n; i++) {
            if (plain) {
                out[used++] = (char)at[i];
                continue;
            }
            out[used++] = '\\';
            out[used++] = 'x';
            out[used++] = digits[at[i] >> 4];
            out[used++] = digits[at[i] & 15];
        }
        at += n;
    }
    out[used] = 0;
    return used;
}

bool wf_text_is_utf8(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    uint32_t character;
    size_t n = 1;

    for (; *at && n; at += n)
        n = decode(at, &character);
    return n > 0;
}
