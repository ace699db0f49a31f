// SPDX-License-Identifier: Apache-2.0
// Helpers for the annotators of built-in quantizers.
#ifndef QUANTIZERS_ANNOTATE_H
#define QUANTIZERS_ANNOTATE_H

#include "model/model.h"
#include "quantizers/patterns/partitions.h"
#include "quantizers/settings.h"

/// The state of one annotate call of a quantizer on a model.
typedef struct annotating {
    tare_model *model;
    graph *g;
    node_sources sources;
    arena memory;
    const char *rule, *section, *key; // of the present config, for the record; NULL: none
    bool *gives_quantized; // by node id: the node outputs quantized values (X86InductorQuantizer)
    tare_error *err;
} annotating;

/// Names the setting whose config is used from here on, for the record.
void tare__annotating_by(annotating *a, const tare_quantizer_settings *s, const setting *of);
tare_status tare__annotating_begin(annotating *a, tare_model *model, tare_error *err);
void tare__annotating_end(annotating *a);

/// The specs of a config, after torchao's checks; lent. All NULL without a config.
typedef struct config_specs {
    tare_qspec *input, *output, *weight, *bias;
    bool is_qat;
} config_specs;
tare_status tare__config_specs(const setting *s, config_specs *out, tare_error *err);

/// The kind of setting that is being applied.
typedef enum level_kind { LEVEL_NAME, LEVEL_TYPE, LEVEL_OPERATOR, LEVEL_GLOBAL } level_kind;
/// True if the setting applies to the node: the node belongs to the module or class that the
/// setting names. For settings by operator and for the global one: the node belongs to no module or
/// class that any setting names.
bool tare__level_accepts(const node_sources *sources, const tare_quantizer_settings *settings,
                         level_kind kind, const setting *s, const node *n);
/// True if the node's output may be observed: it is a float tensor, and not a constant beyond the
/// range of torch's histogram. An unknown dtype counts as float.
bool tare__can_be_observed(const annotating *a, const node *n);
/// True for a float constant of one element that is too large for torch's histogram.
bool tare__is_large_scalar(const annotating *a, const node *n);
/// Erases unused calls without side effects.
tare_status tare__graph_drop_unread(graph *g, tare_error *err);

/// True if n calls one of these functions (NULL-terminated). n may be NULL.
bool tare__calls(const node *n, const char *const *targets);
bool tare__is_marked(const annotating *a, const node *n);
/// True if one of these nodes is marked; NULL entries are skipped.
bool tare__is_any_marked(const annotating *a, node *const *nodes, size_t count);
/// Marks the node as annotated; creates an annotation if there is none.
tare_status tare__mark(annotating *a, const node *n);
/// Replaces the node's annotation by a new, marked one.
tare_status tare__annotate_anew(annotating *a, const node *n, tare_annotation **out);
/// The same, with specs for the first three arguments of a convolution or linear layer if they are
/// nodes.
tare_status tare__annotate_layer(annotating *a, const node *n, const config_specs *specs,
                                 tare_annotation **out);
/// Adds the spec for the edge from `input` to the annotated node.
tare_status tare__annotate_edge(annotating *a, tare_annotation *of, const node *input,
                                tare_qspec *spec);
/// A shared spec: it refers to the edge (from, n), or if from is NULL to n's output. The caller
/// releases it.
tare_status tare__share_with(annotating *a, const node *from, const node *n, tare_qspec **out);

/// TARE_NOT_FOUND, unless lenient, if the settings name a module or a module type that the model
/// does not have, or an operator that it does not call.
tare_status tare__check_modules(annotating *a, const tare_quantizer_settings *s);
tare_status tare__check_operator(annotating *a, const tare_quantizer_settings *s,
                                 const char *target);

#endif
