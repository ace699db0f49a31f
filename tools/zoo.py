#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends networks that nobody here wrote through the three doors, and says what became of each.

    pip install torch torchvision timm transformers onnx onnxruntime onnxscript numpy
    make build
    python tools/zoo.py run build/zoo [NAME ..] [--door trace|pt2|onnx ..] [--peer] --tare build/bin/tare
    python tools/zoo.py table build/zoo

The networks are torchvision's, timm's and transformers', with random weights whose batch norms are settled
(export_models.py). The doors: `trace` by tare_export.py, `pt2` by torch.export, `onnx` by torch's exporter. Through each, a
network runs in float, beside torch's outputs; it is quantized with 8 samples, runs in integers on 16 others, and both forms
are timed in turns on one thread; the share of the time in steps that call an operator's reference is counted. --peer does the
same with ONNX Runtime's static int8 (QDQ, per channel), and with torch's own (FX, x86) for networks of torchvision. What
was found is added to FOLDER/results.json, from which `table` writes the table of docs/models.md. Every network has a
process and a time limit of its own, forked from one that has loaded torch.
"""
import argparse
import inspect
import json
import logging
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import warnings

DOORS = {"trace": ".safetensors", "pt2": ".pt2", "onnx": ".onnx"}
QUANTIZE = {"trace": ["--backend", "x86"], "onnx": ["--backend", "x86"], "pt2": ["--quantizer", "X86InductorQuantizer"]}
EXAMPLES, CALIBRATION, TESTS = 2, 8, 16  # samples: of a batch, to calibrate with, to measure with
PIXELS = 160  # of pictures, where an architecture takes any size
SECONDS_OF_A_NETWORK = 900

# --- the networks ---

TORCHVISION = """alexnet vgg11_bn squeezenet1_1 resnet18 resnext50_32x4d wide_resnet50_2 densenet121 googlenet inception_v3
mnasnet0_5 mobilenet_v2 mobilenet_v3_small regnet_y_400mf regnet_x_400mf shufflenet_v2_x0_5 efficientnet_b0
efficientnet_v2_s convnext_tiny maxvit_t swin_t swin_v2_t vit_b_32
fcn_resnet50 lraspp_mobilenet_v3_large deeplabv3_mobilenet_v3_large retinanet_resnet50_fpn.backbone r2plus1d_18 swin3d_t
fasterrcnn_mobilenet_v3_large_320_fpn.backbone ssdlite320_mobilenet_v3_large.backbone"""

SEGMENTATION = ("fcn_resnet50", "lraspp_mobilenet_v3_large", "deeplabv3_mobilenet_v3_large")
VIDEO = ("r2plus1d_18", "mvit_v2_s", "swin3d_t")

TIMM = """beit_base_patch16_224 botnet26t_256 cait_xxs24_224 coat_tiny coatnet_nano_rw_224 convit_tiny convmixer_768_32
convnextv2_atto crossvit_tiny_240 cspresnet50 darknet53 davit_tiny deit_tiny_patch16_224 dla46_c dm_nfnet_f0 dpn48b
eca_resnet33ts edgenext_xx_small efficientformer_l1 efficientformerv2_s0 efficientnet_b0 efficientvit_b0 efficientvit_m0
ese_vovnet19b_dw eva02_tiny_patch14_224 fasternet_t0 fastvit_t8 fbnetc_100 focalnet_tiny_srf gcvit_xxtiny gernet_s
ghostnetv2_100 gmlp_s16_224 halonet26t hardcorenas_a hgnetv2_b0 hiera_tiny_224 hrnet_w18_small inception_next_tiny
lambda_resnet26t lcnet_050 levit_128s mambaout_femto maxvit_nano_rw_256 caformer_s18 mixer_s32_224 mixnet_s mnasnet_100
mobilenetv4_conv_small mobilenetv4_hybrid_medium mobileone_s0 mobilevit_xxs mobilevitv2_050 mvitv2_tiny nest_tiny nfnet_l0
pit_ti_224 poolformerv2_s12 pvt_v2_b0 rdnet_tiny regnety_002 repghostnet_050 repvgg_a0 repvit_m0_9 res2net50_14w_8s
resmlp_12_224 resnest14d resnetv2_50 rexnet_100 selecsls42b sequencer2d_s shvit_s1 skresnet18 spnasnet_100 starnet_s1
swiftformer_xs swin_tiny_patch4_window7_224 swinv2_tiny_window8_256 tf_efficientnet_lite0 tf_efficientnetv2_b0
tf_mixnet_s tiny_vit_5m_224 tinynet_e tresnet_m twins_svt_small vgg11 visformer_tiny vit_tiny_patch16_224 vitamin_small_224
volo_d1_224 vovnet39a xception41 xcit_nano_12_p16_224
deit3_small_patch16_224 regnetz_b16 bat_resnext26ts gcresnet33ts sebotnet33ts_256 semnasnet_075 legacy_seresnet18 ghostnetv3_050
nextvit_small tnt_s_legacy_patch16_224 convformer_s18 vit_tiny_r_s16_p8_224 mobilenetv3_small_050 eca_nfnet_l0 resnet26t hgnet_tiny
efficientvit_l1 csatv2 mobilenet_edgetpu_v2_xs tf_efficientnet_es resnet18d densenetblur121d"""

# A transformer: model's class, configuration's, its sizes (small: these are shapes, not sizes, that are tried), inputs.
_WIDE = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
_TEXT = {"vocab_size": 1000, **_WIDE}
_GROUPED = {**_TEXT, "num_key_value_heads": 2}
_PICTURE = {**_WIDE, "image_size": 64}
_SPEECH = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
           "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}
_PAIRS = {"vocab_size": 1000, **_SPEECH}
_DETR = {**_SPEECH, "num_queries": 10, "use_timm_backbone": True, "backbone": "resnet18", "use_pretrained_backbone": False,
         "backbone_config": None}
_STAGES = {"hidden_sizes": [16, 32, 64, 128], "depths": [1, 1, 2, 1]}
TRANSFORMERS = {
    "albert": ("AlbertModel", "AlbertConfig", {**_TEXT, "embedding_size": 32}, "words"),
    "bert": ("BertModel", "BertConfig", _TEXT, "words"),
    "bert_masked": ("BertModel", "BertConfig", _TEXT, "masked words"),
    "bert_classifier": ("BertForSequenceClassification", "BertConfig", _TEXT, "words"),
    "bloom": ("BloomForCausalLM", "BloomConfig", {"vocab_size": 1000, "hidden_size": 64, "n_layer": 2, "n_head": 4}, "words"),
    "camembert": ("CamembertModel", "CamembertConfig", _TEXT, "words"),
    "clip_text": ("CLIPTextModel", "CLIPTextConfig", _TEXT, "words"),
    "clip_vision": ("CLIPVisionModel", "CLIPVisionConfig", _PICTURE, "picture"),
    "convbert": ("ConvBertModel", "ConvBertConfig", {**_TEXT, "embedding_size": 64}, "words"),
    "convnext": ("ConvNextModel", "ConvNextConfig", _STAGES, "picture"),
    "cvt": ("CvtModel", "CvtConfig", {"embed_dim": [16, 32, 64], "num_heads": [1, 2, 4], "depth": [1, 2, 3]}, "picture"),
    "data2vec": ("Data2VecVisionModel", "Data2VecVisionConfig", _PICTURE, "picture"),
    "deberta": ("DebertaModel", "DebertaConfig", _TEXT, "words"),
    "deberta_v2": ("DebertaV2Model", "DebertaV2Config", _TEXT, "words"),
    "deit": ("DeiTModel", "DeiTConfig", _PICTURE, "picture"),
    "dinov2": ("Dinov2Model", "Dinov2Config", {**_WIDE, "image_size": 70}, "picture of 70"),
    "distilbert": ("DistilBertModel", "DistilBertConfig",
                   {"vocab_size": 1000, "dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128}, "words"),
    "dpt": ("DPTForDepthEstimation", "DPTConfig", {**_PICTURE, "num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3],
            "neck_hidden_sizes": [16, 16, 32, 32], "fusion_hidden_size": 32}, "picture"),
    "electra": ("ElectraModel", "ElectraConfig", {**_TEXT, "embedding_size": 32}, "words"),
    "ernie": ("ErnieModel", "ErnieConfig", _TEXT, "words"),
    "falcon": ("FalconForCausalLM", "FalconConfig", _TEXT, "words"),
    "funnel": ("FunnelBaseModel", "FunnelConfig",
               {"vocab_size": 1000, "d_model": 64, "n_head": 4, "d_head": 16, "d_inner": 128, "block_sizes": [1, 1]}, "words"),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", {**_GROUPED, "head_dim": 16}, "words"),
    "glpn": ("GLPNModel", "GLPNConfig", {"hidden_sizes": [16, 32, 80, 128], "depths": [1, 1, 1, 1]}, "picture"),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {"vocab_size": 1000, "n_embd": 64, "n_layer": 2, "n_head": 4}, "words"),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", _TEXT, "words"),
    "hubert": ("HubertModel", "HubertConfig", _WIDE, "sound"),
    "ibert": ("IBertModel", "IBertConfig", _TEXT, "words"),
    "layoutlm": ("LayoutLMModel", "LayoutLMConfig", _TEXT, "words"),
    "levit": ("LevitModel", "LevitConfig", {"image_size": 64, "hidden_sizes": [32, 64, 96], "depths": [1, 1, 1]}, "picture"),
    "llama": ("LlamaForCausalLM", "LlamaConfig", _GROUPED, "words"),
    "mistral": ("MistralForCausalLM", "MistralConfig", _GROUPED, "words"),
    "mobilebert": ("MobileBertModel", "MobileBertConfig",
                   {**_TEXT, "embedding_size": 32, "intra_bottleneck_size": 32, "true_hidden_size": 32}, "words"),
    "mobilenet_v1": ("MobileNetV1Model", "MobileNetV1Config", {"depth_multiplier": 0.25}, "picture"),
    "mobilevit": ("MobileViTModel", "MobileViTConfig", {}, "picture"),
    "mpnet": ("MPNetModel", "MPNetConfig", _TEXT, "words"),
    "nystromformer": ("NystromformerModel", "NystromformerConfig", {**_TEXT, "segment_means_seq_len": 32, "num_landmarks": 8}, "words"),
    "opt": ("OPTForCausalLM", "OPTConfig", {"vocab_size": 1000, "hidden_size": 64, "num_hidden_layers": 2,
            "num_attention_heads": 4, "ffn_dim": 128, "word_embed_proj_dim": 64}, "words"),
    "phi": ("PhiForCausalLM", "PhiConfig", _TEXT, "words"),
    "poolformer": ("PoolFormerModel", "PoolFormerConfig", _STAGES, "picture"),
    "pvt": ("PvtModel", "PvtConfig", {"image_size": 64, "hidden_sizes": [16, 32, 80, 128], "depths": [1, 1, 1, 1]}, "picture"),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", _GROUPED, "words"),
    "regnet": ("RegNetModel", "RegNetConfig", {"embedding_size": 16, **_STAGES}, "picture"),
    "rembert": ("RemBertModel", "RemBertConfig", {**_TEXT, "input_embedding_size": 32}, "words"),
    "resnet": ("ResNetModel", "ResNetConfig", {"embedding_size": 16, **_STAGES}, "picture"),
    "roberta": ("RobertaModel", "RobertaConfig", _TEXT, "words"),
    "roformer": ("RoFormerModel", "RoFormerConfig", _TEXT, "words"),
    "segformer": ("SegformerForSemanticSegmentation", "SegformerConfig", {"hidden_sizes": [16, 32, 64, 128]}, "picture"),
    "sew": ("SEWModel", "SEWConfig", _WIDE, "sound"),
    "squeezebert": ("SqueezeBertModel", "SqueezeBertConfig", {**_TEXT, "embedding_size": 64}, "words"),
    "swin": ("SwinModel", "SwinConfig", {"image_size": 64, "embed_dim": 32, "depths": [1, 1], "num_heads": [2, 4]}, "picture"),
    "t5_encoder": ("T5EncoderModel", "T5Config",
                   {"vocab_size": 1000, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4}, "words"),
    "upernet": ("UperNetForSemanticSegmentation", "UperNetConfig", {"hidden_size": 32, "auxiliary_channels": 16}, "picture"),
    "vit": ("ViTForImageClassification", "ViTConfig", _PICTURE, "picture"),
    "vit_mae": ("ViTMAEModel", "ViTMAEConfig", {**_PICTURE, "mask_ratio": 0.0}, "picture"),
    "wav2vec2": ("Wav2Vec2Model", "Wav2Vec2Config", _WIDE, "sound"),
    "whisper_encoder": ("WhisperModel", "WhisperConfig", {**_SPEECH, "max_source_positions": 100}, "spectrogram"),
    "audio_transformer": ("ASTModel", "ASTConfig", {**_WIDE, "max_length": 64, "num_mel_bins": 32}, "frames"),
    "bart": ("BartModel", "BartConfig", _PAIRS, "pairs"),
    "marian": ("MarianMTModel", "MarianConfig", {**_PAIRS, "pad_token_id": 0}, "pairs"),
    "t5": ("T5ForConditionalGeneration", "T5Config",
                {"vocab_size": 1000, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4}, "pairs"),
    "beit": ("BeitForSemanticSegmentation", "BeitConfig",
                {**_PICTURE, "num_hidden_layers": 4, "out_indices": [1, 2, 3, 4]}, "picture"),
    "bigbird": ("BigBirdModel", "BigBirdConfig", {**_TEXT, "attention_type": "original_full"}, "words"),
    "clip": ("CLIPModel", "CLIPConfig", {"text_config": {**_TEXT}, "vision_config": {**_PICTURE}}, "words and picture"),
    "siglip": ("SiglipVisionModel", "SiglipVisionConfig", _PICTURE, "picture"),
    "codegen": ("CodeGenForCausalLM", "CodeGenConfig",
                {"vocab_size": 1000, "n_embd": 64, "n_layer": 2, "n_head": 4, "rotary_dim": 8}, "words"),
    "gptj": ("GPTJForCausalLM", "GPTJConfig",
                {"vocab_size": 1000, "n_embd": 64, "n_layer": 2, "n_head": 4, "rotary_dim": 8}, "words"),
    "gpt_neo": ("GPTNeoForCausalLM", "GPTNeoConfig",
                {"vocab_size": 1000, "hidden_size": 64, "num_layers": 2, "num_heads": 4,
                 "attention_types": [[["global", "local"], 1]], "window_size": 8}, "words"),
    "detr": ("DetrForObjectDetection", "DetrConfig",
                _DETR, "picture"),
    "rt_detr": ("RTDetrForObjectDetection", "RTDetrConfig",
                {"d_model": 64, "encoder_hidden_dim": 64, "encoder_attention_heads": 4, "encoder_ffn_dim": 128,
                 "decoder_attention_heads": 4, "decoder_ffn_dim": 128, "decoder_layers": 2, "num_queries": 10, "encoder_in_channels": [64, 96, 128], "decoder_in_channels": [64, 64, 64], "num_denoising": 0}, "picture"),
    "deformable_detr": ("DeformableDetrForObjectDetection", "DeformableDetrConfig",
                _DETR, "picture"),
    "maskformer_swin": ("MaskFormerSwinModel", "MaskFormerSwinConfig",
                {"image_size": 64, "embed_dim": 32, "depths": [1, 1], "num_heads": [2, 4]}, "picture"),
    "efficientnet": ("EfficientNetModel", "EfficientNetConfig",
                {"width_coefficient": .5, "depth_coefficient": .3, "hidden_dim": 1280//2}, "picture"),
    "focalnet": ("FocalNetModel", "FocalNetConfig",
                {"image_size": 64, "embed_dim": 32, "depths": [1, 1], "focal_levels": [2, 2], "focal_windows": [3,
                 3]}, "picture"),
    "mamba": ("MambaForCausalLM", "MambaConfig",
                {"vocab_size": 1000, "hidden_size": 64, "num_hidden_layers": 2, "state_size": 8}, "words"),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", {**_GROUPED, "head_dim": 16}, "words"),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig", {**_GROUPED, "head_dim": 16}, "words"),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", {**_GROUPED, "head_dim": 16}, "words"),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", {**_GROUPED, "num_local_experts": 4}, "words"),
    "olmo": ("OlmoForCausalLM", "OlmoConfig", _GROUPED, "words"),
    "stablelm": ("StableLmForCausalLM", "StableLmConfig", _GROUPED, "words"),
    "starcoder2": ("Starcoder2ForCausalLM", "Starcoder2Config", _GROUPED, "words"),
    "cohere": ("CohereForCausalLM", "CohereConfig", _GROUPED, "words"),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", {**_GROUPED, "pad_token_id": 0}, "words"),
    "modernbert": ("ModernBertModel", "ModernBertConfig", _TEXT, "words"),
    "xlnet": ("XLNetModel", "XLNetConfig", {"vocab_size": 1000, "d_model": 64, "n_layer": 2, "n_head": 4, "d_inner": 128}, "words"),
    "xlm": ("XLMModel", "XLMConfig", {"vocab_size": 1000, "emb_dim": 64, "n_layers": 2, "n_heads": 4}, "words"),
    "mpt": ("MptForCausalLM", "MptConfig", {"vocab_size": 1000, "d_model": 64, "n_layers": 2, "n_heads": 4}, "words"),
    "esm": ("EsmModel", "EsmConfig",
                {**_TEXT, "position_embedding_type": "rotary", "mask_token_id": 4, "pad_token_id": 0}, "words"),
    "perceiver": ("PerceiverModel", "PerceiverConfig",
                {"num_latents": 16, "d_latents": 64, "d_model": 64, "num_blocks": 1, "num_self_attends_per_block": 2,
                 "num_self_attention_heads": 4, "num_cross_attention_heads": 4}, "values"),
    "patchtst": ("PatchTSTModel", "PatchTSTConfig",
                {"context_length": 64, "d_model": 32, "ffn_dim": 64, "num_attention_heads": 4,
                 "num_input_channels": 3, "patch_length": 8, "patch_stride": 8}, "series"),
    "videomae": ("VideoMAEModel", "VideoMAEConfig", {**_WIDE, "image_size": 32, "num_frames": 4}, "film"),
    "timesformer": ("TimesformerModel", "TimesformerConfig", {**_WIDE, "image_size": 32, "num_frames": 4}, "film"),
    "vivit": ("VivitModel", "VivitConfig", {**_WIDE, "image_size": 32, "num_frames": 4}, "film"),
    "wavlm": ("WavLMModel", "WavLMConfig", _WIDE, "sound"),
    "unispeech_sat": ("UniSpeechSatModel", "UniSpeechSatConfig", _WIDE, "sound"),
    "data2vec_audio": ("Data2VecAudioModel", "Data2VecAudioConfig", _WIDE, "sound"),
    "whisper": ("WhisperModel", "WhisperConfig",
                {**_SPEECH, "vocab_size": 1000, "max_source_positions": 100, "pad_token_id": 0, "bos_token_id": 1,
                 "eos_token_id": 2, "decoder_start_token_id": 1}, "spectrogram and words"),
    "moonshine": ("MoonshineModel", "MoonshineConfig",
                {"vocab_size": 1000, "hidden_size": 64, "intermediate_size": 128, "encoder_num_hidden_layers": 2,
                 "decoder_num_hidden_layers": 2, "encoder_num_attention_heads": 4, "decoder_num_attention_heads": 4}, "sound and words"),
    "layoutlmv3": ("LayoutLMv3Model", "LayoutLMv3Config",
                {**_TEXT, "input_size": 64, "visual_embed": False, "coordinate_size": 10, "shape_size": 12}, "words"),
    "swin2sr": ("Swin2SRForImageSuperResolution", "Swin2SRConfig",
                {"image_size": 32, "embed_dim": 32, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4}, "picture of 32"),
    "hiera": ("HieraModel", "HieraConfig", {"embed_dim": 32, "image_size": [64, 64], "depths": [1, 1, 1, 1]}, "picture"),
    "swinv2": ("Swinv2Model", "Swinv2Config",
                {"image_size": 64, "embed_dim": 32, "depths": [1, 1], "num_heads": [2, 4], "window_size": 4}, "picture"),
    "yolos": ("YolosModel", "YolosConfig", {**_WIDE, "image_size": [64, 64]}, "picture"),
}


def inputs_of(kind, count, generator):
    import torch

    def words(length):
        return torch.randint(5, 1000, (count, length), generator=generator)

    def values(*shape):
        return torch.randn(count, *shape, generator=generator)

    if kind.endswith("words") and " and " not in kind:
        made = {"input_ids": words(32)}
        if kind.startswith("masked"):
            mask = torch.ones(count, 32, dtype=torch.int64)
            mask[:, 24:] = 0
            made["attention_mask"] = mask
        return made
    if kind.startswith("picture"):
        size = int(kind.rpartition(" ")[2]) if " " in kind else 64
        return {"pixel_values": values(3, size, size)}
    makers = {
        "sound": lambda: {"input_values": values(4000)},
        "spectrogram": lambda: {"input_features": values(80, 200)},
        "frames": lambda: {"input_values": values(64, 32)},
        "series": lambda: {"past_values": values(64, 3)},
        "values": lambda: {"inputs": values(24, 64)},
        "film": lambda: {"pixel_values": values(4, 3, 32, 32)},
        "pairs": lambda: {"input_ids": words(32), "decoder_input_ids": words(16)},
        "words and picture": lambda: {"input_ids": words(16), "pixel_values": values(3, 64, 64)},
        "spectrogram and words": lambda: {"input_features": values(80, 200), "decoder_input_ids": words(16)},
        "sound and words": lambda: {"input_values": values(8000), "decoder_input_ids": words(16)},
    }
    return makers[kind]()


def networks():
    """name -> what makes (module in eval mode, count -> inputs by name)."""
    found = {f"torchvision/{name}": name for name in TORCHVISION.split()}
    found.update({f"timm/{name}": name for name in TIMM.split()})
    found.update({f"transformers/{name}": name for name in TRANSFORMERS})
    return found


def make_torchvision(name):
    """A network, or the backbone of a detector: NAME.backbone."""
    import torchvision
    own, _, part = name.partition(".")
    more = {"aux_logits": False, "init_weights": False} if own in ("googlenet", "inception_v3") else {}
    if part or own in SEGMENTATION:
        more = {"weights_backbone": None}
    module = torchvision.models.get_model(own, num_classes=100, **more)
    size = 224 if own in ("maxvit_t", "vit_b_32", "mvit_v2_s") else PIXELS
    shape = (3, size, size) if own not in VIDEO else (3, 16, size, size) if "mvit" in own else (3, 8, 64, 64)
    return (getattr(module, part) if part else module), shape


def takes(module, shape):
    """Windows of some networks divide only some sizes."""
    import torch
    try:
        with torch.no_grad():
            module.eval()(torch.zeros(1, *shape))
    except (AssertionError, RuntimeError):
        return False
    return True


def make(name, generator):
    import torch
    source, _, own = name.partition("/")
    if source == "transformers":
        import transformers
        kind, config, sizes, inputs = TRANSFORMERS[own]
        made = getattr(transformers, config)(**sizes)
        made.use_cache = False  # what a cache holds is no output of a file
        module = getattr(transformers, kind)(made)
        module = module.encoder if own == "whisper_encoder" else module
        return module.eval(), lambda count: inputs_of(inputs, count, generator)
    if source == "timm":
        import timm
        module = timm.create_model(own, num_classes=100)
        shape = module.default_cfg["input_size"]
        if not module.default_cfg.get("fixed_input_size", False) and takes(module, (3, PIXELS, PIXELS)):
            shape = (3, PIXELS, PIXELS)
    else:
        module, shape = make_torchvision(own)
    picture = next(iter(inspect.signature(module.forward).parameters))
    return module.eval(), lambda count: {picture: torch.randn(count, *shape, generator=generator)}


# --- the doors ---

def write_onnx(module, inputs, path):
    import onnx
    import torch
    names = list(inputs)
    try:
        torch.onnx.export(module, (), path, kwargs=inputs, input_names=names, dynamo=False, opset_version=17,
                          dynamic_axes={name: {0: "N"} for name in names})
        # It makes inputs of defaults that are numbers (logits_to_keep), and traces another branch for them.
        is_whole = [i.name for i in onnx.load(path, load_external_data=False).graph.input] == names
    except Exception:
        is_whole = False
    if not is_whole:  # the newer exporter may do better
        torch.onnx.export(module, (), path, kwargs=inputs, input_names=names, dynamo=True, opset_version=18,
                          external_data=False, verbose=False)


def write_program(module, inputs, path):
    import torch
    shapes = {name: {0: torch.export.Dim.AUTO} for name in inputs}
    try:
        program = torch.export.export(module, (), inputs, dynamic_shapes=shapes)
    except Exception:  # a network that takes one batch only
        program = torch.export.export(module, (), inputs)
    torch.export.save(program, path)


def write_trace(module, inputs, path):
    import tare_export
    tare_export.export(module, (), path, kwargs=inputs)


WRITERS = {"trace": write_trace, "pt2": write_program, "onnx": write_onnx}


# --- one network ---

class Failed(Exception):
    """A command of tare that did not do what was asked."""


def run(tare, *arguments):
    done = subprocess.run([tare, *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS_OF_A_NETWORK,
                          env=dict(os.environ, LC_ALL="C"), check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Failed(f"{arguments[0]}: {said[0] if said else done.returncode}")
    return done.stdout


def arrays(path):
    import numpy as np
    with np.load(path) as file:
        return [file[name] for name in file.files]


def first_like(expected, found):
    """Of the outputs the one that is compared: the first of torch's, wherever it stands."""
    return next((x for x in found if x.shape == expected.shape and x.dtype.kind == "f"), None)


