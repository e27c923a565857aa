"""Networks of libraries for sweep.py, small: segmentation_models_pytorch, diffusers, monai, open_clip, torchaudio, kornia,
facenet_pytorch, ultralytics."""
import torch
from torch import nn


def rand(*sizes):
    return torch.randn(*sizes)


class Call(nn.Module):
    """`function(module, *inputs)`; of dictionaries and other outputs the tensors."""

    def __init__(self, module, function=None):
        super().__init__()
        self.module, self.function = module, function or (lambda m, *x: m(*x))

    def forward(self, *x):
        y = self.function(self.module, *x)
        y = getattr(y, 'sample', y)
        if isinstance(y, dict):
            y = tuple(y.values())
        if isinstance(y, (tuple, list)):
            y = tuple(t for t in torch.utils._pytree.tree_leaves(y) if isinstance(t, torch.Tensor))
        return y[0] if isinstance(y, tuple) and len(y) == 1 else y


def segmentation():
    import segmentation_models_pytorch as smp
    from sweep_torchvision import calm
    found = {}

    def add(name, make, *sizes):
        for form, used in (('', sizes[:1]), ('-sizes', sizes)):
            if form and len(sizes) == 1:
                continue
            found[f'smp-{name}{form}'] = (lambda m=make, u=used: (calm(m()), [[rand(1, 3, s, s)] for s in u]), 'differing' if form else None)
    for kind in ('Unet', 'UnetPlusPlus', 'MAnet', 'Linknet', 'FPN', 'PSPNet', 'PAN', 'DeepLabV3', 'DeepLabV3Plus', 'UPerNet', 'Segformer'):
        size = 128 if kind in ('PAN', 'MAnet') else 64
        add(kind, lambda k=kind: getattr(smp, k)('resnet18', encoder_weights=None, classes=3), size, 2 * size)
    add('DPT', lambda: smp.DPT('tu-vit_tiny_patch16_224', encoder_weights=None, classes=3, encoder_depth=4, dynamic_img_size=False), 224)
    add('Unet-scse', lambda: smp.Unet('mobilenet_v2', encoder_weights=None, decoder_attention_type='scse'), 64, 96)
    add('Unet-aux', lambda: smp.Unet('timm-efficientnet-b0', encoder_weights=None, aux_params=dict(classes=4)), 64)
    for encoder in ('se_resnet50', 'dpn68', 'vgg11_bn', 'densenet121', 'inceptionv4', 'mobileone_s0', 'xception', 'mit_b0', 'timm-regnetx_002', 'timm-gernet_s'):
        add(f'FPN-{encoder}', lambda e=encoder: smp.FPN(e, encoder_weights=None), 128)
    return found


