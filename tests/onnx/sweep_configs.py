"""Every model type of transformers that sweep_transformers.py does not name and whose configuration can be made small
without knowing the type, for sweep.py. A type whose model cannot be made or called so is left out when its turn comes
(`export`)."""

import inspect

import torch
import transformers as tr
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

import sweep_transformers
from sweep_transformers import Call, flat, tokens

WIDTH, HEADS, SIDE = 32, 4, 64
# Values of attributes by name; those of a list are repeated to the list's length.
SMALL = dict(
    vocab_size=99, hidden_size=WIDTH, d_model=WIDTH, dim=WIDTH, n_embd=WIDTH, emb_dim=WIDTH, embed_dim=WIDTH,
    encoder_hidden_size=WIDTH, decoder_hidden_size=WIDTH, attention_hidden_size=WIDTH, word_embed_proj_dim=WIDTH,
    projection_dim=16, num_hidden_layers=2, num_layers=2, n_layer=2, n_layers=2, encoder_layers=2, decoder_layers=2,
    num_encoder_layers=2, num_decoder_layers=2, num_attention_heads=HEADS, num_heads=HEADS, n_head=HEADS, n_heads=HEADS,
    encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, num_key_value_heads=2, head_dim=8, d_kv=8, d_ff=64,
    intermediate_size=64, encoder_ffn_dim=64, decoder_ffn_dim=64, ffn_dim=64, hidden_dim=64, moe_intermediate_size=16,
    shared_expert_intermediate_size=16, num_experts=4, num_local_experts=4, n_routed_experts=4, num_experts_per_tok=2,
    n_group=1, topk_group=1, max_position_embeddings=64, n_positions=64, max_source_positions=64,
    max_target_positions=64, image_size=SIDE, patch_size=8, num_mel_bins=16, n_mels=16, q_lora_rank=16, kv_lora_rank=16,
    qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=8, sliding_window=4, attention_window=4, rotary_dim=4,
    d_state=8, mamba_d_state=8, state_size=8, mamba_n_heads=8, mamba_d_head=8, num_queries=6, num_labels=5,
    hidden_sizes=[8, 16, 24, 32], embedding_size=16, prediction_length=4, context_length=16, num_detection_tokens=5,
    ffn_hidden_size=64, adapter_hidden_size=16, out_hidden_size=WIDTH, image_token_id=5, num_codebooks=2,
    bos_token_id=1, eos_token_id=2, pad_token_id=0, decoder_start_token_id=1, rnn_hidden_size=16,
    n_inner=64, dim_feedforward=64, cross_attention_hidden_size=WIDTH, decoder_ffn_intermediate=64, num_classes=5,
)
# Of types whose widths depend on each other: fewer layers alone.
COUNTS = {name: value for name, value in SMALL.items() if name.endswith('_layers') or name in (
    'n_layer', 'encoder_layers', 'decoder_layers', 'num_queries', 'num_experts', 'num_local_experts', 'vocab_size',
    'n_routed_experts')}
# Attributes that the constructor of some types has to be told.
TOLD = {
    'autoformer': dict(prediction_length=4, context_length=16), 'informer': dict(prediction_length=4, context_length=16),
    'time_series_transformer': dict(prediction_length=4, context_length=16), 'luke': dict(entity_vocab_size=20, entity_emb_size=32),
    'wav2vec2-bert': dict(vocab_size=32, feature_projection_input_dim=80),
    'xlstm': dict(hidden_size=32, num_heads=4, num_hidden_layers=2, num_blocks=2, vocab_size=99),
    'depth_anything': dict(neck_hidden_sizes=[8, 8, 16, 16], fusion_hidden_size=8, reassemble_hidden_size=32, head_hidden_size=8, backbone_config=tr.Dinov2Config(
        hidden_size=32, num_hidden_layers=4, num_attention_heads=4, image_size=56, patch_size=14,
        out_features=['stage1', 'stage2', 'stage3', 'stage4'], apply_layernorm=True, reshape_hidden_states=False)),
    'xmod': dict(default_language='en_XX', languages=['en_XX']), 'nemotron': dict(num_key_value_heads=4),
    'esm': dict(vocab_size=33, mask_token_id=32, pad_token_id=1, position_embedding_type='rotary'), 'layoutlmv3': dict(
        hidden_size=36, num_attention_heads=4, intermediate_size=64, num_hidden_layers=2, vocab_size=99,
        coordinate_size=6, shape_size=6, input_size=32, max_2d_position_embeddings=128),
}


