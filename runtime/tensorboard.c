/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/tensorboard.c */
#include "runtime/tensorboard.h"
#include "common/base/crc32c.h"
#include "common/wire/header.h"
#include "runtime/event.pb-c.h"

#include <string.h>

static uint32_t masked(const void *data, size_t n)
{
    uint32_t crc = wf_crc32c(0, data, n);

    return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

static void frame(wf_bytes *out, const Tensorboard__Event *e)
{
    size_t n = tensorboard__event__get_packed_size(e);
    uint8_t *at = wf_bytes_extend(out, n + 16);

    if (!at)
        return;
    wf_put_u64(at, n);
    wf_put_u32(at + 8, masked(at, 8));
    tensorboard__event__pack(e, at + 12);
    wf_put_u32(at + 12 + n, masked(at + 12, n));
}

static Tensorboard__Event event_at(double wall_s, int64_t step)
{
    Tensorboard__Event e = TENSORBOARD__EVENT__INIT;

    e.has_wall_time = e.has_step = true;
    e.wall_time = wall_s;
    e.step = step;
    return e;
}

void wf_tb_version(wf_bytes *out, double wall_s)
{
    Tensorboard__Event e = event_at(wall_s, 0);

    e.has_step = false;
    e.file_version = "brain.Event:2";
    frame(out, &e);
}

void wf_tb_restart(wf_bytes *out, double wall_s, int64_t step)
{
    Tensorboard__Event e = event_at(wall_s, step);
    Tensorboard__SessionLog log = TENSORBOARD__SESSION_LOG__INIT;

    log.has_status = true;
    log.status = 1;
    e.session_log = &log;
    frame(out, &e);
}

void wf_tb_scalar(wf_bytes *out, double wall_s, int64_t step, const char *tag, float number)
{
    Tensorboard__Event e = event_at(wall_s, step);
    Tensorboard__Summary summary = TENSORBOARD__SUMMARY__INIT;
    Tensorboard__Value value = TENSORBOARD__VALUE__INIT, *list[] = {&value};

    value.tag = (char *)tag;
    value.has_simple_value = true;
    value.simple_value = number;
    summary.value = list;
    summary.n_value = 1;
    e.summary = &summary;
    frame(out, &e);
}

void wf_tb_text(wf_bytes *out, double wall_s, const char *tag, const char *text)
{
    enum { DT_STRING = 7, DATA_CLASS_TENSOR = 2 };
    Tensorboard__Event e = event_at(wall_s, 0);
    Tensorboard__Summary summary = TENSORBOARD__SUMMARY__INIT;
    Tensorboard__Value value = TENSORBOARD__VALUE__INIT, *list[] = {&value};
    Tensorboard__SummaryMetadata metadata = TENSORBOARD__SUMMARY_METADATA__INIT;
    Tensorboard__PluginData plugin = TENSORBOARD__PLUGIN_DATA__INIT;
    Tensorboard__Tensor tensor = TENSORBOARD__TENSOR__INIT;
    Tensorboard__Shape shape = TENSORBOARD__SHAPE__INIT; /* a scalar */
    ProtobufCBinaryData string = {strlen(text), (uint8_t *)text};

    plugin.plugin_name = "text";
    metadata.plugin_data = &plugin;
    metadata.has_data_class = true;
    metadata.data_class = DATA_CLASS_TENSOR;
    tensor.has_dtype = true;
    tensor.dtype = DT_STRING;
    tensor.tensor_shape = &shape;
    tensor.string_val = &string;
    tensor.n_string_val = 1;
    value.tag = (char *)tag;
    value.metadata = &metadata;
    value.tensor = &tensor;
    summary.value = list;
    summary.n_value = 1;
    e.summary = &summary;
    frame(out, &e);
}

void wf_tb_graph(wf_bytes *out, double wall_s, const wf_bytes *graph)
{
    Tensorboard__Event e = event_at(wall_s, 0);

    e.has_graph_def = true;
    e.graph_def = (ProtobufCBinaryData){graph->size, graph->data};
    frame(out, &e);
}
