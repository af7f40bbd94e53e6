/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/ckpt.h - the front door of common/ckpt: checkpoints on disk.
 *
 *   DIR/JOB/step-00012000/shard-00000-of-00002.safetensors  each ps's slices and slots
 *                         manifest.json                     what makes them one (manifest.h)
 *   DIR/JOB/latest                                          a hint: the newest complete one
 *   DIR/JOB/.tmp-g1-c3-0123456789abcdef                     one being written, named by its cut
 *
 * Invariants
 *   C1  a folder with a manifest that verifies is a checkpoint, whether it has got its name step-N
 *       yet or a crash left it with its temporary one; anything else is absent
 *   C2  restore reads one checkpoint only: shards carry job and cut in their metadata
 *   C3  a folder step-N holds the manifest of step N: one that was renamed or copied is passed over
 *       with a sentence, and is kept until a checkpoint of step N takes its name
 *   C4  deleting never leaves zero complete ones, and runs only after the new one is durable
 *
 * Names inside shards: a slice of variable V that is all of V is the tensor "V" with V's own shape;
 * a part is "V#OFFSET", flat, [count] elements from OFFSET of the row-major variable. Slot S of it
 * is "V/S" or "V/S#OFFSET", always f32. A bucket of an unbounded table is "V#OFFSET" [rows, width],
 * its slots are of that shape, and "V/ids#OFFSET" [rows] int64 has the id of each row. Values of a
 * table may be BF16, F16 or I8; the last have scales [rows] f32 in "V/scale" or "V/scale#OFFSET".
 * So `safetensors.numpy.load_file` shows at a look what is what.
 *
 * Newest means highest (generation, step): after a rollback, steps of an abandoned history are
 * older than any of the new one. A folder whose manifest cannot be read counts as newer than all,
 * so that it is reported rather than forgotten.
 *
 * The chief begins; each ps writes its shard into the folder (shard.h); the chief commits. Steps
 * have the numbers of docs/checkpoints.md, "Commit order". All I/O goes through a wf_disk
 * (common/base/disk.h).
 *
 * Threads: nothing here is shared; one wf_ckpt serves one thread.
 */
#ifndef WF_CKPT_CKPT_H
#define WF_CKPT_CKPT_H

#include "common/base/arena.h"
#include "common/base/disk.h"
#include "common/base/status.h"
#include "common/ckpt/manifest.h"
#include "common/ckpt/shard.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WF_CKPT_PATH = 4096 };
/* The array of scales of int8 rows: a value is a byte times the scale of its row. */
#define WF_CKPT_SCALE "scale"
/* The array of ids of the rows of an unbounded table. */
#define WF_CKPT_IDS "ids"

/* ---- writing: docs/checkpoints.md, "Commit order" ---- */

/* "shard-00001-of-00002.safetensors" into name. */
const char *wf_ckpt_shard_name(uint32_t index, uint32_t n, char *name, size_t size);
/* The tensor name of a slice as above; `slot` NULL: its values. `whole`: the slice is the variable.
 */
const char *wf_ckpt_tensor_name(const char *variable, const char *slot, uint64_t offset, bool whole,
                                char *name, size_t size);

/* What every shard of a cut carries in its metadata: `job` and `cut` ("g1-c3-0123456789abcdef",
 * written to cut_text). Borrows job and cut_text. */
enum { WF_CUT_TEXT = 48, WF_CKPT_N_META = 2 };
void wf_ckpt_meta(const char *job, wf_cut_id cut, char cut_text[WF_CUT_TEXT],
                  wf_shard_meta meta[WF_CKPT_N_META]);

/* Step 1: makes the temporary folder of a cut and writes its path. Folders of lower cuts of this
 * job are removed. Failpoint ckpt.begin. Errors: WF_IO. */
WF_MUST_USE wf_status wf_ckpt_begin(wf_disk *disk, const char *dir, const char *job, wf_cut_id cut,
                                    char folder[WF_CKPT_PATH], wf_err *err);
/* Steps 5 to 7: writes the manifest into `folder` (checking first that every file in it is there
 * with its size), renames it to step-N, and moves `latest`. When N is there already it is replaced
 * if this cut is the higher one. `best` is moved too, where a callback calls this one so. On
 * failure the temporary folder is gone, older checkpoints are as they were, and the sentence has
 * the path, the system's words and the free bytes. Failpoints
 * ckpt.manifest.before, ckpt.manifest.after, ckpt.rename.before, ckpt.rename.after,
 * ckpt.latest.before, ckpt.latest.after. Errors: WF_IO, WF_EXISTS (a higher cut is there). */
WF_MUST_USE wf_status wf_ckpt_commit(wf_disk *disk, const char *dir, const char *folder,
                                     const wf_manifest *m, wf_err *err);
/* Step 8: deletes all but the newest `keep` (at least 1) complete checkpoints of a job, and folders
 * that are not complete, if a complete one is there. Never the one of step `in_use` (0: none), nor
 * the one that the newest calls the best. Failpoints ckpt.gc.before, ckpt.gc.each. */
WF_MUST_USE wf_status wf_ckpt_gc(wf_disk *disk, const char *dir, const char *job, uint32_t keep,
                                 uint64_t in_use, wf_err *err);
/* Removes the temporary folder of an abandoned cut; fine if it is not there. */
WF_MUST_USE wf_status wf_ckpt_abandon(wf_disk *disk, const char *folder, wf_err *err);
/* Tidies a job's folder, as its master does when it starts the job anew: a temporary folder that is
 * complete gets its name step-N, others are removed. No cut of the job may be under way. */
