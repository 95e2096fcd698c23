"""Every command by name. Each imports what it needs when it runs: no other pays for it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping


def _run(parsed: argparse.Namespace) -> bool:
    from pii_bench.cli.run import run_benchmark

    return run_benchmark(parsed)


def _mask(parsed: argparse.Namespace) -> bool:
    from pii_bench.cli.mask import mask_text

    return mask_text(parsed)


def _score(parsed: argparse.Namespace) -> bool:
    from pii_bench.cli.score import score_predictions

    return score_predictions(parsed)


def _convert(parsed: argparse.Namespace) -> bool:
    from pii_bench.cli.score import convert_answers

    return convert_answers(parsed.answers, parsed.dataset, parsed.out)


def _leaderboard(parsed: argparse.Namespace) -> bool:
    from pii_bench.cli.leaderboard import build_leaderboard

    return build_leaderboard(parsed.results, parsed.table)


def _compare(parsed: argparse.Namespace) -> bool:
    from pii_bench.cli.compare import compare_runs

    return compare_runs(parsed)


def _analyse(parsed: argparse.Namespace) -> bool:
    from pii_bench.cli.analyse import analyse_runs

    return analyse_runs(parsed)


def _diagnose(parsed: argparse.Namespace) -> bool:
    from pii_bench.cli.diagnose import diagnose_runs

    return diagnose_runs(parsed)


def _report(parsed: argparse.Namespace) -> bool:
    from pii_bench.cli.report import write_report

    return write_report(parsed)


def _utility(parsed: argparse.Namespace) -> bool:
    from pii_bench.cli.utility import measure_utility

    return measure_utility(parsed)


def _export(parsed: argparse.Namespace) -> bool:
    from pii_bench.cli.export import export_every_eval_ever
    from pii_bench.integrations.every_eval_ever.every_eval_ever import Evaluator

    evaluator = Evaluator(parsed.organization, parsed.relationship)
    return export_every_eval_ever(parsed.results, parsed.out, evaluator)


def _train(parsed: argparse.Namespace) -> bool:
    if parsed.network == "encoder":
        from pii_bench.cli.train_encoder import train_encoder

        return train_encoder(parsed)
    from pii_bench.cli.train import train_tagger

    return train_tagger(parsed.data, parsed.out, words_alone=parsed.words_alone)


def _fit(parsed: argparse.Namespace) -> bool:
    from pii_bench.cli.train import fit_relevance

    return fit_relevance(parsed.systems, parsed.data, parsed.out)


def _models(parsed: argparse.Namespace) -> bool:
    from pii_bench.cli.models import list_models

    list_models(parsed)
    return True


def _data_build(parsed: argparse.Namespace) -> bool:
    from pii_bench.cli.data_build import build_by_model, build_data

    return build_by_model(parsed) if parsed.writer else build_data(parsed.data)


def _data_commission(parsed: argparse.Namespace) -> bool:
    from pii_bench.cli.data_texts import write_commissions

    return write_commissions(parsed.set, parsed.portions, parsed.out)


def _data_accept(parsed: argparse.Namespace) -> bool:
    from pii_bench.cli.data_texts import accept_texts

    return accept_texts(parsed.files)


def _data_sheet(parsed: argparse.Namespace) -> bool:
    from pii_bench.cli.data_texts import write_sheet

    return write_sheet(parsed.set, parsed.portions, parsed.reader, parsed.out)


def _data_read(parsed: argparse.Namespace) -> bool:
    from pii_bench.cli.data_texts import record_answers

    return record_answers(parsed.set, parsed.reader, parsed.answers)


def _data_agreement(parsed: argparse.Namespace) -> bool:
    from pii_bench.cli.data_texts import print_agreement

    return print_agreement(parsed.sets, disputed=parsed.disputed)


def _data_check(parsed: argparse.Namespace) -> bool:
    from pii_bench.cli.data_check import check_dataset

    return check_dataset(parsed.files)


def _data_stats(parsed: argparse.Namespace) -> bool:
    from pii_bench.cli.data_stats import print_statistics

    return print_statistics(parsed.dataset, write=parsed.write)


def _data_quality(parsed: argparse.Namespace) -> bool:
    from pii_bench.cli.data_quality import report_quality

    return report_quality(parsed.data, parsed.beside)


COMMANDS: Final[Mapping[str, Callable[[argparse.Namespace], bool]]] = MappingProxyType(
    {
        "run": _run,
        "mask": _mask,
        "score": _score,
        "convert": _convert,
        "leaderboard": _leaderboard,
        "compare": _compare,
        "analyse": _analyse,
        "diagnose": _diagnose,
        "report": _report,
        "utility": _utility,
        "export every-eval-ever": _export,
        "train": _train,
        "fit": _fit,
        "models": _models,
        "data build": _data_build,
        "data commission": _data_commission,
        "data accept": _data_accept,
        "data sheet": _data_sheet,
        "data read": _data_read,
        "data agreement": _data_agreement,
        "data check": _data_check,
        "data stats": _data_stats,
        "data quality": _data_quality,
    }
)
"""A command returns whether everything asked for is there."""
