// SPDX-License-Identifier: Apache-2.0
// Which graphs are proved to keep samples apart: a sample that meets another must not be missed.
#include "runtime/plan/samples.h"
#include "support/models.h"
#include "support/test.h"

#define NN "torch.nn."

typedef struct rule_case {
    const char *what, *body; // of forward(self, x); x is [batch, 4, 6, 6]
    bool is_proved;
} rule_case;

static tare_model *make(const char *body) {
    char code[1024];
    module *root = new_tree();
    put_module(root, NULL, "conv", NN "Conv2d",
               "in_channels=4, out_channels=4, kernel_size=(3, 3), stride=(1, 1), "
               "padding=(1, 1), dilation=(1, 1), groups=1, padding_mode='zeros'");
    put_module(root, NULL, "linear", NN "Linear", "in_features=6, out_features=6");
    put_module(root, NULL, "bn", NN "BatchNorm2d", "num_features=4");
    put_module(root, NULL, "pool", NN "AdaptiveAvgPool2d", "output_size=(1, 1)");
    snprintf(code, sizeof code, "def forward(self, x):\n%s", body);
    return new_model(NULL, root, code);
}

static bool is_proved(const char *body) {
    const int64_t shape[] = {3, 4, 6, 6};
    tare_tensor *x = NULL;
    tare_model *model = make(body);
    bool proved = false;
    CHECK_DONE(tare_tensor_create(TARE_FLOAT32, 4, shape, &x, job_error()));
    const tare_tensor *inputs[] = {x};
    const tare_batch batch = {
        .struct_size = sizeof batch, .inputs = inputs, .input_count = 1, .size = 3};
    CHECK_DONE(tare__samples_by_rule(model, &batch, &proved, job_error()));
    tare_tensor_release(x);
    tare_model_destroy(model);
    return proved;
}

