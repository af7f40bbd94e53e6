/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/pinned.c */
#include "common/wire/pinned.h"
#include "common/log/log.h"

#include <stdatomic.h>

enum { LEAST = 64 << 10 }; /* bytes: less is copied faster than it is pinned, and shares pages */

static _Atomic(const wf_device *) pins;
static atomic_bool refused;

void wf_pinned_by(const wf_device *d)
{
    const wf_device *nobody = NULL;

    if (d->host_pin)
        atomic_compare_exchange_strong(&pins, &nobody, d);
}

bool wf_pins(size_t bytes)
{
    return bytes >= LEAST && atomic_load(&pins);
}

bool wf_pin(void *at, size_t bytes)
{
    const wf_device *d = atomic_load(&pins);

    if (!wf_pins(bytes))
        return false;
    if (d->host_pin(d, at, bytes))
        return true;
    if (!atomic_exchange(&refused, true))
        WF_LOG_WARN("net.not_pinned",
                    "device=%s bytes=%zu hint=\"raise the limit of locked memory\"", d->name,
                    bytes);
    return false;
}

void wf_unpin(void *at)
{
    const wf_device *d = atomic_load(&pins);

    d->host_unpin(d, at);
}
