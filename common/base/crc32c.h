/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/crc32c.h - the Castagnoli checksum (RFC 3720, appendix B.4): reflected polynomial
 * 0x82f63b78, initial value and final xor all ones. */
#ifndef WF_BASE_CRC32C_H
#define WF_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of n bytes, going on from `crc`; 0 begins one. */
uint32_t wf_crc32c(uint32_t crc, const void *data, size_t n);
/* The portable form, which the other is tested against. */
uint32_t wf_crc32c_portable(uint32_t crc, const void *data, size_t n);

#endif
