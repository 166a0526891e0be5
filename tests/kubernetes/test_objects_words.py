"""Command lines and environments without secrets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kubernetes.made import container, pod, the_pod


def words_of(*words: Any) -> tuple[str, ...]:
    return the_pod(pod(spec={"containers": [container(args=list(words))]})).containers[0].words


def env_of(args: Any = None, **env: Any) -> dict[str, str]:
    listed = [{"name": name, "value": value} for name, value in env.items()]
    return the_pod(pod(spec={"containers": [container(args=args, env=listed)]})).containers[0].env


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (("--api-key", "sk-1", "--model", "m"), ("--model", "m")),
        (("--model", "m", "--api-key", "k1", "k2"), ("--model", "m")),
        (("--api-key=sk-1", "--model", "m"), ("--model", "m")),
        (("--api_key", "x", "--port", "80"), ("--port", "80")),
        (("--hf-token", "hf_x", "--seed", "1"), ("--seed", "1")),
        (("--token", "x"), ()),
        (("--vllm-api-key=a\nb",), ()),
        (("--ray-password", "x", "-v"), ("-v",)),
    ],
)
def test_what_follows_a_flag_for_secrets_is_dropped(words: tuple[str, ...], kept: tuple[str, ...]) -> None:
    assert words_of(*words) == kept


@pytest.mark.parametrize(
    "words",
    [
        ("--tokenizer", "Qwen/Qwen3-8B"),
        ("--max-num-batched-tokens", "8192"),
        ("--max-num-batched-tokens=8192",),
        ("--tokenizer-mode", "auto", "--max-total-tokens", "4096"),
        ("--tool-call-parser", "hermes", "--served-model-name=key-model"),
        ("sh", "-c", "exec vllm serve Qwen/Qwen3-8B \\\n  --max-tokens 5 --port $(PORT)\n"),
    ],
)
def test_flags_that_only_look_like_it_stay(words: tuple[str, ...]) -> None:
    assert words_of(*words) == words


@pytest.mark.parametrize(
    "script",
    [
        "vllm serve m --api-key SECRET --port 80",
        "vllm serve m --api-key=SECRET --port 80",
        "vllm serve m --api-key 'SECRET x' --port 80",
        'HF_TOKEN=SECRET vllm serve m --port 80',
        'export OPENAI_API_KEY="SECRET" && vllm serve m --port 80',
        "curl -H 'Authorization: Bearer SECRET' && vllm serve m --port 80",
        "pip install https://user:SECRET@example.org/x && vllm serve m --port 80",
        """vllm serve m --port 80 --config '{"api_key": "SECRET"}'""",
        "huggingface-cli login hf_SECRETSECRETSECRETSECRET; vllm serve m --port 80",
    ],
)  # fmt: skip
def test_a_script_loses_its_secrets_and_keeps_its_model(script: str) -> None:
    (word,) = words_of(script)
    assert "SECRET" not in word
    assert "vllm serve m" in word
    assert "--port 80" in word


def test_only_variables_that_tell_of_the_model_are_kept() -> None:
    assert env_of(
        MODEL_ID="Qwen/Qwen3-8B",
        SERVED_MODEL_NAME="qwen",
        VLLM_USE_V1=1,
        LWS_GROUP_SIZE="4",
        RAY_NODE_COUNT="2",
        TENSOR_PARALLEL_SIZE=8,
        NIM_MODEL_NAME="n",
        HOME="/root",
        DATABASE_URL="postgres://x",
    ) == {
        "MODEL_ID": "Qwen/Qwen3-8B",
        "SERVED_MODEL_NAME": "qwen",
        "VLLM_USE_V1": "1",
        "LWS_GROUP_SIZE": "4",
        "RAY_NODE_COUNT": "2",
        "TENSOR_PARALLEL_SIZE": "8",
        "NIM_MODEL_NAME": "n",
    }


def test_variables_that_the_command_line_names_are_kept() -> None:
    args = ["--model", "$(LLM)", "--port", "${HTTP_PORT:-8000}", "--name=$NAME", "--api", "$(MY_API_KEY)"]
    assert env_of(args, LLM="m", HTTP_PORT="80", NAME="n", MY_API_KEY="s", OTHER="o") == {
        "LLM": "m",
        "HTTP_PORT": "80",
        "NAME": "n",
    }


@pytest.mark.parametrize(
    "name",
    ["HF_TOKEN", "VLLM_API_KEY", "RAY_REDIS_PASSWORD", "NIM_SECRET", "RAY_AUTH_MODE", "VLLM_CREDENTIALS"],
)
def test_variables_that_may_hold_a_secret_are_never_kept(name: str) -> None:
    assert env_of(["--x", f"$({name})"], **{name: "x"}) == {}


def test_a_variable_from_a_secret_or_without_a_value_is_no_variable() -> None:
    env = [
        {"name": "MODEL", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "MODEL_ID"},
        {"name": 3, "value": "x"},
        "MODEL_NAME=x",
    ]
    assert the_pod(pod(spec={"containers": [container(env=env)]})).containers[0].env == {}


def test_a_hostile_word_is_read_through() -> None:
    for word in ("-" * 40_000, "--" + "a-" * 20_000, "KEY" * 15_000, "://" * 15_000, '"' + "k" * 40_000):
        assert len(words_of(word)) <= 1


def test_zero_bytes_and_lone_surrogates_are_replaced() -> None:
    assert words_of("a\x00b", "c\ud800", "d\ne") == ("a\ufffdb", "c\ufffd", "d\ne")