static const rule_case cases[] = {
    {"layers, norms, pools and views",
     "    conv = self.conv(x)\n"
     "    bn = self.bn(conv)\n"
     "    relu = torch.relu(bn)\n"
     "    add = relu + x\n"
     "    pool = self.pool(add)\n"
     "    mul = add * pool\n"
     "    cat = torch.cat([mul, x], 1)\n"
     "    flatten = torch.flatten(cat, 1)\n"
     "    return flatten\n",
     true},
    {"sizes that only shape",
     "    size = x.size(0)\n"
     "    view = x.view(size, 144)\n"
     "    return view\n",
     true},
    {"means over pixels",
     "    mean = x.mean([2, 3])\n"
     "    return mean\n",
     true},
    {"a mean over the batch",
     "    mean = x.mean(0)\n"
     "    sub = x - mean\n"
     "    return sub\n",
     false},
    {"a mean over the batch that keeps its dimension",
     "    mean = x.mean(0, True)\n"
     "    sub = x - mean\n"
     "    return sub\n",
     false},
    {"sums along the batch",
     "    cumsum = torch.cumsum(x, 0)\n"
     "    conv = self.conv(cumsum)\n"
     "    return conv\n",
     false},
    {"shares of the batch",
     "    softmax = torch.nn.functional.softmax(x, 0)\n"
     "    return softmax\n",
     false},
    {"samples in the opposite order",
     "    flip = torch.flip(x, [0])\n"
     "    return flip\n",
     false},
    {"a number that follows the batch",
     "    size = x.size(0)\n"
     "    mul = x * size\n"
     "    return mul\n",
     false},
    {"samples along a last dimension",
     "    mean = x.mean([1, 2, 3])\n"
     "    add = x + mean\n"
     "    return add\n",
     false},
    {"dimensions of an item that change places",
     "    permute = x.permute(0, 2, 3, 1)\n"
     "    transpose = permute.transpose(1, -1)\n"
     "    shuffle = torch.channel_shuffle(transpose, 2)\n"
     "    pixels = torch.pixel_shuffle(shuffle, 2)\n"
     "    return pixels\n",
     true},
    {"samples that change places with channels, and back",
     "    transpose = x.transpose(0, 1)\n"
     "    relu = torch.relu(transpose)\n"
     "    back = relu.transpose(0, 1)\n"
     "    return back\n",
     false},
    {"attention within a sample",
     "    turned = x.transpose(2, 3)\n"
     "    scores = torch.matmul(x, turned)\n"
     "    soft = torch.nn.functional.softmax(scores, -1)\n"
     "    mixed = torch.matmul(soft, x)\n"
     "    log = torch.nn.functional.log_softmax(mixed, 1)\n"
     "    attention = torch._C._nn.scaled_dot_product_attention(log, x, x)\n"
     "    return attention\n",
     true},
    {"attention among samples",
     "    flatten = torch.flatten(x, 1)\n"
     "    attention = torch._C._nn.scaled_dot_product_attention(flatten, flatten, flatten)\n"
     "    return attention\n",
     false},
    {"matrices of one sample in the place of another's channels",
     "    flatten = torch.flatten(x, 2)\n"
     "    view = flatten.view(-1, 12, 12)\n"
     "    pooled = torch.nn.functional.adaptive_avg_pool2d(x, 12)\n"
     "    matmul = torch.matmul(view, pooled)\n"
     "    return matmul\n",
     false},
    {"shares along a negative dimension that is the batch",
     "    softmax = torch.nn.functional.softmax(x, -4)\n"
     "    return softmax\n",
     false},
    {"sizes of items, by which they are resized",
     "    size = x.size()\n"
     "    getitem = size[2]\n"
     "    conv = self.conv(x)\n"
     "    interpolate = torch.nn.functional.interpolate(conv, size = (getitem, 12), "
     "mode = 'bilinear', align_corners = False)\n"
     "    return interpolate\n",
     true},
    {"channels that part, and meet again",
     "    chunk = torch.chunk(x, 2, 1)\n"
     "    first = chunk[0]\n"
     "    second = chunk[1]\n"
     "    relu = torch.relu(second)\n"
     "    cat = torch.cat([relu, first], 1)\n"
     "    split = torch.split(cat, [1, 3], 1)\n"
     "    third = split[-1]\n"
     "    unbind = torch.unbind(third, 2)\n"
     "    line = unbind[2]\n"
     "    return line\n",
     true},
    {"samples that part",
     "    chunk = torch.chunk(x, 2)\n"
     "    first = chunk[0]\n"
     "    return first\n",
     false},
    {"parts of one sample in the place of all",
     "    unbind = torch.unbind(x, -4)\n"
     "    last = unbind[-1]\n"
     "    first = unbind[0]\n"
     "    stack = torch.stack([last, first])\n"
     "    return stack\n",
     false},
    {"a part that the batch chooses",
     "    size = x.size(0)\n"
     "    unbind = torch.unbind(x, 1)\n"
     "    item = unbind[size]\n"
     "    return item\n",
     false},
    {"a scale that follows the batch",
     "    size = x.size(0)\n"
     "    attention = torch._C._nn.scaled_dot_product_attention(x, x, x, scale = size)\n"
     "    return attention\n",
     false},
    {"groups that the batch chooses",
     "    size = x.size(0)\n"
     "    norm = torch.nn.functional.group_norm(x, size)\n"
     "    return norm\n",
     false},
    {"a bound that follows the batch",
     "    size = x.size(0)\n"
     "    norm = torch.nn.functional.layer_norm(x, (6,), None, None, size)\n"
     "    return norm\n",
     false},
    {"a dimension that the batch chooses",
     "    size = x.size(0)\n"
     "    dim = size + 1\n"
     "    mean = x.mean(dim)\n"
     "    return mean\n",
     false},
    {"a part of as many channels as samples",
     "    size = x.size(0)\n"
     "    chunk = torch.chunk(x, size, 2)\n"
     "    first = chunk[0]\n"
     "    mean = first.mean(2)\n"
     "    return mean\n",
     false},
    {"a first size that is the batch for one and two samples",
     "    size = x.size(0)\n"
     "    third = size // 3\n"
     "    rows = size + third\n"
     "    view = x.view(rows, -1)\n"
     "    return view\n",
     false},
    {"a number that is the same for one and two samples",
     "    size = x.size(0)\n"
     "    third = size // 3\n"
     "    mul = x * third\n"
     "    return mul\n",
     false},
    {"an item that the batch chooses",
     "    shape = x.size()\n"
     "    size = shape[0]\n"
     "    index = size + 1\n"
     "    side = shape[index]\n"
     "    div = x / side\n"
     "    return div\n",
     false},
    {"shapes that are taken apart and joined",
     "    shape = x.size()\n"
     "    outer = shape[slice(None, -1, None)]\n"
     "    join = outer + (2, 3)\n"
     "    view = x.view(join)\n"
     "    back = view.view(shape)\n"
     "    size = shape[0]\n"
     "    flat = torch.reshape(back, (size, -1))\n"
     "    return flat\n",
     true},
    {"numbers that follow from sizes of items",
     "    channels = x.size(1)\n"
     "    half = channels // 2\n"
     "    size = x.size(0)\n"
     "    view = x.view(size, half, -1)\n"
     "    div = view / channels\n"
     "    norm = torch.nn.functional.group_norm(div, half)\n"
     "    return norm\n",
     true},
    {"the batch as another size than the first",
     "    size = x.size(0)\n"
     "    view = x.view(-1, size)\n"
     "    back = view.view(size, -1)\n"
     "    return back\n",
     false},
    {"integers whose range is measured",
     "    codes = torch.quantize_per_tensor_dynamic(x, torch.quint8, False)\n"
     "    floats = codes.dequantize()\n"
     "    return floats\n",
     false},
    {"norms of the batch",
     "    batch_norm = torch.nn.functional.batch_norm(x, None, None, None, None, True)\n"
     "    return batch_norm\n",
     false},
};

static void what_meets_is_not_proved(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (is_proved(cases[i].body) != cases[i].is_proved)
            fail_msg("%s: expected %s", cases[i].what, cases[i].is_proved ? "a proof" : "none");
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    const int64_t shape[] = {2, 4, 6, 6};
    tare_model *model = make(cases[0].body);
    tare_tensor *x = NULL;
    CHECK_DONE(tare_tensor_create(TARE_FLOAT32, 4, shape, &x, job_error()));
    const tare_tensor *inputs[] = {x};
    const tare_batch batch = {
        .struct_size = sizeof batch, .inputs = inputs, .input_count = 1, .size = 2};
    tare_status status = TARE_OK;
    bool proved = false;
    EVERY_ALLOCATION_FAILS(
        status, status = tare__samples_by_rule(model, &batch, &proved, job_error()), (void)proved);
    assert_true(proved);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_meets_is_not_proved),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