def diffusion():
    import diffusers as d
    image = lambda c=4, s=16: rand(1, c, s, s)
    small = dict(block_out_channels=(16, 32), layers_per_block=1, norm_num_groups=8)
    time = lambda: torch.tensor([7])
    text = lambda w=16, n=5: rand(1, n, w)
    found = {}

    def add(name, kind, arguments, inputs, function=None, sets=1, dynamic=None):
        found[f'diffusers-{name}'] = (lambda: (Call(getattr(d, kind)(**arguments), function), [inputs(*a) for a in ([()] if sets == 1 else sets)]), dynamic)
    add('UNet2D', 'UNet2DModel', dict(sample_size=16, in_channels=3, out_channels=3, down_block_types=('DownBlock2D', 'AttnDownBlock2D'),
                                      up_block_types=('AttnUpBlock2D', 'UpBlock2D'), attention_head_dim=8, **small), lambda: [image(3), time()])
    add('UNet2D-resnet', 'UNet2DModel', dict(sample_size=16, in_channels=3, out_channels=3, down_block_types=('ResnetDownsampleBlock2D', 'AttnDownBlock2D'),
                                             up_block_types=('AttnUpBlock2D', 'ResnetUpsampleBlock2D'), attention_head_dim=8,
                                             resnet_time_scale_shift='scale_shift', time_embedding_type='fourier', **small), lambda: [image(3), torch.tensor([.3])])
    condition = dict(sample_size=16, cross_attention_dim=16, attention_head_dim=4, down_block_types=('CrossAttnDownBlock2D', 'DownBlock2D'),
                     up_block_types=('UpBlock2D', 'CrossAttnUpBlock2D'), **small)
    add('UNet2DCondition', 'UNet2DConditionModel', condition, lambda: [image(), time(), text()])
    add('UNet2DCondition-sizes', 'UNet2DConditionModel', condition, lambda s=16, n=5: [image(s=s), time(), text(n=n)], sets=[(16, 5), (32, 7)], dynamic='differing')
    add('UNet2DCondition-linear', 'UNet2DConditionModel', dict(condition, use_linear_projection=True, class_embed_type='timestep', transformer_layers_per_block=2),
        lambda: [image(), time(), text(), torch.tensor([3.])], lambda m, x, t, e, c: m(x, t, e, class_labels=c))
    add('UNet2DCondition-xl', 'UNet2DConditionModel', dict(condition, addition_embed_type='text_time', addition_time_embed_dim=8, projection_class_embeddings_input_dim=64),
        lambda: [image(), time(), text(), rand(1, 16), rand(1, 6)], lambda m, x, t, e, p, i: m(x, t, e, added_cond_kwargs=dict(text_embeds=p, time_ids=i)))
    add('UNet3DCondition', 'UNet3DConditionModel', dict(sample_size=16, cross_attention_dim=16, attention_head_dim=4, down_block_types=('CrossAttnDownBlock3D', 'DownBlock3D'),
                                                        up_block_types=('UpBlock3D', 'CrossAttnUpBlock3D'), **small), lambda: [rand(1, 4, 3, 16, 16), time(), text()])
    add('UNetSpatioTemporal', 'UNetSpatioTemporalConditionModel',
        dict(sample_size=16, in_channels=4, cross_attention_dim=16, num_attention_heads=(2, 2), block_out_channels=(32, 64), layers_per_block=1,
             addition_time_embed_dim=8, projection_class_embeddings_input_dim=24, down_block_types=('CrossAttnDownBlockSpatioTemporal', 'DownBlockSpatioTemporal'),
             up_block_types=('UpBlockSpatioTemporal', 'CrossAttnUpBlockSpatioTemporal')),
        lambda: [rand(1, 2, 4, 16, 16), time(), text(n=1), rand(1, 3)])
    add('UNet1D', 'UNet1DModel', dict(sample_size=32, block_out_channels=(16, 16, 32), extra_in_channels=16, use_timestep_embedding=False, in_channels=2, out_channels=2), lambda: [rand(1, 2, 64), time()])
    add('ControlNet', 'ControlNetModel', dict(cross_attention_dim=16, attention_head_dim=4, down_block_types=('CrossAttnDownBlock2D', 'DownBlock2D'),
                                              conditioning_embedding_out_channels=(8, 16), **small), lambda: [image(), time(), text(), rand(1, 3, 32, 32)])
    vae = dict(block_out_channels=(16, 32), norm_num_groups=8, down_block_types=('DownEncoderBlock2D', ) * 2, up_block_types=('UpDecoderBlock2D', ) * 2)
    encode, decode = (lambda m, x: m.encode(x).latent_dist.mode()), (lambda m, x: m.decode(x).sample)
    add('AutoencoderKL-encode', 'AutoencoderKL', vae, lambda s=32: [image(3, s)], encode, [(32, ), (48, )], 'differing')
    add('AutoencoderKL-decode', 'AutoencoderKL', vae, lambda s=8: [image(4, s)], decode, [(8, ), (12, )], 'differing')
    add('AsymmetricAutoencoderKL', 'AsymmetricAutoencoderKL', dict(down_block_out_channels=(16, 32), up_block_out_channels=(16, 32), norm_num_groups=8,
                                                                   down_block_types=('DownEncoderBlock2D', ) * 2, up_block_types=('UpDecoderBlock2D', ) * 2), lambda: [image(3, 32)])
    add('AutoencoderTiny', 'AutoencoderTiny', dict(encoder_block_out_channels=(16, 16), decoder_block_out_channels=(16, 16), num_encoder_blocks=(1, 1), num_decoder_blocks=(1, 1)), lambda: [image(3, 32)])
    add('AutoencoderDC', 'AutoencoderDC', dict(latent_channels=8, encoder_block_out_channels=(16, 32), decoder_block_out_channels=(16, 32), attention_head_dim=8,
                                               encoder_block_types=('ResBlock', 'EfficientViTBlock'), decoder_block_types=('ResBlock', 'EfficientViTBlock'),
                                               encoder_layers_per_block=(1, 1), decoder_layers_per_block=(1, 1), encoder_qkv_multiscales=((), (5, )), decoder_qkv_multiscales=((), (5, )),
                                               upsample_block_type='interpolate'), lambda: [image(3, 32)])
    add('ConsistencyDecoder', 'ConsistencyDecoderVAE', dict(encoder_block_out_channels=(16, 32), decoder_block_out_channels=(16, 32), encoder_down_block_types=('DownEncoderBlock2D', ) * 2,
                                                           decoder_down_block_types=('ResnetDownsampleBlock2D', ) * 2, decoder_up_block_types=('ResnetUpsampleBlock2D', ) * 2,
                                                           decoder_norm_num_groups=8, encoder_norm_num_groups=8, decoder_layers_per_block=1), lambda: [image(3, 32)], encode)
    add('VQModel', 'VQModel', dict(block_out_channels=(16, 32), norm_num_groups=8, num_vq_embeddings=32, down_block_types=('DownEncoderBlock2D', ) * 2,
                                   up_block_types=('UpDecoderBlock2D', ) * 2), lambda: [image(3, 32)])
    add('AutoencoderKLTemporalDecoder', 'AutoencoderKLTemporalDecoder', dict(block_out_channels=(32, 32), down_block_types=('DownEncoderBlock2D', ) * 2), lambda: [rand(2, 4, 8, 8)],
        lambda m, x: m.decode(x, num_frames=2).sample)
    heads = dict(num_attention_heads=2, attention_head_dim=8)
    add('DiT', 'DiTTransformer2DModel', dict(sample_size=8, num_layers=2, num_embeds_ada_norm=10, norm_num_groups=8, **heads), lambda: [image(4, 8), time(), torch.tensor([3])],
        lambda m, x, t, c: m(x, timestep=t, class_labels=c))
    add('PixArt', 'PixArtTransformer2DModel', dict(sample_size=8, num_layers=2, cross_attention_dim=16, caption_channels=16, norm_num_groups=8, **heads), lambda: [image(4, 8), text(), time()],
        lambda m, x, e, t: m(x, e, timestep=t, added_cond_kwargs={}))
    add('SD3', 'SD3Transformer2DModel', dict(sample_size=16, in_channels=4, out_channels=4, num_layers=2, joint_attention_dim=16, caption_projection_dim=16, pooled_projection_dim=16,
                                             **heads), lambda: [image(4, 16), text(), rand(1, 16), time()])
    add('Flux', 'FluxTransformer2DModel', dict(in_channels=16, num_layers=1, num_single_layers=1, joint_attention_dim=16, pooled_projection_dim=16, axes_dims_rope=(2, 2, 4), **heads),
        lambda: [rand(1, 16, 16), text(), rand(1, 16), torch.tensor([.5]), rand(16, 3).abs(), torch.zeros(5, 3)],
        lambda m, x, e, p, t, i, j: m(x, e, p, t, img_ids=i, txt_ids=j))
    add('HunyuanDiT', 'HunyuanDiT2DModel', dict(sample_size=8, num_layers=2, cross_attention_dim=16, cross_attention_dim_t5=16, pooled_projection_dim=16, hidden_size=16,
                                                text_len=5, text_len_t5=5, **heads),
        lambda: [image(4, 8), time(), text(), torch.ones(1, 5), text(), torch.ones(1, 5), rand(1, 6), torch.tensor([0]), rand(16, 8), rand(16, 8)],
        lambda m, x, t, e, em, f, fm, s, k, c, r: m(x, t, e, em, f, fm, s, k, (c, r)))
    add('Sana', 'SanaTransformer2DModel', dict(sample_size=8, in_channels=4, out_channels=4, num_layers=2, num_cross_attention_heads=2, cross_attention_head_dim=8, cross_attention_dim=16,
                                               caption_channels=16, patch_size=1, **heads), lambda: [image(4, 8), text(), time()])
    add('Prior', 'PriorTransformer', dict(num_layers=2, embedding_dim=16, num_embeddings=5, **heads), lambda: [rand(1, 16), time(), rand(1, 16), text()],
        lambda m, x, t, p, e: m(x, t, p, e).predicted_image_embedding)
    add('Transformer2D', 'Transformer2DModel', dict(in_channels=16, num_layers=1, cross_attention_dim=16, norm_num_groups=8, **heads), lambda: [rand(1, 16, 8, 8), text()])
    add('TransformerTemporal', 'TransformerTemporalModel', dict(in_channels=16, num_layers=1, norm_num_groups=8, **heads), lambda: [rand(4, 16, 8, 8)],
        lambda m, x: m(x, num_frames=4).sample)
    add('StableCascade', 'StableCascadeUNet', dict(in_channels=4, out_channels=4, block_out_channels=(16, 16), num_attention_heads=(2, 2), down_num_layers_per_block=(1, 1),
                                                   up_num_layers_per_block=(1, 1), down_blocks_repeat_mappers=(1, 1), up_blocks_repeat_mappers=(1, 1), conditioning_dim=16, clip_text_in_channels=16,
                                                   clip_text_pooled_in_channels=16, clip_image_in_channels=16, timestep_ratio_embedding_dim=8,
                                                   block_types_per_layer=(('SDCascadeResBlock', 'SDCascadeTimestepBlock', 'SDCascadeAttnBlock'), ) * 2),
        lambda: [image(4, 16), torch.tensor([.5]), text(n=1), text(n=3), text(n=1)], lambda m, x, t, p, e, i: m(x, t, p, e, i))
    add('Wuerstchen-paella', 'UVit2DModel', dict(hidden_size=16, encoder_hidden_size=16, cond_embed_dim=16, micro_cond_encode_dim=4, micro_cond_embed_dim=20, vocab_size=32, codebook_size=31,
                                                 in_channels=16, block_out_channels=16, block_num_heads=2, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_res_blocks=1),
        lambda: [torch.randint(0, 31, (1, 8, 8)), text(), rand(1, 16), rand(1, 5)])
    return found


