// SPDX-License-Identifier: Apache-2.0
// Which model a calibration state belongs to: its nodes, modules and tensors as lines that people
// can read, and a hash of them.
// Private to flow/calibrate.
#ifndef FLOW_CALIBRATE_CALIBRATION_IDENTITY_H
#define FLOW_CALIBRATE_CALIBRATION_IDENTITY_H

#include "config/custom_config.h"
#include "model/model.h"

typedef struct model_identity {
    uint64_t graph;    // of nodes and modules
    uint64_t weights;  // of tensors
    name_list nodes;   // as print(graph) shows them
    name_list modules; // "layer1.0.conv1: torch.nn.Conv2d(in_channels=64, ..)", but observers
    name_list tensors; // "layer1.0.conv1.weight: torch.float32[64, 64, 3, 3] 16 digits of a hash"
} model_identity;

tare_status tare__identity_of(const tare_model *model, model_identity *out, tare_error *err);
void tare__identity_release(model_identity *id); // fine twice
/// Adds a line; the two hashes follow from the lists by tare__identity_hash.
tare_status tare__identity_add(name_list *list, const char *line, size_t length, tare_error *err);
void tare__identity_hash(const model_identity *id, uint64_t *graph_hash, uint64_t *weight_hash);
/// TARE_INVALID_ARGUMENT with the first thing that differs between `ours` and a state's.
tare_status tare__identity_check(const model_identity *ours, const model_identity *state,
                                 tare_error *err);

#endif
