"""Says where in a recording somebody speaks, with Silero VAD.

    pip download --no-deps silero-vad && unzip silero_vad-*.whl 'silero_vad/data/*'     # MIT
    python find_speech.py SOUND.wav [--model silero_vad/data/silero_vad_16k_op15.onnx]

SOUND.wav: 16 bits, 16000 samples per second; of several channels the first is taken.
"""
import argparse
import wave

import numpy as np
import quoll

RATE, STEP, BEFORE = 16000, 512, 64  # the net sees 32 ms, and the 4 ms before them
BEGIN, END = 0.5, 0.35  # speech begins above the one score, and ends below the other
PAUSE = 0.1  # seconds that are no end yet


def read_wave(path):
    """Samples -1 to 1, float32 (n)."""
    with wave.open(path) as sound:
        if sound.getsampwidth() != 2 or sound.getframerate() != RATE:
            raise SystemExit(f"{path}: expected 16 bits and {RATE} samples a second, "
                             f"got {8 * sound.getsampwidth()} and {sound.getframerate()}")
        values = np.frombuffer(sound.readframes(sound.getnframes()), np.int16)
        return values[::sound.getnchannels()].astype(np.float32) / 32768


def scores(net, sound):
    """How likely there is speech in each step of 32 ms; the net's state goes on from step to step."""
    state, found = np.zeros((2, 1, 128), np.float32), []
    sound = np.concatenate([np.zeros(BEFORE, np.float32), sound, np.zeros(-len(sound) % STEP, np.float32)])
    for at in range(0, len(sound) - BEFORE, STEP):
        inputs = {"input": sound[None, at:at + BEFORE + STEP], "state": state, "sr": np.array(RATE)}
        answer = net.run(inputs, ["output", "stateN"])
        state = answer["stateN"]
        found.append(float(answer["output"].ravel()[0]))
    return found


def segments(found):
    """(begin, end) in seconds."""
    parts, begin, last = [], None, 0
    for i, score in enumerate(found + [0.0] * int(PAUSE * RATE / STEP + 2)):
        if score >= (BEGIN if begin is None else END):
            begin, last = i if begin is None else begin, i + 1
        elif begin is not None and (i - last) * STEP / RATE > PAUSE:
            parts.append((begin * STEP / RATE, last * STEP / RATE))
            begin = None
    return parts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sound")
    parser.add_argument("--model", default="silero_vad/data/silero_vad_16k_op15.onnx", help="default: %(default)s")
    args = parser.parse_args()
    for begin, end in segments(scores(quoll.load(args.model), read_wave(args.sound))):
        print(f"{begin:.2f} s to {end:.2f} s")


if __name__ == "__main__":
    main()
