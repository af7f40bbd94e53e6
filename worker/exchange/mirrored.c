/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/mirrored.c - replicas of a model that share the memory of the host share its
 * variables too: they are those of exchange/local.c, and the trainer adds up what the replicas
 * compute (worker/gradients.h). */
#include "worker/exchange/local_state.h"

const wf_exchange_kind wf_exchange_mirrored = {
    .name = "mirrored",
    .mirrors = true,
    .open = wf_local_open,
    .home = wf_local_home,
    .device_bytes = wf_local_device_bytes,
};