# Types that TOLD makes small enough.
WHOLE = ('layoutlmv3', 'xlstm', 'depth_anything')


def shrink(config, small, seen=0):
    """Sets the attributes that `small` names, in parts, too."""
    for name, value in list(vars(config).items()):
        if isinstance(value, tr.PreTrainedConfig) and seen < 4:
            shrink(value, small, seen + 1)
            continue
        if name not in small or value is None:
            continue
        new = small[name]
        if isinstance(value, (list, tuple)):
            if isinstance(new, list):
                new = (new * len(value))[:len(value)] if len(value) != len(new) else new
            else:
                new = [new] * len(value)
        elif isinstance(new, list):
            continue
        try:
            setattr(config, name, new)
        except Exception:
            pass
    if small is SMALL and getattr(config, 'qk_rope_head_dim', None) and hasattr(config, 'head_dim'):
        config.head_dim = config.qk_rope_head_dim
    for name in ('layer_types', 'mlp_layer_types', 'layers_block_type', 'no_rope_layers'):
        layers = getattr(config, name, None)
        if isinstance(layers, (list, tuple)) and layers:
            kinds = list(dict.fromkeys(layers))
            count = max(2, len(kinds))
            try:
                config.num_hidden_layers = count
                setattr(config, name, (kinds * 2)[:count])
            except Exception:
                pass


HEADS_FIRST = ('MODEL_FOR_MASK_GENERATION_MAPPING_NAMES', 'MODEL_FOR_CAUSAL_LM_MAPPING_NAMES', 'MODEL_FOR_OBJECT_DETECTION_MAPPING_NAMES',
               'MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING_NAMES', 'MODEL_FOR_DEPTH_ESTIMATION_MAPPING_NAMES',
               'MODEL_FOR_UNIVERSAL_SEGMENTATION_MAPPING_NAMES', 'MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES',
               'MODEL_FOR_CTC_MAPPING_NAMES', 'MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES',
               'MODEL_FOR_TIME_SERIES_PREDICTION_MAPPING_NAMES', 'MODEL_FOR_VIDEO_CLASSIFICATION_MAPPING_NAMES',
               'MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES', 'MODEL_MAPPING_NAMES')


def classes(kind):
    """Names of model classes of a type, the most telling first."""
    found = []
    for mapping in HEADS_FIRST:
        names = getattr(modeling_auto, mapping, {}).get(kind, ())
        for name in [names] if isinstance(names, str) else names:
            if name not in found and hasattr(tr, name):
                found.append(name)
    return found


