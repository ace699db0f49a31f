// SPDX-License-Identifier: Apache-2.0
/// All of tare.
#ifndef TARE_H
#define TARE_H

#include "tare/analyze.h"
#include "tare/backend_config.h"
#include "tare/bias_correction.h"
#include "tare/calibration.h"
#include "tare/custom_config.h"
#include "tare/data.h"
#include "tare/debug.h"
#include "tare/dtype.h"
#include "tare/file.h"
#include "tare/graph.h"
#include "tare/handoff.h"
#include "tare/limits.h"
#include "tare/machine.h"
#include "tare/memory.h"
#include "tare/model.h"
#include "tare/module.h"
#include "tare/never_slower.h"
#include "tare/observer.h"
#include "tare/onnx.h"
#include "tare/preprocess.h"
#include "tare/pt2e.h"
#include "tare/qconfig.h"
#include "tare/quantize.h"
#include "tare/quantizer.h"
#include "tare/record.h"
#include "tare/session.h"
#include "tare/shapes.h"
#include "tare/status.h"
#include "tare/subgraph.h"
#include "tare/tensor.h"
#include "tare/version.h"
#include "tare/writer.h"

#endif