def quality(expected, found):
    import numpy as np
    y = first_like(expected, found)
    if y is None:
        raise Failed(f"no output has the shape {list(expected.shape)}")
    noise = float(np.square(expected.astype(np.float64) - y).sum())
    signal = float(np.square(expected, dtype=np.float64).sum())
    sqnr = 10 * np.log10(signal / noise) if noise > 0 and signal > 0 else None
    return float(np.abs(expected - y).max() / max(np.abs(expected).max(), 1e-30)), sqnr


def time_in_references(tare, model, inputs, batch):
    """The share of the time of a run in steps that call an operator's reference: altogether, and of the worst operators."""
    layers = json.loads(run(tare, "bench", model, "--input", inputs, "--batch", batch, "--seconds", 1, "--layers", "--json"))
    layers = layers["layers"]
    if not layers:  # without a plan every operator calls its reference
        return {"share": 1.0, "worst": {}}
    total = sum(layer["median_ms"] for layer in layers) or 1
    slow = {}
    for layer in layers:
        if layer["kind"] == "call":
            slow[layer.get("op", "?")] = slow.get(layer.get("op", "?"), 0) + layer["median_ms"]
    worst = sorted(slow.items(), key=lambda item: -item[1])[:4]
    return {"share": round(sum(slow.values()) / total, 4),
            "worst": {op: round(ms / total, 4) for op, ms in worst if ms > 0.002 * total}}