WF_MUST_USE wf_status wf_ckpt_sweep(wf_disk *disk, const char *dir, const char *job, wf_err *err);
/* ": 12 KiB are free on it" appended to a disk's error, for whoever writes shards; returns rc. */
wf_status wf_ckpt_say_free(wf_disk *disk, const char *path, wf_status rc, wf_err *err);

/* ---- reading ---- */

typedef struct wf_ckpt wf_ckpt;

/* One folder of a job, complete or not. */
typedef struct wf_ckpt_entry {
    uint64_t step;
    const char *name; /* "step-00012000" */
    uint64_t bytes;   /* of all files */
    uint32_t n_files;
    uint32_t generation; /* 0 when there is no manifest to read */
    uint64_t best;       /* wf_manifest_best */
    int64_t created_ms;  /* the same */
    const char *fault;   /* why it is not complete by names and sizes, or NULL */
    bool doubtful; /* it may be complete, and is kept: the disk does not tell, or a person renamed
                      it */
} wf_ckpt_entry;

/* All of a job's, newest first, in the arena. Looks at manifests and sizes, not at checksums.
 * Errors: WF_NOTFOUND when the job has no folder. */
WF_MUST_USE wf_status wf_ckpt_list(wf_disk *disk, const char *dir, const char *job, wf_arena *arena,
                                   wf_ckpt_entry **out, size_t *n, wf_err *err);

/* Opens step-N and checks the manifest and every file's size; and every checksum if `verify`. *out
 * is the caller's. Errors: WF_CORRUPT "step-00012000: shard-00001 ...: checksum differs (tensor
 * ...)", WF_NOTFOUND, WF_IO. */
WF_MUST_USE wf_status wf_ckpt_open(wf_disk *disk, const char *dir, const char *job, uint64_t step,
                                   bool verify, wf_ckpt **out, wf_err *err);
/* The same for one of wf_ckpt_list: two folders may hold the same step. */
WF_MUST_USE wf_status wf_ckpt_open_entry(wf_disk *disk, const char *dir, const char *job,
                                         const wf_ckpt_entry *e, bool verify, wf_ckpt **out,
                                         wf_err *err);
/* Closes *c and sets it to NULL; NULL is fine. */
void wf_ckpt_close(wf_ckpt **c);

/* Told of each one passed over: "step-00012000 passed over: shard-00001-of-00002.safetensors:
 * checksum differs". */
typedef void wf_ckpt_passed_over(void *arg, uint64_t step, const char *sentence);

/* Opens the newest that verifies in full. `digest` NULL: any graph's. `at_most` bounds the step
 * (UINT64_MAX: no bound). Errors: WF_NOTFOUND when none does; WF_MISMATCH when the newest that
 * verifies is of another graph. */
WF_MUST_USE wf_status wf_ckpt_newest(wf_disk *disk, const char *dir, const char *job,
                                     const char *digest, uint64_t at_most,
                                     wf_ckpt_passed_over *told, void *arg, wf_ckpt **out,
                                     wf_err *err);

/* Borrowed for its life. */
const wf_manifest *wf_ckpt_manifest(const wf_ckpt *c);
const char *wf_ckpt_name(const wf_ckpt *c); /* "step-00012000" */
/* NULL when there is none of that name. */
const wf_ckpt_variable *wf_ckpt_variable_find(const wf_ckpt *c, const char *name);
/* Elements [offset, offset + count) of a variable (slot NULL) or one of its slots, as f32, however
 * it was sliced: any number of ps fits. Errors: WF_NOTFOUND, WF_INVALID beyond its end and of an
 * unbounded table, WF_CORRUPT, WF_IO. */
WF_MUST_USE wf_status wf_ckpt_read_range(wf_ckpt *c, const char *variable, const char *slot,
                                         uint64_t offset, uint64_t count, float out[], wf_err *err);
/* The same as they are stored: `as` is their type, or float32. Errors: WF_INVALID for another. */
WF_MUST_USE wf_status wf_ckpt_read_as(wf_ckpt *c, const char *variable, const char *slot,
                                      wf_dtype as, uint64_t offset, uint64_t count, void *out,
                                      wf_err *err);
/* The scales of rows [first, first + n) of int8 values. Errors: WF_NOTFOUND, WF_INVALID, WF_CORRUPT
 * also for one that is negative or infinite, WF_IO. */
WF_MUST_USE wf_status wf_ckpt_read_scales(wf_ckpt *c, const char *variable, uint64_t first,
                                          uint64_t n, float out[], wf_err *err);
/* An array that one slice saved beside the slots that the manifest lists, of any dtype and size:
 * that of the slice that begins at `offset`. *out is the caller's, to be freed. Errors: WF_NOTFOUND
 * where there is none, as when the variable was cut into other slices; WF_NOMEM, WF_IO. */
WF_MUST_USE wf_status wf_ckpt_read_array(wf_ckpt *c, const char *variable, const char *slot,
                                         uint64_t offset, void **out, uint64_t *bytes, wf_err *err);
/* How many rows an unbounded table has. Errors: WF_CORRUPT, WF_NOMEM, WF_IO. */
WF_MUST_USE wf_status wf_ckpt_count_rows(wf_ckpt *c, const wf_ckpt_variable *v, uint64_t *rows,
                                         wf_err *err);
/* All of them by rising id: ids [n] and values [n, width] as float32, whatever they are held in; n
 * is what wf_ckpt_count_rows says. Errors: WF_CORRUPT, WF_NOMEM, WF_IO. */
WF_MUST_USE wf_status wf_ckpt_read_rows(wf_ckpt *c, const wf_ckpt_variable *v, uint64_t n,
                                        int64_t ids[], float values[], wf_err *err);
/* The updates of the slice that holds element `offset`: what a slice cut anew counts on from. */
uint64_t wf_ckpt_updates_at(const wf_ckpt_variable *v, uint64_t offset);

#endif
