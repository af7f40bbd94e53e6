/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/item.h - layers, map steps and the optimizer: `name`, `name: value`, `name:
 * {options}`. For this room only. */
#ifndef WF_CONF_ITEM_H
#define WF_CONF_ITEM_H

#include "common/conf/conf.h"
#include "common/conf/layers.h"
#include "common/conf/read.h"

/* One item by the rows of its kind; `sort` names it in messages ("layer"). */
WF_MUST_USE wf_status wf_read_item(wf_conf_reader *r, const wf_tree *node, const char *sort,
                                   const wf_item_row rows[], wf_conf_item *out, wf_err *err);
/* A list of them (one by itself is a list of one), in the arena. */
WF_MUST_USE wf_status wf_read_items(wf_conf_reader *r, const wf_tree *node, const char *sort,
                                    const wf_item_row rows[], const wf_conf_item **out, size_t *n,
                                    wf_err *err);
/* A word, or a word with options that are all numbers (or true, false): an optimizer, whose names
 * this room does not know. Options in maps and lists have the names of their path, with dots:
 * "learning_rate.cosine_decay.alpha". */
WF_MUST_USE wf_status wf_read_free_item(wf_conf_reader *r, const wf_tree *node, const char *sort,
                                        wf_conf_item *out, wf_err *err);
/* The same for a loss or a metric: options may be words too, and a list of one is that one. */
WF_MUST_USE wf_status wf_read_worded_item(wf_conf_reader *r, const wf_tree *node, const char *sort,
                                          wf_conf_item *out, wf_err *err);

#endif