def medical():
    import monai.networks.nets as n
    found = {}

    def add(name, make, *shape, sizes=None):
        found[f'monai-{name}'] = (lambda: (Call(make()), [[rand(1, *shape)]]), None)
        if sizes:
            found[f'monai-{name}-sizes'] = (lambda: (Call(make()), [[rand(1, *shape)], [rand(1, *sizes)]]), 'differing')
    unet = dict(in_channels=1, out_channels=2, channels=(8, 16, 32), strides=(2, 2))
    add('UNet2', lambda: n.UNet(2, num_res_units=1, **unet), 1, 32, 32, sizes=(1, 48, 64))
    add('UNet3', lambda: n.UNet(3, num_res_units=2, norm='batch', **unet), 1, 16, 16, 16, sizes=(1, 24, 32, 16))
    add('AttentionUnet', lambda: n.AttentionUnet(2, **unet), 1, 32, 32)
    add('BasicUNet', lambda: n.BasicUNet(3, 1, 2, (8, 8, 16, 16, 32, 8)), 1, 32, 32, 32)
    add('BasicUNetPlusPlus', lambda: n.BasicUNetPlusPlus(2, 1, 2, (8, 8, 16, 16, 32, 8)), 1, 32, 32)
    add('DynUNet', lambda: n.DynUNet(3, 1, 2, [3] * 3, [1, 2, 2], [2, 2], filters=[8, 16, 16], res_block=True), 1, 16, 16, 16)
    add('SegResNet', lambda: n.SegResNet(3, 8, in_channels=1), 1, 16, 16, 16)
    add('SegResNetDS', lambda: n.SegResNetDS(3, 8, 1, 2, blocks_down=(1, 1, 1)), 1, 16, 16, 16)
    add('VNet', lambda: n.VNet(3, 1, 2), 1, 32, 32, 32)
    add('HighResNet', lambda: n.HighResNet(3, 1, 2), 1, 16, 16, 16)
    add('UNETR', lambda: n.UNETR(1, 2, (32, 32, 32), feature_size=8, hidden_size=24, mlp_dim=32, num_heads=2), 1, 32, 32, 32)
    add('SwinUNETR', lambda: n.SwinUNETR(1, 2, feature_size=12, depths=(2, 2, 2, 2), num_heads=(2, 2, 2, 2), spatial_dims=2), 1, 64, 64)
    add('SwinUNETR3', lambda: n.SwinUNETR(1, 2, feature_size=12, depths=(1, 1, 1, 1), num_heads=(2, 2, 2, 2), use_v2=True), 1, 64, 64, 64)
    add('AHNet', lambda: n.AHNet(spatial_dims=3, psp_block_num=2, upsample_mode='trilinear'), 1, 32, 32, 64)
    add('ViT', lambda: n.ViT(1, (16, 16, 16), (8, 8, 8), hidden_size=24, mlp_dim=32, num_layers=2, num_heads=2, classification=True), 1, 16, 16, 16)
    add('ViTAutoEnc', lambda: n.ViTAutoEnc(1, (16, 16), (4, 4), hidden_size=24, mlp_dim=32, num_layers=2, num_heads=2, spatial_dims=2), 1, 16, 16)
    add('MILModel', lambda: n.MILModel(3, mil_mode='att_trans', pretrained=False), 4, 3, 64, 64)
    add('FlexibleUNet', lambda: n.FlexibleUNet(3, 2, 'efficientnet-b0', pretrained=False), 3, 64, 64)
    add('SENet', lambda: n.SEResNet50(spatial_dims=3, in_channels=1, num_classes=3), 1, 32, 32, 32)
    add('DenseNet', lambda: n.DenseNet121(3, 1, 3, init_features=8, growth_rate=4, block_config=(2, 2, 2)), 1, 32, 32, 32)
    add('MedNeXt', lambda: n.MedNeXt(3, 8, 1, 2), 1, 32, 32, 32)
    add('Regressor', lambda: n.Regressor((1, 32, 32), (2, ), (4, 8), (2, 2)), 1, 32, 32)
    add('VarAutoEncoder', lambda: n.VarAutoEncoder(2, (1, 32, 32), 1, 4, (4, 8), (2, 2), use_sigmoid=True), 1, 32, 32)
    add('RegUNet', lambda: n.RegUNet(2, 2, 8, 2, out_channels=2), 2, 32, 32)
    add('GlobalNet', lambda: n.GlobalNet((32, 32), 2, 2, 8, 2), 2, 32, 32)
    add('LocalNet', lambda: n.LocalNet(2, 2, 8, (0, 1), out_channels=2), 2, 32, 32)
    return found