def times_of(tare, model, int8, inputs, seconds):
    """Both forms in turns, of one sample, or of a batch where the network takes no other, and the time in references of each."""
    for batch in (1, EXAMPLES):
        try:
            times = json.loads(run(tare, "bench", int8, "--against", model, "--input", inputs, "--batch", batch,
                                   "--seconds", seconds, "--json"))
            break
        except Failed:
            if batch == EXAMPLES:
                raise
    return {"batch": batch, "ms": [times["against"]["median_ms"], times["model"]["median_ms"]],
            "references": [time_in_references(tare, form, inputs, batch) for form in (model, int8)]}


def measure(tare, door, model, folder, expected, seconds):
    if door == "trace" and not model.exists():  # the exporter fell back to a program of torch.export
        return {**measure(tare, "pt2", model.with_suffix(".pt2"), folder, expected, seconds), "fell_back": True}
    inputs, calibration, int8 = folder / "inputs.npz", folder / "calibration.npz", folder / "int8.safetensors"
    run(tare, "run", model, "--input", inputs, "--batch", EXAMPLES, "-o", folder / "float.npz")
    found = {"error": quality(expected, arrays(folder / "float.npz"))[0]}
    begin = time.monotonic()
    try:
        run(tare, "quantize", model, *QUANTIZE[door], "--calibrate", calibration, "--batch", EXAMPLES, "--no-check", "-o", int8,
            "--report", folder)  # all samples calibrate, as the peers'
        found["quantize_s"] = time.monotonic() - begin
        run(tare, "run", int8, "--input", inputs, "--batch", EXAMPLES, "-o", folder / "int8.npz")
        found["sqnr"] = quality(expected, arrays(folder / "int8.npz"))[1]
        found["coverage"] = json.loads((folder / "coverage.json").read_text())
        if seconds > 0:
            found.update(times_of(tare, model, int8, inputs, seconds))
    except Failed as e:
        found["refused"] = str(e)
    return found


