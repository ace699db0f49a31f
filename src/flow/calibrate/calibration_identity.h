// SPDX-License-Identifier: Apache-2.0
// Identifies the model of a calibration state: its nodes, modules and tensors as readable lines of
// text, and a hash of them.
// Private to flow/calibrate.
#ifndef FLOW_CALIBRATE_CALIBRATION_IDENTITY_H
#define FLOW_CALIBRATE_CALIBRATION_IDENTITY_H

#include "config/custom_config.h"
#include "model/model.h"

typedef struct model_identity {
    uint64_t graph;    // of nodes and modules
    uint64_t weights;  // of tensors
    name_list nodes;   // as in print(graph)
    name_list modules; // "layer1.0.conv1: torch.nn.Conv2d(in_channels=64, ..)", without observers
    name_list tensors; // "layer1.0.conv1.weight: torch.float32[64, 64, 3, 3] 16 digits of a hash"
} model_identity;

tare_status tare__identity_of(const tare_model *model, model_identity *out, tare_error *err);
void tare__identity_release(model_identity *id); // may be called twice
/// Adds a line; tare__identity_hash then computes the two hashes from the lists.
tare_status tare__identity_add(name_list *list, const char *line, size_t length, tare_error *err);
void tare__identity_hash(const model_identity *id, uint64_t *graph_hash, uint64_t *weight_hash);
/// TARE_INVALID_ARGUMENT with the first difference between `ours` and the identity of a state.
tare_status tare__identity_check(const model_identity *ours, const model_identity *state,
                                 tare_error *err);

#endif
