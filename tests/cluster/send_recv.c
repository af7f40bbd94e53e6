/* SPDX-License-Identifier: Apache-2.0 */
/* send_recv A SEND.onnx B RECV.onnx - a session at each of two workers, as a program outside of
 * weft has them: the run of one sends x, and that of the other, which has waited for it, receives
 * y. */
#include "lib/weft.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { N = 3 };

typedef struct receiver {
    weft_session *session;
    weft_list *out;
    weft_code code;
    weft_error error;
} receiver;

static weft_error error;

static int is_done(weft_code code, const weft_error *e, const char *what)
{
    if (code != WEFT_OK)
        fprintf(stderr, "%s: %s; %s\n", what, e->message, e->hint);
    return code == WEFT_OK;
}

static int open_with(const char *address, const char *model, weft_session **out)
{
    return is_done(weft_session_open(address, NULL, out, &error), &error, address) &&
           is_done(weft_session_extend_file(*out, model, &error), &error, model);
}

static void *receive(void *arg)
{
    receiver *r = arg;
    const char *const fetch = "y";

    r->code = weft_session_run(r->session, 0, NULL, 1, &fetch, 0, NULL, &r->out, &r->error);
    return NULL;
}

static int exchange(weft_session *from, weft_session *to)
{
    float x[N] = {1, 2.5f, -4};
    int64_t shape[] = {N};
    weft_tensor t = {.data = x, .dtype = WEFT_F32, .rank = 1, .shape = shape};
    weft_feed feed = {.name = "x", .tensor = &t};
    const char *const target = "sent";
    receiver r = {.session = to};
    pthread_t thread;
    int right;

    if (pthread_create(&thread, NULL, receive, &r) != 0)
        return 0;
    right = is_done(weft_session_run(from, 1, &feed, 0, NULL, 1, &target, NULL, &error), &error,
                    "send");
    pthread_join(thread, NULL);
    right = right && is_done(r.code, &r.error, "receive") &&
            memcmp(weft_list_tensor(r.out, 0)->data, x, sizeof x) == 0;
    weft_list_free(&r.out);
    return right;
}

int main(int argc, char *argv[])
{
    weft_session *a = NULL, *b = NULL;
    int right;

    if (argc != 5)
        return 2;
    right = open_with(argv[1], argv[2], &a) && open_with(argv[3], argv[4], &b) && exchange(a, b);
    if (right)
        printf("received\n");
    weft_session_free(&a);
    weft_session_free(&b);
    return !right;
}
