// SPDX-License-Identifier: Apache-2.0
// Classes with weights: linear, convolutions, embeddings and recurrent networks, in every role.
#include "ops/classes/class_row.h"

// clang-format off
static const field linear_fields[] = {
    {FIELD_NAMED, "in_features", "0"}, {FIELD_NAMED, "out_features", "0"},
    {FIELD_HAS_TENSOR, "bias", NULL}, {.form = FIELD_END}};
static const field quantized_linear_fields[] = {
    {FIELD_NAMED, "in_features", "0"}, {FIELD_NAMED, "out_features", "0"},
    {FIELD_TENSOR, "scale", "1.0"}, {FIELD_TENSOR, "zero_point", "0"},
    {FIELD_WEIGHT_QSCHEME, "qscheme", NULL}, {.form = FIELD_END}};
static const field dynamic_linear_fields[] = {
    {FIELD_NAMED, "in_features", "0"}, {FIELD_NAMED, "out_features", "0"},
    {FIELD_WEIGHT_DTYPE, "dtype", "torch.qint8"}, {FIELD_WEIGHT_QSCHEME, "qscheme", NULL},
    {.form = FIELD_END}};

static const field grouped_linear_fields[] = {
    {FIELD_NAMED, "in_features", "0"}, {FIELD_NAMED, "out_features", "0"},
    {FIELD_NAMED, "bits", "0"}, {FIELD_NAMED, "group_size", "0"},
    {FIELD_HAS_TENSOR, "weight_zero_point", NULL},
    {FIELD_UNLESS, "activation_dtype", "torch.float32"}, {FIELD_HAS_TENSOR, "bias", NULL},
    {.form = FIELD_END}};

#define CONV_START                                                                                 \
    {FIELD_PLAIN, "in_channels", "0"}, {FIELD_PLAIN, "out_channels", "0"},                         \
    {FIELD_NAMED, "kernel_size", "1"}, {FIELD_NAMED, "stride", "1"}
#define CONV_REST                                                                                  \
    {FIELD_UNLESS, "padding", "0"}, {FIELD_UNLESS, "dilation", "1"},                               \
    {FIELD_UNLESS, "output_padding", "0"}, {FIELD_UNLESS, "groups", "1"},                          \
    {FIELD_NO_TENSOR, "bias", NULL}
static const field conv_fields[] = {
    CONV_START, CONV_REST, {FIELD_UNLESS, "padding_mode", "zeros"}, {.form = FIELD_END}};
static const field quantized_conv_fields[] = {
    CONV_START, {FIELD_TENSOR, "scale", "1.0"}, {FIELD_TENSOR, "zero_point", "0"}, CONV_REST,
    {.form = FIELD_END}};

#define EMBEDDING_START                                                                            \
    {FIELD_PLAIN, "num_embeddings", "0"}, {FIELD_PLAIN, "embedding_dim", "0"}
#define EMBEDDING_NORM                                                                             \
    {FIELD_UNLESS, "max_norm", "None"}, {FIELD_UNLESS, "norm_type", "2.0"},                        \
    {FIELD_UNLESS, "scale_grad_by_freq", "False"}
static const field embedding_fields[] = {
    EMBEDDING_START, {FIELD_UNLESS, "padding_idx", "None"}, EMBEDDING_NORM,
    {FIELD_UNLESS, "sparse", "False"}, {.form = FIELD_END}};
static const field embedding_bag_fields[] = {
    EMBEDDING_START, EMBEDDING_NORM, {FIELD_NAMED, "mode", "'mean'"},
    {FIELD_UNLESS, "padding_idx", "None"}, {.form = FIELD_END}};
static const field quantized_embedding_fields[] = {
    {FIELD_NAMED, "num_embeddings", "0"}, {FIELD_NAMED, "embedding_dim", "0"},
    {FIELD_WEIGHT_DTYPE, "dtype", "torch.quint8"}, {FIELD_WEIGHT_QSCHEME, "qscheme", NULL},
    {.form = FIELD_END}};

static const field rnn_fields[] = {
    {FIELD_PLAIN, "input_size", "0"}, {FIELD_PLAIN, "hidden_size", "0"},
    {FIELD_UNLESS, "proj_size", "0"}, {FIELD_UNLESS, "num_layers", "1"},
    {FIELD_UNLESS, "bias", "True"}, {FIELD_UNLESS, "batch_first", "False"},
    {FIELD_UNLESS, "dropout", "0.0"}, {FIELD_UNLESS, "bidirectional", "False"}, {.form = FIELD_END}};