def in_batches(call, inputs):
    """The outputs of call(batch), joined over the batches of inputs."""
    import numpy as np
    count = len(next(iter(inputs.values())))
    made = [call({n: x[at:at + EXAMPLES] for n, x in inputs.items()}) for at in range(0, count, EXAMPLES)]
    return [np.concatenate(parts) for parts in zip(*made)]


def measure_torch(module, calibration, tests, expected, seconds):
    """torch's FX mode with its default mapping for x86, one thread."""
    import torch
    from torch.ao.quantization import get_default_qconfig_mapping
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx
    torch.backends.quantized.engine = "x86"
    times = {}
    with torch.no_grad():
        prepared = prepare_fx(module, get_default_qconfig_mapping("x86"), tuple(x[:EXAMPLES] for x in calibration.values()))
        for at in range(0, CALIBRATION, EXAMPLES):
            prepared(*(x[at:at + EXAMPLES] for x in calibration.values()))
        int8 = convert_fx(prepared)
        outputs = in_batches(lambda batch: [first_tensor(int8(*batch.values()))], tests)
        for form, network in (("float", module), ("int8", int8)):
            one, found, end = [x[:1] for x in tests.values()], [], time.monotonic() + seconds
            while time.monotonic() < end or len(found) < 3:
                begin = time.perf_counter()
                network(*one)
                found.append(time.perf_counter() - begin)
            times[f"{form}_ms"] = 1000 * sorted(found)[len(found) // 2]
    return {"sqnr": quality(expected, outputs)[1], **times}


def first_tensor(outputs):
    """The output that is compared."""
    import tare_export
    return next(t for t in tare_export.flatten(outputs) if t.is_floating_point())


def measure_peer(folder, model, expected, seconds):
    """ONNX Runtime: static quantization as its guide has it, batch of 1, one thread."""
    import numpy as np
    import onnxruntime as ort
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with np.load(folder / "calibration.npz") as file:
        samples = dict(file)

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.at = 0

        def get_next(self):
            self.at += EXAMPLES
            return {n: x[self.at - EXAMPLES:self.at] for n, x in samples.items()} if self.at <= CALIBRATION else None

    ready, int8 = str(folder / "ready.onnx"), str(folder / "peer.onnx")
    try:
        quant_pre_process(str(model), ready)
    except Exception:
        ready = str(model)
    quantization.quantize_static(ready, int8, Reader(), per_channel=True, activation_type=quantization.QuantType.QUInt8,
                                 weight_type=quantization.QuantType.QInt8)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    found = {}
    with np.load(folder / "inputs.npz") as file:
        inputs = dict(file)
    for form, path in (("float", str(model)), ("int8", int8)):
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        outputs = in_batches(lambda batch, session=session: session.run(None, batch), inputs)
        if form == "int8":
            found["sqnr"] = quality(expected, outputs)[1]
        one = {n: x[:1] for n, x in inputs.items()}
        try:
            session.run(None, one)
        except Exception:
            one = {n: x[:EXAMPLES] for n, x in inputs.items()}
        times, end = [], time.monotonic() + seconds
        while time.monotonic() < end or len(times) < 3:
            begin = time.perf_counter()
            session.run(None, one)
            times.append(time.perf_counter() - begin)
        found[f"{form}_ms"] = 1000 * float(np.median(times))
    return found


def one_network(options, name):
    """What became of one network. Runs in a process of its own."""
    import numpy as np
    import torch

    import export_models
    torch.set_num_threads(1)
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    module, inputs = make(name, generator)
    calibration, examples, tests = inputs(CALIBRATION), inputs(EXAMPLES), inputs(TESTS)
    export_models.settle(module, [calibration])
    module.eval()
    with torch.no_grad():
        expected = in_batches(lambda batch: [first_tensor(module(**batch))], tests)[0]
    results = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        os.chdir(folder)  # exporters and quantizers leave files where they run
        np.savez(folder / "inputs.npz", **{n: t.numpy() for n, t in tests.items()})
        np.savez(folder / "calibration.npz", **{n: t.numpy() for n, t in calibration.items()})
        for door in options.door:
            model = folder / f"{door}{DOORS[door]}"
            try:
                with torch.no_grad():
                    WRITERS[door](module, examples, str(model))
                results[door] = measure(options.tare, door, model, folder, expected, options.seconds)
            except Failed as e:
                results[door] = {"refused": str(e)}
            except Exception as e:  # an exporter lets through whatever it meets
                results[door] = {"not_written": said_by(e)}
            if door == "onnx" and options.peer and model.exists():
                try:
                    results["peer"] = measure_peer(folder, model, expected, options.seconds)
                except Exception as e:
                    results["peer"] = {"refused": said_by(e)}
        if options.peer and name.startswith("torchvision/"):
            try:
                results["torch"] = measure_torch(module, calibration, tests, expected, options.seconds)
            except Exception as e:
                results["torch"] = {"refused": said_by(e)}
    return results


def said_by(error):
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"


def load():
    """Loads once what every network's process needs; none of it may start a thread, for that does not outlive a fork."""
    import export_models  # noqa: F401
    import tare_export  # noqa: F401
    import timm  # noqa: F401
    import torch
    import torchvision  # noqa: F401
    import transformers  # noqa: F401
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)


