// SPDX-License-Identifier: Apache-2.0
// The roles of each dtype. Sources: the lists of dtypes in observer.py, utils.py, fx/prepare.py and
// fx/convert.py of torch.ao.quantization (PyTorch 2.15) and in quantize_pt2e's convert.py of
// torchao 0.18.
#include "observe/dtype_roles.h"

#define M DTYPE_MEASURED
#define O DTYPE_OBSERVED
#define C DTYPE_CONVERTED
#define S DTYPE_STATIC
#define W DTYPE_WEIGHT
#define E DTYPE_EXPORTED

static const unsigned roles[TARE_DTYPE_COUNT] = {
    [TARE_QUINT8] = M | E | O | C | S | W,
    [TARE_QINT8] = M | E | O | C | S | W,
    [TARE_QINT32] = M | E | O | C | S,
    [TARE_QUINT4X2] = M | E | W,
    [TARE_FLOAT16] = O | C | W,
    [TARE_UINT8] = M | E | O | C | W,
    [TARE_INT8] = M | E | O | C | W,
    [TARE_UINT16] = M | E | C,
    [TARE_INT16] = M | E | O | C | W,
    [TARE_INT32] = M | E | O | C | W,
    [TARE_FLOAT8_E5M2] = M | E | O | C | S | W,
    [TARE_FLOAT8_E4M3FN] = M | E | O | C | S | W,
};

bool tare__dtype_has_role(tare_dtype dtype, dtype_role role) {
    const unsigned index = (unsigned)dtype;
    return index < TARE_DTYPE_COUNT && (roles[index] & (unsigned)role) != 0;
}
