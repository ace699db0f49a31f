// SPDX-License-Identifier: Apache-2.0
// torch's own custom modules: an LSTM or an attention is split into submodules, which are observed
// and quantized separately. torch does this with its eager prepare and convert in from_float and
// from_observed. Source: torch.ao.nn.quantizable, torch.ao.quantization.quantize (PyTorch 2.15).
// Private to flow/fx.
#ifndef FLOW_FX_QUANTIZABLE_H
#define FLOW_FX_QUANTIZABLE_H

#include "flow/fx/convert.h"

/// True if this class has its observed or quantized form created here.
bool tare__is_quantizable(const module_class *class);
/// Creates the observed module (role OBSERVED) from the float module of its operator family, with
/// q's activation observers inside. The caller releases *out.
tare_status tare__quantizable_observe(const tare_context *context, const module_class *observed,
                                      const module *float_module, const tare_qconfig *q,
                                      module **out, tare_error *err);
/// Creates the module of role QUANTIZED from the observed one. q: its qconfig, for the weights.
tare_status tare__quantizable_quantize(convert_pass *c, const module_class *quantized,
                                       const module *observed, const tare_qconfig *q, module **out);

#endif
