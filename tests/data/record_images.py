#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what Pillow and torchvision make of pictures into tests/data/images.npz.

Per picture: NAME.file (the encoded bytes) and NAME.pixels, what Image.open(..).convert("RGB") gives
(convert("L") where NAME is grey). Per pipeline: CASE.steps (what tare is told), CASE.picture and
CASE.output, the tensor of torchvision's transforms. Run by hand, with Pillow and torchvision
installed.

usage: record_images.py OUT.npz
"""
import io
import sys

import numpy as np
import PIL
import torchvision
from PIL import Image
from torchvision import transforms as T
from torchvision.transforms import InterpolationMode as Mode

random = np.random.default_rng(7)
arrays = {}


def text(words):
    return np.frombuffer(words.encode(), np.uint8)


def smooth(height, width, channels):
    """Waves and some noise: neither flat nor beyond what JPEG can say."""
    y, x = np.mgrid[0:height, 0:width]
    waves = [np.sin(x / (3 + c) + c) * np.cos(y / (4 + c)) for c in range(channels)]
    noise = random.uniform(-0.2, 0.2, (height, width, channels))
    return np.clip((np.stack(waves, 2) + noise) * 110 + 128, 0, 255).astype(np.uint8)


def put(name, image, format, grey=False, **options):
    stream = io.BytesIO()
    image.save(stream, format, **options)
    data = stream.getvalue()
    arrays[name + ".file"] = np.frombuffer(data, np.uint8)
    pixels = Image.open(io.BytesIO(data))
    # Grey of 16 bits: tare keeps the upper byte, as Pillow does for colours; Pillow's own grey
    # saturates at 255 of 65535.
    if pixels.mode.startswith("I"):
        pixels = Image.fromarray((np.asarray(pixels).astype(np.uint32) >> 8).astype(np.uint8))
    pixels = np.asarray(pixels.convert("L" if grey else "RGB"))
    arrays[name + ".pixels"] = pixels.reshape(pixels.shape[0], pixels.shape[1], -1)
    return Image.open(io.BytesIO(data))


def png16(width, height, color, rows):
    """A PNG of 16 bits, which Pillow does not write."""
    import struct
    import zlib

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    raw = b"".join(b"\0" + row.astype(">u2").tobytes() for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, color, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def write_pictures():
    rgb = smooth(19, 26, 3)
    grey = Image.fromarray(smooth(18, 21, 1)[:, :, 0])
    color = Image.fromarray(rgb)
    put("png_rgb", color, "PNG")
    put("png_grey", grey, "PNG", grey=True)
    put("png_bits", grey.convert("1"), "PNG", grey=True)
    put("png_palette", color.quantize(37), "PNG")
    put("png_palette4", color.quantize(11), "PNG", bits=4)
    put("png_palette_alpha", color.quantize(20), "PNG", transparency=3)
    put("png_rgba", Image.fromarray(np.dstack([rgb, smooth(19, 26, 1)])), "PNG")
    put("png_grey_alpha", Image.merge("LA", [grey, grey.rotate(180)]), "PNG", grey=True)
    put("png_rgb_transparent", color, "PNG", transparency=(1, 2, 3))
    deep = random.integers(0, 65536, (7, 9, 3))
    for name, kind, values in ("png_rgb16", 2, deep), ("png_grey16", 0, deep[:, :, :1]):
        data = png16(9, 7, kind, values)
        arrays[name + ".file"] = np.frombuffer(data, np.uint8)
        arrays[name + ".pixels"] = (values >> 8).astype(np.uint8)
    # Pillow agrees about colours.
    assert (np.asarray(Image.open(io.BytesIO(png16(9, 7, 2, deep)))) == deep >> 8).all()
    for sampling in 0, 1, 2:
        put(f"jpeg_{sampling}", color, "JPEG", quality=85, subsampling=sampling)
    put("jpeg_progressive", color, "JPEG", quality=70, progressive=True)
    put("jpeg_grey", grey, "JPEG", grey=True)
    put("jpeg_cmyk", color.convert("CMYK"), "JPEG", quality=90)
    put("jpeg_restart", color, "JPEG", restart_marker_blocks=1)
    exif = Image.Exif()
    exif[0x112] = 6  # to be turned by 90 degrees, which torchvision's loader does not do
    put("jpeg_turned", color, "JPEG", exif=exif)
    put("jpeg_wide", Image.fromarray(smooth(37, 61, 3)), "JPEG")
    put("png_high", Image.fromarray(smooth(53, 31, 3)), "PNG")


NORMALIZE = T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
MODES = {"bilinear": Mode.BILINEAR, "bicubic": Mode.BICUBIC, "nearest": Mode.NEAREST}


def picture(name, mode="RGB"):
    return Image.open(io.BytesIO(arrays[name + ".file"].tobytes())).convert(mode)


def case(name, steps, file, transform, mode="RGB"):
    out = transform(picture(file, mode)).numpy()
    arrays[f"{name}.steps"], arrays[f"{name}.picture"] = text(steps), text(file)
    arrays[f"{name}.output"] = np.ascontiguousarray(out)


def write_cases():
    for mode, how in MODES.items():
        for file in "jpeg_wide", "png_high", "png_rgb":
            for size in 11, 16, 40:
                case(f"{file}_{mode}_{size}", f"resize={size},interpolation={mode},dtype=uint8", file,
                     T.Compose([T.Resize(size, how), T.PILToTensor()]))
            case(f"{file}_{mode}_exact", f"resize=13x22,interpolation={mode},dtype=uint8", file,
                 T.Compose([T.Resize((13, 22), how), T.PILToTensor()]))
            case(f"{file}_{mode}_one_way", f"resize=19x9,interpolation={mode},dtype=uint8", file,
                 T.Compose([T.Resize((19, 9), how), T.PILToTensor()]))
    for crop in (10, 10), (11, 8), (18, 26), (40, 41), (19, 70), (60, 5):
        case("crop_%d_%d" % crop, "crop=%dx%d,dtype=uint8" % crop, "png_rgb",
             T.Compose([T.CenterCrop(crop), T.PILToTensor()]))
    case("imagenet_small", "imagenet,resize=24,crop=20", "jpeg_wide",
         T.Compose([T.Resize(24), T.CenterCrop(20), T.ToTensor(), NORMALIZE]))
    case("imagenet_high", "imagenet,resize=18,crop=16,interpolation=bicubic", "png_high",
         T.Compose([T.Resize(18, Mode.BICUBIC), T.CenterCrop(16), T.ToTensor(), NORMALIZE]))
    case("to_tensor", "to_tensor", "png_rgb", T.ToTensor())
    case("grey", "color=gray,mean=0.1307,std=0.3081", "png_rgb",
         T.Compose([T.ToTensor(), T.Normalize([0.1307], [0.3081])]), "L")
    case("grey_to_rgb", "resize=12", "jpeg_grey", T.Compose([T.Resize(12), T.ToTensor()]))
    # Every byte, through ToTensor and Normalize.
    ramp = np.stack([np.arange(256, dtype=np.uint8).reshape(16, 16)] * 3, 2)
    put("png_ramp", Image.fromarray(ramp), "PNG")
    case("ramp", "mean=0.485:0.456:0.406,std=0.229:0.224:0.225", "png_ramp",
         T.Compose([T.ToTensor(), NORMALIZE]))
    out = T.ToTensor()(picture("png_rgb")).numpy()
    arrays["bgr.steps"], arrays["bgr.picture"] = text("color=bgr"), text("png_rgb")
    arrays["bgr.output"] = np.ascontiguousarray(out[::-1])
    arrays["nhwc.steps"], arrays["nhwc.picture"] = text("layout=NHWC"), text("png_rgb")
    arrays["nhwc.output"] = np.ascontiguousarray(out.transpose(1, 2, 0))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write_pictures()
    write_cases()
    arrays["made_by"] = text(f"record_images.py, Pillow {PIL.__version__}, torchvision {torchvision.__version__}")
    np.savez_compressed(sys.argv[1], **arrays)
