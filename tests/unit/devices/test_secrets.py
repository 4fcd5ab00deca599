"""Secrets of devices."""

from __future__ import annotations

import re

import pytest
from cryptography.fernet import Fernet

from lbaas_scheduler.devices.secrets import Vault, generate_key
from lbaas_scheduler.errors import ConfigurationError

SECRETS = {"password": "hunter2", "token": 'qu"o\\te\n负载'}


def test_what_is_sealed_opens_again_and_does_not_show() -> None:
    vault = Vault([generate_key()])
    token = vault.seal(SECRETS)
    assert vault.open(token) == SECRETS
    assert "hunter2" not in token
    assert vault.seal(SECRETS) != token


def test_no_secrets_need_no_key() -> None:
    vault = Vault([])
    assert vault.seal({}) == ""
    assert vault.open("") == {}
    assert vault.rotate("") == ""


def test_secrets_without_a_key_are_refused_with_the_way_to_make_one() -> None:
    with pytest.raises(ConfigurationError, match=r"make one with 'lbaas-scheduler-manage keys generate'") as refused:
        Vault([]).seal(SECRETS)
    assert "hunter2" not in refused.value.message
    with pytest.raises(ConfigurationError, match="there is no key"):
        Vault([]).open(Vault([generate_key()]).seal(SECRETS))


@pytest.mark.parametrize(
    "bad", ["", "short", "x" * 44, "ü" * 43 + "=", "A" * 43, "A" * 43 + "==", "A" * 22 + "!" + "A" * 21 + "="]
)
def test_a_bad_key_is_named_by_position_and_never_shown(bad: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Vault([generate_key(), bad])
    message = refused.value.message
    assert "encryption_keys[1] is not a valid Fernet key (44 characters url-safe base64)" in message
    assert not bad or bad not in message
    assert refused.value.__context__ is None


def test_the_first_key_encrypts_and_all_of_them_decrypt() -> None:
    old, new = generate_key(), generate_key()
    token = Vault([old]).seal(SECRETS)
    both = Vault([new, old])
    assert both.open(token) == SECRETS
    assert Vault([new]).open(both.seal(SECRETS)) == SECRETS
    rotated = both.rotate(token)
    assert Vault([new]).open(rotated) == SECRETS


def test_a_token_of_a_lost_key_says_which_option_is_wrong() -> None:
    token = Vault([generate_key()]).seal(SECRETS)
    vault = Vault([generate_key()])
    for use in (vault.open, vault.rotate):
        with pytest.raises(ConfigurationError, match=re.escape("[security] encryption_keys")):
            use(token)


def test_a_generated_key_is_one() -> None:
    assert Fernet(generate_key())
