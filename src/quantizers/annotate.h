// SPDX-License-Identifier: Apache-2.0
// Helpers for the annotators of built-in quantizers.
#ifndef QUANTIZERS_ANNOTATE_H
#define QUANTIZERS_ANNOTATE_H

#include "model/model.h"
#include "quantizers/patterns/partitions.h"
#include "quantizers/settings.h"

/// One run of a quantizer's annotate over a model.
typedef struct annotating {
    tare_model *model;
    graph *g;
    node_sources sources;
    arena memory;
    const char *rule, *section, *key; // at work, for the record; NULL: none
    bool *gives_quantized; // by node id: the output of a quantized pattern (X86InductorQuantizer)
    tare_error *err;
} annotating;

/// The setting whose config is at work from here on.
void tare__annotating_by(annotating *a, const tare_quantizer_settings *s, const setting *of);
tare_status tare__annotating_begin(annotating *a, tare_model *model, tare_error *err);
void tare__annotating_end(annotating *a);

/// A config's specs after torchao's checks, lent; all NULL for no config.
typedef struct config_specs {
    tare_qspec *input, *output, *weight, *bias;
    bool is_qat;
} config_specs;
tare_status tare__config_specs(const setting *s, config_specs *out, tare_error *err);

/// The level of settings that is applied.
typedef enum level_kind { LEVEL_NAME, LEVEL_TYPE, LEVEL_OPERATOR, LEVEL_GLOBAL } level_kind;
/// True if the node belongs to the module or class that the setting names; for settings by operator
/// and for the whole model, if it belongs to none that settings name.
bool tare__level_accepts(const node_sources *sources, const tare_quantizer_settings *settings,
                         level_kind kind, const setting *s, const node *n);
/// Observers watch floats, and no constants that are larger than torch's histogram takes. What is
/// not known counts as a float.
bool tare__can_be_observed(const annotating *a, const node *n);
/// True for a tensor of one float that is too large.
bool tare__is_large_scalar(const annotating *a, const node *n);
/// Erases calls without effect that nothing reads.
tare_status tare__graph_drop_unread(graph *g, tare_error *err);

/// True if n calls one of these functions (NULL-terminated). n may be NULL.
bool tare__calls(const node *n, const char *const *targets);
bool tare__is_marked(const annotating *a, const node *n);
/// True if one of these nodes is marked; NULLs are skipped.
bool tare__is_any_marked(const annotating *a, node *const *nodes, size_t count);
/// Marks the node; its annotation stays, or is made.
tare_status tare__mark(annotating *a, const node *n);
/// A new annotation, marked, in place of the node's former one.
tare_status tare__annotate_anew(annotating *a, const node *n, tare_annotation **out);
/// The same with specs for the first three arguments of a convolution or linear layer, as far as
/// they are nodes.
tare_status tare__annotate_layer(annotating *a, const node *n, const config_specs *specs,
                                 tare_annotation **out);
/// Adds an entry for the node's input `input`.
tare_status tare__annotate_edge(annotating *a, tare_annotation *of, const node *input,
                                tare_qspec *spec);
/// A shared spec: of the edge (from, n), or with from NULL of n's output. The caller releases it.
tare_status tare__share_with(annotating *a, const node *from, const node *n, tare_qspec **out);

/// A module's name or type in the settings that nothing in the model has, an operator that it does
/// not call: TARE_NOT_FOUND, unless lenient.
tare_status tare__check_modules(annotating *a, const tare_quantizer_settings *s);
tare_status tare__check_operator(annotating *a, const tare_quantizer_settings *s,
                                 const char *target);

#endif
