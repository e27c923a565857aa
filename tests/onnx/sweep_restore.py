"""Networks of spandrel (super-resolution and restoration of images) for sweep.py, with few blocks: at one size, and at any."""
import importlib

import torch

# folder: (module, class, size of a square input, arguments)
NETWORKS = {
    'ATD': ('atd_arch', 'ATD', 16, dict(embed_dim=24, depths=(2, 2), num_heads=(2, 2), category_size=32, num_tokens=8, upscale=2, upsampler='pixelshuffledirect')),
    'CRAFT': ('CRAFT', 'CRAFT', 32, dict(depths=[2, 2], num_heads=[6, 6])),
    'Compact': ('SRVGG', 'SRVGGNetCompact', 24, dict(num_conv=4)),
    'DAT': ('DAT', 'DAT', 32, dict(img_size=32, depth=[2, 2], num_heads=[4, 4], split_size=[4, 8], embed_dim=48, expansion_factor=2)),
    'DCTLSA': ('dctlsa', 'DCTLSA', 32, {}),
    'DITN': ('DITN_Real', 'DITN_Real', 32, dict(ITL_blocks=1, SAL_blocks=1)),
    'DRCT': ('drct_arch', 'DRCT', 16, dict(img_size=16, embed_dim=24, depths=(6, ), num_heads=(6, ), window_size=8, gc=12, upscale=2, upsampler='pixelshuffle')),
    'DRUNet': ('network_unet', 'DRUNet', 32, dict(nc=[8, 16, 16, 32], nb=1)),
    'DnCNN': ('network_dncnn', 'DnCNN', 24, dict(nb=5)),
    'ESRGAN': ('RRDB', 'RRDBNet', 24, dict(num_blocks=2, num_filters=16)),
    'FBCNN': ('FBCNN', 'FBCNN', 32, dict(nb=1)),
    'FDAT': ('fdat', 'FDAT', 32, dict(embed_dim=32, num_groups=1, depth_per_group=2)),
    'FFTformer': ('fftformer_arch', 'FFTformer', 32, dict(dim=16, num_blocks=[1, 1, 1], num_refinement_blocks=1)),
    'GFPGAN': ('gfpganv1_clean_arch', 'GFPGANv1Clean', 64, dict(out_size=64, num_style_feat=64, channel_multiplier=1, narrow=0.125, different_w=True)),
    'GRL': ('grl', 'GRL', 32, dict(img_size=32, embed_dim=24, depths=[2], num_heads_window=[2], num_heads_stripe=[2])),
    'HAT': ('HAT', 'HAT', 32, dict(compress_ratio=3, squeeze_factor=4, img_size=32, embed_dim=24, depths=(2, ), num_heads=(2, ), window_size=8, upscale=2, upsampler='pixelshuffle')),
    'HVICIDNet': ('cidnet', 'CIDNet', 32, dict(channels=[12, 12, 24, 48])),
    'KBNet': ('kbnet_s', 'KBNet_s', 32, dict(width=16, middle_blk_num=1, enc_blk_nums=[1, 1], dec_blk_nums=[1, 1])),
    'LaMa': ('LaMa', 'LaMa', 64, dict(in_nc=4)),
    'MMRealSR': ('mmrealsr_arch', 'MMRRDBNet_test', 32, dict(num_in_ch=3, num_out_ch=3, num_block=1, num_feat=16, num_feats=[8, 8, 16, 16])),
    'MixDehazeNet': ('MixDehazeNet', 'MixDehazeNet', 32, {}),
    'MoESR': ('MoESR', 'MoESR', 32, dict(n_blocks=1, n_block=1)),
    'MoSR': ('mosr_arch', 'MoSR', 32, dict(n_block=2)),
    'NAFNet': ('NAFNet_arch', 'NAFNet', 32, dict(enc_blk_nums=[1, 1], dec_blk_nums=[1, 1])),
    'OmniSR': ('OmniSR', 'OmniSR', 32, dict(num_feat=16)),
    'PLKSR': ('PLKSR', 'PLKSR', 32, dict(n_blocks=2)),
    'RealPLKSR': ('RealPLKSR', 'RealPLKSR', 32, dict(n_blocks=2)),
    'RCAN': ('rcan_arch', 'RCAN', 24, dict(n_resgroups=1, n_resblocks=2)),
    'RGT': ('rgt', 'RGT', 32, dict(img_size=32, embed_dim=24, depth=[2, 2], num_heads=[2, 2])),
    'RealCUGAN': ('upcunet_v3', 'UpCunet2x', 48, {}),
    'RealCUGAN3': ('upcunet_v3', 'UpCunet3x', 48, {}),
    'RestoreFormer': ('restoreformer_arch', 'RestoreFormer', 64, dict(ch=32, ch_mult=(1, 2, 2), num_res_blocks=1, resolution=64, n_embed=64, z_channels=64, embed_dim=64)),
    'RetinexFormer': ('retinexformer_arch', 'RetinexFormer', 32, dict(n_feat=16, stage=1)),
    'SAFMN': ('safmn', 'SAFMN', 32, dict(dim=16, n_blocks=2)),
    'SAFMNBCIE': ('safmn_bcie', 'SAFMN_BCIE', 32, dict(dim=16, n_blocks=2, num_layers=2)),
    'SCUNet': ('SCUNet', 'SCUNet', 64, dict(config=[2] * 7, dim=16)),
    'SPAN': ('span', 'SPAN', 32, dict(num_in_ch=3, num_out_ch=3, feature_channels=16)),
    'SeemoRe': ('seemore_arch', 'SeemoRe', 32, dict(num_layers=1, embedding_dim=16)),
    'SwiftSRGAN': ('SwiftSRGAN', 'Generator', 24, dict(num_blocks=2)),
    'Swin2SR': ('Swin2SR', 'Swin2SR', 32, dict(img_size=32, embed_dim=24, depths=[2], num_heads=[2], window_size=8, upsampler='pixelshuffle')),
    'SwinIR': ('SwinIR', 'SwinIR', 32, dict(img_size=32, embed_dim=24, depths=[2], num_heads=[2], window_size=8, upscale=2, upsampler='nearest+conv')),
    'Uformer': ('Uformer', 'Uformer', 128, dict(img_size=128, embed_dim=16, depths=[1] * 9, num_heads=[1, 2, 4, 8, 8, 8, 8, 4, 2])),
}
FOLDERS = {'RealPLKSR': 'PLKSR', 'RealCUGAN3': 'RealCUGAN'}


def models(Model):
    found = {}
    for name, (module, kind, size, arguments) in NETWORKS.items():
        def make(name=name, module=module, kind=kind, arguments=arguments, sizes=(size, )):
            source = importlib.import_module(f'spandrel.architectures.{FOLDERS.get(name, name)}.__arch.{module}')
            channels = 1 if name in ('DRUNet', 'DnCNN') else 3
            sets = [[torch.rand(1, channels, s, s)] for s in sizes]
            if name == 'LaMa':
                sets = [[x, (torch.rand(1, 1, s, s) > 0.5).float()] for (x, ), s in zip(sets, sizes)]
            return getattr(source, kind)(**arguments), sets
        found[name] = Model(make)
        found[name + '-sizes'] = Model(lambda make=make, size=size: make(sizes=(size, 2 * size)), 'differing')
    return found