def clip():
    import open_clip
    found = {}
    vision = dict(image_size=32, layers=2, width=32, patch_size=8, head_width=16)
    text = dict(context_length=7, vocab_size=50, width=32, heads=2, layers=2)
    forms = {
        'ViT': (vision, text), 'pool': (dict(vision, pool_type='avg', no_ln_pre=True), dict(text, pool_type='last')),
        'attentional': (dict(vision, attentional_pool=True, attn_pooler_heads=2), text), 'resnet': (dict(image_size=64, layers=[1, 1, 1, 1], width=16), text),
        'timm': (dict(timm_model_name='convnext_atto', timm_model_pretrained=False, image_size=64, timm_pool='', timm_proj='linear'), dict(text, no_causal_mask=True)),
        'patchdropout': (dict(vision, patch_dropout=0.5), dict(text, act_kwargs=dict(approximate='tanh'))),
    }
    for name, (v, t) in forms.items():
        def make(v=v, t=t):
            model = open_clip.CLIP(16, open_clip.CLIPVisionCfg(**v), open_clip.CLIPTextCfg(**t))
            return Call(model, lambda m, x, y: (m.encode_image(x, normalize=True), m.encode_text(y))), [[rand(2, 3, v['image_size'], v['image_size']), torch.randint(1, 50, (2, 7))]]
        found[f'clip-{name}'] = (make, None)
    return found


