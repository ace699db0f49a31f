// SPDX-License-Identifier: Apache-2.0
// Recorded with torch 2.15.0 on a CPU with AVX512-VNNI: quantized::linear of a quint8 [3][8] by a
// per-channel qint8 [4][8] on three engines, and quantize_per_tensor with its ties. onednn's ReLU
// is left out: that one recording had it not applied (quantized values below the zero point),
// unlike all others.
#ifndef UNIT_CORE_MATH_REQUANT_VECTORS_H
#define UNIT_CORE_MATH_REQUANT_VECTORS_H

#include <stdint.h>

// clang-format off
static const int32_t x_integers[24] = {
    153, 87, 0, 0, 162, 48, 54, 0, 192, 39, 79, 58,
    99, 107, 33, 100, 98, 63, 2, 0, 54, 80, 72, 58,
};
static const int32_t w_integers[32] = {
    64, -52, 21, -122, -128, -2, 18, -31, -59, 38, -10, 25,
    71, 123, -128, -74, 127, 67, -88, -48, 63, 40, 91, 0,
    75, -17, -12, -127, -25, 30, -31, 43,
};
static const double w_scales[4] = {
    0.003860414493829012, 0.005242552608251572, 0.00232827290892601, 0.006268706638365984,
};
static const float biases[4] = {
    -0.9959337711334229F, 1.1562741994857788F, -0.3991796374320984F, 1.2153481245040894F,
};
enum { X_ZERO_POINT = 61, OUT_ZERO_POINT = 103 };
static const double x_scale = 0.02, out_scale = 0.05;
static const int32_t fbgemm_linear[12] = {
    82, 138, 120, 151, 89, 127, 109, 161, 98, 121, 108, 156,
};
static const int32_t fbgemm_linear_relu[12] = {
    103, 138, 120, 151, 103, 127, 109, 161, 103, 121, 108, 156,
};
static const float fbgemm_dynamic[12] = {
    -0.8091861605644226F, 1.774043321609497F, 1.0044153928756714F, 2.7845540046691895F,
    -0.7251496911048889F, 1.1764557361602783F, 0.3302995264530182F, 2.891758680343628F,
    -0.1163787692785263F, 0.8528369069099426F, 0.2980174720287323F, 2.8716845512390137F,
};
static const int32_t onednn_linear[12] = {
    82, 138, 120, 151, 89, 127, 109, 161, 98, 121, 108, 156,
};
static const float onednn_dynamic[12] = {
    -0.8091861605644226F, 1.774043321609497F, 1.0044152736663818F, 2.7845540046691895F,
    -0.7251497507095337F, 1.1764557361602783F, 0.3302994966506958F, 2.891758918762207F,
    -0.1163787841796875F, 0.8528368473052979F, 0.2980174422264099F, 2.8716845512390137F,
};
static const int32_t qnnpack_linear[12] = {
    82, 138, 120, 151, 89, 127, 109, 161, 98, 121, 108, 156,
};
static const int32_t qnnpack_linear_relu[12] = {
    103, 138, 120, 151, 103, 127, 109, 161, 103, 121, 108, 156,
};
static const float qnnpack_dynamic[12] = {
    -0.8168613314628601F, 1.7835397720336914F, 1.0125396251678467F, 2.7786128520965576F,
    -0.7176313400268555F, 1.180557131767273F, 0.3178790807723999F, 2.889864444732666F,
    -0.10600787401199341F, 0.8577626943588257F, 0.29457229375839233F, 2.8859291076660156F,
};
static const float x_floats[24] = {
    1.8423298597335815F, 0.5188871622085571F, -1.7119213342666626F, -1.7013792991638184F, 2.0194194316864014F, -0.26861444115638733F,
    -0.13071750104427338F, -1.4374138116836548F, 2.614577054977417F, -0.4340229630470276F, 0.35233545303344727F, -0.06455148011445999F,
    0.7686293721199036F, 0.9233471751213074F, -0.5583229660987854F, 0.7796257734298706F, 0.7447769641876221F, 0.0316568948328495F,
    -1.1724143028259277F, -1.5069403648376465F, -0.14810462296009064F, 0.37145474553108215F, 0.22725141048431396F, -0.06473517417907715F,
};
// torch.quint8, scale 1.0, zero point 3
static const float quantize_in_0[12] = {
    -3.0F, -2.5F, -1.5F, -0.5F, -0.25F, 0.0F,
    0.25F, 0.5F, 1.5F, 2.5F, 3.490000009536743F, 100.0F,
};
static const int32_t quantize_integers_0[12] = {
    0, 1, 1, 3, 3, 3, 3, 3, 5, 5, 6, 103,
};
static const float quantize_back_0[12] = {
    -3.0F, -2.0F, -2.0F, 0.0F, 0.0F, 0.0F,
    0.0F, 0.0F, 2.0F, 2.0F, 3.0F, 100.0F,
};
// torch.quint8, scale 0.1, zero point 77
static const float quantize_in_1[12] = {
    -3.0F, -2.5F, -1.5F, -0.5F, -0.25F, 0.0F,
    0.25F, 0.5F, 1.5F, 2.5F, 3.490000009536743F, 100.0F,
};
static const int32_t quantize_integers_1[12] = {
    47, 52, 62, 72, 75, 77, 79, 82, 92, 102, 112, 255,
};
static const float quantize_back_1[12] = {
    -3.0F, -2.5F, -1.5F, -0.5F, -0.20000000298023224F, 0.0F,
    0.20000000298023224F, 0.5F, 1.5F, 2.5F, 3.5F, 17.80000114440918F,
};
// torch.qint8, scale 0.0173, zero point 0
static const float quantize_in_2[12] = {
    -3.0F, -2.5F, -1.5F, -0.5F, -0.25F, 0.0F,
    0.25F, 0.5F, 1.5F, 2.5F, 3.490000009536743F, 100.0F,
};
static const int32_t quantize_integers_2[12] = {
    -128, -128, -87, -29, -14, 0, 14, 29, 87, 127, 127, 127,
};
static const float quantize_back_2[12] = {
    -2.214400053024292F, -2.214400053024292F, -1.5051000118255615F, -0.5016999840736389F, -0.24220000207424164F, 0.0F,
    0.24220000207424164F, 0.5016999840736389F, 1.5051000118255615F, 2.1971001625061035F, 2.1971001625061035F, 2.1971001625061035F,
};
// clang-format on

#endif
