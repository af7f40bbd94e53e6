/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/pinned.h - memory of messages that copies of a device reach without the host's hand:
 * weights come and gradients leave by it. A process has one device that pins it, or none.
 *
 * Threading: any.
 */
#ifndef WF_WIRE_PINNED_H
#define WF_WIRE_PINNED_H

#include "common/tensor/device.h"
#include <stdbool.h>
#include <stddef.h>

/* From now on, and as long as the process lives, the device pins such memory, if it is one that
 * can. Of two the first does. */
void wf_pinned_by(const wf_device *d);
/* Whether a device is there that pins so many bytes: whole pages are made for it then. */
bool wf_pins(size_t bytes);
/* Pins memory that was made. False: it is as any other, since no device pins it, since it is small,
 * or since the device refused, which the log says once. */
bool wf_pin(void *at, size_t bytes);
/* Lets go of what was pinned, before it is given back. */
void wf_unpin(void *at);

#endif