def audio():
    import torchaudio
    m, t = torchaudio.models, torchaudio.transforms
    found = {}

    def add(name, make, inputs, function=None, sets=((), ), dynamic=None):
        found[f'audio-{name}'] = (lambda: (Call(make(), function), [inputs(*a) for a in sets]), dynamic)
    wav2vec = dict(extractor_mode='group_norm', extractor_conv_layer_config=[(16, 10, 5), (16, 3, 2)], extractor_conv_bias=False, encoder_embed_dim=32, encoder_projection_dropout=0.,
                   encoder_pos_conv_kernel=8, encoder_pos_conv_groups=4, encoder_num_layers=2, encoder_num_heads=2, encoder_attention_dropout=0., encoder_ff_interm_features=32,
                   encoder_ff_interm_dropout=0., encoder_dropout=0., encoder_layer_norm_first=False, encoder_layer_drop=0., aux_num_out=8)
    wave = lambda n=800: [rand(1, n)]
    lengths = ((800, ), (1203, ))
    add('wav2vec2', lambda: m.wav2vec2_model(**wav2vec), wave, None, lengths, 'differing')
    add('wav2vec2-norm', lambda: m.wav2vec2_model(**dict(wav2vec, extractor_mode='layer_norm', encoder_layer_norm_first=True)), wave, None, lengths, 'differing')
    add('wavlm', lambda: m.wavlm_model(**{k: v for k, v in wav2vec.items()}, encoder_num_buckets=32, encoder_max_distance=80), wave)
    add('conformer', lambda: m.Conformer(16, 2, 32, 2, 7), lambda: [rand(1, 20, 16), torch.tensor([20])])
    add('emformer', lambda: m.Emformer(16, 2, 32, 2, 4, right_context_length=1), lambda: [rand(1, 21, 16), torch.tensor([20])])
    add('rnnt', lambda: m.emformer_rnnt_model(input_dim=16, encoding_dim=16, num_symbols=10, segment_length=8, right_context_length=2, time_reduction_input_dim=8, time_reduction_stride=2,
                                              transformer_num_heads=2, transformer_ffn_dim=16, transformer_num_layers=1, transformer_dropout=0., transformer_activation='gelu',
                                              transformer_left_context_length=4, transformer_max_memory_size=0, transformer_weight_init_scale_strategy='depthwise', transformer_tanh_on_mem=True,
                                              symbol_embedding_dim=8, num_lstm_layers=1, lstm_layer_norm=True, lstm_layer_norm_epsilon=1e-3, lstm_dropout=0.) if hasattr(m, 'emformer_rnnt_model') else nn.Identity(),
        lambda: [rand(1, 18, 16), torch.tensor([16])], lambda model, x, n: model.transcribe(x, n))
    add('convtasnet', lambda: m.ConvTasNet(2, 16, 32, 3, 16, 16, 3, 2), lambda: [rand(1, 1, 800)])
    add('hdemucs', lambda: m.HDemucs(['a', 'b'], channels=8, depth=6, nfft=4096), lambda: [rand(1, 2, 16384)])
    add('deepspeech', lambda: m.DeepSpeech(16, 32, 10), lambda: [rand(1, 1, 20, 16)])
    add('wav2letter', lambda: m.Wav2Letter(10, 'mfcc', 16), lambda: [rand(1, 16, 200)])
    add('wavernn', lambda: m.WaveRNN([2, 2, 5], 16, 20, 1, 16, 16, 9, 8, 16, 16), lambda: [rand(1, 1, 100), rand(1, 1, 9, 9)])
    add('tacotron-encoder', lambda: m.Tacotron2(n_symbol=20, symbol_embedding_dim=16, encoder_embedding_dim=16), lambda: [torch.randint(0, 20, (1, 9))],
        lambda model, x: model.encoder(model.embedding(x).transpose(1, 2), torch.tensor([9])))
    add('squim', lambda: m.squim_objective_model(feat_dim=16, win_len=16, d_model=16, nhead=2, hidden_dim=16, num_blocks=1, rnn_type='LSTM', chunk_size=11), lambda: [rand(1, 800)])
    for name, make in {'Spectrogram': lambda: t.Spectrogram(64), 'MelSpectrogram': lambda: t.MelSpectrogram(16000, 64, n_mels=8), 'MFCC': lambda: t.MFCC(16000, 8, melkwargs=dict(n_fft=64, n_mels=8)),
                       'Resample': lambda: t.Resample(16000, 12000), 'AmplitudeToDB': lambda: t.AmplitudeToDB(), 'MuLaw': lambda: t.MuLawEncoding(64), 'Deltas': lambda: t.ComputeDeltas(5),
                       'Vad-Fade': lambda: t.Fade(100, 100), 'Preemphasis': lambda: t.Preemphasis(), 'InverseSpectrogram': lambda: nn.Sequential(t.Spectrogram(64, power=None), t.InverseSpectrogram(64)),
                       'PitchShift': lambda: t.SpectralCentroid(16000, 64), 'SlidingWindowCmn': lambda: nn.Sequential(t.MelSpectrogram(16000, 64, n_mels=8), t.SlidingWindowCmn(20))}.items():
        add(name, make, wave, None, lengths, 'differing')
    return found


