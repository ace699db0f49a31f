// SPDX-License-Identifier: Apache-2.0
// Annotations of a model's nodes, by name. A graph never reuses a name, so an annotation of an
// erased node cannot be taken for another node's.
// Private to model.
#ifndef MODEL_ANNOTATION_H
#define MODEL_ANNOTATION_H

#include "config/qspec.h"
#include "core/memory/map.h"
#include "ir/graph.h"

typedef struct input_qspec {
    char *input;
    tare_qspec *spec; // NULL: None
} input_qspec;

/// The source of an annotation, for explain; fields are NULL if unknown.
typedef struct annotation_origin {
    const char *quantizer, *rule; // "XNNPACKQuantizer", "conv_relu"
    const char *section, *key;    // of the setting in use: "module_name", "layer1"
} annotation_origin;

struct tare_annotation {
    input_qspec *inputs; // in the order in which they were set
    size_t input_count, input_capacity;
    tare_qspec *output;
    bool allows_sharing, is_marked;
    size_t serial;            // distinguishes an annotation from its replacement
    annotation_origin origin; // owned
};

// Annotations by node name. Nodes of a graph inside (model/nested/nested.h) have the key
// "PATH/NODE".
typedef struct annotation_book { // zero-initialized is empty
    map by_node;                 // name -> tare_annotation
    size_t made_count;
} annotation_book;

void tare__annotations_release(annotation_book *book);
tare_status tare__annotations_copy(annotation_book *to, const annotation_book *from,
                                   tare_error *err);
/// Copies the annotations of nodes of the graph inside at `path`.
tare_status tare__annotations_append_inner(annotation_book *to, const annotation_book *from,
                                           const char *path, tare_error *err);
/// Sets the annotation of a node that has none to a copy of `from`.
tare_status tare__annotation_put(annotation_book *book, const char *name,
                                 const tare_annotation *from, tare_error *err);
/// Removes all annotations for which `keeps` returns false.
void tare__annotations_keep(annotation_book *book,
                            bool (*keeps)(void *user, const map_entry *entry), void *user);
tare_annotation *tare__annotation_find(const annotation_book *book, const char *name);
/// The annotation of a node; creates one if there is none.
tare_status tare__annotation_get(annotation_book *book, const char *name, tare_annotation **out,
                                 tare_error *err);
void tare__annotation_remove(annotation_book *book, const char *name);
/// Sets the spec for an input; the spec is retained.
tare_status tare__annotation_set_input(tare_annotation *a, const char *input, tare_qspec *spec,
                                       tare_error *err);
void tare__annotation_set_output(tare_annotation *a, tare_qspec *spec);
/// The index of an input's entry; input_count if there is none.
size_t tare__annotation_index(const tare_annotation *a, const char *input);
/// Copies the annotation of `from` to `to`; does nothing if there is none.
tare_status tare__annotation_clone(annotation_book *book, const char *from, const char *to,
                                   tare_error *err);
/// Sets the origin's fields to those of `from` that are not NULL.
tare_status tare__annotation_note(tare_annotation *a, const annotation_origin *from,
                                  tare_error *err);
/// Sets the quantizer of all annotations that have none yet.
tare_status tare__annotations_note_quantizer(annotation_book *book, const char *quantizer,
                                             tare_error *err);
/// True if an input or the output is to be quantized.
bool tare__annotation_has_specs(const tare_annotation *a); // false for NULL
/// True if the node is to be computed in integers: it has specs, or it belongs to the pattern of a
/// node that has.
bool tare__annotation_takes(const annotation_book *book, const node *n);

void tare__annotation_to_json(const tare_annotation *a, text *out);
/// Replaces the model's annotations; see tare_model_annotations_from_json.
tare_status tare__annotations_from_json(tare_model *model, const json_at *at,
                                        const tare_derive_rule *rules, size_t rule_count,
                                        tare_error *err);

/// Writes members of a model file's record, each after a comma: `annotations`, and `derived` for
/// observers with derived parameters. Writes nothing for models without annotations that were not
/// prepared by annotations either.
tare_status tare__annotations_to_record(const tare_model *model, text *out, tare_error *err);
/// Reads these members if present. Rules come from the model's context.
tare_status tare__annotations_from_record(tare_model *model, const json_at *object,
                                          tare_error *err);

#endif
