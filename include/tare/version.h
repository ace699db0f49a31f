// SPDX-License-Identifier: Apache-2.0
/// The version of the library that runs, and what it was built with.
#ifndef TARE_VERSION_H
#define TARE_VERSION_H

#include "tare/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The version of the library that runs: "0.1.0" (major, minor, patch). Static storage.
TARE_API const char *tare_version(void);
/// The libraries and kernels that this build contains: "oneDNN 2.6; libpng; libjpeg; ONNX; kernels:
/// scalar, ..". Static storage.
TARE_API const char *tare_build_features(void);

#ifdef __cplusplus
}
#endif
#endif
