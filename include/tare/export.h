// SPDX-License-Identifier: Apache-2.0
/// TARE_API marks the functions that the shared library exports.
#ifndef TARE_EXPORT_H
#define TARE_EXPORT_H

#if defined(__GNUC__) || defined(__clang__)
#define TARE_API __attribute__((visibility("default")))
#else
#define TARE_API
#endif

#endif
