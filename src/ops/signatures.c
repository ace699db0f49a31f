// SPDX-License-Identifier: Apache-2.0
// Written by tools/signatures.py from torch's own schemas, a row for every overload of aten and
// quantized_decomposed that the operator tables know; sorted by name.
#include "ops/signatures.h"

#include <stdlib.h>
#include <string.h>

#include "core/text/text.h"

// clang-format off
static const char *const rows[] = {
    "aten.__and__.Scalar(self other) T",
    "aten.__and__.Tensor(self other) T",
    "aten.__lshift__.Scalar(self other) T",
    "aten.__lshift__.Tensor(self other) T",
    "aten.__or__.Scalar(self other) T",
    "aten.__or__.Tensor(self other) T",
    "aten.__rshift__.Scalar(self other) T",
    "aten.__rshift__.Tensor(self other) T",
    "aten.__xor__.Scalar(self other) T",
    "aten.__xor__.Tensor(self other) T",
    "aten._adaptive_avg_pool2d.default(self output_size[i2]) T",
    "aten._adaptive_avg_pool3d.default(self output_size[i3]) T",
    "aten._assert_async.msg(self assert_msg) ",
    "aten._assert_scalar.default(self assert_msg) ",
    "aten._assert_tensor_metadata.default(a size[i]=None stride[i]=None dtype=None * device=None layout=None) ",
    "aten._local_scalar_dense.default(self) s",
    "aten._log_softmax.default(self dim half_to_float) T",
    "aten._native_batch_norm_legit.default(input weight bias running_mean running_var training momentum eps) T T T",
    "aten._native_batch_norm_legit.no_stats(input weight bias training momentum eps) T T T",
    "aten._native_batch_norm_legit_functional.default(input weight bias running_mean running_var training momentum eps) T T T T T",
    "aten._native_batch_norm_legit_no_training.default(input weight bias running_mean running_var momentum eps) T T T",
    "aten._softmax.default(self dim half_to_float) T",
    "aten._to_copy.default(self * dtype=None layout=None device=None pin_memory=None non_blocking=False memory_format=None) T",
    "aten._unsafe_view.default(self size[i]) T",
    "aten._upsample_nearest_exact1d.vec(input output_size[i] scale_factors[f]) T",
    "aten._upsample_nearest_exact2d.vec(input output_size[i] scale_factors[f]) T",
    "aten._upsample_nearest_exact3d.vec(input output_size[i] scale_factors[f]) T",
    "aten.abs.default(self) T",
    "aten.abs_.default(self) T",
    "aten.acos.default(self) T",
    "aten.acosh.default(self) T",
    "aten.adaptive_avg_pool1d.default(self output_size[i1]) T",
    "aten.adaptive_avg_pool2d.default(self output_size[i2]) T",
    "aten.adaptive_avg_pool3d.default(self output_size[i3]) T",
    "aten.adaptive_max_pool1d.default(self output_size[i1]) T T",
    "aten.adaptive_max_pool2d.default(self output_size[i2]) T T",
    "aten.adaptive_max_pool3d.default(self output_size[i3]) T T",
    "aten.add.Scalar(self other alpha=1) T",
    "aten.add.Tensor(self other * alpha=1) T",
    "aten.add_.Tensor(self other * alpha=1) T",
    "aten.addmm.default(self mat1 mat2 * beta=1 alpha=1) T",
    "aten.alias.default(self) T",
    "aten.all.default(self) T",
    "aten.all.dim(self dim keepdim=False) T",
    "aten.alpha_dropout.default(input p train) T",
    "aten.amax.default(self dim[i1]=[] keepdim=False) T",
    "aten.amin.default(self dim[i1]=[] keepdim=False) T",
    "aten.any.default(self) T",
    "aten.any.dim(self dim keepdim=False) T",
    "aten.arange.default(end * dtype=None layout=None device=None pin_memory=None) T",
    "aten.arange.start(start end * dtype=None layout=None device=None pin_memory=None) T",
    "aten.arange.start_step(start end step=1 * dtype=None layout=None device=None pin_memory=None) T",
    "aten.argmax.default(self dim=None keepdim=False) T",
    "aten.argmin.default(self dim=None keepdim=False) T",
    "aten.argsort.default(self dim=-1 descending=False) T",
    "aten.as_strided.default(self size[i] stride[i] storage_offset=None) T",
    "aten.asin.default(self) T",
    "aten.asinh.default(self) T",
    "aten.atan.default(self) T",
    "aten.atan2.default(self other) T",
    "aten.atanh.default(self) T",
    "aten.avg_pool1d.default(self kernel_size[i1] stride[i1]=[] padding[i1]=0 ceil_mode=False count_include_pad=True) T",
    "aten.avg_pool2d.default(self kernel_size[i2] stride[i2]=[] padding[i2]=0 ceil_mode=False count_include_pad=True divisor_override=None) T",
    "aten.avg_pool3d.default(self kernel_size[i3] stride[i3]=[] padding[i3]=0 ceil_mode=False count_include_pad=True divisor_override=None) T",
    "aten.baddbmm.default(self batch1 batch2 * beta=1 alpha=1) T",
    "aten.batch_norm.default(input weight bias running_mean running_var training momentum eps cudnn_enabled) T",
    "aten.bernoulli.p(self p * generator=None) T",
    "aten.bernoulli_.float(self p=0.5 * generator=None) T",
    "aten.bitwise_and.Scalar(self other) T",
    "aten.bitwise_and.Tensor(self other) T",
    "aten.bitwise_left_shift.Tensor(self other) T",
    "aten.bitwise_left_shift.Tensor_Scalar(self other) T",
    "aten.bitwise_not.default(self) T",
    "aten.bitwise_or.Scalar(self other) T",
    "aten.bitwise_or.Tensor(self other) T",
    "aten.bitwise_right_shift.Tensor(self other) T",
    "aten.bitwise_right_shift.Tensor_Scalar(self other) T",
    "aten.bitwise_xor.Scalar(self other) T",
    "aten.bitwise_xor.Tensor(self other) T",
    "aten.bmm.default(self mat2) T",
    "aten.cat.default(tensors[T] dim=0) T",
    "aten.ceil.default(self) T",
    "aten.celu.default(self alpha=1.0) T",
    "aten.celu_.default(self alpha=1.0) T",
    "aten.channel_shuffle.default(self groups) T",
    "aten.chunk.default(self chunks dim=0) T[]",
    "aten.clamp.default(self min=None max=None) T",
    "aten.clamp_.default(self min=None max=None) T",
    "aten.clamp_max.default(self max) T",
    "aten.clamp_max_.default(self max) T",
    "aten.clamp_min.default(self min) T",
    "aten.clamp_min_.default(self min) T",
    "aten.clone.default(self * memory_format=None) T",
    "aten.constant_pad_nd.default(self pad[i] value=0) T",
    "aten.contiguous.default(self * memory_format=0) T",
    "aten.conv1d.default(input weight bias=None stride[i1]=1 padding[i1]=0 dilation[i1]=1 groups=1) T",
    "aten.conv1d.padding(input weight bias=None stride[i1]=1 padding='valid' dilation[i1]=1 groups=1) T",
    "aten.conv2d.default(input weight bias=None stride[i2]=1 padding[i2]=0 dilation[i2]=1 groups=1) T",
    "aten.conv2d.padding(input weight bias=None stride[i2]=1 padding='valid' dilation[i2]=1 groups=1) T",
    "aten.conv3d.default(input weight bias=None stride[i3]=1 padding[i3]=0 dilation[i3]=1 groups=1) T",
    "aten.conv3d.padding(input weight bias=None stride[i3]=1 padding='valid' dilation[i3]=1 groups=1) T",
    "aten.conv_transpose1d.default(input weight bias=None stride[i1]=1 padding[i1]=0 output_padding[i1]=0 groups=1 dilation[i1]=1) T",
    "aten.conv_transpose2d.input(input weight bias=None stride[i2]=1 padding[i2]=0 output_padding[i2]=0 groups=1 dilation[i2]=1) T",
    "aten.conv_transpose3d.input(input weight bias=None stride[i3]=1 padding[i3]=0 output_padding[i3]=0 groups=1 dilation[i3]=1) T",
    "aten.convolution.default(input weight bias stride[i] padding[i] dilation[i] transposed output_padding[i] groups) T",
    "aten.copy.default(self src non_blocking=False) T",
    "aten.copy_.default(self src non_blocking=False) T",
    "aten.cos.default(self) T",
    "aten.cos_.default(self) T",
    "aten.cosh.default(self) T",
    "aten.cumprod.default(self dim * dtype=None) T",
    "aten.cumsum.default(self dim * dtype=None) T",
    "aten.detach.default(self) T",
    "aten.detach_.default(self) T",
    "aten.div.Scalar(self other) T",
    "aten.div.Tensor(self other) T",
    "aten.div.Tensor_mode(self other * rounding_mode) T",
    "aten.div_.Tensor(self other) T",
    "aten.dropout.default(input p train) T",
    "aten.dropout_.default(self p train) T",
    "aten.einsum.default(equation tensors[T] * path[i]=None) T",
    "aten.elu.default(self alpha=1 scale=1 input_scale=1) T",
    "aten.elu_.default(self alpha=1 scale=1 input_scale=1) T",
    "aten.embedding.default(weight indices padding_idx=-1 scale_grad_by_freq=False sparse=False) T",
    "aten.empty.memory_format(size[i] * dtype=None layout=None device=None pin_memory=None memory_format=None) T",
    "aten.eq.Scalar(self other) T",
    "aten.eq.Tensor(self other) T",
    "aten.erf.default(self) T",
    "aten.erf_.default(self) T",
    "aten.exp.default(self) T",
    "aten.exp2.default(self) T",
    "aten.exp_.default(self) T",
    "aten.expand.default(self size[i] * implicit=False) T",
    "aten.expand_as.default(self other) T",
    "aten.expm1.default(self) T",
    "aten.eye.default(n * dtype=None layout=None device=None pin_memory=None) T",
    "aten.feature_alpha_dropout.default(input p train) T",
    "aten.feature_dropout.default(input p train) T",
    "aten.fill.Scalar(self value) T",
    "aten.fill.Tensor(self value) T",
    "aten.fill_.Scalar(self value) T",
    "aten.fill_.Tensor(self value) T",
    "aten.flatten.using_ints(self start_dim=0 end_dim=-1) T",
    "aten.flip.default(self dims[i]) T",
    "aten.floor.default(self) T",
    "aten.floor_divide.default(self other) T",
    "aten.fmod.Scalar(self other) T",
    "aten.fmod.Tensor(self other) T",
    "aten.full.default(size[i] fill_value * dtype=None layout=None device=None pin_memory=None) T",
    "aten.full_like.default(self fill_value * dtype=None layout=None device=None pin_memory=None memory_format=None) T",
    "aten.gather.default(self dim index * sparse_grad=False) T",
    "aten.ge.Scalar(self other) T",
    "aten.ge.Tensor(self other) T",
    "aten.gelu.default(self * approximate='none') T",
    "aten.gelu_.default(self * approximate='none') T",
    "aten.glu.default(self dim=-1) T",
    "aten.group_norm.default(input num_groups weight=None bias=None eps=1e-05 cudnn_enabled=True) T",
    "aten.gru.input(input hx params[T] has_biases num_layers dropout train bidirectional batch_first) T T",
    "aten.gt.Scalar(self other) T",
    "aten.gt.Tensor(self other) T",
    "aten.hardshrink.default(self lambd=0.5) T",
    "aten.hardsigmoid.default(self) T",
    "aten.hardsigmoid_.default(self) T",
    "aten.hardswish.default(self) T",
    "aten.hardswish_.default(self) T",
    "aten.hardtanh.default(self min_val=-1 max_val=1) T",
    "aten.hardtanh_.default(self min_val=-1 max_val=1) T",
    "aten.index.Tensor(self indices[T]) T",
    "aten.index_put.default(self indices[T] values accumulate=False) T",
    "aten.index_put_.default(self indices[T] values accumulate=False) T",
    "aten.index_select.default(self dim index) T",
    "aten.instance_norm.default(input weight bias running_mean running_var use_input_stats momentum eps cudnn_enabled) T",
    "aten.isinf.default(self) T",
    "aten.isnan.default(self) T",
    "aten.isneginf.default(self) T",
    "aten.isposinf.default(self) T",
    "aten.item.default(self) s",
    "aten.layer_norm.default(input normalized_shape[i] weight=None bias=None eps=1e-05 cudnn_enable=True) T",
    "aten.le.Scalar(self other) T",
    "aten.le.Tensor(self other) T",
    "aten.leaky_relu.default(self negative_slope=0.01) T",
    "aten.leaky_relu_.default(self negative_slope=0.01) T",
    "aten.lift_fresh.default(self) T",
    "aten.lift_fresh_copy.default(self) T",
    "aten.linalg_vector_norm.default(self ord=2 dim[i1]=None keepdim=False * dtype=None) T",
    "aten.linear.default(input weight bias=None) T",
    "aten.log.default(self) T",
    "aten.log1p.default(self) T",
    "aten.log2.default(self) T",
    "aten.log_.default(self) T",
    "aten.log_sigmoid.default(self) T",
    "aten.log_softmax.int(self dim dtype=None) T",
    "aten.logical_and.default(self other) T",
    "aten.logical_not.default(self) T",
    "aten.logical_or.default(self other) T",
    "aten.logical_xor.default(self other) T",
    "aten.logsumexp.default(self dim[i1] keepdim=False) T",
    "aten.lstm.input(input hx[T] params[T] has_biases num_layers dropout train bidirectional batch_first) T T T",
    "aten.lt.Scalar(self other) T",
    "aten.lt.Tensor(self other) T",
    "aten.mT.default(self) T",
    "aten.masked_fill.Scalar(self mask value) T",
    "aten.masked_fill.Tensor(self mask value) T",
    "aten.masked_fill_.Scalar(self mask value) T",
    "aten.matmul.default(self other) T",
    "aten.max.default(self) T",
    "aten.max.dim(self dim keepdim=False) T T",
    "aten.max.other(self other) T",
    "aten.max_pool1d.default(self kernel_size[i1] stride[i1]=[] padding[i1]=0 dilation[i1]=1 ceil_mode=False) T",
    "aten.max_pool2d.default(self kernel_size[i2] stride[i2]=[] padding[i2]=0 dilation[i2]=1 ceil_mode=False) T",
    "aten.max_pool2d_with_indices.default(self kernel_size[i2] stride[i2]=[] padding[i2]=0 dilation[i2]=1 ceil_mode=False) T T",
    "aten.max_pool3d.default(self kernel_size[i3] stride[i3]=[] padding[i3]=0 dilation[i3]=1 ceil_mode=False) T",
    "aten.maximum.default(self other) T",
    "aten.mean.default(self * dtype=None) T",
    "aten.mean.dim(self dim[i1] keepdim=False * dtype=None) T",
    "aten.min.default(self) T",
    "aten.min.dim(self dim keepdim=False) T T",
    "aten.min.other(self other) T",
    "aten.minimum.default(self other) T",
    "aten.mish.default(self) T",
    "aten.mish_.default(self) T",
    "aten.mm.default(self mat2) T",
    "aten.mul.Scalar(self other) T",
    "aten.mul.Tensor(self other) T",
    "aten.mul_.Tensor(self other) T",
    "aten.narrow.default(self dim start length) T",
    "aten.native_layer_norm.default(input normalized_shape[i] weight bias eps) T T T",
    "aten.ne.Scalar(self other) T",
    "aten.ne.Tensor(self other) T",
    "aten.neg.default(self) T",
    "aten.neg_.default(self) T",
    "aten.new_empty.default(self size[i] * dtype=None layout=None device=None pin_memory=None) T",
    "aten.new_full.default(self size[i] fill_value * dtype=None layout=None device=None pin_memory=None) T",
    "aten.new_ones.default(self size[i] * dtype=None layout=None device=None pin_memory=None) T",
    "aten.new_zeros.default(self size[i] * dtype=None layout=None device=None pin_memory=None) T",
    "aten.numpy_T.default(self) T",
    "aten.ones.default(size[i] * dtype=None layout=None device=None pin_memory=None) T",
    "aten.ones_like.default(self * dtype=None layout=None device=None pin_memory=None memory_format=None) T",
    "aten.outer.default(self vec2) T",
    "aten.pad.default(self pad[i] mode='constant' value=None) T",
    "aten.permute.default(self dims[i]) T",
    "aten.pixel_shuffle.default(self upscale_factor) T",
    "aten.pixel_unshuffle.default(self downscale_factor) T",
    "aten.pow.Scalar(self exponent) T",
    "aten.pow.Tensor_Scalar(self exponent) T",
    "aten.pow.Tensor_Tensor(self exponent) T",
    "aten.prelu.default(self weight) T",
    "aten.prod.default(self * dtype=None) T",
    "aten.prod.dim_int(self dim keepdim=False * dtype=None) T",
    "aten.reciprocal.default(self) T",
    "aten.reciprocal_.default(self) T",
    "aten.relu.default(self) T",
    "aten.relu6.default(self) T",
    "aten.relu6_.default(self) T",
    "aten.relu_.default(self) T",
    "aten.remainder.Scalar(self other) T",
    "aten.remainder.Tensor(self other) T",
    "aten.repeat.default(self repeats[i]) T",
    "aten.repeat_interleave.self_int(self repeats dim=None * output_size=None) T",
    "aten.reshape.default(self shape[i]) T",
    "aten.rms_norm.default(input normalized_shape[i] weight=None eps=None) T",
    "aten.rnn_relu.input(input hx params[T] has_biases num_layers dropout train bidirectional batch_first) T T",
    "aten.rnn_tanh.input(input hx params[T] has_biases num_layers dropout train bidirectional batch_first) T T",
    "aten.roll.default(self shifts[i1] dims[i1]=[]) T",
    "aten.round.default(self) T",
    "aten.rsqrt.default(self) T",
    "aten.rsqrt_.default(self) T",
    "aten.rsub.Scalar(self other alpha=1) T",
    "aten.rsub.Tensor(self other * alpha=1) T",
    "aten.scalar_tensor.default(s * dtype=None layout=None device=None pin_memory=None) T",
    "aten.scaled_dot_product_attention.default(query key value attn_mask=None dropout_p=0.0 is_causal=False * scale=None enable_gqa=False) T",
    "aten.scatter.src(self dim index src) T",
    "aten.scatter.value(self dim index value) T",
    "aten.scatter_add.default(self dim index src) T",
    "aten.scatter_reduce.two(self dim index src reduce * include_self=True) T",
    "aten.select.int(self dim index) T",
    "aten.select_scatter.default(self src dim index) T",
    "aten.selu.default(self) T",
    "aten.selu_.default(self) T",
    "aten.sigmoid.default(self) T",
    "aten.sigmoid_.default(self) T",
    "aten.sign.default(self) T",
    "aten.silu.default(self) T",
    "aten.silu_.default(self) T",
    "aten.sin.default(self) T",
    "aten.sin_.default(self) T",
    "aten.sinh.default(self) T",
    "aten.slice.Tensor(self dim=0 start=None end=None step=1) T",
    "aten.slice_scatter.default(self src dim=0 start=None end=None step=1) T",
    "aten.softmax.int(self dim dtype=None) T",
    "aten.softplus.default(self beta=1 threshold=20) T",
    "aten.softshrink.default(self lambd=0.5) T",
    "aten.sort.default(self dim=-1 descending=False) T T",
    "aten.sort.stable(self * stable dim=-1 descending=False) T T",
    "aten.split.Tensor(self split_size dim=0) T[]",
    "aten.split.sizes(self split_size[i] dim=0) T[]",
    "aten.split_with_sizes.default(self split_sizes[i] dim=0) T[]",
    "aten.sqrt.default(self) T",
    "aten.sqrt_.default(self) T",
    "aten.square.default(self) T",
    "aten.squeeze.default(self) T",
    "aten.squeeze.dim(self dim) T",
    "aten.squeeze.dims(self dim[i]) T",
    "aten.stack.default(tensors[T] dim=0) T",
    "aten.std.correction(self dim[i1]=None * correction=None keepdim=False) T",
    "aten.std.default(self unbiased=True) T",
    "aten.std.dim(self dim[i1] unbiased=True keepdim=False) T",
    "aten.sub.Scalar(self other alpha=1) T",
    "aten.sub.Tensor(self other * alpha=1) T",
    "aten.sub_.Tensor(self other * alpha=1) T",
    "aten.sum.default(self * dtype=None) T",
    "aten.sum.dim_IntList(self dim[i1] keepdim=False * dtype=None) T",
    "aten.sym_size.int(self dim) i",
    "aten.t.default(self) T",
    "aten.tan.default(self) T",
    "aten.tanh.default(self) T",
    "aten.tanh_.default(self) T",
    "aten.threshold.default(self threshold value) T",
    "aten.threshold_.default(self threshold value) T",
    "aten.to.device(self device dtype non_blocking=False copy=False memory_format=None) T",
    "aten.to.dtype(self dtype non_blocking=False copy=False memory_format=None) T",
    "aten.to.dtype_layout(self * dtype=None layout=None device=None pin_memory=None non_blocking=False copy=False memory_format=None) T",
    "aten.to.other(self other non_blocking=False copy=False memory_format=None) T",
    "aten.topk.default(self k dim=-1 largest=True sorted=True) T T",
    "aten.transpose.int(self dim0 dim1) T",
    "aten.tril.default(self diagonal=0) T",
    "aten.triu.default(self diagonal=0) T",
    "aten.trunc.default(self) T",
    "aten.type_as.default(self other) T",
    "aten.unbind.int(self dim=0) T[]",
    "aten.unflatten.int(self dim sizes[i]) T",
    "aten.unsqueeze.default(self dim) T",
    "aten.upsample_bicubic2d.vec(input output_size[i] align_corners scale_factors[f]) T",
    "aten.upsample_bilinear2d.vec(input output_size[i] align_corners scale_factors[f]) T",
    "aten.upsample_linear1d.vec(input output_size[i] align_corners scale_factors[f]) T",
    "aten.upsample_nearest1d.vec(input output_size[i] scale_factors[f]) T",
    "aten.upsample_nearest2d.vec(input output_size[i] scale_factors[f]) T",
    "aten.upsample_nearest3d.vec(input output_size[i] scale_factors[f]) T",
    "aten.upsample_trilinear3d.vec(input output_size[i] align_corners scale_factors[f]) T",
    "aten.var.correction(self dim[i1]=None * correction=None keepdim=False) T",
    "aten.var.default(self unbiased=True) T",
    "aten.var.dim(self dim[i1] unbiased=True keepdim=False) T",
    "aten.view.default(self size[i]) T",
    "aten.where.ScalarOther(condition self other) T",
    "aten.where.self(condition self other) T",
    "aten.zeros.default(size[i] * dtype=None layout=None device=None pin_memory=None) T",
    "aten.zeros_like.default(self * dtype=None layout=None device=None pin_memory=None memory_format=None) T",
    "quantized_decomposed._choose_qparams_per_token_asymmetric_impl.default(input dtype) T T",
    "quantized_decomposed.choose_qparams.tensor(input quant_min quant_max eps dtype) T T",
    "quantized_decomposed.choose_qparams_per_token.default(input dtype) T T",
    "quantized_decomposed.choose_qparams_per_token_asymmetric.default(input dtype) T T",
    "quantized_decomposed.choose_qparams_symmetric.tensor(input quant_min quant_max eps dtype) T T",
    "quantized_decomposed.convert_element_type.no_fuse(input dtype) T",
    "quantized_decomposed.dequantize_per_channel.default(input scales zero_points axis quant_min quant_max dtype * out_dtype=None) T",
    "quantized_decomposed.dequantize_per_channel_group.default(input scales zero_points quant_min quant_max dtype group_size output_dtype) T",
    "quantized_decomposed.dequantize_per_tensor.default(input scale zero_point quant_min quant_max dtype * out_dtype=None) T",
    "quantized_decomposed.dequantize_per_tensor.tensor(input scale zero_point quant_min quant_max dtype * out_dtype=None) T",
    "quantized_decomposed.dequantize_per_tensor.tensor2(input scale zero_point quant_min quant_max dtype * out_dtype=None) T",
    "quantized_decomposed.dequantize_per_token.default(input scales zero_points quant_min quant_max dtype output_dtype) T",
    "quantized_decomposed.fake_quant_per_channel.default(input scales zero_points axis quant_min quant_max) T",
    "quantized_decomposed.quantize_per_channel.default(input scales zero_points axis quant_min quant_max dtype) T",
    "quantized_decomposed.quantize_per_channel_group.default(input scales zero_points quant_min quant_max dtype group_size) T",
    "quantized_decomposed.quantize_per_tensor.default(input scale zero_point quant_min quant_max dtype) T",
    "quantized_decomposed.quantize_per_tensor.tensor(input scale zero_point quant_min quant_max dtype) T",
    "quantized_decomposed.quantize_per_tensor.tensor2(input scale zero_point quant_min quant_max dtype) T",
    "quantized_decomposed.quantize_per_token.default(input scales zero_points quant_min quant_max dtype) T",
};
// clang-format on

