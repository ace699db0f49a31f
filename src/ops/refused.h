// SPDX-License-Identifier: Apache-2.0
// Operators of torch that no row will compute, by prefixes of their names, with the reason.
#ifndef OPS_REFUSED_H
#define OPS_REFUSED_H

/// Why an overload such as "torch.ops.aten.fft_rfft.default" is refused, as a clause; NULL: nothing
/// is known against it.
const char *tare__why_refused(const char *target);

#endif
