// SPDX-License-Identifier: Apache-2.0
// Operators of torch that are deliberately not supported, by prefixes of their names, with the
// reason.
#ifndef OPS_REFUSED_H
#define OPS_REFUSED_H

/// The reason why an overload such as "torch.ops.aten.fft_rfft.default" is not supported, as a
/// clause; NULL: it is not in the list.
const char *tare__why_refused(const char *target);

#endif