def in_own_process(options, name, log):
    """one_network in a fork of this process, which is ended when its time is up."""
    with tempfile.NamedTemporaryFile() as answer:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.setsid()  # with what it starts
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
                pathlib.Path(answer.name).write_text(json.dumps(one_network(options, name)))
                status = 0
            except BaseException as e:
                pathlib.Path(answer.name).write_text(json.dumps({door: {"not_written": said_by(e)} for door in options.door}))
            finally:
                os._exit(status)
        end = time.monotonic() + SECONDS_OF_A_NETWORK
        while os.waitpid(child, os.WNOHANG)[0] == 0:
            if time.monotonic() > end:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                break
            time.sleep(0.1)
        text = pathlib.Path(answer.name).read_text()
    if text:
        return json.loads(text)
    late = time.monotonic() > end
    said = f"took more than {SECONDS_OF_A_NETWORK} s" if late else "the exporter's process ended early"
    return {door: {"refused" if late else "not_written": said} for door in options.door}


# --- all of them ---

def line(name, door, m):
    said = m.get("refused") or m.get("not_written")
    if "error" not in m:
        return f"{name} {door}: {said}"
    text = f"{name} {door}: float error {m['error']:.1e}"
    if said:
        return f"{text}; {said}"
    c = m["coverage"]
    sqnr = f"{m['sqnr']:.1f} dB" if m["sqnr"] is not None else "equal"
    times = f", {m['ms'][0]:.3g} and {m['ms'][1]:.3g} ms" if "ms" in m else ""
    return (f"{text}, SQNR {sqnr}, {c['quantized_operators']} of {c['operators']} operators, {c['float_islands']} islands"
            f"{times}")


