"""AES_ENCRYPT and AES_DECRYPT: AES in the modes ECB, CBC and GCM, as Spark has it (FIPS 197, NIST SP 800-38A and 800-38D).

Of CBC and GCM, the result of encryption begins with the initialization vector. A vector must be given: Spark takes a random one
without it, so the same row would be encrypted otherwise when a batch is repeated.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from functools import lru_cache

from sash.errors import EvaluationError
from sash.operators.scalar.function import Function, by_value

BLOCK = 16
_KEYS = (16, 24, 32)
_VECTORS = {"ECB": 0, "CBC": BLOCK, "GCM": 12}
_PADDINGS = {"ECB": ("DEFAULT", "PKCS"), "CBC": ("DEFAULT", "PKCS"), "GCM": ("DEFAULT", "NONE")}
_GCM_POLYNOMIAL = 0xE1 << 120


def _double(byte: int) -> int:
    """The byte times x in the field of AES."""
    return (byte << 1 ^ 0x1B) & 0xFF if byte & 0x80 else byte << 1


def _substitutions() -> bytes:
    """The S-box: the inverse in the field, then an affine map. 3 generates the field, and 0xF6 is its inverse."""
    found = [0x63] * 256
    power, inverse = 1, 1
    while True:
        rotated = inverse * 0x101
        mixed = inverse ^ rotated >> 7 ^ rotated >> 6 ^ rotated >> 5 ^ rotated >> 4
        found[power] = (mixed ^ 0x63) & 0xFF
        power ^= _double(power)
        inverse = _times(inverse, 0xF6)
        if power == 1:
            return bytes(found)


def _times(one: int, other: int) -> int:
    product = 0
    while other:
        if other & 1:
            product ^= one
        one, other = _double(one), other >> 1
    return product


_S = _substitutions()
_INVERSE_S = bytes(_S.index(byte) for byte in range(256))
_MIXED = [int.from_bytes(bytes([_double(s), s, s, _double(s) ^ s])) for s in _S]
_UNMIXED = [int.from_bytes(bytes(_times(byte, factor) for factor in (14, 9, 13, 11))) for byte in range(256)]


def _turned(word: int, places: int) -> int:
    """The word, its bytes moved to the right."""
    return (word >> 8 * places | word << 32 - 8 * places) & 0xFFFFFFFF


_ENCRYPTING = [[_turned(word, row) for word in _MIXED] for row in range(4)]
_DECRYPTING = [[_turned(_UNMIXED[byte], row) for byte in _INVERSE_S] for row in range(4)]


def _unmixed(word: int) -> int:
    first, second, third, fourth = (_turned(_UNMIXED[byte], row) for row, byte in enumerate(word.to_bytes(4)))
    return first ^ second ^ third ^ fourth


@lru_cache(maxsize=64)
class _Cipher:
    """AES with one key, block by block."""

    def __init__(self, key: bytes) -> None:
        size = len(key) // 4
        words = [int.from_bytes(key[at : at + 4]) for at in range(0, len(key), 4)]
        constant = 1
        for place in range(size, 4 * (size + 7)):
            word = words[-1]
            if place % size == 0:
                word = int.from_bytes(bytes(_S[byte] for byte in _turned(word, 3).to_bytes(4))) ^ constant << 24
                constant = _double(constant)
            elif size > 6 and place % size == 4:
                word = int.from_bytes(bytes(_S[byte] for byte in word.to_bytes(4)))
            words.append(words[-size] ^ word)
        self._rounds = [words[at : at + 4] for at in range(0, len(words), 4)]
        inner = [[_unmixed(word) for word in part] for part in self._rounds[1:-1]]
        self._backwards = [self._rounds[-1], *reversed(inner), self._rounds[0]]

    def encrypt(self, block: bytes) -> bytes:
        return _transformed(block, self._rounds, _ENCRYPTING, _S, 1)

    def decrypt(self, block: bytes) -> bytes:
        return _transformed(block, self._backwards, _DECRYPTING, _INVERSE_S, -1)


def _transformed(block: bytes, rounds: list[list[int]], tables: list[list[int]], box: bytes, step: int) -> bytes:
    """The rounds: substitution, rotation of rows to the left (`step` 1) or right, and mixing by tables; the last has no mixing."""
    first, second, third, fourth = tables
    columns = [int.from_bytes(block[4 * at : 4 * at + 4]) ^ rounds[0][at] for at in range(4)]
    for keys in rounds[1:-1]:
        columns = [
            first[columns[at] >> 24]
            ^ second[columns[(at + step) % 4] >> 16 & 0xFF]
            ^ third[columns[(at + 2) % 4] >> 8 & 0xFF]
            ^ fourth[columns[(at - step) % 4] & 0xFF]
            ^ keys[at]
            for at in range(4)
        ]
    parts = [column.to_bytes(4) for column in columns]
    last = [bytes(box[parts[(at + step * row) % 4][row]] for row in range(4)) for at in range(4)]
    return b"".join((int.from_bytes(word) ^ key).to_bytes(4) for word, key in zip(last, rounds[-1], strict=True))


def _blocks(data: bytes) -> Iterator[bytes]:
    return (data[at : at + BLOCK] for at in range(0, len(data), BLOCK))


def _xor(one: bytes, other: bytes) -> bytes:
    """As long as the shorter one."""
    return bytes(a ^ b for a, b in zip(one, other, strict=False))


def _pad(data: bytes) -> bytes:
    missing = BLOCK - len(data) % BLOCK
    return data + bytes([missing]) * missing


def _unpad(function: str, data: bytes) -> bytes:
    if not data:
        return data
    count = data[-1]
    if not 1 <= count <= BLOCK or data[-count:] != bytes([count]) * count:
        raise _undecipherable(function)
    return data[:-count]


def _undecipherable(function: str) -> EvaluationError:
    return EvaluationError(f"{function}: this is not encrypted with this key, mode and additional data")


def _chain(cipher: _Cipher, data: bytes, vector: bytes) -> bytes:
    """CBC."""
    made = []
    for block in _blocks(data):
        vector = cipher.encrypt(_xor(block, vector))
        made.append(vector)
    return b"".join(made)


def _unchain(cipher: _Cipher, data: bytes, vector: bytes) -> bytes:
    made = []
    for block in _blocks(data):
        made.append(_xor(cipher.decrypt(block), vector))
        vector = block
    return b"".join(made)


def _count(cipher: _Cipher, data: bytes, vector: bytes) -> bytes:
    """The counter mode of GCM, in which encryption and decryption are the same."""
    start = int.from_bytes(vector) << 32
    pads = (cipher.encrypt((start + number).to_bytes(BLOCK)) for number in range(2, 3 + len(data) // BLOCK))
    return b"".join(_xor(block, pad) for block, pad in zip(_blocks(data), pads, strict=False))


def _tag(cipher: _Cipher, encrypted: bytes, vector: bytes, additional: bytes) -> bytes:
    """GCM's tag: GHASH of the additional data, the encrypted data and their lengths."""
    key, state = int.from_bytes(cipher.encrypt(bytes(BLOCK))), 0
    lengths = (8 * len(additional)).to_bytes(8) + (8 * len(encrypted)).to_bytes(8)
    for part in (additional, encrypted, lengths):
        for block in _blocks(part):
            state = _ghash_product(state ^ int.from_bytes(block.ljust(BLOCK, b"\0")), key)
    return _xor(state.to_bytes(BLOCK), cipher.encrypt(vector + (1).to_bytes(4)))