def matching():
    import kornia as k
    found = {}

    def add(name, make, *inputs, function=None):
        found[f'kornia-{name}'] = (lambda: (Call(make(), function), [[i() if callable(i) else i for i in inputs]]), None)
    gray, color = (lambda s=64: torch.rand(1, 1, s, s)), (lambda s=64: torch.rand(1, 3, s, s))
    patches = lambda: torch.rand(3, 1, 32, 32)
    f = k.feature
    for name in ('HardNet', 'SOSNet', 'TFeat', 'HyNet', 'HardNet8'):
        add(name, lambda n=name: getattr(f, n)(pretrained=False), patches)
    add('SIFT', lambda: f.SIFTDescriptor(32), patches)
    add('MKD', lambda: f.MKDDescriptor(32, whitening=None), patches)
    add('DISK', lambda: f.DISK(), lambda: color(), function=lambda m, x: m.heatmap_and_dense_descriptors(x))
    add('KeyNet', lambda: f.KeyNet(pretrained=False), lambda: gray())
    add('LoFTR', lambda: f.LoFTR(pretrained=None), lambda: gray(), lambda: gray(), function=lambda m, a, b: m.backbone(torch.cat([a, b])))
    add('LightGlue-encoding', lambda: f.lightglue.LearnableFourierPositionalEncoding(2, 16, 16), lambda: rand(1, 7, 2))
    add('TinyViT', lambda: k.contrib.TinyViT(img_size=64, num_classes=5, embed_dims=(16, 32, 32, 64), depths=(1, 1, 1, 1), num_heads=(1, 2, 2, 4), window_sizes=(4, 4, 4, 2)), lambda: color())
    for name, call in {
            'hsv': lambda m, x: k.color.rgb_to_hsv(x), 'hls': lambda m, x: k.color.rgb_to_hls(x), 'lab': lambda m, x: k.color.rgb_to_lab(x), 'luv': lambda m, x: k.color.rgb_to_luv(x),
            'yuv': lambda m, x: k.color.rgb_to_yuv420(x), 'xyz': lambda m, x: k.color.rgb_to_xyz(x), 'sepia': lambda m, x: k.color.sepia(x), 'of-hsv': lambda m, x: k.color.hsv_to_rgb(x),
            'blur': lambda m, x: k.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)), 'median': lambda m, x: k.filters.median_blur(x, (3, 3)), 'sobel': lambda m, x: k.filters.sobel(x),
            'canny': lambda m, x: k.filters.canny(x), 'laplacian': lambda m, x: k.filters.laplacian(x, 3), 'bilateral': lambda m, x: k.filters.bilateral_blur(x, (3, 3), .1, (1.5, 1.5)),
            'guided': lambda m, x: k.filters.guided_blur(x, x, 3, .1), 'motion': lambda m, x: k.filters.motion_blur(x, 5, 35., .5), 'unsharp': lambda m, x: k.filters.unsharp_mask(x, (3, 3), (1.5, 1.5)),
            'dilation': lambda m, x: k.morphology.dilation(x, torch.ones(3, 3)), 'opening': lambda m, x: k.morphology.opening(x, torch.ones(3, 3)),
            'gradient': lambda m, x: k.morphology.gradient(x, torch.ones(3, 3)), 'rotate': lambda m, x: k.geometry.rotate(x, torch.tensor([30.])),
            'warp': lambda m, x: k.geometry.warp_perspective(x, torch.tensor([[[1., .1, 2], [.05, 1, 1], [1e-3, 0, 1]]]), (48, 56)),
            'affine': lambda m, x: k.geometry.warp_affine(x, torch.tensor([[[1., .1, 2], [.05, 1, 1]]]), (48, 56)),
            'pyramid': lambda m, x: tuple(k.geometry.build_pyramid(x, 3)), 'elastic': lambda m, x: k.geometry.elastic_transform2d(x, x[:, :2] * 2 - 1),
            'undistort': lambda m, x: k.geometry.undistort_image(x, torch.tensor([[[50., 0, 32], [0, 50, 32], [0, 0, 1]]]), torch.tensor([[.1, .01, 0, 0]])),
            'equalize': lambda m, x: k.enhance.equalize_clahe(x, grid_size=(2, 2)), 'gamma': lambda m, x: k.enhance.adjust_gamma(x, 1.7), 'hue': lambda m, x: k.enhance.adjust_hue(x, .5),
            'solarize': lambda m, x: k.enhance.solarize(x), 'posterize': lambda m, x: k.enhance.posterize(x, 3), 'sharpness': lambda m, x: k.enhance.sharpness(x, .7),
            'zca': lambda m, x: k.enhance.normalize_min_max(x), 'ssim': lambda m, x: k.metrics.ssim(x, x.flip(-1), 5), 'histogram': lambda m, x: k.enhance.image_histogram2d(x[0, 0], 0., 1., 16),
            'harris': lambda m, x: f.harris_response(x[:, :1]), 'hessian': lambda m, x: f.hessian_response(x[:, :1]), 'nms': lambda m, x: k.geometry.nms2d(x, (3, 3)),
            'softargmax': lambda m, x: k.geometry.conv_soft_argmax2d(x, (3, 3), (1, 1), (1, 1)), 'spatialmax': lambda m, x: k.geometry.spatial_soft_argmax2d(x),
            'distance': lambda m, x: k.contrib.distance_transform(x), 'connected': lambda m, x: k.contrib.connected_components((x[:, :1] > .5).float(), 10),
            'quaternion': lambda m, x: k.geometry.quaternion_to_rotation_matrix(x[0, 0, :, :4]), 'axis': lambda m, x: k.geometry.axis_angle_to_rotation_matrix(x[0, 0, :, :3]),
            'depth': lambda m, x: k.geometry.depth_to_3d_v2(x[0, 0] + 1, torch.tensor([[50., 0, 32], [0, 50, 32], [0, 0, 1]])),
            'homography': lambda m, x: k.geometry.transform_points(torch.tensor([[[1., .1, 2], [.05, 1, 1], [1e-3, 0, 1]]]), x[:, 0, :, :2])}.items():
        add(f'image-{name}', nn.Identity, lambda: color(), function=call)
    return found


