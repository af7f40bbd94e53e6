/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/host.c */
#include "common/wire/host.h"
#include "common/base/size.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

void wf_host_of(const char *address, char name[WF_HOST_NAME])
{
    const char *tcp = strstr(address, "tcp://"), *end, *colon = NULL;

    name[0] = 0;
    if (!tcp)
        return;
    tcp += strlen("tcp://");
    end = tcp + strcspn(tcp, "|");
    for (const char *c = tcp; c < end; c++)
        if (*c == ':')
            colon = c; /* the last: an address of IPv6 has others */
    if (!colon || colon == tcp)
        return;
    if (*tcp == '[' && colon[-1] == ']') {
        tcp++;
        colon--;
    }
    snprintf(name, WF_HOST_NAME, "%.*s", (int)WF_MIN(colon - tcp, (ptrdiff_t)WF_HOST_NAME - 1),
             tcp);
}
