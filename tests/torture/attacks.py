"""Every attack, in the order of the table."""

from __future__ import annotations

from typing import Final

from tests.torture import files, fuzz, kills, servers, sizes
from tests.torture.attack import Attack

_COMMAND: Final = "no traceback, key, text of a sample or control character; code 0, 1 or 2"
_REST: Final = "every command ends with code 0, 1 or 2 and shows the sound runs"

ATTACKS: Final = (
    Attack(
        "server",
        "counts of tokens that cannot be true, under `--max-usd`",
        "the cap holds, no answer is asked for twice, the leaderboard shows all runs",
        servers.attack_usage,
    ),
    Attack(
        "server",
        "bodies of answers that are no answers, or say what they should not",
        f"{_COMMAND}; no script in the report; the leaderboard shows the sound run",
        servers.attack_bodies,
    ),
    Attack(
        "server",
        "answers that arrive as they should not (bombs, resets, waits, encodings)",
        f"{_COMMAND}; at most 512 MB; the leaderboard shows the sound run",
        servers.attack_transports,
    ),
    Attack(
        "server",
        "redirects to another host",
        f"the key does not go there; {_COMMAND}",
        servers.attack_redirects,
    ),
    Attack(
        "kill",
        "SIGKILL while chats are asked, sorted and scored",
        "nothing lost, doubled or asked again; the files are those of an undisturbed run",
        kills.kill_chats,
    ),
    Attack(
        "kill",
        "SIGKILL while batches are submitted, waited for and read",
        "no request is submitted twice; the answers are those of an undisturbed run",
        kills.kill_batches,
    ),
    Attack(
        "kill",
        "crashes at every step of a batch, before and after its effect, alone and in pairs",
        "no request is submitted twice; the file is that of an undisturbed run",
        kills.crash_batches,
    ),
    Attack(
        "kill",
        "files of responses that end anywhere in their last line",
        "only what is missing is asked; every sample has one answer",
        kills.tear_lines,
    ),
    Attack(
        "fuzz", "parser: answers of random pieces", "no exception, one reading", fuzz.fuzz_parser
    ),
    Attack(
        "fuzz",
        "scorer: random subjects and texts",
        "no exception; figures from 0 to 1 that no order changes",
        fuzz.fuzz_scorer,
    ),
    Attack(
        "fuzz",
        "mask: random texts and entities",
        "no exception; the text comes back",
        fuzz.fuzz_mask,
    ),
    Attack(
        "fuzz",
        "report: random models, answers and texts",
        "two scripts, the data and ours; no handler; UTF-8",
        fuzz.fuzz_report,
    ),
    Attack("file", "manifests with each value replaced", _REST, files.attack_manifests),
    Attack("file", "lines of responses with each value replaced", _REST, files.attack_lines),
    Attack(
        "file",
        "datasets, predictions and answers with bytes changed",
        "no exception; code 0, 1 or 2",
        files.attack_inputs,
    ),
    Attack("file", "names that no file has", "no exception; code 0, 1 or 2", files.attack_names),
    Attack(
        "size", "`data check` of alike lines and large samples", "at most 1 GB", sizes.attack_check
    ),
    Attack("size", "`score` of many lines, subjects and marks", "at most 1 GB", sizes.attack_score),
    Attack("size", "`mask` of long texts", "at most 500 MB", sizes.attack_mask),
)
