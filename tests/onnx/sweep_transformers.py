"""Models of transformers, of tiny sizes, for sweep.py."""

import torch
import transformers as tr

TEXT = dict(
    vocab_size=99,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=64,
)
ENCODERS = {
    'bert': ('Bert', TEXT),
    'roberta': ('Roberta', dict(TEXT, pad_token_id=1)),
    'albert': ('Albert', dict(TEXT, embedding_size=16)),
    'distilbert': ('DistilBert', dict(vocab_size=99, dim=32, n_layers=2, n_heads=4, hidden_dim=64)),
    'electra': ('Electra', dict(TEXT, embedding_size=16)),
    'mpnet': ('MPNet', TEXT),
    'camembert': ('Camembert', TEXT),
    'deberta': ('Deberta', dict(TEXT, relative_attention=True, pos_att_type=['c2p', 'p2c'])),
    'deberta_v2': ('DebertaV2', dict(TEXT, relative_attention=True, pos_att_type=['c2p', 'p2c'], position_buckets=16)),
    'squeezebert': ('SqueezeBert', TEXT),
    'funnel': (
        'Funnel',
        dict(vocab_size=99, d_model=32, n_head=4, d_head=8, d_inner=64, block_sizes=[1, 1], num_decoder_layers=1),
    ),
    'modernbert': (
        'ModernBert',
        dict(
            TEXT,
            global_attn_every_n_layers=2,
            local_attention=8,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            cls_token_id=1,
            sep_token_id=2,
        ),
    ),
    'nomic': ('NomicBert', TEXT),
    'xlm_roberta': ('XLMRoberta', TEXT),
    'mobilebert': ('MobileBert', dict(TEXT, intra_bottleneck_size=16, embedding_size=16)),
    'fnet': ('FNet', TEXT),
    'layoutlm': ('LayoutLM', TEXT),
    'ernie': ('Ernie', TEXT),
    'megatron_bert': ('MegatronBert', TEXT),
    'roformer': ('RoFormer', TEXT),
    'longformer': ('Longformer', dict(TEXT, attention_window=4)),
    'big_bird': ('BigBird', dict(TEXT, attention_type='original_full')),
    'convbert': ('ConvBert', dict(TEXT, embedding_size=16)),
    'ibert': ('IBert', TEXT),
}
GROUPED = dict(TEXT, num_key_value_heads=2)
DECODERS = {
    'gpt2': ('GPT2LMHead', 'GPT2', dict(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64)),
    'gpt_neox': ('GPTNeoXForCausalLM', 'GPTNeoX', TEXT),
    'gptj': (
        'GPTJForCausalLM',
        'GPTJ',
        dict(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64, rotary_dim=4),
    ),
    'gpt_neo': (
        'GPTNeoForCausalLM',
        'GPTNeo',
        dict(
            vocab_size=99,
            hidden_size=32,
            num_layers=2,
            num_heads=4,
            max_position_embeddings=64,
            attention_types=[[['global', 'local'], 1]],
            window_size=8,
        ),
    ),
    'llama': ('LlamaForCausalLM', 'Llama', GROUPED),
    'mistral': ('MistralForCausalLM', 'Mistral', dict(GROUPED, sliding_window=8)),
    'mixtral': ('MixtralForCausalLM', 'Mixtral', dict(GROUPED, num_local_experts=4)),
    'qwen2': ('Qwen2ForCausalLM', 'Qwen2', GROUPED),
    'qwen3': ('Qwen3ForCausalLM', 'Qwen3', dict(GROUPED, head_dim=8)),
    'gemma': ('GemmaForCausalLM', 'Gemma', dict(GROUPED, head_dim=8)),
    'gemma2': ('Gemma2ForCausalLM', 'Gemma2', dict(GROUPED, head_dim=8, sliding_window=8)),
    'gemma3': ('Gemma3ForCausalLM', 'Gemma3Text', dict(GROUPED, head_dim=8, sliding_window=8)),
    'phi': ('PhiForCausalLM', 'Phi', TEXT),
    'phi3': ('Phi3ForCausalLM', 'Phi3', dict(GROUPED, pad_token_id=0)),
    'opt': (
        'OPTForCausalLM',
        'OPT',
        dict(
            vocab_size=99,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            ffn_dim=64,
            max_position_embeddings=64,
            word_embed_proj_dim=32,
        ),
    ),
    'bloom': ('BloomForCausalLM', 'Bloom', dict(vocab_size=99, hidden_size=32, n_layer=2, n_head=4)),
    'falcon': (
        'FalconForCausalLM',
        'Falcon',
        dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4),
    ),
    'falcon-alibi': (
        'FalconForCausalLM',
        'Falcon',
        dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, alibi=True),
    ),
    'mpt': ('MptForCausalLM', 'Mpt', dict(vocab_size=99, d_model=32, n_layers=2, n_heads=4, max_seq_len=64)),
    'stablelm': ('StableLmForCausalLM', 'StableLm', GROUPED),
    'olmo2': ('Olmo2ForCausalLM', 'Olmo2', GROUPED),
    'starcoder2': ('Starcoder2ForCausalLM', 'Starcoder2', GROUPED),
    'cohere': ('CohereForCausalLM', 'Cohere', GROUPED),
    'granite': ('GraniteForCausalLM', 'Granite', GROUPED),
    'smollm3': ('SmolLM3ForCausalLM', 'SmolLM3', dict(GROUPED, pad_token_id=0)),
}
GROUPED_VISION = dict(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8
)
VISION = {
    'vit': ('ViTModel', 'ViT', GROUPED_VISION, 32),
    'deit': ('DeiTModel', 'DeiT', GROUPED_VISION, 32),
    'beit': ('BeitModel', 'Beit', dict(GROUPED_VISION, use_relative_position_bias=True), 32),
    'dinov2': ('Dinov2Model', 'Dinov2', GROUPED_VISION, 32),
    'dinov3': ('DINOv3ViTModel', 'DINOv3ViT', GROUPED_VISION, 32),
    'siglip': ('SiglipVisionModel', 'SiglipVision', GROUPED_VISION, 32),
    'clip_vision': ('CLIPVisionModel', 'CLIPVision', GROUPED_VISION, 32),
    'swin': (
        'SwinModel',
        'Swin',
        dict(image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4),
        32,
    ),
    'swinv2': (
        'Swinv2Model',
        'Swinv2',
        dict(image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4),
        32,
    ),
    'segformer': (
        'SegformerForSemanticSegmentation',
        'Segformer',
        dict(
            hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 3, 4], decoder_hidden_size=16
        ),
        64,
    ),
    'mobilevit': ('MobileViTModel', 'MobileViT', {}, 64),
    'convnext': ('ConvNextModel', 'ConvNext', dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]), 64),
    'poolformer': ('PoolFormerModel', 'PoolFormer', dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]), 64),
    'dpt': (
        'DPTForDepthEstimation',
        'DPT',
        dict(
            hidden_size=32,
            num_hidden_layers=4,
            num_attention_heads=4,
            intermediate_size=64,
            image_size=32,
            patch_size=8,
            backbone_out_indices=[0, 1, 2, 3],
            neck_hidden_sizes=[8, 8, 16, 16],
            fusion_hidden_size=8,
        ),
        32,
    ),
    'glpn': (
        'GLPNForDepthEstimation',
        'GLPN',
        dict(
            hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 3, 4], decoder_hidden_size=16
        ),
        64,
    ),
    'resnet': ('ResNetModel', 'ResNet', dict(embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]), 64),
    'cvt': ('CvtModel', 'Cvt', dict(embed_dim=[8, 16, 32], num_heads=[1, 2, 4], depth=[1, 1, 1]), 64),
    'pvt': (
        'PvtModel',
        'Pvt',
        dict(image_size=64, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 3, 4]),
        64,
    ),
    'yolos': (
        'YolosForObjectDetection',
        'Yolos',
        dict(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            image_size=[32, 48],
            patch_size=8,
            num_detection_tokens=5,
        ),
        (32, 48),
    ),
    'vitdet': (
        'VitDetModel',
        'VitDet',
        dict(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            image_size=64,
            pretrain_image_size=64,
            patch_size=8,
            window_block_indices=[0],
            window_size=4,
            use_relative_position_embeddings=True,
        ),
        64,
    ),
    'regnet': (
        'RegNetModel',
        'RegNet',
        dict(embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], groups_width=8),
        64,
    ),
    'focalnet': (
        'FocalNetModel',
        'FocalNet',
        dict(
            image_size=32, embed_dim=16, hidden_sizes=[16, 32], depths=[1, 1], focal_levels=[2, 2], focal_windows=[3, 3]
        ),
        32,
    ),
    'hiera': (
        'HieraModel',
        'Hiera',
        dict(image_size=[64, 64], embed_dim=16, depths=[1, 1, 1, 1], num_heads=[1, 2, 4, 8]),
        64,
    ),
    'levit': ('LevitModel', 'Levit', {}, 224),
    'efficientnet': ('EfficientNetModel', 'EfficientNet', dict(width_coefficient=0.3, depth_coefficient=0.3), 64),
}
DETR = dict(
    d_model=32,
    encoder_layers=1,
    decoder_layers=1,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=64,
    decoder_ffn_dim=64,
    num_queries=6,
)


