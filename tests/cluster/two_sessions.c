/* SPDX-License-Identifier: Apache-2.0 */
/* two_sessions A B - two sessions of one cluster through two of its tasks, as a program outside of
 * weft has them: what one assigns the other reads, and what it adds the first one finds. */
#include "lib/weft.h"

#include <stdio.h>

static weft_error error;

static int is_done(weft_code code, const char *what)
{
    if (code != WEFT_OK)
        fprintf(stderr, "%s: %s; %s\n", what, error.message, error.hint);
    return code == WEFT_OK;
}

static int holds(weft_session *s, float expected)
{
    weft_tensor *t = NULL;
    int right;

    if (!is_done(weft_session_read(s, "v", &t, &error), "read"))
        return 0;
    right = t->rank == 0 && t->dtype == WEFT_F32 && *(float *)t->data == expected;
    if (!right)
        fprintf(stderr, "v is %g, and not %g\n", *(float *)t->data, expected);
    weft_tensor_free(&t);
    return right;
}

static int share(weft_session *a, weft_session *b)
{
    float zero = 0, three = 3, two = 2;
    weft_tensor first = {.data = &zero, .dtype = WEFT_F32};
    weft_tensor value = {.data = &three, .dtype = WEFT_F32};
    weft_tensor more = {.data = &two, .dtype = WEFT_F32};

    return is_done(weft_session_create(a, "v", &first, &error), "create") &&
           is_done(weft_session_assign(a, "v", &value, &error), "assign") && holds(b, 3) &&
           is_done(weft_session_assign_add(b, "v", &more, NULL, &error), "assign_add") &&
           holds(a, 5);
}

int main(int argc, char *argv[])
{
    weft_session *a = NULL, *b = NULL;
    char text[2][32];
    int right;

    if (argc != 3)
        return 2;
    right = is_done(weft_session_open(argv[1], NULL, &a, &error), argv[1]) &&
            is_done(weft_session_open(argv[2], NULL, &b, &error), argv[2]) && share(a, b);
    weft_session_task(a, text[0], sizeof text[0]);
    weft_session_task(b, text[1], sizeof text[1]);
    if (right)
        printf("%s, %s\n", text[0], text[1]);
    weft_session_free(&a);
    weft_session_free(&b);
    return !right;
}
