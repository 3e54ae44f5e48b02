"""JARO_WINKLER_SIMILARITY, and HMAC: functions of two texts or byte strings, once per distinct pair."""

from __future__ import annotations

import hmac

from sash.errors import EvaluationError
from sash.operators.scalar.function import Function, by_value

_ALGORITHMS = {
    "SHA-224": "sha224",
    "SHA-256": "sha256",
    "SHA-384": "sha384",
    "SHA-512": "sha512",
    "SHA-1": "sha1",
    "MD5": "md5",
}
_LONGEST_PREFIX = 4
_WEIGHT = 0.1


def _jaro_winkler(one: str, two: str) -> float:
    """The similarity of texts by their UTF-16 units, which are Java's characters."""
    if one == two:
        return 1.0
    left, right = (list(memoryview(text.encode("utf-16-le")).cast("H")) for text in (one, two))
    if not left or not right:
        return 0.0
    reach = max(max(len(left), len(right)) // 2 - 1, 0)
    free = [True] * len(right)
    of_left: list[int] = []
    places: list[int] = []
    for place, letter in enumerate(left):
        for other in range(max(0, place - reach), min(len(right), place + reach + 1)):
            if free[other] and right[other] == letter:
                free[other] = False
                of_left.append(letter)
                places.append(other)
                break
    matches = len(of_left)
    if not matches:
        return 0.0
    swapped = sum(letter != right[place] for letter, place in zip(of_left, sorted(places), strict=True)) // 2
    jaro = (matches / len(left) + matches / len(right) + (matches - swapped) / matches) / 3.0
    prefix = 0
    for letter, beside in zip(left[:_LONGEST_PREFIX], right[:_LONGEST_PREFIX], strict=False):
        if letter != beside:
            break
        prefix += 1
    return jaro + prefix * _WEIGHT * (1.0 - jaro)


def _hmac(key: bytes, message: bytes, algorithm: str = "SHA-256") -> bytes:
    if not key:
        raise EvaluationError("hmac: the key is empty")
    known = _ALGORITHMS.get(algorithm.upper())
    if known is None:
        raise EvaluationError(f"hmac: the algorithm is one of {', '.join(_ALGORITHMS)}, not {algorithm}")
    return hmac.digest(key, message, known)


FUNCTIONS: dict[str, Function] = {
    "jaro_winkler_similarity": by_value(_jaro_winkler, 2),
    "hmac": by_value(_hmac, 2, 3, fails=True),
}
