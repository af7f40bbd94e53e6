/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/term.c */
#include "cmd/cli/term.h"
#include "common/base/text.h"

#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The character set of the environment, asked without changing the program's own locale: numbers
 * are read and written with a point, wherever weft runs. */
static bool is_utf8(void)
{
    locale_t here = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    bool yes = here && strcmp(nl_langinfo_l(CODESET, here), "UTF-8") == 0;

    if (here)
        freelocale(here);
    return yes;
}

wf_term wf_term_of(FILE *f)
{
    const char *columns = getenv("COLUMNS"), *name = getenv("TERM"), *plain = getenv("NO_COLOR");
    bool dumb = !name || strcmp(name, "dumb") == 0;
    wf_term t = {.tty = isatty(fileno(f)) && !dumb, .columns = 80, .rows = 24, .utf8 = is_utf8()};
    struct winsize size = {0};

    if (t.tty && ioctl(fileno(f), TIOCGWINSZ, &size) == 0 && size.ws_row > 0)
        t.rows = size.ws_row;
    t.color = t.tty && !(plain && plain[0]);
    if (columns && atoi(columns) > 0)
        t.columns = atoi(columns);
    else if (size.ws_col > 0)
        t.columns = size.ws_col;
    return t;
}

const char *wf_term_style(const wf_term *t, wf_style style)
{
    static const char *const codes[] = {"\033[0m",  "\033[1m",  "\033[2m",
                                        "\033[31m", "\033[32m", "\033[33m"};

    return t->color ? codes[style] : "";
}

const char *wf_bytes_text(unsigned long long bytes, char *text, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double n = (double)bytes;
    size_t unit = 0;

    while (n >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        n /= 1024;
        unit++;
    }
    snprintf(text, size, unit == 0 || n >= 100 ? "%.0f %s" : "%.1f %s", n, units[unit]);
    return text;
}

const char *wf_count_text(unsigned long long n, char *text, size_t size)
{
    char digits[24];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%llu", n), at = 0;

    for (size_t i = 0; i < length && at + 2 < size; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            text[at++] = ' ';
        text[at++] = digits[i];
    }
    if (size)
        text[at] = 0;
    return text;
}

const char *wf_seconds_text(double seconds, char *text, size_t size)
{
    long s = seconds >= 0 && seconds < 1e9 ? (long)(seconds + 0.5) : -1;

    if (s < 0)
        snprintf(text, size, "-");
    else if (s < 3600)
        snprintf(text, size, "%ld:%02ld", s / 60, s % 60);
    else
        snprintf(text, size, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    return text;
}

size_t wf_text_fits(const char *text, size_t n, size_t columns)
{
    size_t at = 0;

    for (; at < n; at++)
        if (((unsigned char)text[at] & 0xc0) != 0x80 && columns-- == 0)
            break;
    return at;
}

void wf_term_print(FILE *f, const char *fmt, ...)
{
    char *text = NULL, *safe;
    va_list ap;
    size_t size;
    int n;

    va_start(ap, fmt);
    n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;               /* no memory: nothing to print it with */
    size = 4 * (size_t)n + 1; /* each byte as \x1b at most */
    safe = malloc(size);
    if (safe) {
        wf_text_escape(text, true, safe, size);
        fputs(safe, f);
    }
    free(safe);
    free(text);
}
