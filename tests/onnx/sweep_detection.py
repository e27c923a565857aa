"""Detection models of torchvision for sweep.py."""
import torch
import torchvision

from sweep_torchvision import calm


class Detect(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return tuple(self.inner([x])[0].values())


OPTIONS = {
    'ssd300_vgg16': dict(score_thresh=0.012), 'ssdlite320_mobilenet_v3_large': dict(score_thresh=0.012),
    'retinanet_resnet50_fpn': dict(score_thresh=0.01, min_size=96, max_size=128),
    'retinanet_resnet50_fpn_v2': dict(score_thresh=0.01, min_size=96, max_size=128),
    'fcos_resnet50_fpn': dict(score_thresh=0.01, min_size=96, max_size=128),
    'fasterrcnn_resnet50_fpn': dict(box_score_thresh=0.011, min_size=96, max_size=128),
    'fasterrcnn_mobilenet_v3_large_320_fpn': dict(box_score_thresh=0.011, min_size=96, max_size=128),
    'maskrcnn_resnet50_fpn': dict(box_score_thresh=0.011, min_size=96, max_size=128),
    'keypointrcnn_resnet50_fpn': dict(box_score_thresh=0.3, min_size=96, max_size=128),
}


def models(Model):
    def make(name, *sizes):
        def build():
            with torch.no_grad():
                inner = torchvision.models.get_model(name, weights=None, weights_backbone=None, **OPTIONS[name]).eval()
                return Detect(calm(inner)), [[torch.rand(s)] for s in sizes]
        return build

    found = {}
    for name in OPTIONS:
        found[name] = Model(make(name, (3, 96, 128)))
        found[name + '-dynamic'] = Model(make(name, (3, 96, 128), (3, 110, 100)), [{1: 'h', 2: 'w'}])
    return found