class Call(torch.nn.Module):
    """`function(model, *inputs)`."""

    def __init__(self, inner, function):
        super().__init__()
        self.inner, self.function = inner, function

    def forward(self, *x):
        return self.function(self.inner, *x)


def flat(output):
    """The tensors of an output, caches included, as a tuple."""
    made = []
    for v in output.to_tuple() if hasattr(output, 'to_tuple') else output:
        if torch.is_tensor(v):
            made.append(v)
        elif isinstance(v, tr.cache_utils.EncoderDecoderCache):
            made += flat_cache(v.self_attention_cache)
        elif isinstance(v, tr.cache_utils.Cache):
            made += flat_cache(v)
        elif isinstance(v, (tuple, list)):
            made += list(flat(v))
    return tuple(made)


def flat_cache(cache):
    return [t for layer in cache.layers for t in (layer.keys, layer.values)]


def cache_of(tensors):
    cache = tr.cache_utils.DynamicCache()
    for i in range(0, len(tensors), 2):
        cache.update(tensors[i], tensors[i + 1], i // 2)
    return cache


def build(model, config, **more):
    torch.manual_seed(1)
    made = getattr(tr, model)(config, **more).eval()
    made.config.return_dict = True
    return made


def tokens(*sizes):
    return torch.randint(3, 99, sizes)


def encoder(name, sizes, config):
    def make():
        c = getattr(tr, name + 'Config')(**config)
        inner = build(name + 'Model', c)
        sets = [[tokens(n, t), torch.ones(n, t, dtype=torch.int64)] for n, t in sizes]
        for s in sets[1:]:
            s[1][-1, -2:] = 0
        return Call(inner, lambda m, ids, mask: m(input_ids=ids, attention_mask=mask).last_hidden_state), sets

    return make


def decoder(model, name, config, past, sizes):
    """past: with a cache in and out; sizes of (batch, tokens, tokens of the cache)."""

    def make():
        c = getattr(tr, name + 'Config')(**config)
        inner = build(model if model.endswith("LM") else model + "Model", c)

        def whole(m, ids, mask):
            return m(input_ids=ids, attention_mask=mask, use_cache=False).logits

        def step(m, ids, mask, *tensors):
            return flat(m(input_ids=ids, attention_mask=mask, past_key_values=cache_of(tensors), use_cache=True))

        sets = []
        with torch.no_grad():
            for n, t, p in sizes:
                ids, mask = tokens(n, t), torch.ones(n, t + (p if past else 0), dtype=torch.int64)
                if not past:
                    sets.append([ids, mask])
                    continue
                cache = inner(input_ids=tokens(n, p), use_cache=True).past_key_values
                sets.append([ids, mask, *[torch.randn_like(x) for x in flat_cache(cache)]])
        return Call(inner, step if past else whole), sets

    return make


def vision(model, name, config, size):
    def make():
        c = getattr(tr, name + 'Config')(**config)
        inner = build(model, c)
        h, w = size if isinstance(size, tuple) else (size, size)
        return Call(inner, lambda m, x: flat(m(pixel_values=x))), [[torch.randn(n, 3, h, w)] for n in (2, 1)]

    return make


def others(Model):
    seq = dict(
        vocab_size=99,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=64,
    )
    t5 = dict(vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0)
    whisper = dict(
        vocab_size=99,
        num_mel_bins=16,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_source_positions=24,
        max_target_positions=32,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    wav = dict(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        conv_dim=(16, 16),
        conv_stride=(5, 4),
        conv_kernel=(10, 6),
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
        num_feat_extract_layers=2,
        vocab_size=32,
    )
    clip = dict(text_config=dict(TEXT, eos_token_id=2), vision_config=GROUPED_VISION, projection_dim=16)
    found = {}

    def add(name, config, model, function, sets, dynamic=None):
        def make():
            kind, options = config
            return Call(build(model, getattr(tr, kind + 'Config')(**options)), function), sets()

        found[name] = Model(make, dynamic)

    both = [{0: 'n', 1: 't'}, {0: 'n', 1: 'u'}]
    pairs = lambda: [[tokens(2, 7), tokens(2, 5)], [tokens(1, 9), tokens(1, 3)]]
    for name, kind, options, model in (
        ('bart', 'Bart', seq, 'BartForConditionalGeneration'),
        ('mbart', 'MBart', seq, 'MBartForConditionalGeneration'),
        ('marian', 'Marian', dict(seq, pad_token_id=0, decoder_start_token_id=0), 'MarianMTModel'),
        ('t5', 'T5', t5, 'T5ForConditionalGeneration'),
        ('pegasus', 'Pegasus', seq, 'PegasusForConditionalGeneration'),
        ('m2m_100', 'M2M100', seq, 'M2M100ForConditionalGeneration'),
        ('mt5', 'MT5', t5, 'MT5ForConditionalGeneration'),
        ('blenderbot', 'Blenderbot', seq, 'BlenderbotForConditionalGeneration'),
    ):
        add(
            name,
            (kind, options),
            model,
            lambda m, a, b: m(input_ids=a, decoder_input_ids=b, use_cache=False).logits,
            pairs,
            both,
        )
    add(
        't5-encoder',
        ('T5', t5),
        'T5EncoderModel',
        lambda m, a: m(input_ids=a).last_hidden_state,
        lambda: [[tokens(2, 7)], [tokens(1, 9)]],
        both[:1],
    )
    states = lambda: [[tokens(2, 5), torch.randn(2, 7, 32)], [tokens(1, 3), torch.randn(1, 9, 32)]]
    hidden = lambda m, a, e: flat(m(decoder_input_ids=a, encoder_outputs=(e,), use_cache=True))[:5]
    add('t5-decoder', ('T5', t5), 'T5ForConditionalGeneration', hidden, states, both)
    add('bart-decoder', ('Bart', seq), 'BartForConditionalGeneration', hidden, states, both)

    def seq_past(name, kind, options, model, d):
        def step(m, ids, e, *past):
            own, cross = cache_of(past[:4]), cache_of(past[4:])
            cache = tr.cache_utils.EncoderDecoderCache(own, cross)
            out = m(decoder_input_ids=ids, encoder_outputs=(e,), past_key_values=cache, use_cache=True)
            return (out.logits, *flat_cache(out.past_key_values.self_attention_cache))

        sets = lambda: [
            [
                tokens(n, 1),
                torch.randn(n, u, 32),
                *[torch.randn(n, 4, p, d) for _ in range(4)],
                *[torch.randn(n, 4, u, d) for _ in range(4)],
            ]
            for n, p, u in ((2, 4, 7), (1, 6, 9))
        ]
        add(
            name,
            (kind, options),
            model,
            step,
            sets,
            [{0: 'n'}, {0: 'n', 1: 'u'}, *[{0: 'n', 2: 'p'}] * 4, *[{0: 'n', 2: 'u'}] * 4],
        )

    seq_past('t5-past', 'T5', t5, 'T5ForConditionalGeneration', 8)
    seq_past('bart-past', 'Bart', seq, 'BartForConditionalGeneration', 8)
    mel = lambda: [[torch.randn(1, 16, 48)]]
    add(
        'whisper-encoder',
        ('Whisper', whisper),
        'WhisperForConditionalGeneration',
        lambda m, x: m.model.encoder(x).last_hidden_state,
        mel,
    )
    add(
        'whisper',
        ('Whisper', whisper),
        'WhisperForConditionalGeneration',
        lambda m, x, i: m(input_features=x, decoder_input_ids=i, use_cache=False).logits,
        lambda: [[torch.randn(1, 16, 48), tokens(1, 5)], [torch.randn(1, 16, 48), tokens(1, 8)]],
        [{}, {1: 't'}],
    )
    seq_past('whisper-past', 'Whisper', whisper, 'WhisperForConditionalGeneration', 8)
    wave = lambda: [[torch.randn(2, 800)], [torch.randn(1, 1200)]]
    for name, kind in (('wav2vec2', 'Wav2Vec2'), ('hubert', 'Hubert'), ('wavlm', 'WavLM'), ('unispeech', 'UniSpeech')):
        add(name, (kind, wav), kind + 'ForCTC', lambda m, x: m(x).logits, wave, [{0: 'n', 1: 't'}])
    add(
        'wav2vec2-layer',
        ('Wav2Vec2', dict(wav, feat_extract_norm='layer', do_stable_layer_norm=True)),
        'Wav2Vec2ForCTC',
        lambda m, x: m(x).logits,
        wave,
        [{0: 'n', 1: 't'}],
    )
    add(
        'wav2vec2_conformer',
        ('Wav2Vec2Conformer', dict(wav, position_embeddings_type='rotary')),
        'Wav2Vec2ConformerForCTC',
        lambda m, x: m(x).logits,
        wave,
        [{0: 'n', 1: 't'}],
    )
    add(
        'clip',
        ('CLIP', clip),
        'CLIPModel',
        lambda m, i, x: flat(m(input_ids=i, pixel_values=x))[:4],
        lambda: [[tokens(2, 7), torch.randn(2, 3, 32, 32)], [tokens(3, 5), torch.randn(1, 3, 32, 32)]],
        [{0: 'a', 1: 't'}, {0: 'b'}],
    )
    add(
        'clip_text',
        ('CLIPText', dict(TEXT, eos_token_id=2)),
        'CLIPTextModel',
        lambda m, i: flat(m(input_ids=i)),
        lambda: [[tokens(2, 7)], [tokens(1, 9)]],
        both[:1],
    )
    add(
        'clipseg',
        (
            'CLIPSeg',
            dict(
                clip, extract_layers=[0, 1], reduce_dim=16, decoder_num_attention_heads=4, decoder_intermediate_size=32
            ),
        ),
        'CLIPSegForImageSegmentation',
        lambda m, i, x: m(input_ids=i, pixel_values=x).logits,
        lambda: [[tokens(2, 7), torch.randn(2, 3, 32, 32)]],
    )
    image = lambda: [[torch.randn(1, 3, 64, 96)], [torch.randn(1, 3, 64, 96)]]
    add(
        'detr',
        (
            'Detr',
            dict(
                DETR,
                use_timm_backbone=False,
                use_pretrained_backbone=False,
                backbone=None,
                backbone_config=tr.ResNetConfig(
                    embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], out_features=['stage4']
                ),
            ),
        ),
        'DetrForObjectDetection',
        lambda m, x: flat(m(x))[:2],
        image,
    )
    add(
        'rt_detr',
        (
            'RTDetr',
            dict(
                d_model=32,
                encoder_hidden_dim=32,
                encoder_in_channels=[16, 24, 32],
                feat_strides=[8, 16, 32],
                encoder_ffn_dim=64,
                decoder_in_channels=[32, 32, 32],
                encoder_attention_heads=4,
                decoder_attention_heads=4,
                decoder_ffn_dim=64,
                num_queries=10,
                decoder_layers=2,
                num_labels=5,
                backbone_config=tr.RTDetrResNetConfig(
                    embedding_size=8,
                    hidden_sizes=[8, 16, 24, 32],
                    depths=[1, 1, 1, 1],
                    out_features=['stage2', 'stage3', 'stage4'],
                ),
                encode_proj_layers=[2],
            ),
        ),
        'RTDetrForObjectDetection',
        lambda m, x: flat(m(x))[:2],
        image,
    )
    add(
        'deformable_detr',
        (
            'DeformableDetr',
            dict(
                DETR,
                use_timm_backbone=False,
                use_pretrained_backbone=False,
                backbone=None,
                backbone_config=tr.ResNetConfig(
                    embedding_size=8,
                    hidden_sizes=[8, 16, 24, 32],
                    depths=[1, 1, 1, 1],
                    out_features=['stage2', 'stage3', 'stage4'],
                ),
                num_feature_levels=4,
            ),
        ),
        'DeformableDetrForObjectDetection',
        lambda m, x: flat(m(x))[:2],
        image,
    )
    add(
        'conditional_detr',
        (
            'ConditionalDetr',
            dict(
                DETR,
                use_timm_backbone=False,
                use_pretrained_backbone=False,
                backbone=None,
                backbone_config=tr.ResNetConfig(
                    embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], out_features=['stage4']
                ),
            ),
        ),
        'ConditionalDetrForObjectDetection',
        lambda m, x: flat(m(x))[:2],
        image,
    )
    mamba = dict(vocab_size=99, hidden_size=32, state_size=8, num_hidden_layers=2, use_mambapy=False)
    add(
        'mamba',
        ('Mamba', mamba),
        'MambaForCausalLM',
        lambda m, i: m(input_ids=i, use_cache=False).logits,
        lambda: [[tokens(2, 7)], [tokens(1, 7)]],
    )
    add(
        'rwkv',
        ('Rwkv', dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, attention_hidden_size=32, context_length=32)),
        'RwkvForCausalLM',
        lambda m, i: m(input_ids=i, use_cache=False).logits,
        lambda: [[tokens(2, 7)]],
    )
    add(
        'mamba2',
        (
            'Mamba2',
            dict(
                vocab_size=99,
                hidden_size=32,
                state_size=8,
                num_hidden_layers=1,
                num_heads=4,
                head_dim=16,
                expand=2,
                n_groups=1,
                chunk_size=4,
            ),
        ),
        'Mamba2ForCausalLM',
        lambda m, i: m(input_ids=i, use_cache=False).logits,
        lambda: [[tokens(2, 7)]],
    )
    add(
        'trocr',
        (
            'TrOCR',
            dict(
                vocab_size=99,
                d_model=32,
                decoder_layers=2,
                decoder_attention_heads=4,
                decoder_ffn_dim=64,
                max_position_embeddings=64,
            ),
        ),
        'TrOCRForCausalLM',
        lambda m, i: m(input_ids=i, use_cache=False).logits,
        lambda: [[tokens(2, 7)], [tokens(1, 9)]],
        both[:1],
    )
    add(
        'blip_text',
        ('Blip', dict(text_config=TEXT, vision_config=GROUPED_VISION, projection_dim=16)),
        'BlipModel',
        lambda m, i, x: flat(m(input_ids=i, pixel_values=x))[:2],
        lambda: [[tokens(2, 7), torch.randn(2, 3, 32, 32)]],
    )
    add(
        'vilt',
        ('Vilt', dict(TEXT, image_size=32, patch_size=8)),
        'ViltModel',
        lambda m, i, x: m(input_ids=i, pixel_values=x).last_hidden_state,
        lambda: [[tokens(1, 7), torch.randn(1, 3, 32, 32)]],
    )
    add(
        'patchtst',
        (
            'PatchTST',
            dict(
                num_input_channels=3,
                context_length=32,
                patch_length=8,
                patch_stride=8,
                d_model=16,
                num_hidden_layers=1,
                num_attention_heads=4,
                ffn_dim=32,
                prediction_length=4,
            ),
        ),
        'PatchTSTForPrediction',
        lambda m, x: m(past_values=x).prediction_outputs,
        lambda: [[torch.randn(2, 32, 3)]],
    )
    add(
        'swin2sr',
        ('Swin2SR', dict(image_size=16, embed_dim=16, depths=[2], num_heads=[2], window_size=4)),
        'Swin2SRForImageSuperResolution',
        lambda m, x: m(x).reconstruction,
        lambda: [[torch.rand(1, 3, 16, 16)]],
    )
    add(
        'maskformer-swin',
        (
            'MaskFormer',
            dict(
                backbone_config=tr.SwinConfig(
                    image_size=64,
                    patch_size=2,
                    embed_dim=16,
                    depths=[1, 1, 1, 1],
                    num_heads=[2, 2, 4, 4],
                    window_size=4,
                    out_features=['stage1', 'stage2', 'stage3', 'stage4'],
                ),
                fpn_feature_size=16,
                mask_feature_size=16,
                decoder_config=tr.DetrConfig(**DETR),
            ),
        ),
        'MaskFormerForInstanceSegmentation',
        lambda m, x: flat(m(x))[:2],
        lambda: [[torch.randn(1, 3, 64, 64)]],
    )
    add(
        'vits',
        (
            'Vits',
            dict(
                vocab_size=38,
                hidden_size=32,
                num_hidden_layers=1,
                num_attention_heads=2,
                ffn_dim=32,
                flow_size=32,
                spectrogram_bins=17,
                upsample_initial_channel=32,
                upsample_rates=[4, 4],
                upsample_kernel_sizes=[8, 8],
                resblock_kernel_sizes=[3],
                resblock_dilation_sizes=[[1, 3]],
                prior_encoder_num_wavenet_layers=1,
                use_stochastic_duration_prediction=False,
                noise_scale=0.0,
            ),
        ),
        'VitsModel',
        lambda m, i: m(input_ids=i % 38).waveform,
        lambda: [[tokens(1, 9)]],
    )
    add(
        'encodec',
        (
            'Encodec',
            dict(
                num_filters=4,
                hidden_size=16,
                codebook_dim=16,
                codebook_size=32,
                upsampling_ratios=[4, 2],
                num_residual_layers=1,
            ),
        ),
        'EncodecModel',
        lambda m, x: m.decoder(m.encoder(x)),
        lambda: [[torch.randn(1, 1, 256)]],
    )
    add(
        'hifigan',
        (
            'SpeechT5HifiGan',
            dict(
                model_in_dim=16,
                upsample_initial_channel=16,
                upsample_rates=[2, 2],
                upsample_kernel_sizes=[4, 4],
                resblock_kernel_sizes=[3],
                resblock_dilation_sizes=[[1, 3]],
            ),
        ),
        'SpeechT5HifiGan',
        lambda m, x: m(x),
        lambda: [[torch.randn(12, 16)], [torch.randn(7, 16)]],
        [{0: 't'}],
    )
    return found


