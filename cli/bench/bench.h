// SPDX-License-Identifier: Apache-2.0
// Details of a model's runs in tare bench: layers, memory, machine.
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "support/json.h"
#include "tare/tare.h"

/// The steps of a session's latest plan, with those of another model for the same nodes. Behind
/// them come those of the graphs inside, whose times are part of those before.
typedef struct layer {
    tare_step step;
    const char *graph; // path of a graph inside; "": the model's own
    uint64_t other_ns; // median of the other model's steps for this node; 0: there are none
} layer;
typedef struct layer_list {
    layer *layers;
    size_t count;
} layer_list;

/// Texts are lent by the session. against: NULL, or the session of the other model.
tare_status layer_list_read(layer_list *out, const tare_session *session,
                            const tare_session *against);
void layer_list_release(layer_list *list);
bool layer_is_nested(const layer *l);         // in a graph inside
double layer_list_ns(const layer_list *list); // of the model's own steps; at least 1

/// The throughput of a layer: 10^9 operations per second; gigabytes read and written per second.
double layer_gops(const tare_step *step);
double layer_gbs(const tare_step *step);
int64_t layer_bytes(const tare_step *step); // read and written, including weights
/// The share of the machine's peak for the layer's kind of numbers.
double layer_share_of_peak(const tare_step *step, const tare_machine_peak *peak);

void print_layers(const layer_list *list, const tare_machine_peak *peak, bool has_other);
void print_layers_json(const layer_list *list, const tare_machine_peak *peak, const char *key,
                       json_out *json);
/// Writes an SVG with the layers as dots under the machine's roofline.
tare_status write_roofline(const char *path, const char *title, const layer_list *list,
                           const tare_machine_peak *peak);

void print_plan_memory(const tare_session *session);
void print_plan_memory_json(const tare_session *session, const char *key, json_out *json);

/// CPU, system and build, as far as they are known.
void print_machine_json(const tare_machine_peak *peak, json_out *json);
void print_peak(const tare_machine_peak *peak, int threads);

#endif
