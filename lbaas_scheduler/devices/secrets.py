"""Secrets of devices: encrypted in the database and on the bus, readable only where a device is driven or validated."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from lbaas_scheduler import errors

_KEY = re.compile(r"[A-Za-z0-9_-]{43}=", re.ASCII)
HOW_TO_MAKE_A_KEY = "make one with 'lbaas-scheduler-manage keys generate' and set [security] encryption_keys to it"


class Vault:
    """Seals mappings of secrets into Fernet tokens and opens them again.

    :param keys: Fernet keys. The first encrypts, all of them decrypt, so that a new key can be put in front of the old one.
        Empty = nothing can be sealed; a fleet without secrets needs no key.
    :raises ConfigurationError: a key is not valid; names its position and never its value.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        fernets = [_fernet(position, key) for position, key in enumerate(keys)]
        self._fernet = MultiFernet(fernets) if fernets else None

    def seal(self, secrets: Mapping[str, str]) -> str:
        """Encrypt. "" for no secrets at all, which needs no key.

        :raises ConfigurationError: there are secrets and no key.
        """
        if not secrets:
            return ""
        return self._keys().encrypt(json.dumps(dict(secrets)).encode()).decode()

    def open(self, token: str) -> dict[str, str]:
        """Decrypt what :meth:`seal` made.

        :raises ConfigurationError: no key fits.
        """
        if not token:
            return {}
        try:
            secrets: dict[str, str] = json.loads(self._keys().decrypt(token.encode()))
        except InvalidToken:
            raise _no_key_fits() from None
        return secrets

    def rotate(self, token: str) -> str:
        """The same secrets, encrypted with the first key.

        :raises ConfigurationError: no key fits.
        """
        if not token:
            return ""
        try:
            return self._keys().rotate(token.encode()).decode()
        except InvalidToken:
            raise _no_key_fits() from None

    def _keys(self) -> MultiFernet:
        if self._fernet is None:
            raise errors.ConfigurationError(
                reason=f"a device has secrets, but there is no key to encrypt them with; {HOW_TO_MAKE_A_KEY}."
            )
        return self._fernet


def generate_key() -> str:
    """A new random key for ``[security] encryption_keys``."""
    return Fernet.generate_key().decode()


def _fernet(position: int, key: str) -> Fernet:
    # Stricter than Fernet, which skips characters that are none of base64's: a mistyped key must not pass for another one.
    if not _KEY.fullmatch(key):
        raise errors.ConfigurationError(
            reason=f"encryption_keys[{position}] is not a valid Fernet key (44 characters url-safe base64); {HOW_TO_MAKE_A_KEY}."
        )
    return Fernet(key)


def _no_key_fits() -> errors.ConfigurationError:
    return errors.ConfigurationError(
        reason="a device's secrets were encrypted with a key that is not among [security] encryption_keys;"
        " put that key back into the list, behind the present ones."
    )