static const field rnn_cell_fields[] = {
    {FIELD_PLAIN, "input_size", "0"}, {FIELD_PLAIN, "hidden_size", "0"},
    {FIELD_UNLESS, "bias", "True"}, {FIELD_UNLESS, "nonlinearity", "tanh"}, {.form = FIELD_END}};

// Packed weights have no public class in torch; tare names them.
#define PACKED_CLASS(NAME, FAMILY, D)                                                              \
    CLASS("tare.", "Packed" NAME, "Packed" NAME, PACKED, FAMILY, D, NONE, NULL)

// The classes of a convolution in D dimensions, in every role.
#define CONV_CLASSES(D)                                                                            \
    CLASS(NN, "Conv" #D "d", "Conv" #D "d", FLOAT, "conv", D, NONE, conv_fields),                  \
    CLASS(NN, "ConvTranspose" #D "d", "ConvTranspose" #D "d", FLOAT, "conv_transpose", D, NONE,    \
          conv_fields),                                                                            \
    CLASS(NNI, "ConvReLU" #D "d", "ConvReLU" #D "d", FUSED, "conv", D, RELU, NULL),                \
    CLASS(NNI, "ConvBn" #D "d", "ConvBn" #D "d", FUSED, "conv", D, BN, NULL),                      \
    CLASS(NNI, "ConvBnReLU" #D "d", "ConvBnReLU" #D "d", FUSED, "conv", D, BN_RELU, NULL),         \
    CLASS(NNQAT, "Conv" #D "d", "Conv" #D "d", QAT, "conv", D, NONE, conv_fields),                 \
    CLASS(NNIQAT, "ConvReLU" #D "d", "ConvReLU" #D "d", QAT, "conv", D, RELU, conv_fields),        \
    CLASS(NNIQAT, "ConvBn" #D "d", "ConvBn" #D "d", QAT, "conv", D, BN, conv_fields),              \
    CLASS(NNIQAT, "ConvBnReLU" #D "d", "ConvBnReLU" #D "d", QAT, "conv", D, BN_RELU, conv_fields), \
    CLASS(NNQR, "Conv" #D "d", "QuantizedConv" #D "d(Reference)", REFERENCE, "conv", D, NONE,      \
          conv_fields),                                                                            \
    CLASS(NNQR, "ConvTranspose" #D "d", "QuantizedConvTranspose" #D "d(Reference)", REFERENCE,     \
          "conv_transpose", D, NONE, conv_fields),                                                 \
    CLASS(NNQ, "Conv" #D "d", "QuantizedConv" #D "d", QUANTIZED, "conv", D, NONE,                  \
          quantized_conv_fields),                                                                  \
    CLASS(NNQ, "ConvTranspose" #D "d", "QuantizedConvTranspose" #D "d", QUANTIZED,                 \
          "conv_transpose", D, NONE, quantized_conv_fields),                                       \
    CLASS(NNIQ, "ConvReLU" #D "d", "QuantizedConvReLU" #D "d", QUANTIZED, "conv", D, RELU,         \
          quantized_conv_fields),                                                                  \
    PACKED_CLASS("Conv" #D "d", "conv", D),                                                        \
    PACKED_CLASS("ConvTranspose" #D "d", "conv_transpose", D)

// A recurrent class NAME in every role.
#define RNN_CLASSES(NAME, FAMILY, FIELDS)                                                          \
    CLASS(NN, NAME, NAME, FLOAT, FAMILY, 0, NONE, FIELDS),                                         \
    CLASS(NNQR, NAME, "Quantized" NAME "(Reference)", REFERENCE, FAMILY, 0, NONE, FIELDS),         \
    CLASS(NNQD, NAME, "DynamicQuantized" NAME, DYNAMIC, FAMILY, 0, NONE, FIELDS)

static const module_class rows[] = {
    CLASS(NN, "Linear", "Linear", FLOAT, "linear", 0, NONE, linear_fields),
    CLASS(NNI, "LinearReLU", "LinearReLU", FUSED, "linear", 0, RELU, NULL),
    CLASS(NNI, "LinearBn1d", "LinearBn1d", FUSED, "linear", 0, BN, NULL),
    CLASS(NNI, "LinearLeakyReLU", "LinearLeakyReLU", FUSED, "linear", 0, LEAKY_RELU, NULL),
    CLASS(NNI, "LinearTanh", "LinearTanh", FUSED, "linear", 0, TANH, NULL),
    CLASS(NNQAT, "Linear", "Linear", QAT, "linear", 0, NONE, linear_fields),
    {.name = NNQAT "dynamic.Linear", .print_name = "Linear", .role = ROLE_QAT, .op = "linear",
     .is_variant = true, .describe = tare__describe_fields, .kind = linear_fields, RUN_QAT},
    CLASS(NNIQAT, "LinearReLU", "LinearReLU", QAT, "linear", 0, RELU, linear_fields),
    CLASS(NNIQAT, "LinearBn1d", "LinearBn1d", QAT, "linear", 0, BN, linear_fields),
    CLASS(NNQR, "Linear", "QuantizedLinear(Reference)", REFERENCE, "linear", 0, NONE, linear_fields),
    CLASS(NNQ, "Linear", "QuantizedLinear", QUANTIZED, "linear", 0, NONE, quantized_linear_fields),
    CLASS(NNIQ, "LinearReLU", "QuantizedLinearReLU", QUANTIZED, "linear", 0, RELU,
          quantized_linear_fields),
    CLASS(NNIQ, "LinearLeakyReLU", "QuantizedLinearLeakyReLU", QUANTIZED, "linear", 0, LEAKY_RELU,
          quantized_linear_fields),
    CLASS(NNIQ, "LinearTanh", "QuantizedLinearTanh", QUANTIZED, "linear", 0, TANH,
          quantized_linear_fields),
    CLASS(NNQD, "Linear", "DynamicQuantizedLinear", DYNAMIC, "linear", 0, NONE,
          dynamic_linear_fields),
    CLASS(NNIQD, "LinearReLU", "DynamicQuantizedLinearReLU", DYNAMIC, "linear", 0, RELU,
          dynamic_linear_fields),
    PACKED_CLASS("Linear", "linear", 0),
    CLASS("tare.", "GroupedLinear", "GroupedLinear", GROUPED, "linear", 0, NONE,
          grouped_linear_fields),
    CLASS("tare.", "GroupedLinearReLU", "GroupedLinearReLU", GROUPED, "linear", 0, RELU,
          grouped_linear_fields),

    CONV_CLASSES(1), CONV_CLASSES(2), CONV_CLASSES(3),
    CLASS(NNI, "ConvAdd2d", "ConvAdd2d", FUSED, "conv", 2, ADD, NULL),
    CLASS(NNI, "ConvAddReLU2d", "ConvAddReLU2d", FUSED, "conv", 2, ADD_RELU, NULL),
    CLASS(NNIQ, "ConvAdd2d", "QuantizedConvAdd2d", QUANTIZED, "conv", 2, ADD, quantized_conv_fields),
    CLASS(NNIQ, "ConvAddReLU2d", "QuantizedConvAddReLU2d", QUANTIZED, "conv", 2, ADD_RELU,
          quantized_conv_fields),

    CLASS(NN, "Embedding", "Embedding", FLOAT, "embedding", 0, NONE, embedding_fields),
    CLASS(NNQAT, "Embedding", "Embedding", QAT, "embedding", 0, NONE, embedding_fields),
    CLASS(NNQR, "Embedding", "QuantizedEmbedding(Reference)", REFERENCE, "embedding", 0, NONE,
          embedding_fields),
    CLASS(NNQ, "Embedding", "QuantizedEmbedding", QUANTIZED, "embedding", 0, NONE,
          quantized_embedding_fields),
    CLASS(NN, "EmbeddingBag", "EmbeddingBag", FLOAT, "embedding_bag", 0, NONE, embedding_bag_fields),
    CLASS(NNQAT, "EmbeddingBag", "EmbeddingBag", QAT, "embedding_bag", 0, NONE, embedding_bag_fields),
    // Torch prints the name of the other class here.
    CLASS(NNQR, "EmbeddingBag", "QuantizedEmbedding(Reference)", REFERENCE, "embedding_bag", 0, NONE,
          embedding_bag_fields),
    CLASS(NNQ, "EmbeddingBag", "QuantizedEmbeddingBag", QUANTIZED, "embedding_bag", 0, NONE,
          quantized_embedding_fields),

    RNN_CLASSES("LSTM", "lstm", rnn_fields),
    RNN_CLASSES("GRU", "gru", rnn_fields),
    CLASS(NN, "RNN", "RNN", FLOAT, "rnn", 0, NONE, rnn_fields),
    RNN_CLASSES("LSTMCell", "lstm_cell", rnn_cell_fields),
    RNN_CLASSES("GRUCell", "gru_cell", rnn_cell_fields),
    RNN_CLASSES("RNNCell", "rnn_cell", rnn_cell_fields),
};
// clang-format on

const class_table tare__weighted_classes = {rows, sizeof rows / sizeof *rows};