def in_turns(known):
    """The networks of the sources in turns, spread over each list: breadth comes first."""
    lists = [[name for name in known if name.startswith(f"{source}/")] for source in ("timm", "transformers", "torchvision")]
    places = [((at + 0.5) / len(names), name) for names in lists for at, name in enumerate(names)]
    spread = [name for _, name in sorted(places)]
    return [name for first in range(4) for name in spread[first::4]]


def run_all(options):
    folder = pathlib.Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "results.json"
    results = json.loads(kept.read_text()) if kept.exists() else {}
    known = networks()
    unknown = [name for name in options.names if name not in known]
    if unknown:
        sys.exit(f"no such network: {', '.join(unknown)}; see {sys.argv[0]} list")
    load()
    options.tare = str(pathlib.Path(options.tare).resolve())
    for name in options.names or in_turns(known):
        if options.missing and all(door in results.get(name, {}) for door in options.door):
            continue
        begin = time.monotonic()
        with open(folder / "log.txt", "a", encoding="utf-8") as log:
            found = in_own_process(options, name, log)
        results[name] = {**results.get(name, {}), **found}
        kept.write_text(json.dumps(results, indent=1) + "\n")
        for door in options.door:
            print(line(name, door, found[door]), flush=True)
        for peer in ("peer", "torch"):
            if peer in found:
                print(f"{name} {peer}: {found[peer]}", flush=True)
        print(f"{name} took {time.monotonic() - begin:.0f} s", flush=True)


