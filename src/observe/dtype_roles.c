// SPDX-License-Identifier: Apache-2.0
// A row per dtype. Sources: observer.py, utils.py, fx/prepare.py and fx/convert.py of
// torch.ao.quantization (PyTorch 2.15), each of which lists its dtypes.
#include "observe/dtype_roles.h"

#define M DTYPE_MEASURED
#define O DTYPE_OBSERVED
#define C DTYPE_CONVERTED
#define S DTYPE_STATIC
#define W DTYPE_WEIGHT

static const unsigned roles[TARE_DTYPE_COUNT] = {
    [TARE_QUINT8] = M | O | C | S | W,
    [TARE_QINT8] = M | O | C | S | W,
    [TARE_QINT32] = M | O | C | S,
    [TARE_QUINT4X2] = M | W,
    [TARE_FLOAT16] = O | C | W,
    [TARE_UINT8] = M | O | C | W,
    [TARE_INT8] = M | O | C | W,
    [TARE_UINT16] = M | C,
    [TARE_INT16] = M | O | C | W,
    [TARE_INT32] = M | O | C | W,
    [TARE_FLOAT8_E5M2] = M | O | C | S | W,
    [TARE_FLOAT8_E4M3FN] = M | O | C | S | W,
};

bool tare__dtype_has_role(tare_dtype dtype, dtype_role role) {
    const unsigned index = (unsigned)dtype;
    return index < TARE_DTYPE_COUNT && (roles[index] & (unsigned)role) != 0;
}