const char *tare__signature_at(size_t index) {
    return index < sizeof rows / sizeof *rows ? rows[index] : NULL;
}

// Orders by the name, which ends at a parenthesis.
static int compare(const void *key, const void *row) {
    const char *name = key, *other = *(const char *const *)row;
    while (*name != '\0' && *name == *other) name++, other++;
    return (*name == '\0' ? '(' : *name) - *other;
}

bool tare__signature_of(const char *target, signature *out) {
    static const char prefix[] = "torch.ops.";
    if (!tare__starts_with(target, prefix)) return false;
    const char *const *row =
        bsearch(target + strlen(prefix), rows, sizeof rows / sizeof *rows, sizeof *rows, compare);
    if (row == NULL) return false;
    out->params = strchr(*row, '(') + 1;
    out->length = strcspn(out->params, ")");
    out->results = out->params + out->length + 1;
    out->results += *out->results == ' ' ? 1 : 0;
    return true;
}

bool tare__signature_gives_several(const signature *s) {
    return strpbrk(s->results, " [") != NULL;
}

// One of "self", "size[i]", "stride[i2]=1".
static void read_param(const char *at, signature_param *out) {
    out->name = at;
    out->length = strcspn(at, " [=)");
    at += out->length;
    if (*at == '[') {
        out->list_of = at[1];
        out->list_size = at[2] != ']' ? at[2] - '0' : 0;
        at += strcspn(at, "]") + 1;
    }
    if (*at == '=') out->fallback = at + 1;
}