# --- the table ---

EARLIER = " (earlier)"  # a row of a run before the one that the results are of
BEGIN, END = "<!-- zoo: begin, written by tools/zoo.py -->", "<!-- zoo: end -->"


def cells(m):
    if m is None:
        return ["", "", "", ""]
    if "error" not in m or "refused" in m:
        said = (m.get("refused") or m.get("not_written") or "").replace("|", "/")
        said = re.sub(r"\x1b\[\d+m|(?<!\S)/\S*/", "", said)  # colours, and folders of the machine
        return [f"{m['error']:.0e}" if "error" in m else "no", said[:80], "", ""]
    c = m["coverage"]
    share = 100 * c["quantized_macs"] / c["macs"] if c["macs"] else 0
    return [f"{m['error']:.0e}", f"{m['sqnr']:.1f}" if m["sqnr"] is not None else "equal",
            f"{share:.0f} %, {c['float_islands']}", f"{m['ms'][0] / m['ms'][1]:.2f}" if "ms" in m else ""]


def references_of(found, form):
    """The greatest share over the doors; form: 0 in float, 1 in integers."""
    shares = [found[door]["references"][form]["share"] for door in DOORS if isinstance(found.get(door, {}).get("references"), list)]
    return max(shares, default=None)


def references_cell(found):
    shares = [references_of(found, form) for form in (0, 1)]
    return "" if None in shares else ", ".join(f"{100 * share:.1f} %" for share in shares)