def models(Model):
    found = {}
    for name, (kind, config) in ENCODERS.items():
        found[name] = Model(encoder(kind, [(2, 7), (1, 12), (3, 5)], config), [{0: 'n', 1: 't'}] * 2)
    found['bert-fixed'] = Model(encoder('Bert', [(2, 7)], TEXT))
    for name, (model, kind, config) in DECODERS.items():
        layers = 2
        found[name] = Model(decoder(model, kind, config, False, [(2, 7, 0), (1, 12, 0)]), [{0: 'n', 1: 't'}] * 2)
        if name not in ('bloom', 'mixtral'):
            cache = [{0: 'n', 2: 'p'}] * (2 * layers)
            found[name + '-past'] = Model(
                decoder(model, kind, config, True, [(2, 1, 6), (1, 3, 4)]),
                [{0: 'n', 1: 't'}, {0: 'n', 1: 'a'}] + cache,
                ('ts',),
            )
            # torch.export cannot tell whether attention to a cache is causal when tokens are many or one.
            found[name + '-step'] = Model(
                decoder(model, kind, config, True, [(2, 1, 6), (3, 1, 4)]),
                [{0: 'n'}, {0: 'n', 1: 'a'}] + cache,
                ('dynamo',),
            )
    for name, (model, kind, config, size) in VISION.items():
        found[name] = Model(vision(model, kind, config, size), [{0: 'n'}])
    found.update(others(Model))
    return found