bool tare__signature_param(const signature *s, size_t i, signature_param *out) {
    const char *const end = s->params + s->length;
    *out = (signature_param){0};
    for (const char *at = s->params; at < end; at += strcspn(at, " )") + 1) {
        if (*at == '*') {
            out->is_keyword_only = true;
        } else if (i-- == 0) {
            read_param(at, out);
            return true;
        }
    }
    return false;
}

bool tare__signature_find(const signature *s, const char *name, size_t *index) {
    signature_param p;
    for (*index = 0; tare__signature_param(s, *index, &p); ++*index)
        if (tare__is_word(p.name, p.length, name)) return true;
    return false;
}

// What signatures have for strings, so that values need no memory.
static const char *string_of(const char *chars, size_t length) {
    static const char *const strings[] = {"none", "valid", "constant"};
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
        if (tare__is_word(chars, length, strings[i])) return strings[i];
    return NULL;
}

bool tare__signature_literal(const char *chars, size_t length, value *out) {
    double number = 0;
    *out = tare__none();
    if (tare__is_word(chars, length, "None")) return true;
    if (tare__is_word(chars, length, "True") || tare__is_word(chars, length, "False")) {
        *out = tare__bool(*chars == 'T');
    } else if (tare__is_word(chars, length, "[]")) {
        *out = (value){.kind = VALUE_LIST};
    } else if (*chars == '\'') {
        *out = tare__string(string_of(chars + 1, length - 2));
        return out->as.text != NULL;
    } else if (tare__is_word(chars, length, "torch.float32")) {
        *out = tare__dtype_value(TARE_FLOAT32);
    } else if (tare__parse_double(chars, length, &number)) {
        const bool is_float = memchr(chars, '.', length) || memchr(chars, 'e', length);
        *out = is_float ? tare__float(number) : tare__int((int64_t)number);
    } else {
        return false;
    }
    return true;
}

bool tare__signature_default(const signature_param *p, value *out) {
    *out = tare__none();
    return p->fallback != NULL &&
           tare__signature_literal(p->fallback, strcspn(p->fallback, " )"), out);
}
