#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The networks of zoo.py: torchvision's, timm's and transformers', with random weights.

`make` builds one by name, SOURCE/NAME; `networks` lists the names. To add a network, add its name to TORCHVISION or TIMM, or a
row to TRANSFORMERS.
"""
import inspect

PIXELS = 160  # of pictures, where an architecture takes any size

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
efficientvit_l1 csatv2 mobilenet_edgetpu_v2_xs tf_efficientnet_es resnet18d densenetblur121d
cspnext_tiny efficientvim_m1 iformer_t lowformer_b0 cpubone_nano swinv2_cr_tiny_224 vit_relpos_small_patch16_224 inception_v4
sam2_hiera_tiny vit_small_patch16_dinov3 convnext_zepto_rms eca_botnext26ts_256 haloregnetz_b swin_s3_tiny_224
vit_wee_patch16_reg1_gap_256 resnetv2_50d_gn fastvit_mci0 naflexvit_base_patch16_gap"""

# A transformer: model's class (with a part of it: CLASS.PART), configuration's, its sizes (small: these are shapes, not sizes, that
# are tried), inputs (of inputs_of).
_WIDE = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
_TEXT = {"vocab_size": 1000, **_WIDE}
_GROUPED = {**_TEXT, "num_key_value_heads": 2}
_PICTURE = {**_WIDE, "image_size": 64}
_SPEECH = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
           "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}
_PAIRS = {"vocab_size": 1000, **_SPEECH}
_DETR = {**_SPEECH, "num_queries": 10, "use_timm_backbone": True, "backbone": "resnet18", "use_pretrained_backbone": False,
         "backbone_config": None}