def _ghash_product(one: int, other: int) -> int:
    product = 0
    for bit in range(127, -1, -1):
        if one >> bit & 1:
            product ^= other
        other = other >> 1 ^ _GCM_POLYNOMIAL if other & 1 else other >> 1
    return product


def _checked(function: str, key: bytes, mode: str, padding: str) -> tuple[_Cipher, str]:
    """The cipher, and the mode in capitals."""
    chosen = mode.upper()
    if len(key) not in _KEYS:
        raise EvaluationError(f"{function} takes a key of 16, 24 or 32 bytes, not of {len(key)}")
    if padding.upper() not in _PADDINGS.get(chosen, ()):
        raise EvaluationError(
            f"{function} does not have mode {mode} with padding {padding}; modes are {', '.join(_VECTORS)}"
        )
    return _Cipher(key), chosen


def _encrypt(
    data: bytes, key: bytes, mode: str = "GCM", padding: str = "DEFAULT", vector: bytes = b"", additional: bytes = b""
) -> bytes:
    function = "aes_encrypt"
    cipher, mode = _checked(function, key, mode, padding)
    if len(vector) != _VECTORS[mode]:
        raise EvaluationError(
            f"{function} takes a vector of {_VECTORS[mode]} bytes in mode {mode}, not of {len(vector)}"
        )
    if additional and mode != "GCM":
        raise EvaluationError(f"{function} takes additional data in mode GCM, not in {mode}")
    if mode == "ECB":
        return b"".join(map(cipher.encrypt, _blocks(_pad(data))))
    if mode == "CBC":
        return vector + _chain(cipher, _pad(data), vector)
    encrypted = _count(cipher, data, vector)
    return vector + encrypted + _tag(cipher, encrypted, vector, additional)


def _decrypt(data: bytes, key: bytes, mode: str = "GCM", padding: str = "DEFAULT", additional: bytes = b"") -> bytes:
    function = "aes_decrypt"
    cipher, mode = _checked(function, key, mode, padding)
    if additional and mode != "GCM":
        raise EvaluationError(f"{function} takes additional data in mode GCM, not in {mode}")
    vector, rest = data[: _VECTORS[mode]], data[_VECTORS[mode] :]
    if mode == "GCM":
        encrypted, tag = rest[:-BLOCK], rest[-BLOCK:]
        if len(rest) < BLOCK or not hmac.compare_digest(_tag(cipher, encrypted, vector, additional), tag):
            raise _undecipherable(function)
        return _count(cipher, encrypted, vector)
    if len(rest) % BLOCK or len(vector) < _VECTORS[mode]:
        raise _undecipherable(function)
    if mode == "CBC":
        return _unpad(function, _unchain(cipher, rest, vector))
    return _unpad(function, b"".join(map(cipher.decrypt, _blocks(rest))))


def _try_decrypt(*arguments: bytes | str) -> bytes | None:
    try:
        return _decrypt(*arguments)  # type: ignore[arg-type]
    except EvaluationError:
        return None


FUNCTIONS: dict[str, Function] = {
    "aes_decrypt": by_value(_decrypt, 2, 5, fails=True),
    "aes_encrypt": by_value(_encrypt, 2, 6, fails=True),
    "try_aes_decrypt": by_value(_try_decrypt, 2, 5),
}
