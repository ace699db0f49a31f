// SPDX-License-Identifier: Apache-2.0
// Numbers that count as equal.
#include "replay/agreement.h"

#include <math.h>

#include "core/memory/alloc.h"

static bool is_pair(const agreement *a, double ours, double recorded) {
    for (size_t i = 0; i < a->count; i++)
        if ((float)a->pairs[i].ours == (float)ours &&
            (float)a->pairs[i].recorded == (float)recorded)
            return true;
    return false;
}

double agreement_relative(const agreement *a) {
    return a->relative > 0 ? a->relative : AGREEMENT_RELATIVE;
}

bool floats_agree(const agreement *a, double ours, double recorded) {
    if (a->is_random || ours == recorded || (isnan(ours) && isnan(recorded))) return true;
    if (fabs(ours - recorded) <= agreement_relative(a) * fmax(fabs(ours), fabs(recorded)))
        return true;
    return is_pair(a, ours, recorded);
}

bool integers_agree(const agreement *a, double ours, double recorded) {
    return ours == recorded || is_pair(a, ours, recorded);
}

bool wide_integers_agree(const agreement *a, double ours, double recorded) {
    static const double relative = 0x1p-19; // a few of float32's last digits
    return fabs(ours - recorded) <= relative * fmax(fabs(ours), fabs(recorded)) ||
           integers_agree(a, ours, recorded);
}

bool agreement_accept(agreement *a, double ours, double recorded) {
    if (!tare__grow((void **)&a->pairs, &a->capacity, a->count, sizeof *a->pairs)) return false;
    a->pairs[a->count++] = (number_pair){ours, recorded};
    return true;
}

void agreement_release(agreement *a) {
    tare__free(a->pairs);
    *a = (agreement){0};
}