_T5 = {"vocab_size": 1000, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4}
_EXPERTS = {**_GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2}
_SWIN = {"image_size": 64, "embed_dim": 32, "depths": [1, 1, 1, 1], "num_heads": [2, 2, 4, 4], "window_size": 4}
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
    "nystromformer": ("NystromformerModel", "NystromformerConfig", {**_TEXT, "segment_means_seq_len": 32, "num_landmarks": 32}, "words"),
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
    "vit_mae": ("ViTMAEModel", "ViTMAEConfig", {**_PICTURE, "mask_ratio": 0.0}, {"pixel_values": (3, 64, 64), "noise": (16,)}),
    "wav2vec2": ("Wav2Vec2Model", "Wav2Vec2Config", _WIDE, "sound"),
    "whisper_encoder": ("WhisperModel.encoder", "WhisperConfig", {**_SPEECH, "max_source_positions": 100}, "spectrogram"),
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
    "modernbert": ("ModernBertModel", "ModernBertConfig", {**_TEXT, "pad_token_id": 0}, "words"),
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
    "encodec_encoder": ("EncodecModel.encoder", "EncodecConfig", {"num_filters": 8, "hidden_size": 32, "codebook_dim": 32,
        "upsampling_ratios": [4, 4, 2, 2]}, {"hidden_states": (1, 1600)}),
    "encodec_decoder": ("EncodecModel.decoder", "EncodecConfig", {"num_filters": 8, "hidden_size": 32, "codebook_dim": 32,
        "upsampling_ratios": [4, 4, 2, 2]}, {"hidden_states": (32, 25)}),
    "dac_encoder": ("DacModel.encoder", "DacConfig", {"encoder_hidden_size": 16, "decoder_hidden_size": 128,
        "downsampling_ratios": [2, 4, 4], "upsampling_ratios": [4, 4, 2]}, {"hidden_state": (1, 1600)}),
    "dac_decoder": ("DacModel.decoder", "DacConfig", {"encoder_hidden_size": 16, "decoder_hidden_size": 128,
        "downsampling_ratios": [2, 4, 4], "upsampling_ratios": [4, 4, 2]}, {"hidden_state": (128, 25)}),
    "univnet": ("UnivNetModel", "UnivNetConfig", {"model_in_channels": 16, "model_hidden_channels": 16, "num_mel_bins": 20,
        "kernel_predictor_hidden_channels": 16, "resblock_stride_sizes": [4, 4, 2], "initializer_range": 0.1}, {"input_features": (16, 20),
        "noise_sequence": (16, 16)}),
    "wav2vec2_bert": ("Wav2Vec2BertModel", "Wav2Vec2BertConfig", {**_WIDE, "feature_projection_input_dim": 32},
        {"input_features": (50, 32)}),
    "wav2vec2_conformer": ("Wav2Vec2ConformerModel", "Wav2Vec2ConformerConfig", _WIDE, "sound"),
    "unispeech": ("UniSpeechModel", "UniSpeechConfig", _WIDE, "sound"),
    "sew_d": ("SEWDModel", "SEWDConfig", _WIDE, "sound"),
    "speech_to_text": ("Speech2TextModel", "Speech2TextConfig", {**_PAIRS, "max_source_positions": 100,
        "input_feat_per_channel": 32, "conv_channels": 64}, {"input_features": (64, 32), "decoder_input_ids": 16}),
    "speecht5_hifigan": ("SpeechT5HifiGan", "SpeechT5HifiGanConfig", {"model_in_dim": 20, "upsample_initial_channel": 64, "initializer_range": 0.1},
        {"spectrogram": (16, 20)}),
    "parakeet": ("ParakeetEncoder", "ParakeetEncoderConfig", {**_WIDE, "num_mel_bins": 32, "subsampling_conv_channels": 16},
        {"input_features": (64, 32)}),
    "clap_audio": ("ClapAudioModel", "ClapAudioConfig", {"spec_size": 64, "num_mel_bins": 16, "patch_embeds_hidden_size": 32,
        "depths": [1, 1], "num_attention_heads": [2, 4], "hidden_size": 64, "window_size": 4, "patch_size": 4,
        "patch_stride": [4, 4]}, {"input_features": (1, 256, 16)}),
    "musicgen_decoder": ("MusicgenForCausalLM", "MusicgenDecoderConfig", {"vocab_size": 1000, "hidden_size": 64,
        "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 128, "num_codebooks": 1}, "words"),
    "voxtral_encoder": ("VoxtralEncoder", "VoxtralEncoderConfig", {**_WIDE, "max_source_positions": 100, "num_mel_bins": 32},
        {"input_features": (32, 200)}),
    "longformer": ("LongformerModel", "LongformerConfig", {**_TEXT, "attention_window": 8, "max_position_embeddings": 80},
        "words"),
    "bigbird_sparse": ("BigBirdModel", "BigBirdConfig", {**_TEXT, "attention_type": "block_sparse", "block_size": 4,
        "num_random_blocks": 1}, {"input_ids": 64}),
    "reformer": ("ReformerModel", "ReformerConfig", {"vocab_size": 1000, "hidden_size": 64, "num_attention_heads": 4,
        "attention_head_size": 16, "feed_forward_size": 128, "attn_layers": ["local", "local"], "axial_pos_shape": [8, 8],
        "axial_pos_embds_dim": [32, 32], "local_attn_chunk_length": 16, "is_decoder": False}, {"input_ids": 64}),
    "mt5": ("MT5ForConditionalGeneration", "MT5Config", _T5, "pairs"),
    "umt5": ("UMT5ForConditionalGeneration", "UMT5Config", _T5, "pairs"),
    "longt5": ("LongT5Model", "LongT5Config", {**_T5, "local_radius": 8}, "pairs"),
    "switch_transformers": ("SwitchTransformersModel", "SwitchTransformersConfig", {**_T5, "num_experts": 4}, "pairs"),
    "led": ("LEDModel", "LEDConfig", {**_PAIRS, "attention_window": 8, "max_encoder_position_embeddings": 64,
        "max_decoder_position_embeddings": 64}, "pairs"),
    "pegasus": ("PegasusModel", "PegasusConfig", _PAIRS, "pairs"),
    "pegasus_x": ("PegasusXModel", "PegasusXConfig", {**_PAIRS, "block_size": 8, "num_global_tokens": 4}, "pairs"),
    "prophetnet": ("ProphetNetModel", "ProphetNetConfig", {"vocab_size": 1000, "hidden_size": 64, "encoder_ffn_dim": 128,
        "num_encoder_layers": 2, "num_encoder_attention_heads": 4, "decoder_ffn_dim": 128, "num_decoder_layers": 2,
        "num_decoder_attention_heads": 4}, "pairs"),
    "fsmt": ("FSMTModel", "FSMTConfig", {**_SPEECH, "src_vocab_size": 1000, "tgt_vocab_size": 1000, "langs": ["de", "en"]},
        "pairs"),
    "m2m_100": ("M2M100Model", "M2M100Config", _PAIRS, "pairs"),
    "mbart": ("MBartModel", "MBartConfig", _PAIRS, "pairs"),
    "blenderbot": ("BlenderbotModel", "BlenderbotConfig", _PAIRS, "pairs"),
    "fnet": ("FNetModel", "FNetConfig", {"vocab_size": 1000, "hidden_size": 64, "num_hidden_layers": 2,
        "intermediate_size": 128}, "words"),
    "canine": ("CanineModel", "CanineConfig", {**_WIDE, "num_hash_buckets": 256, "local_transformer_stride": 16,
        "downsampling_rate": 4}, {"input_ids": 64}),
    "splinter": ("SplinterModel", "SplinterConfig", _TEXT, "words"),
    "megatron_bert": ("MegatronBertModel", "MegatronBertConfig", _TEXT, "words"),
    "nomic_bert": ("NomicBertModel", "NomicBertConfig", _TEXT, "words"),
    "eurobert": ("EuroBertModel", "EuroBertConfig", {**_GROUPED, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
        "mask_token_id": 3}, "words"),
    "luke": ("LukeModel", "LukeConfig", {**_TEXT, "entity_vocab_size": 100, "entity_emb_size": 32}, "words"),
    "tapas": ("TapasModel", "TapasConfig", _TEXT, "words"),
    "lilt": ("LiltModel", "LiltConfig", {**_TEXT, "hidden_size": 96, "channel_shrink_ratio": 2}, "words"),
    "ctrl": ("CTRLModel", "CTRLConfig", {"vocab_size": 1000, "n_embd": 64, "dff": 128, "n_layer": 2, "n_head": 4}, "words"),
    "openai_gpt": ("OpenAIGPTModel", "OpenAIGPTConfig", {"vocab_size": 1000, "n_embd": 64, "n_layer": 2, "n_head": 4},
        "words"),
    "gpt_bigcode": ("GPTBigCodeForCausalLM", "GPTBigCodeConfig", {"vocab_size": 1000, "n_embd": 64, "n_layer": 2,
        "n_head": 4}, "words"),
    "xglm": ("XGLMForCausalLM", "XGLMConfig", {"vocab_size": 1000, "d_model": 64, "ffn_dim": 128, "num_layers": 2,
        "attention_heads": 4}, "words"),
    "persimmon": ("PersimmonForCausalLM", "PersimmonConfig", _TEXT, "words"),
    "nemotron": ("NemotronForCausalLM", "NemotronConfig", {**_GROUPED, "head_dim": 16}, "words"),
    "mamba2": ("Mamba2ForCausalLM", "Mamba2Config", {"vocab_size": 1000, "hidden_size": 64, "num_hidden_layers": 2,
        "state_size": 16, "num_heads": 8, "head_dim": 16, "n_groups": 1, "chunk_size": 16}, "words"),
    "falcon_mamba": ("FalconMambaForCausalLM", "FalconMambaConfig", {"vocab_size": 1000, "hidden_size": 64,
        "num_hidden_layers": 2, "state_size": 8}, "words"),
    "rwkv": ("RwkvForCausalLM", "RwkvConfig", {"vocab_size": 1000, "hidden_size": 64, "num_hidden_layers": 2,
        "attention_hidden_size": 64, "intermediate_size": 128}, "words"),
    "recurrent_gemma": ("RecurrentGemmaForCausalLM", "RecurrentGemmaConfig", {**_GROUPED, "num_hidden_layers": 3,
        "lru_width": 64}, "words"),
    "jamba": ("JambaForCausalLM", "JambaConfig", {**_GROUPED, "num_experts": 2, "attn_layer_period": 2,
        "attn_layer_offset": 1, "expert_layer_period": 4, "expert_layer_offset": 3, "mamba_d_state": 8,
        "use_mamba_kernels": False}, "words"),
    "xlstm": ("xLSTMForCausalLM", "xLSTMConfig", {"vocab_size": 1000, "hidden_size": 64, "num_hidden_layers": 2,
        "num_heads": 4, "chunk_size": 16}, "words"),
    "lfm2": ("Lfm2ForCausalLM", "Lfm2Config", {**_GROUPED, "layer_types": ["conv", "full_attention"]}, "words"),
    "granite": ("GraniteForCausalLM", "GraniteConfig", _GROUPED, "words"),
    "dbrx": ("DbrxForCausalLM", "DbrxConfig", {"vocab_size": 1000, "d_model": 64, "n_heads": 4, "n_layers": 2,
        "attn_config": {"kv_n_heads": 2, "clip_qkv": 8.0, "rope_theta": 10000.0}, "ffn_config": {"ffn_hidden_size": 128,
        "moe_num_experts": 4, "moe_top_k": 2}}, "words"),
    "cohere2": ("Cohere2ForCausalLM", "Cohere2Config", {**_GROUPED, "pad_token_id": 0}, "words"),
    "deepseek_v3": ("DeepseekV3ForCausalLM", "DeepseekV3Config", {**_TEXT, "num_key_value_heads": 4, "n_routed_experts": 4,
        "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "moe_intermediate_size": 64, "q_lora_rank": 32,
        "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 16, "first_k_dense_replace": 1,
        "n_shared_experts": 1}, "words"),
    "olmo2": ("Olmo2ForCausalLM", "Olmo2Config", _GROUPED, "words"),
    "glm4": ("Glm4ForCausalLM", "Glm4Config", {**_GROUPED, "head_dim": 16, "pad_token_id": 0}, "words"),
    "diffllama": ("DiffLlamaForCausalLM", "DiffLlamaConfig", _GROUPED, "words"),
    "gpt_oss": ("GptOssForCausalLM", "GptOssConfig", {**_EXPERTS, "head_dim": 16, "pad_token_id": 0}, "words"),
    "qwen3_next": ("Qwen3NextForCausalLM", "Qwen3NextConfig", {**_GROUPED, "head_dim": 16, "num_experts": 4,
        "num_experts_per_tok": 2, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32,
        "linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
        "layer_types": ["linear_attention", "full_attention"]}, "words"),
    "bitnet": ("BitNetForCausalLM", "BitNetConfig", _GROUPED, "words"),
    "phimoe": ("PhimoeForCausalLM", "PhimoeConfig", _EXPERTS, "words"),
    "yoso": ("YosoModel", "YosoConfig", {**_TEXT, "use_expectation": True}, "words"),
    "sam_vision": ("SamVisionModel", "SamVisionConfig", {**_PICTURE, "initializer_range": 0.02, "patch_size": 8, "output_channels": 32, "mlp_dim": 128,
        "window_size": 4, "global_attn_indexes": [1]}, "picture"),
    "maskformer": ("MaskFormerForInstanceSegmentation", "MaskFormerConfig", {"fpn_feature_size": 32, "mask_feature_size": 32,
        "backbone_config": {"model_type": "swin", **_SWIN}, "decoder_config": {"model_type": "detr", **_SPEECH,
        "num_queries": 10}}, "picture"),
    "mask2former": ("Mask2FormerForUniversalSegmentation", "Mask2FormerConfig", {"feature_size": 32, "mask_feature_size": 32,
        "hidden_dim": 32, "encoder_feedforward_dim": 64, "dim_feedforward": 64, "encoder_layers": 2, "decoder_layers": 3,
        "num_attention_heads": 4, "num_queries": 10, "backbone_config": {"model_type": "swin", **_SWIN,
        "out_features": ["stage1", "stage2", "stage3", "stage4"]}}, "picture"),
    "conditional_detr": ("ConditionalDetrForObjectDetection", "ConditionalDetrConfig", _DETR, "picture"),
    "dab_detr": ("DabDetrForObjectDetection", "DabDetrConfig", {"hidden_size": 64, **_DETR}, "picture"),
    "table_transformer": ("TableTransformerForObjectDetection", "TableTransformerConfig", _DETR, "picture"),
    "d_fine": ("DFineForObjectDetection", "DFineConfig", {"d_model": 64, "encoder_hidden_dim": 64,
        "encoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_attention_heads": 4, "decoder_ffn_dim": 128,
        "decoder_layers": 2, "num_queries": 10, "num_denoising": 0, "encoder_in_channels": [64, 96, 128],
        "decoder_in_channels": [64, 64, 64]}, "picture"),
    "dinov2_registers": ("Dinov2WithRegistersModel", "Dinov2WithRegistersConfig", {**_WIDE, "image_size": 70},
        "picture of 70"),
    "dinov3_vit": ("DINOv3ViTModel", "DINOv3ViTConfig", _PICTURE, "picture"),
    "dinov3_convnext": ("DINOv3ConvNextModel", "DINOv3ConvNextConfig", _STAGES, "picture"),
    "siglip_model": ("SiglipModel", "SiglipConfig", {"text_config": _TEXT, "vision_config": _PICTURE}, "words and picture"),
    "clipseg": ("CLIPSegForImageSegmentation", "CLIPSegConfig", {"text_config": _TEXT, "vision_config": {**_PICTURE,
        "patch_size": 16, "num_hidden_layers": 4}, "extract_layers": [1, 2, 3], "reduce_dim": 32,
        "decoder_num_attention_heads": 4, "decoder_intermediate_size": 64, "projection_dim": 64}, "words and picture"),
    "owlvit": ("OwlViTForObjectDetection", "OwlViTConfig", {"text_config": {**_TEXT, "max_position_embeddings": 16},
        "vision_config": {**_PICTURE, "patch_size": 16}, "projection_dim": 64}, "words and picture"),
    "flava_image": ("FlavaImageModel", "FlavaImageConfig", _PICTURE, "picture"),
    "blip_vision": ("BlipVisionModel", "BlipVisionConfig", _PICTURE, "picture"),
    "blip": ("BlipModel", "BlipConfig", {"text_config": _TEXT, "vision_config": _PICTURE}, "words and picture"),
    "groupvit": ("GroupViTVisionModel", "GroupViTVisionConfig", {"hidden_size": 64, "intermediate_size": 128, "depths": [1, 1,
        1], "num_hidden_layers": 3, "num_group_tokens": [8, 4, 0], "num_output_groups": [8, 4, 0], "num_attention_heads": 4,
        "image_size": 64}, "picture"),
    "git": ("GitModel", "GitConfig", {**_TEXT, "vision_config": _PICTURE}, "words and picture"),
    "vilt": ("ViltModel", "ViltConfig", {**_TEXT, "image_size": 64, "patch_size": 16, "max_image_length": -1},
        "words and picture"),
    "aimv2": ("Aimv2VisionModel", "Aimv2VisionConfig", _PICTURE, "picture"),
    "ijepa": ("IJepaModel", "IJepaConfig", _PICTURE, "picture"),
    "vitdet": ("VitDetModel", "VitDetConfig", {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "image_size": 64, "pretrain_image_size": 64, "window_size": 4, "window_block_indices": [0],
        "use_relative_position_embeddings": True}, "picture"),
    "vitmatte": ("VitMatteForImageMatting", "VitMatteConfig", {"hidden_size": 64, "backbone_config": {"model_type": "vitdet",
        "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 64, "num_channels": 4,
        "out_features": ["stage2"]}, "batch_norm_eps": 1e-5, "convstream_hidden_sizes": [16, 32, 64],
        "fusion_hidden_sizes": [64, 32, 16, 8]}, {"pixel_values": (4, 64, 64)}),
    "vitpose": ("VitPoseForPoseEstimation", "VitPoseConfig", {"backbone_config": {"model_type": "vitpose_backbone", **_WIDE,
        "image_size": [64, 64], "patch_size": [16, 16], "out_indices": [2]}}, "picture"),
    "vjepa2": ("VJEPA2Model", "VJEPA2Config", {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "crop_size": 32, "patch_size": 16, "frames_per_clip": 4, "pred_hidden_size": 32, "pred_num_attention_heads": 4,
        "pred_num_hidden_layers": 1}, {"pixel_values_videos": (4, 3, 32, 32)}),
    "convnextv2": ("ConvNextV2Model", "ConvNextV2Config", _STAGES, "picture"),
    "textnet": ("TextNetModel", "TextNetConfig", {}, "picture"),
    "hgnet_v2": ("HGNetV2ForImageClassification", "HGNetV2Config", {}, "picture"),
    "mobilevitv2": ("MobileViTV2Model", "MobileViTV2Config", {"width_multiplier": 0.5}, "picture"),
    "pvt_v2": ("PvtV2Model", "PvtV2Config", {"image_size": 64, "hidden_sizes": [16, 32, 80, 128], "depths": [1, 1, 1, 1]},
        "picture"),
    "swiftformer": ("SwiftFormerModel", "SwiftFormerConfig", {"embed_dims": [24, 32, 64, 96], "depths": [1, 1, 2, 1]},
        "picture"),
    "seggpt": ("SegGptModel", "SegGptConfig", {"hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
        "image_size": [64, 32], "intermediate_hidden_indices": [1, 2, 3, 3], "merge_index": 1, "mlp_dim": 128,
        "decoder_hidden_size": 16}, {"pixel_values": (3, 32, 32), "prompt_pixel_values": (3, 32, 32), "prompt_masks": (3, 32,
        32)}),
    "depth_anything": ("DepthAnythingForDepthEstimation", "DepthAnythingConfig", {"backbone_config": {"model_type": "dinov2",
        "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "image_size": 70, "patch_size": 14,
        "out_indices": [1, 2, 3, 4], "reshape_hidden_states": False, "apply_layernorm": True}, "reassemble_hidden_size": 64,
        "neck_hidden_sizes": [16, 16, 32, 32], "fusion_hidden_size": 32, "head_hidden_size": 16, "patch_size": 14},
        "picture of 70"),
    "zoedepth": ("ZoeDepthForDepthEstimation", "ZoeDepthConfig", {"backbone_config": {"model_type": "beit", **_PICTURE,
        "num_hidden_layers": 4, "out_indices": [1, 2, 3, 4], "reshape_hidden_states": False}, "neck_hidden_sizes": [16, 16,
        32, 32], "fusion_hidden_size": 32, "bottleneck_features": 32, "num_relative_features": 16, "bin_embedding_dim": 16,
        "num_patch_transformer_layers": 1, "patch_transformer_hidden_size": 32, "patch_transformer_intermediate_size": 64,
        "patch_transformer_num_attention_heads": 2, "num_attractors": [4, 2, 2, 1]}, "picture"),
    "mgp_str": ("MgpstrModel", "MgpstrConfig", {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "image_size": [32, 128]}, {"pixel_values": (3, 32, 128)}),
    "donut_swin": ("DonutSwinModel", "DonutSwinConfig", {**_SWIN, "depths": [1, 1], "num_heads": [2, 4]}, "picture"),
    "imagegpt": ("ImageGPTModel", "ImageGPTConfig", {"vocab_size": 1001, "n_embd": 64, "n_layer": 2, "n_head": 4}, "words"),
    "trocr_decoder": ("TrOCRForCausalLM", "TrOCRConfig", {"vocab_size": 1000, "d_model": 64, "decoder_layers": 2,
        "decoder_attention_heads": 4, "decoder_ffn_dim": 128}, "words"),
    "decision_transformer": ("DecisionTransformerModel", "DecisionTransformerConfig", {"hidden_size": 64, "n_layer": 2,
        "n_head": 4, "state_dim": 8, "act_dim": 4}, {"states": (8, 8), "actions": (8, 4), "rewards": (8, 1),
        "returns_to_go": (8, 1), "timesteps": 8}),
    "patchtsmixer": ("PatchTSMixerModel", "PatchTSMixerConfig", {"context_length": 64, "d_model": 32, "num_input_channels": 3,
        "patch_length": 8, "patch_stride": 8}, "series"),
    "siglip2_vision": ("Siglip2VisionModel", "Siglip2VisionConfig", {**_WIDE, "num_patches": 16, "patch_size": 16},
        {"pixel_values": (16, 768), "pixel_attention_mask": ("full", 1, 16), "spatial_shapes": ("full", 4, 2)}),
    "informer": ("InformerModel", "InformerConfig", {"prediction_length": 8, "context_length": 16, "lags_sequence": [1, 2],
        "num_time_features": 2, **_SPEECH, "d_model": 32}, {"past_values": (18,), "past_time_features": (18, 2),
        "past_observed_mask": ("full", 1, 18), "future_values": (8,), "future_time_features": (8, 2)}),
    "autoformer": ("AutoformerModel", "AutoformerConfig", {"prediction_length": 8, "context_length": 16, "lags_sequence": [1,
        2], "num_time_features": 2, **_SPEECH, "d_model": 32}, {"past_values": (18,), "past_time_features": (18, 2),
        "past_observed_mask": ("full", 1, 18), "future_values": (8,), "future_time_features": (8, 2)}),
    "time_series_transformer": ("TimeSeriesTransformerModel", "TimeSeriesTransformerConfig", {"prediction_length": 8,
        "context_length": 16, "lags_sequence": [1, 2], "num_time_features": 2, **_SPEECH, "d_model": 32},
        {"past_values": (18,), "past_time_features": (18, 2), "past_observed_mask": ("full", 1, 18), "future_values": (8,),
        "future_time_features": (8, 2)}),
    "timesfm": ("TimesFmModel", "TimesFmConfig", {"patch_length": 8, "context_length": 64, "horizon_length": 16,
        "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 16, "intermediate_size": 128},
        {"past_values": (64,), "past_values_padding": ("full", 0, 64), "freq": ("full", 0, 1)}),
    "bros": ("BrosModel", "BrosConfig", _TEXT, {"input_ids": 32, "bbox": (32, 8)}),
    "superpoint": ("SuperPointForKeypointDetection.encoder", "SuperPointConfig", {"encoder_hidden_sizes": [16, 16, 32, 32]},
        {"input": (1, 64, 64)}),
    "visual_bert": ("VisualBertModel", "VisualBertConfig", {**_TEXT, "visual_embedding_dim": 32}, {"input_ids": 16,
        "visual_embeds": (8, 32)}),
    "lxmert": ("LxmertModel", "LxmertConfig", {"vocab_size": 1000, "hidden_size": 64, "num_attention_heads": 4,
        "intermediate_size": 128, "l_layers": 1, "x_layers": 1, "r_layers": 1, "visual_feat_dim": 32}, {"input_ids": 16,
        "visual_feats": (8, 32), "visual_pos": (8, 4)}),
    "bridgetower": ("BridgeTowerModel", "BridgeTowerConfig", {"hidden_size": 64, "num_hidden_layers": 1,
        "num_attention_heads": 4, "intermediate_size": 128, "text_config": _TEXT, "vision_config": {"hidden_size": 64,
        "num_hidden_layers": 2, "image_size": 64, "patch_size": 16}}, "words and picture"),
    "zamba2": ("Zamba2ForCausalLM", "Zamba2Config", {**_GROUPED, "num_key_value_heads": 4, "num_hidden_layers": 3,
        "mamba_d_state": 16, "mamba_headdim": 16, "n_mamba_heads": 8, "mamba_ngroups": 1, "chunk_size": 16,
        "layers_block_type": ["mamba", "mamba", "hybrid"], "use_mamba_kernels": False}, "words"),
    "bamba": ("BambaForCausalLM", "BambaConfig", {**_GROUPED, "attn_layer_indices": [1], "mamba_n_heads": 8,
        "mamba_d_head": 16, "mamba_d_state": 16, "mamba_chunk_size": 16, "mamba_n_groups": 1}, "words"),
    "biogpt": ("BioGptForCausalLM", "BioGptConfig", _TEXT, "words"),
    "xlm_roberta_xl": ("XLMRobertaXLModel", "XLMRobertaXLConfig", _TEXT, "words"),
    "speecht5_encoder": ("SpeechT5Model", "SpeechT5Config", {"hidden_size": 64, "encoder_layers": 2,
        "encoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_layers": 2, "decoder_attention_heads": 4,
        "decoder_ffn_dim": 128}, {"input_values": (16, 64), "decoder_input_values": (8, 64)}),
    "altclip_text": ("AltCLIPTextModel", "AltCLIPTextConfig", {**_TEXT, "project_dim": 32}, "words"),
    "idefics3_vision": ("Idefics3VisionTransformer", "Idefics3VisionConfig", _PICTURE, "picture"),
    "efficientloftr": ("EfficientLoFTRModel", "EfficientLoFTRConfig", {}, {"pixel_values": (2, 1, 64, 64)}),
    "seamless_m4t": ("SeamlessM4TModel.text_encoder", "SeamlessM4TConfig", {"vocab_size": 1000, "hidden_size": 64,
        "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_layers": 1,
        "decoder_attention_heads": 4, "decoder_ffn_dim": 128, "speech_encoder_layers": 2, "speech_encoder_attention_heads": 4,
        "speech_encoder_intermediate_size": 128, "t2u_vocab_size": 100, "t2u_encoder_layers": 1, "t2u_decoder_layers": 1,
        "feature_projection_input_dim": 32}, "words"),
    "seamless_speech": ("SeamlessM4TModel.speech_encoder", "SeamlessM4TConfig", {"vocab_size": 1000, "hidden_size": 64,
        "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_layers": 1,
        "decoder_attention_heads": 4, "decoder_ffn_dim": 128, "speech_encoder_layers": 2, "speech_encoder_attention_heads": 4,
        "speech_encoder_intermediate_size": 128, "t2u_vocab_size": 100, "t2u_encoder_layers": 1, "t2u_decoder_layers": 1,
        "feature_projection_input_dim": 32}, {"input_features": (48, 32)}),
    "nllb_moe": ("NllbMoeModel", "NllbMoeConfig", {**_PAIRS, "num_experts": 4, "encoder_sparse_step": 2,
        "decoder_sparse_step": 2}, "pairs"),
    "qwen2_moe": ("Qwen2MoeForCausalLM", "Qwen2MoeConfig", {**_GROUPED, "num_experts": 4, "num_experts_per_tok": 2,
        "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32}, "words"),
    "llama4": ("Llama4ForCausalLM", "Llama4TextConfig", {**_GROUPED, "num_local_experts": 4, "head_dim": 16,
        "intermediate_size_mlp": 128, "pad_token_id": 0}, "words"),
    "roc_bert": ("RoCBertModel", "RoCBertConfig", {**_TEXT, "pronunciation_vocab_size": 1000, "shape_vocab_size": 1000},
        "words"),
    "xmod": ("XmodModel", "XmodConfig", {**_TEXT, "languages": ["en_XX"], "default_language": "en_XX"}, "words"),
    "markuplm": ("MarkupLMModel", "MarkupLMConfig", _TEXT, "words"),
    "oneformer": ("OneFormerModel", "OneFormerConfig", {"backbone_config": {"model_type": "swin", **_SWIN,
        "out_features": ["stage1", "stage2", "stage3", "stage4"]}, "conv_dim": 32, "mask_dim": 32, "hidden_dim": 32,
        "encoder_feedforward_dim": 64, "encoder_layers": 2, "decoder_layers": 3, "num_attention_heads": 4,
        "dim_feedforward": 64, "num_queries": 10, "task_seq_len": 16, "max_seq_len": 16, "text_encoder_width": 32,
        "text_encoder_context_length": 16, "text_encoder_num_layers": 1, "text_encoder_vocab_size": 1000,
        "is_training": False}, {"pixel_values": (3, 64, 64), "task_inputs": 16}),
}


def inputs_of(kind, count, generator):
    """count samples by the inputs' names. kind: one of those below, or by name how many words, the shape of random values, or
    ("full", NUMBER, SIZE ..)."""
    import torch

    def words(length):
        return torch.randint(5, 1000, (count, length), generator=generator)

    def values(*shape):
        return torch.randn(count, *shape, generator=generator)

    def by_shape(shape):
        if isinstance(shape, int):
            return words(shape)
        return torch.full((count, *shape[2:]), shape[1]) if shape[0] == "full" else values(*shape)

    if isinstance(kind, dict):
        return {name: by_shape(shape) for name, shape in kind.items()}
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
        kind, *part = kind.split(".")
        module = getattr(transformers, kind)(made)
        module = getattr(module, part[0]) if part else module
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
