"""Models of Keras and functions of TensorFlow through tf2onnx, with channels last and any batch, for sweep.py. Needs tensorflow, keras, tf2onnx."""
import os

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')

import numpy as np

NETWORKS = {'MobileNet': 64, 'MobileNetV2': 64, 'MobileNetV3Small': 64, 'MobileNetV3Large': 64, 'EfficientNetB0': 64,
            'EfficientNetV2B0': 64, 'DenseNet121': 64, 'ResNet50': 64, 'ResNet50V2': 64, 'NASNetMobile': 224,
            'Xception': 96, 'InceptionV3': 96, 'ConvNeXtTiny': 64, 'VGG16': 32, 'InceptionResNetV2': 96}


def writer(network, shape, opset=17):
    def write(path):
        import tensorflow as tf
        import tf2onnx
        signature = [tf.TensorSpec(shape, tf.float32, name='x0')]
        function = tf.function(lambda x: network(x, training=False), input_signature=signature)
        tf2onnx.convert.from_function(function, input_signature=signature, opset=opset, output_path=str(path))
    return write


def random_weights(network):
    generator = np.random.default_rng(1)
    for w in network.weights:
        value = np.asarray(w.numpy(), np.float32)
        if 'variance' in w.path:
            w.assign(generator.uniform(0.5, 1.5, value.shape))
        elif 'mean' in w.path or 'beta' in w.path or 'bias' in w.path:
            w.assign(generator.normal(0, 0.1, value.shape))
    return network


