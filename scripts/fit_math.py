#!/usr/bin/env python3
"""Prints the polynomial coefficients of src/simd/math.h (needs mpmath and numpy).

Each is a minimax fit by Remez exchange of f(x) - fixed(x) under a weight (1 / f: relative error). The
coefficients are rounded to float from the lowest power up, the remaining ones refitted each time.
"""
import mpmath as mp
import numpy as np

mp.mp.dps = 40


def extrema(values):
    """Index of the largest magnitude in each run of equal signs."""
    found, i = [], 0
    while i < len(values):
        j = best = i
        while j < len(values) and (values[j] >= 0) == (values[i] >= 0):
            if abs(values[j]) > abs(values[best]):
                best = j
            j += 1
        found.append(best)
        i = j
    return found


def remez(f, weight, powers, lo, hi):
    n = len(powers)
    xs = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * (n + 1))) for i in range(n + 1)]
    grid = [lo + (hi - lo) * mp.mpf(i) / 2000 for i in range(2001)]
    for _ in range(30):
        a, b = mp.matrix(n + 1, n + 1), mp.matrix(n + 1, 1)
        for i, x in enumerate(xs):
            for j, p in enumerate(powers):
                a[i, j] = x ** p * weight(x)
            a[i, n] = (-1) ** i
            b[i] = f(x) * weight(x)
        solution = mp.lu_solve(a, b)
        c = [solution[j] for j in range(n)]
        error = [(f(x) - sum(cj * x ** p for cj, p in zip(c, powers))) * weight(x) for x in grid]
        peaks = extrema(error)
        while len(peaks) > n + 1:
            peaks.pop(0 if abs(error[peaks[0]]) < abs(error[peaks[-1]]) else -1)
        if len(peaks) < n + 1:
            break
        moved = max(abs(grid[p] - x) for p, x in zip(peaks, xs))
        xs = [grid[p] for p in peaks]
        if moved < (hi - lo) * mp.mpf("1e-6"):
            break
    return c


def fit(name, f, weight, powers, lo, hi, fixed=lambda x: mp.mpf(0), single=True):
    lo, hi, powers, done = mp.mpf(lo), mp.mpf(hi), list(powers), []

    def rest(x):
        return f(x) - fixed(x) - sum(c * x ** p for p, c in done)

    for i, power in enumerate(powers):
        c = float(remez(rest, weight, powers[i:], lo, hi)[0])
        done.append((power, mp.mpf(float(np.float32(c)) if single else c)))
    worst = max(abs(rest(x) * weight(x)) for x in (lo + (hi - lo) * mp.mpf(i) / 3000 for i in range(3001)))
    print(f"{name}: error 2^{mp.nstr(mp.log(worst, 2), 4)}")
    for power, c in done:
        print(f"  x^{power:<2} {float(c).hex()}")


def log_tail(x):
    """(log(1 + x) - x + x^2 / 2) / x^3."""
    if abs(x) < mp.mpf("1e-6"):
        return mp.mpf(1) / 3 - x / 4 + x * x / 5
    return (mp.log(1 + x) - x + x * x / 2) / x ** 3


def main():
    def relative(f):
        return lambda x: 1 / f(x)

    ln2, quarter = mp.log(2) / 2 * mp.mpf("1.002"), mp.pi / 4 * mp.mpf("1.01")
    root = mp.sqrt(2)
    near0 = mp.mpf("1e-6")
    fit("exp", mp.exp, relative(mp.exp), range(2, 7), -ln2, ln2, lambda x: 1 + x)
    fit("log", log_tail, lambda x: x * x + mp.mpf("1e-3"), range(9), 1 / root - 1, root - 1)
    fit("sin", mp.sin, relative(mp.sin), (3, 5, 7, 9), near0, quarter, lambda x: x)
    fit("cos", mp.cos, relative(mp.cos), (4, 6, 8), near0, quarter, lambda x: 1 - x * x / 2)
    fit("tan", mp.tan, relative(mp.tan), range(3, 16, 2), near0, quarter, lambda x: x)
    fit("asin", mp.asin, relative(mp.asin), range(3, 12, 2), near0, 0.5, lambda x: x)
    fit("atan", mp.atan, relative(mp.atan), range(3, 20, 2), near0, 1, lambda x: x)
    fit("tanh", mp.tanh, relative(mp.tanh), range(3, 12, 2), near0, 0.625, lambda x: x)
    fit("erf below 0.9", mp.erf, relative(mp.erf), range(1, 12, 2), near0, 0.9, lambda x: x)
    fit("log(erfc)", lambda x: mp.log(mp.erfc(x)), lambda x: mp.erfc(x) / mp.erf(x), range(8), 0.9, 3.95)
    fit("2 atanh (pow)", lambda x: 2 * mp.atanh(x), relative(mp.atanh), range(1, 12, 2), near0,
        (root - 1) / (root + 1), single=False)
    fit("2^x (pow)", lambda x: mp.mpf(2) ** x, lambda x: mp.mpf(2) ** -x, range(9), -0.5, 0.5, single=False)


if __name__ == "__main__":
    main()