def inputs_of(model, config, batch, length):
    """{name: tensor} of the inputs that forward() cannot do without."""
    parameters = inspect.signature(model.forward).parameters
    vision = getattr(config, 'vision_config', None) or config
    side = getattr(vision, 'image_size', None) or 64
    side = side if isinstance(side, int) else list(side.values())[0] if isinstance(side, dict) else side[0]
    channels = getattr(vision, 'num_channels', 3) or 3
    frames = getattr(config, 'num_frames', None)
    made = {}
    main = getattr(model, 'main_input_name', 'input_ids')
    if 'input_ids' in parameters:
        made['input_ids'] = tokens(batch, length)
        if 'attention_mask' in parameters and 'pixel_values' not in parameters:
            made['attention_mask'] = torch.ones(batch, length, dtype=torch.int64)
    if 'bbox' in parameters:
        made['bbox'] = torch.randint(0, 50, (batch, length, 4)).cumsum(-1).clamp(max=99)
    if 'visual_feats' in parameters:
        made['visual_feats'] = torch.randn(batch, 5, config.visual_feat_dim)
        made['visual_pos'] = torch.rand(batch, 5, 4)
    if 'input_points' in parameters:
        made['input_points'] = torch.rand(batch, 1, 3, 2) * side
    if 'decoder_input_ids' in parameters:
        made['decoder_input_ids'] = tokens(batch, length - 2)
    for name in ('pixel_values', 'pixel_values_videos'):
        if name in parameters and (main == name or parameters[name].default is inspect.Parameter.empty or
                                   'input_ids' in made and 'pixel_values' == name and hasattr(config, 'projection_dim')):
            made[name] = torch.randn(batch, *([frames] if frames else []), channels, side, side)
    if 'input_features' in parameters and main == 'input_features':
        names = ('feature_projection_input_dim', 'num_mel_bins', 'feature_size')
        mel = next((v for name in names if (v := getattr(config, name, None))), 80)
        made['input_features'] = torch.randn(batch, mel, 128) if 'whisper' in config.model_type else \
            torch.randn(batch, 64, mel)
    if 'input_values' in parameters and main == 'input_values':
        if hasattr(config, 'feature_projection_input_dim'):
            made['input_values'] = torch.randn(batch, 20, config.feature_projection_input_dim)
        elif hasattr(config, 'num_mel_bins') and hasattr(config, 'max_length'):
            made['input_values'] = torch.randn(batch, config.max_length, config.num_mel_bins)
        elif 'padding_mask' in parameters:
            made['input_values'] = torch.randn(batch, 1, 960)
        else:
            made['input_values'] = torch.randn(batch, 1600)
    if 'past_values' in parameters and 'input_ids' not in made:
        steps = config.context_length + max([0, *(getattr(config, 'lags_sequence', None) or [])])
        wide = getattr(config, 'num_input_channels', 1) or 1
        made['past_values'] = torch.randn(batch, steps, wide) if wide > 1 or 'patch' in config.model_type else torch.randn(batch, steps)
        for name, shape in (('past_time_features', (batch, steps, config.num_time_features))
                            if hasattr(config, 'num_time_features') else (None, None),
                            ('past_observed_mask', tuple(made['past_values'].shape))):
            if name in parameters and parameters[name].default is inspect.Parameter.empty:
                made[name] = torch.ones(shape) if 'mask' in name else torch.randn(shape)
    return made


def attempt(name, config, small):
    shrink(config, small)
    with torch.device('meta'):
        size = sum(p.numel() for p in getattr(tr, name)(config).parameters())
    if size > 40e6:
        raise ValueError(f'{size:.0f} weights')
    torch.manual_seed(1)
    model = getattr(tr, name)(config).eval()
    model.config.return_dict = True
    sets = [inputs_of(model, config, n, t) for n, t in ((2, 7), (1, 12))]
    if not sets[0]:
        raise ValueError(f'{name}: inputs {model.main_input_name}')
    keys = list(sets[0])
    more = {'use_cache': False} if 'use_cache' in inspect.signature(model.forward).parameters else {}

    def call(m, *x):
        return flat(m(**dict(zip(keys, x)), **more))[:4]

    with torch.no_grad():
        for s in sets:
            if not call(model, *s.values()):
                raise ValueError(f'{name}: no outputs')
    return Call(model, call), [list(s.values()) for s in sets]


def make(kind):
    def build():
        errors = []
        for name in classes(kind):
            for small in (SMALL, COUNTS):
                try:
                    return attempt(name, CONFIG_MAPPING[kind](**TOLD.get(kind, {})), {} if kind in WHOLE else small)
                except Exception as e:
                    errors.append(f'{name}: {type(e).__name__} {str(e)[:200]}')
        raise RuntimeError('; '.join(errors) or 'no class')
    return build


def models(Model):
    known = {getattr(tr, c + 'Config').model_type
             for c in [v[0] for v in sweep_transformers.ENCODERS.values()]
             + [v[1] for v in sweep_transformers.DECODERS.values() if len(v) == 3]
             + [v[1] for v in sweep_transformers.VISION.values()]}
    return {kind: Model(make(kind), 'differing') for kind in CONFIG_MAPPING_NAMES if kind not in known and classes(kind)}