def parts():
    import keras
    from keras import layers as L

    def after(*layers, size=(16, 16, 8)):
        """The layers one after the other; the model and the shape of an item."""
        x = y = keras.Input(size)
        for layer in layers:
            y = layer(y)
        return keras.Model(x, y), size

    def attention():
        x = keras.Input((None, 32))
        y = L.MultiHeadAttention(4, 8)(x, x, use_causal_mask=True)
        y = L.LayerNormalization()(L.Add()([x, y]))
        return keras.Model(x, L.Dense(5, activation='softmax')(L.GlobalAveragePooling1D()(y))), (None, 32)

    def additive():
        x = keras.Input((None, 16))
        return keras.Model(x, L.Concatenate()([L.AdditiveAttention()([x, x]), L.Attention(use_scale=True)([x, x])])), (None, 16)

    def unet():
        x = keras.Input((32, 48, 3))
        a = L.Conv2D(8, 3, padding='same', activation='relu')(x)
        b = L.Conv2D(16, 3, padding='same', activation='swish')(L.MaxPooling2D()(a))
        c = L.Conv2DTranspose(8, 3, 2, padding='same')(b)
        d = L.UpSampling2D(interpolation='bilinear')(b)
        return keras.Model(x, L.Conv2D(2, 1, activation='sigmoid')(L.Concatenate()([a, c, d]))), (32, 48, 3)

    def grouped():
        x = keras.Input((None, 32))
        return keras.Model(x, L.GroupQueryAttention(8, 4, 2)(x, x, use_causal_mask=True)), (None, 32)

    def merges():
        x = keras.Input((8, 8))
        a, b = L.Dense(8)(x), L.Dense(8)(x)
        parts = [f([a, b]) for f in (L.Add(), L.Subtract(), L.Multiply(), L.Average(), L.Maximum(), L.Minimum(), L.Dot(axes=2), L.Dot(axes=(1, 1), normalize=True))]
        return keras.Model(x, L.Concatenate()(parts)), (8, 8)

    def masked():
        x = keras.Input((None, 8))
        return keras.Model(x, L.LSTM(12, return_sequences=True)(L.Masking(0.)(x))), (None, 8)

    found = {
        'lstm': lambda: after(L.LSTM(12, return_sequences=True), L.LSTM(6), L.Dense(3), size=(None, 8)),
        'gru': lambda: after(L.GRU(12, return_sequences=True), L.GRU(6, reset_after=False), size=(None, 8)),
        'simple_rnn': lambda: after(L.SimpleRNN(12, return_sequences=True, go_backwards=True), size=(None, 8)),
        'bidirectional': lambda: after(L.Bidirectional(L.LSTM(12, return_sequences=True)), L.Bidirectional(L.GRU(6)), size=(None, 8)),
        'masked-lstm': masked,
        'conv_lstm': lambda: after(L.ConvLSTM2D(4, 3, padding='same', return_sequences=True), size=(5, 8, 8, 2)),
        'time_distributed': lambda: after(L.TimeDistributed(L.Conv2D(4, 3)), L.TimeDistributed(L.Flatten()), L.LSTM(4), size=(5, 8, 8, 2)),
        'separable': lambda: after(L.SeparableConv2D(12, 3, 2, padding='same'), L.DepthwiseConv2D(3, 2, depth_multiplier=2), L.PReLU(shared_axes=[1, 2])),
        'conv1d': lambda: after(L.Conv1D(12, 3, padding='causal', dilation_rate=2), L.LeakyReLU(), L.SeparableConv1D(8, 3), L.MaxPooling1D(2, padding='same'), size=(None, 8)),
        'conv3d': lambda: after(L.Conv3D(6, 3, padding='same', strides=2), L.BatchNormalization(), L.AveragePooling3D(2, padding='same'), size=(9, 9, 9, 4)),
        'transposed': lambda: after(L.Conv2DTranspose(6, 4, 2, padding='same'), L.Conv2DTranspose(4, 3, 3, padding='valid')),
        'norms': lambda: after(L.GroupNormalization(4), L.LayerNormalization(axis=[1, 2, 3]), L.UnitNormalization(), L.BatchNormalization(axis=1)),
        'pools': lambda: after(L.AveragePooling2D(3, 2, padding='same'), L.MaxPooling2D(3, 2, padding='same'), L.GlobalMaxPooling2D(keepdims=True)),
        'resize': lambda: after(L.Resizing(23, 9), L.CenterCrop(8, 8), L.Rescaling(2., 1.), L.UpSampling2D(3), L.Cropping2D(((1, 2), (3, 0))), L.ZeroPadding2D(((1, 2), (3, 0)))),
        'resize-cubic': lambda: after(L.Resizing(23, 9, interpolation='bicubic'), L.Resizing(30, 17, interpolation='nearest')),
        'permute': lambda: after(L.Permute((3, 1, 2)), L.Reshape((8, -1)), L.Dense(5, activation='softplus'), L.Softmax(axis=1)),
        'activations': lambda: after(L.Dense(8, activation='elu'), L.Dense(8, activation='selu'), L.Dense(8, activation='softsign'), L.Dense(8, activation='hard_sigmoid'), L.Dense(8, activation='mish'), L.Dense(8, activation='exponential'), L.Dense(8, activation='log_softmax')),
        'einsum_dense': lambda: after(L.EinsumDense('abcd,de->abce', output_shape=(None, None, 6), bias_axes='e')),
        'conv1d-transposed': lambda: after(L.Conv1DTranspose(6, 4, 2, padding='same'), L.Conv1DTranspose(4, 3, padding='valid'), size=(None, 8)),
        'conv3d-transposed': lambda: after(L.Conv3DTranspose(4, 3, 2, padding='same'), size=(4, 5, 6, 3)),
        'transposed-output-padding': lambda: after(L.Conv2DTranspose(6, 3, 2, padding='same', output_padding=1), size=(7, 9, 4)),
        'dilated': lambda: after(L.Conv2D(8, 3, dilation_rate=2, padding='same'), L.DepthwiseConv2D(3, dilation_rate=2, padding='same')),
        'conv-open-sizes': lambda: after(L.Conv2D(8, 3, 2, padding='same'), L.MaxPooling2D(3, 2, padding='same'), L.UpSampling2D(2), L.GlobalAveragePooling2D(), size=(None, None, 3)),
        'conv1d-depthwise': lambda: after(L.DepthwiseConv1D(3, 2, padding='same'), L.AveragePooling1D(3, 2, padding='same'), L.ZeroPadding1D((2, 1)), L.Cropping1D((1, 0)), L.UpSampling1D(2), size=(None, 8)),
        'pools3d': lambda: after(L.MaxPooling3D(2, padding='same'), L.UpSampling3D(2), L.ZeroPadding3D(1), L.Cropping3D(((1, 0), (0, 1), (1, 1))), L.GlobalMaxPooling3D(), size=(5, 7, 6, 3)),
        'lstm-backwards': lambda: after(L.LSTM(12, return_sequences=True, go_backwards=True), L.GRU(6, go_backwards=True), size=(None, 8)),
        'lstm-unrolled': lambda: after(L.LSTM(7, unroll=True, return_sequences=True), L.GRU(6, unroll=True), size=(6, 8)),
        'rnn-activations': lambda: after(L.LSTM(7, activation='relu', recurrent_activation='hard_sigmoid', return_sequences=True), L.SimpleRNN(6, activation='relu'), size=(None, 8)),
        'rnn-cells': lambda: after(L.RNN([L.LSTMCell(6), L.GRUCell(5)], return_sequences=True), size=(None, 8)),
        'bidirectional-sum': lambda: after(L.Bidirectional(L.GRU(6, return_sequences=True), merge_mode='sum'), L.Bidirectional(L.SimpleRNN(4), merge_mode='ave'), size=(None, 8)),
        'masked-bidirectional': lambda: after(L.Masking(0.), L.Bidirectional(L.GRU(6, return_sequences=True)), L.TimeDistributed(L.Dense(3)), size=(None, 8)),
        'conv_lstm1d': lambda: after(L.ConvLSTM1D(4, 3, padding='same'), size=(5, 8, 2)),
        'conv_lstm-backwards': lambda: after(L.ConvLSTM2D(4, 3, strides=2, go_backwards=True), size=(4, 9, 9, 2)),
        'group-attention': lambda: grouped(),
        'repeat': lambda: after(L.GlobalAveragePooling1D(), L.RepeatVector(5), L.LSTM(4, return_sequences=True), size=(None, 8)),
        'normalization': lambda: after(L.SpectralNormalization(L.Conv2D(4, 3)), L.RMSNormalization(), size=(8, 8, 3)),
        'merges': merges,
        'resizing-crop': lambda: after(L.Resizing(9, 15, crop_to_aspect_ratio=True), L.Resizing(11, 11, pad_to_aspect_ratio=True), size=(16, 20, 3)),
        'upsampling-modes': lambda: after(L.UpSampling2D(2, interpolation='bicubic'), L.UpSampling2D((3, 1), interpolation='bilinear')),
        'adaptive': lambda: after(L.AdaptiveAveragePooling2D((5, 3)), L.AdaptiveMaxPooling2D(2)),
        'more-activations': lambda: after(L.ReLU(max_value=3., negative_slope=.1, threshold=.5), L.ELU(.5), L.Dense(8, activation='hard_silu')),
        'attention': attention,
        'attention-additive': additive,
        'unet': unet,
    }
    return found


