"""Tests compare with ONNX Runtime's exact sums."""
try:
    import onnxruntime
    from exact_session import ExactSession
    onnxruntime.InferenceSession = ExactSession
except ImportError:  # the tests that need it are skipped
    pass