def faces():
    from facenet_pytorch.models import inception_resnet_v1, mtcnn
    found = {f'facenet-{n}': (lambda n=n, s=s: (getattr(mtcnn, n)(pretrained=False), [[rand(1, 3, s, s)]]), None) for n, s in (('PNet', 48), ('RNet', 24), ('ONet', 48))}
    found['facenet-PNet-sizes'] = (lambda: (mtcnn.PNet(pretrained=False), [[rand(1, 3, 48, 40)], [rand(1, 3, 31, 64)]]), 'differing')
    found['facenet-resnet'] = (lambda: (inception_resnet_v1.InceptionResnetV1(pretrained=None), [[rand(1, 3, 160, 160)]]), None)
    return found


def detectors():
    from ultralytics.nn import tasks
    found = {}

    def add(file, kind='DetectionModel', size=64, sizes=None, end2end=None):
        def make(used):
            net = getattr(tasks, kind)(file, verbose=False)
            for part in net.modules():
                if hasattr(part, 'export'):
                    part.export, part.format = True, 'onnx'
                    part.dynamic = len(used) > 1
            return Call(net), [[torch.rand(1, 3, *s)] for s in used]
        name = file.removesuffix('.yaml')
        found[f'yolo-{name}'] = (lambda: make([(size, size)]), None)
        if sizes:
            found[f'yolo-{name}-sizes'] = (lambda: make(sizes), 'differing')
    both = [(64, 64), (64, 96)]
    add('yolov3-tiny.yaml')
    for name in ('yolov5n', 'yolov6n', 'yolov8n', 'yolov9t', 'yolov10n', 'yolo11n', 'yolo12n', 'yolo26n'):
        add(f'{name}.yaml', sizes=both)
    for task, kind in (('seg', 'SegmentationModel'), ('pose', 'PoseModel'), ('obb', 'OBBModel'), ('cls', 'ClassificationModel')):
        add(f'yolov8n-{task}.yaml', kind)
        add(f'yolo11n-{task}.yaml', kind)
    add('yolov8-world.yaml', 'WorldModel')
    add('yolov8-ghost.yaml')
    add('yolov8n-p6.yaml', size=128)
    add('rtdetr-resnet50.yaml', 'RTDETRDetectionModel', size=128)
    add('rtdetr-l.yaml', 'RTDETRDetectionModel', size=128)
    return found


def models(Model):
    found = {}
    for family in (segmentation, diffusion, medical, clip, audio, matching, faces, detectors):
        try:
            found.update(family())
        except ImportError as e:
            print(f'{family.__name__} left out: {e}')
    return {name: Model(make, dynamic) for name, (make, dynamic) in found.items()}
