// SPDX-License-Identifier: Apache-2.0
// Exported programs of random numbers, in few words, and what lowering makes of them.
#ifndef SUPPORT_PROGRAMS_H
#define SUPPORT_PROGRAMS_H

#include "model/model.h"

#define DECOMPOSED "torch.ops.quantized_decomposed."

/// Numbers of one sequence for the whole program, the same in every run.
int64_t random_between(int64_t least, int64_t most);
double random_scale(double least);

typedef struct grid {
    bool is_signed;
    double scale;
    int64_t zero_point, least, most;
} grid;

grid random_grid(bool is_signed, double least_scale);

typedef struct program {
    module *root;
    char code[8192];
    double output_scale;
    bool has_ties;      // averages of whole numbers, which floats miss by a rounding
    tare_engine engine; // that it is lowered for
} program;

program new_program(const char *parameters);
/// One more line of code.
void line(program *p, const char *format, ...) TARE_PRINTF(2, 3);
/// NAME = the dequantized values.
void dequantized(program *p, const char *name, const char *quantized, const grid *g);
/// NAME = the value of FROM after quantize and dequantize; the quantized values are called q_NAME.
void quantized(program *p, const char *name, const char *from, const grid *g);
/// A tensor of the root; takes it over.
void put_tensor(program *p, const char *name, tare_tensor *t);
/// NAME = random numbers between -size and size, or between the quantized values named.
void put_floats(program *p, const char *name, int64_t count, double size);
void put_integers(program *p, const char *name, tare_dtype dtype, int ndim, const int64_t *shape,
                  int64_t least, int64_t most);
/// A constant weight "w" with a scale per channel along `axis`; -1: one for all.
void put_weight(program *p, int ndim, const int64_t *shape, int axis);
/// The program that returns this, as a converted model.
tare_model *converted(program *p, const char *returned);
/// Lowers the program and compares it on its inputs. The caller destroys the lowered model.
tare_model *checked(program *p, const char *returned, tare_tensor *const *inputs, size_t count);
/// Sessions have kernels of their own, which give the bits of the references.
void check_session(const tare_model *m, tare_tensor *const *inputs, size_t count,
                   const tare_tensor *wanted);

#endif
