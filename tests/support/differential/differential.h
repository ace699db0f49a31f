// SPDX-License-Identifier: Apache-2.0
// «Same bits everywhere», for a graph made of bytes in all its forms: by references, by the
// interpreter and by plan, on each instruction set, with one to three threads, a sample alone or in
// a batch, after a way through a file, packed, as text, as an exported program and as ONNX.
#ifndef SUPPORT_DIFFERENTIAL_DIFFERENTIAL_H
#define SUPPORT_DIFFERENTIAL_DIFFERENTIAL_H

#include "core/text/text.h"
#include "support/differential/random_graph.h"

enum { MOST_ROWS = 1024 };

/// What was compared, so far.
typedef struct differential_coverage {
    size_t graphs, models, runs;
    size_t rows[MOST_ROWS]; // by index of the operator table: calls in models that were compared
    map forms;              // "x86 lowered" -> models
} differential_coverage;

/// Makes a graph of the bytes, quantizes it in the ways that they choose, and compares all. False:
/// something differs, and `finding` tells the graph, the node and both values. coverage may be
/// NULL.
bool differential_check(const uint8_t *bytes, size_t count, differential_coverage *coverage,
                        text *finding);
void differential_coverage_release(differential_coverage *coverage);

// --- between its files ---

typedef struct differential {
    choices *choices;
    const tare_tensor *inputs[MOST_RANDOM_INPUTS];
    size_t input_count;
    differential_coverage *coverage; // may be NULL
    text *finding;                   // NULL: nothing is compared
    tare_error *err;
} differential;

/// Compares one model in all ways. form: what it is, for messages.
bool differential_compare(differential *d, const tare_model *model, const char *form);
/// Makes the quantized forms of a float model and compares each.
bool differential_quantize(differential *d, const tare_model *model);

#endif
