"""The model that a container's command line or environment says it serves.

Follows the documented options of vLLM, SGLang, Text Generation Inference, TensorRT-LLM, LMDeploy, llama.cpp,
NVIDIA Dynamo and NIM, and KServe's runtimes. A program that is none of these serves nothing, whatever its
options are called: a training job takes `--model` too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from sizing.inventory.kubernetes.facts import ContainerFacts
from sizing.inventory.kubernetes.mapping.shell import commands_of, filled

# Programs that serve; of some only one subcommand does, after which the model may stand.
_SERVERS: dict[str, tuple[str, ...]] = {
    "vllm": ("serve",),
    "sglang": ("serve",),
    "aphrodite": ("run",),
    "lmdeploy": ("serve", "api_server"),
    "trtllm-serve": (),
    "text-generation-launcher": (),
    "text-embeddings-router": (),
    "infinity_emb": (),
    "llama-server": (),
    "mistralrs-server": (),
}
_MODULES = re.compile(
    r"(vllm\.entrypoints\.|sglang\.launch_server|sglang\.srt|lmdeploy\.serve|lmdeploy$|dynamo\."
    r"|huggingfaceserver|tensorrt_llm\.serve|tensorrt_llm\.commands\.serve|llama_cpp\.server|aphrodite\.)"
)
_IMAGES = re.compile(
    r"vllm|sglang|text-generation-inference|text-embeddings-inference|tensorrt-?llm|trtllm|lmdeploy"
    r"|llama\.cpp|llama-cpp|huggingfaceserver|dynamo|aphrodite"
)
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_PYTHON = re.compile(r"python(3(\.\d+)?)?")
_BEFORE = frozenset({"exec", "nohup", "env", "numactl", "nice", "tini", "dumb-init", "nsys", "taskset", "uv"})

# In the order in which they decide: the name that is served before what is loaded.
_NAME_OPTIONS = ("served-model-name", "model-name", "alias")
_LOAD_OPTIONS = ("model", "model-path", "model-id", "hf-repo", "model-tag")
_SHORT = {"-m": "model", "-hf": "hf-repo", "-hfr": "hf-repo", "-a": "alias"}
_NAME_VARIABLES = ("SERVED_MODEL_NAME", "NIM_SERVED_MODEL_NAME", "LLAMA_ARG_ALIAS")
_LOAD_VARIABLES = ("MODEL_ID", "HF_MODEL_ID", "NIM_MODEL_NAME", "LLAMA_ARG_HF_REPO", "LLAMA_ARG_MODEL")
_SWITCH = re.compile(r"--(enable|disable|no|trust|skip|use|allow)-.*|--(verbose|log-requests|reasoning)")


class Told(NamedTuple):
    """A name as it is told, and where."""

    name: str
    by: str


class Serving(NamedTuple):
    """What a container serves. `told` are names of it, the served one before what is loaded; it may be
    empty: a server that does not say what it loads."""

    container: ContainerFacts
    told: tuple[Told, ...]
    port: int | None = None


def serving_of(containers: Sequence[ContainerFacts], batch: bool = False) -> Serving | None:
    """The first container that serves a model, those that ask for devices first; None where none does.

    In a `batch` job options without a program count only in an image of an inference server.
    """
    first = sorted(containers, key=_asks_for_none) if len(containers) > 1 else containers
    for container in first:
        found = _serving(container, batch)
        if found is not None:
            return found
    return None


def _asks_for_none(container: ContainerFacts) -> bool:
    return not any("/" in resource and count for resource, count in container.requests.items())


def _serving(container: ContainerFacts, batch: bool) -> Serving | None:
    found = _read(container.image.lower(), container.words, tuple(container.env.items()), batch)
    return None if found is None else Serving(container, *found)


@lru_cache(maxsize=4096)
def _read(
    image: str, words: tuple[str, ...], variables: tuple[tuple[str, str], ...], batch: bool
) -> tuple[tuple[Told, ...], int | None] | None:
    """The names and the port of a container; the pods of one template are read once."""
    env = dict(variables)
    serves = bool(_IMAGES.search(image))
    told: list[Told] = []
    port = None
    for command in commands_of(words):
        options = _server_options(command, image, serves or not batch)
        if options is None:
            continue
        serves = True
        told += _told(options, env)
        port = port or _port(options.get("port", ()), env)
    if not told and (serves or not batch):
        told += _told_by_environment(env)
    if not serves and not told:
        return None
    return tuple(told), port


def _server_options(words: Sequence[str], image: str, bare: bool) -> dict[str, list[str]] | None:
    """The options of a server's command, a model that stands alone as `serve`; None: no server.

    With `bare`, options without a program are those of the image's own.
    """
    llama = "llama" in image
    rest = list(words)
    while rest and (_name(rest[0]) in _BEFORE or re.fullmatch(r"\w+=.*", rest[0], re.DOTALL)):
        del rest[0]
    if not rest:
        return None
    program, arguments = _name(rest[0]), rest[1:]
    if rest[0].startswith("-"):
        found = _options(rest, short=llama)
        return found if bare and any(found.get(o) for o in (*_NAME_OPTIONS, *_LOAD_OPTIONS)) else None
    if program in _SERVERS:
        subcommands = _SERVERS[program]
        if tuple(arguments[: len(subcommands)]) != subcommands:
            return None
        arguments = arguments[len(subcommands) :]
        if program == "trtllm-serve" and arguments[:1] == ["serve"]:
            del arguments[0]
        return _options(arguments, short=program == "llama-server", stands_alone=True)
    if _PYTHON.fullmatch(program) and "-m" in arguments[:-1]:
        at = arguments.index("-m") + 1
        return _options(arguments[at + 1 :]) if _MODULES.match(arguments[at]) else None
    if "vllm" in image and _HUB_NAME.fullmatch(rest[0]) and all(w.startswith("-") for w in arguments[:1]):
        # The image runs `vllm serve`, so its first argument is the model.
        return _options(rest, stands_alone=True)
    found = _options(arguments)
    # Only servers are told the name that they answer to.
    return found if found.get("served-model-name") or found.get("model-name") else None


def _name(word: str) -> str:
    return word.rsplit("/", 1)[-1]


def _options(words: Sequence[str], short: bool = False, stands_alone: bool = False) -> dict[str, list[str]]:
    """The values of each option, with dashes for underscores; `serve` for a word that belongs to none."""
    found: dict[str, list[str]] = {}
    option = None
    for word in words:
        if short and word in _SHORT:
            option = _SHORT[word]
        elif word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            option = name.replace("_", "-")
            found.setdefault(option, []).extend([value] if equals else [])
            if equals or _SWITCH.fullmatch(word):
                option = None
        elif option is not None:
            found.setdefault(option, []).append(word)
            if option != "served-model-name":
                option = None
        elif stands_alone and not word.startswith("-"):
            found.setdefault("serve", []).append(word)
    return found


def _told(options: Mapping[str, Sequence[str]], env: Mapping[str, str]) -> Iterator[Told]:
    for option in (*_NAME_OPTIONS, *_LOAD_OPTIONS, "serve"):
        for value in list(options.get(option, ()))[:1]:
            name = filled(value, env)
            if name:
                by = "the command line" if option == "serve" else f"--{option}"
                yield Told(name, by)


def _told_by_environment(env: Mapping[str, str]) -> Iterator[Told]:
    for variable in (*_NAME_VARIABLES, *_LOAD_VARIABLES):
        name = filled(env.get(variable, ""), env)
        if name:
            yield Told(name, f"the variable {variable}")


def _port(values: Iterable[str], env: Mapping[str, str]) -> int | None:
    for value in values:
        number = filled(value, env)
        if number.isascii() and number.isdigit() and 0 < int(number[:9]) < 65536:
            return int(number[:9])
    return None