def functions():
    """Plain functions of TensorFlow: the function and the shape of an item."""
    import tensorflow as tf

    def loop(x):
        return tf.while_loop(lambda i, y: i < tf.shape(x)[1], lambda i, y: (i + 1, y * 0.5 + x[:, i]), (0, tf.zeros_like(x[:, 0])),
                             shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, 8])))[1]

    def scan(x):
        return tf.transpose(tf.scan(lambda a, b: tf.tanh(a + b), tf.transpose(x, [1, 0, 2]), tf.zeros_like(x[:, 0])), [1, 0, 2])

    def boxes(x):
        corners = tf.reshape(tf.sort(tf.abs(x[0]), axis=-1), [-1, 8])[:, ::2]
        kept = tf.image.non_max_suppression(corners, tf.reduce_sum(x[0], -1), 5, 0.3, -9.)
        return tf.gather(corners, kept)

    def combined(x):
        corners = tf.sort(tf.abs(x[:, :, None, :4]), axis=-1)
        found = tf.image.combined_non_max_suppression(corners, tf.sigmoid(x[:, :, 4:]), 4, 6, 0.4, 0.3, clip_boxes=False)
        return found.nmsed_boxes

    def segments(x):
        return tf.math.unsorted_segment_sum(x[0], tf.argmax(x[0], -1), 8)

    return {
        'tf-while': (loop, (None, 8)),
        'tf-scan': (scan, (None, 8)),
        'tf-map': (lambda x: tf.map_fn(lambda r: tf.matmul(r, r, transpose_b=True), x), (None, 8)),
        'tf-cond': (lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: tf.nn.relu(x) - 1), (None, 8)),
        'tf-slices': (lambda x: tf.concat([x[:, ::-1, 1:7:2], x[:, tf.newaxis, -1, ::3][..., :3] + tf.zeros_like(x[:, :, :3])], -1), (None, 8)),
        'tf-nms': (boxes, (None, 8)),
        'tf-combined-nms': (combined, (12, 8)),
        'tf-crop_and_resize': (lambda x: tf.image.crop_and_resize(x, [[0., 0., .5, .7], [.2, .1, 1., .9]], [0, 0], [5, 7]), (16, 16, 3)),
        'tf-resize-align': (lambda x: tf.compat.v1.image.resize_bilinear(x, [9, 23], align_corners=True), (16, 16, 3)),
        'tf-resize-legacy': (lambda x: tf.compat.v1.image.resize_nearest_neighbor(tf.compat.v1.image.resize_bilinear(x, [9, 23]), [12, 31]), (16, 16, 3)),
        'tf-image': (lambda x: tf.image.adjust_contrast(tf.image.rgb_to_grayscale(tf.image.flip_left_right(tf.image.central_crop(x, .5))), 2.), (16, 16, 3)),
        'tf-standardise': (lambda x: tf.image.per_image_standardization(x), (16, 16, 3)),
        'tf-space': (lambda x: tf.nn.space_to_depth(tf.nn.depth_to_space(x, 2), 4), (8, 8, 8)),
        'tf-space-batch': (lambda x: tf.batch_to_space(tf.nn.relu(tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]])), [2, 2], [[0, 0], [0, 0]]), (8, 8, 4)),
        'tf-top_k': (lambda x: tf.concat([tf.math.top_k(x, 3).values, tf.cast(tf.math.top_k(x, 3).indices, tf.float32)], -1), (None, 8)),
        'tf-gather': (lambda x: tf.gather(x, tf.argmax(x, -1) % 2, axis=1, batch_dims=1), (None, 8)),
        'tf-gather_nd': (lambda x: tf.gather_nd(x, tf.where(x > 0.5)), (None, 8)),
        'tf-scatter': (lambda x: tf.tensor_scatter_nd_add(x[0], [[0], [2]], x[0, 3:5]), (None, 8)),
        'tf-boolean_mask': (lambda x: tf.boolean_mask(x, tf.reduce_sum(x, -1) > 0), (None, 8)),
        'tf-segments': (segments, (None, 8)),
        'tf-einsum': (lambda x: tf.einsum('bij,bkj->bik', x, x) + tf.linalg.band_part(tf.matmul(x, x, transpose_b=True), 1, 2), (None, 8)),
        'tf-cumsum': (lambda x: tf.cumsum(x, 1, exclusive=True, reverse=True) + tf.roll(x, 2, 1) + tf.reverse(x, [2]), (None, 8)),
        'tf-pads': (lambda x: tf.pad(tf.pad(x, [[0, 0], [2, 1], [1, 1]], 'REFLECT'), [[0, 0], [1, 2], [0, 1]], 'SYMMETRIC'), (None, 8)),
        'tf-one_hot': (lambda x: tf.one_hot(tf.argmax(x, -1), 9, 2., -1.), (None, 8)),
        'tf-reduce': (lambda x: tf.stack([tf.reduce_logsumexp(x, -1), tf.reduce_prod(x, -1), tf.norm(x, axis=-1), tf.math.reduce_std(x, -1), tf.cast(tf.reduce_any(x > 2, -1), tf.float32)], -1), (None, 8)),
        'tf-unstack': (lambda x: tf.stack(tf.unstack(x, axis=2)[::-1], 1), (None, 8)),
        'tf-sequence_mask': (lambda x: tf.sequence_mask(tf.cast(tf.abs(x[:, 0, 0]) * 4, tf.int32), tf.shape(x)[1], tf.float32)[..., None] * x, (None, 8)),
        'tf-reverse_sequence': (lambda x: tf.reverse_sequence(x, tf.cast(tf.abs(x[:, 0, 0]) * 3, tf.int32) % 6 + 1, 1, 0), (None, 8)),
        'tf-integers': (lambda x: tf.cast(tf.math.floormod(tf.cast(x * 9, tf.int32), 5) // 2 - tf.bitwise.left_shift(tf.cast(tf.abs(x), tf.int32), 2), tf.float32), (None, 8)),
        'tf-quantised': (lambda x: tf.quantization.fake_quant_with_min_max_args(x, -3., 3., 8), (None, 8)),
        'tf-conv-nchw-paddings': (lambda x: tf.nn.conv2d(x, tf.ones([3, 3, 3, 4]), 2, [[0, 0], [1, 2], [0, 1], [0, 0]]), (16, 16, 3)),
        'tf-max_pool-argmax': (lambda x: tf.nn.max_pool_with_argmax(x, 2, 2, 'SAME')[0], (15, 16, 3)),
        'tf-dilation': (lambda x: tf.nn.atrous_conv2d(x, tf.ones([3, 3, 3, 4]), 3, 'SAME'), (16, 16, 3)),
        'tf-lrn': (lambda x: tf.nn.local_response_normalization(x, 2, 1., .1, .7), (8, 8, 12)),
        'tf-special': (lambda x: tf.math.erf(x) + tf.math.softplus(x) + tf.math.squared_difference(x, 1.) + tf.math.divide_no_nan(x, tf.nn.relu(x)) + tf.math.atan2(x, x + 4), (None, 8)),
    }


def fill(shape, n, length):
    return (n, *[length if s is None else s for s in shape])


def models(Model):
    import keras
    import tf2onnx  # once, not in the process of each model
    found = {}

    def network(name, size):
        def make():
            keras.utils.set_random_seed(1)
            shape = (size, size, 3)
            net = random_weights(getattr(keras.applications, name)(weights=None, input_shape=shape, classes=10))
            scale = 255 if 'V3' in name and 'Mobile' in name or 'Efficient' in name or 'ConvNeXt' in name else 1
            x = np.random.default_rng(2).random((2, *shape)).astype(np.float32) * scale
            return writer(net, (None, *shape)), [[x], [x[:1]]]
        return make

    def part(build):
        def make():
            keras.utils.set_random_seed(1)
            net, shape = build()
            generator = np.random.default_rng(2)
            sets = [[generator.normal(0, 1, fill(shape, n, t)).astype(np.float32)] for n, t in ((2, 12), (1, 20))]
            return writer(random_weights(net), (None, *shape)), sets
        return make

    def function(build, shape):
        def make():
            generator = np.random.default_rng(2)
            sets = [[generator.normal(0, 1, fill(shape, n, t)).astype(np.float32)] for n, t in ((2, 12), (1, 20))]
            return writer(lambda x, training: build(x), (None, *shape)), sets
        return make

    for name, (build, shape) in functions().items():
        found[name] = Model(function(build, shape), exporters=('own',))
    for name, size in NETWORKS.items():
        found[name] = Model(network(name, size), exporters=('own',))
    for name, build in parts().items():
        found[name] = Model(part(build), exporters=('own',))
    return found
