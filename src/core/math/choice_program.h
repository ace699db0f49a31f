// SPDX-License-Identifier: Apache-2.0
// An integer program: selects one choice of every item so that a weighted sum of costs is minimal
// and other sums stay within limits.
//
// A choice is on one of two sides, integers or floats, and has costs of several kinds, such as an
// error, a time and bytes. An edge between two items adds its costs if its first item is on the
// integer side and its second on the float side, like a conversion between layers.
//
// Without limits the solution is a minimum cut. With limits the program is solved by branch and
// bound with Lagrangian relaxation: multipliers move the limits into the costs, so that a bound is
// again a minimum cut, as tight as that of the linear program (a cut's polytope has integer
// corners).
#ifndef CORE_MATH_CHOICE_PROGRAM_H
#define CORE_MATH_CHOICE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

enum { PROGRAM_KINDS = 3, PROGRAM_MOST_CHOICES = 4 };

/// Finite and not negative.
typedef struct program_costs {
    double of[PROGRAM_KINDS];
} program_costs;

typedef struct program_choice {
    bool is_float;
    program_costs costs;
} program_choice;

typedef struct program_item {
    program_choice choices[PROGRAM_MOST_CHOICES];
    size_t choice_count;
    bool is_free; // see tare__program_add_free_item
} program_item;

typedef struct program_edge {
    size_t from, to;
    bool is_forbidden; // it must not be cut
    program_costs costs;
} program_edge;

/// Zero-initialized, then tare__program_begin.
typedef struct choice_program {
    program_item *items;
    size_t item_count, item_capacity;
    program_edge *edges;
    size_t edge_count, edge_capacity;
} choice_program;

/// The item that is always on the side of the floats; it stands for inputs and outputs.
#define PROGRAM_FLOATS 0

tare_status tare__program_begin(choice_program *p, tare_error *err);
/// Adds an item without choices; the caller must add at least one.
tare_status tare__program_add_item(choice_program *p, size_t *out, tare_error *err);
/// Adds an item with a choice on each side, both without costs.
tare_status tare__program_add_free_item(choice_program *p, size_t *out, tare_error *err);
/// At most PROGRAM_MOST_CHOICES per item.
void tare__program_add_choice(choice_program *p, size_t item, bool is_float,
                              const program_costs *costs);
/// costs NULL: the edge must not be cut.
tare_status tare__program_add_edge(choice_program *p, size_t from, size_t to,
                                   const program_costs *costs, tare_error *err);
void tare__program_release(choice_program *p);

typedef struct program_goal {
    double weights[PROGRAM_KINDS]; // of the sum that is minimized; >= 0
    double limits[PROGRAM_KINDS];  // of each sum; INFINITY: none
    double gap;                    // accepted relative distance to the optimal value
    bool takes_first;              // every item that is not free takes its first choice
    double work_limit;             // visits of edges, about 10 to 50 ns each; 0: no limit
} program_goal;

/// choices and is_float are the caller's memory, of [item_count].
typedef struct program_solution {
    uint8_t *choices;    // index into the item's
    bool *is_float;      // the side of each item
    bool is_feasible;    // else the other fields are undefined
    bool is_proven;      // within the gap; else the work limit ended the search
    double value, bound; // the weighted sum found, and a lower bound of it
    program_costs sums;
} program_solution;

/// Deterministic: the same program and goal give the same solution.
tare_status tare__program_solve(const choice_program *p, const program_goal *goal,
                                program_solution *out, tare_error *err);
/// The sums of an assignment.
program_costs tare__program_sums(const choice_program *p, const uint8_t *choices,
                                 const bool *is_float);

#endif