def peer_cells(m):
    if m is None or "refused" in m:
        return ["", ""]
    return [f"{m['sqnr']:.1f}" if m["sqnr"] is not None else "equal", f"{m['float_ms'] / m['int8_ms']:.2f}"]


def earlier_rows(table):
    """name -> its row of a table that was written before, marked."""
    cells = [line.strip()[2:-2].split(" | ") for line in table.splitlines() if line.startswith("| ") and "/" in line.split("|")[1]]
    names = [row[0].removesuffix(EARLIER) for row in cells]
    return {name: [name + EARLIER, *row[1:]] for name, row in zip(names, cells)}


def write_table(options):
    results = json.loads((pathlib.Path(options.folder) / "results.json").read_text())
    head = ["network"]
    for door in DOORS:
        head += [f"{door}: float error", "SQNR", "in integers, islands", "int8 over float"]
    head += ["time in references: float, int8", "ONNX Runtime: SQNR", "int8 over float", "torch: SQNR", "int8 over float"]
    before, rest = options.docs.read_text().split(BEGIN)
    table, after = rest.split(END)
    rows = earlier_rows(table)
    for name in results:
        found = [name]
        for door in DOORS:
            found += cells(results[name].get(door))
        found += [references_cell(results[name]), *peer_cells(results[name].get("peer")), *peer_cells(results[name].get("torch"))]
        rows[name] = found
    lines = [" | ".join(row) for row in (head, ["---"] * len(head), *(rows[name] for name in sorted(rows)))]
    lines = "\n".join(f"| {line} |" for line in lines)
    options.docs.write_text(f"{before}{BEGIN}\n{summary(results)}\n\n{lines}\n{END}{after}")


def summary(results):
    said = []
    for door in DOORS:
        tried = [r[door] for r in results.values() if door in r]
        runs = [m for m in tried if "error" in m]
        whole = [m for m in runs if "refused" not in m]
        faster = [m for m in whole if "ms" in m and m["ms"][1] <= m["ms"][0]]
        close = [r[door]["error"] < 1e-4 for r in results.values() if "error" in r.get(door, {})]
        said.append(f"- `{door}`: of {len(tried)} networks {len(runs)} run ({sum(close)} with a float error below 1e-4) and {len(whole)} "
                    f"quantize; int8 is no slower than float in {len(faster)}; {beside_peers(results, door)}.")
    for form, words in enumerate(("float", "integers")):
        shares = [share for share in (references_of(r, form) for r in results.values()) if share is not None]
        said.append(f"- Of {len(shares)} networks in {words}, {sum(share < 0.02 for share in shares)} spend less than 2 % of the time in "
                    f"references through every door.")
    return "\n".join(said)


def beside_peers(results, door):
    """In how many networks the SQNR is at most 1 dB below the better of the peers'."""
    pairs = []
    for r in results.values():
        peers = [r[peer]["sqnr"] for peer in ("peer", "torch") if r.get(peer, {}).get("sqnr") is not None]
        if peers and "sqnr" in r.get(door, {}):
            pairs.append((r[door]["sqnr"], max(peers)))
    near = [own is None or own >= best - 1 for own, best in pairs]
    return f"SQNR is within 1 dB of the better peer, or above it, in {sum(near)} of {len(near)}"


def main():
    parser = argparse.ArgumentParser(description="Send many networks through every door.")
    parser.add_argument("action", choices=["list", "run", "table"])
    parser.add_argument("folder", nargs="?", default="build/zoo", help="where results.json is kept")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    parser.add_argument("--door", nargs="+", choices=DOORS, default=list(DOORS))
    parser.add_argument("--missing", action="store_true", help="only networks that results.json does not have")
    parser.add_argument("--peer", action="store_true", help="ONNX Runtime beside it")
    parser.add_argument("--tare", default="build/bin/tare", help="the program")
    parser.add_argument("--seconds", type=int, default=1, help="for each pair of times; 0: none are taken")
    parser.add_argument("--docs", type=pathlib.Path, metavar="FILE",
                        default=pathlib.Path(__file__).resolve().parents[1] / "docs" / "models.md")
    options = parser.parse_intermixed_args()
    if options.action == "list":
        print("\n".join(networks()))
    elif options.action == "run":
        run_all(options)
    else:
        write_table(options)


if __name__ == "__main__":
    main()
