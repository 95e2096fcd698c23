"""The pages of reviews."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Depends, Form, Request, Response, UploadFile
from fastapi.responses import JSONResponse, RedirectResponse

from pii_bench.errors import PiiBenchError
from pii_bench.files import read_records
from pii_bench.ranking.stored import Run, read_runs
from pii_bench.tasks import Task
from pii_bench.web import state
from pii_bench.web.accounts import Role, list_accounts
from pii_bench.web.database import NotThereError
from pii_bench.web.pages import download, page, uploaded
from pii_bench.web.reviews import (
    SCALE,
    SHARED_REVIEWS,
    VERDICT_WORDS,
    Judgement,
    Kind,
    Pair,
    Review,
    agreement_of,
    create_review,
    find_item,
    finished_judgements,
    judgements_of,
    masked_pair,
    order_of,
    parse_pairs,
    results_of,
    rewritten_pair,
    save_judgement,
)
from pii_bench.web.security import CurrentUser, Number, Owner

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

router: Final = APIRouter(include_in_schema=False)

MOST_ITEMS: Final = 5000


def _review(request: Request, user: CurrentUser, review_id: Number) -> Review:
    with state.of(request).database.reading() as connection:
        return SHARED_REVIEWS.get_visible(connection, user, review_id)


VisibleReview = Annotated[Review, Depends(_review)]


@router.get("/reviews")
def review_list(request: Request, user: CurrentUser) -> Response:
    """Show the reviews that the user may see, with their progress."""
    rows = []
    with state.of(request).database.reading() as connection:
        for review in SHARED_REVIEWS.all_visible(connection, user):
            judgements = judgements_of(connection, review, user.id).values()
            done = sum(judgement.done for judgement in judgements)
            rows.append((review, done, len(order_of(connection, review, user.id))))
    return page(request, "reviews.html", reviews=rows)


@router.get("/reviews/new")
def new_review(request: Request, _: Owner) -> Response:
    """Show the form for a new review."""
    runs = _runs(state.of(request).settings.results)
    return page(request, "review_new.html", runs=list(runs))


@router.post("/reviews/new")
def make_review(
    request: Request,
    user: Owner,
    name: Annotated[str, Form(max_length=200)],
    kind: Annotated[Kind, Form()] = Kind.MASKED,
    run: Annotated[list[str] | None, Form()] = None,
    limit: Annotated[int, Form(ge=1, le=MOST_ITEMS)] = 50,
    file: UploadFile | None = None,
) -> Response:
    """Create a review of stored runs, of a file of texts before and after, or of both."""
    web = state.of(request)
    runs = _runs(web.settings.results) if run else {}
    pairs: list[Pair] = []
    for name_of_run in run or ():
        if name_of_run not in runs:
            raise PiiBenchError("there is no such run")
        pairs += islice(_pairs(runs[name_of_run]), limit)
    if file is not None and file.filename:
        with uploaded(file, "file.jsonl") as path:
            pairs += parse_pairs(read_records(path))[:MOST_ITEMS]
    review = create_review(web.database, name, kind, pairs)
    SHARED_REVIEWS.add_member(web.database, review.id, user.id)
    return RedirectResponse(f"/reviews/{review.id}", 303)


def _pairs(run: Run) -> Iterator[Pair]:
    """Yield the samples of a run that have a masked or a rewritten text."""
    rewrites = run.task is Task.REWRITE
    predictions = run.predictions if rewrites else run.masking or {}
    make = rewritten_pair if rewrites else masked_pair
    for sample in run.dataset.samples:
        if sample.id in predictions:
            pair = make(sample, predictions[sample.id], _system(run))
            if pair is not None:
                yield pair


def _runs(results: Path) -> dict[str, Run]:
    """Return the stored runs with masked or rewritten texts by their names on the page."""
    return {
        f"{_system(run)} on {run.dataset.name} ({run.source})": run
        for run in read_runs(results).runs
        if run.detection is not None or run.task is Task.REWRITE
    }


def _system(run: Run) -> str:
    return f"{run.manifest.system.model}, {run.manifest.system.prompt}"


@router.get("/reviews/{review_id}")
def review_page(request: Request, user: CurrentUser, review: VisibleReview) -> Response:
    """Show a review: the user's progress, and for an owner the results and the people."""
    database = state.of(request).database
    accounts = {account.id: account for account in list_accounts(database)} | {user.id: user}
    with database.reading() as connection:
        order = order_of(connection, review, user.id)
        own = judgements_of(connection, review, user.id)
        finished = finished_judgements(connection, review) if user.role is Role.OWNER else []
        members = SHARED_REVIEWS.members_of(connection, review.id)
    undone = _undone(order, own)
    return page(
        request,
        "review.html",
        review=review,
        done=len(order) - len(undone),
        most=len(order),
        next=undone[0] if undone else None,
        order=[(n, item_id, own.get(item_id)) for n, item_id in enumerate(order, start=1)],
        results=results_of(finished),
        agreement=agreement_of(finished, review.kind),
        comments=[(item, judgement) for item, _, judgement in finished if judgement.comment],
        people=[accounts[member] for member in sorted(members) if member in accounts],
        others=[account for account in accounts.values() if account.id not in members],
    )


def _undone(item_ids: Iterable[int], judgements: Mapping[int, Judgement]) -> list[int]:
    return [
        item_id for item_id in item_ids if item_id not in judgements or not judgements[item_id].done
    ]


@router.get("/reviews/items/{item_id}")
def item_page(request: Request, user: CurrentUser, item_id: Number) -> Response:
    """Show a text before and after, and the questions about it."""
    with state.of(request).database.reading() as connection:
        item, review = find_item(connection, user, item_id)
        order = order_of(connection, review, user.id)
        judgements = judgements_of(connection, review, user.id)
    position = order.index(item.id)
    statuses = {status for _, status in (*item.pair.before, *item.pair.after) if status}
    return page(
        request,
        "review_item.html",
        review=review,
        item=item,
        judgement=judgements.get(item.id, Judgement()),
        number=position + 1,
        most=len(order),
        before=order[position - 1] if position else None,
        after=order[position + 1] if position + 1 < len(order) else None,
        questions=VERDICT_WORDS,
        scale=SCALE,
        statuses=statuses if review.kind is Kind.MASKED else set(),
        blind=review.kind is Kind.BLIND,
    )


@router.post("/reviews/items/{item_id}")
def judge_item(
    request: Request, user: CurrentUser, item_id: Number, judgement: Judgement
) -> Response:
    """Save a judgement and return the path of the next page."""
    with state.of(request).database.writing() as connection:
        item, review = find_item(connection, user, item_id)
        judgement.check(review.kind)
        save_judgement(connection, item, user.id, judgement)
        order = order_of(connection, review, user.id)
        judgements = judgements_of(connection, review, user.id)
    position = order.index(item.id)
    undone = _undone(order[position + 1 :] + order[:position], judgements)
    target = f"/reviews/items/{undone[0]}" if undone else f"/reviews/{review.id}"
    return JSONResponse({"next": target})


@router.post("/reviews/{review_id}/people")
def change_reviewers(
    request: Request,
    user: Owner,
    review: VisibleReview,
    account: Annotated[int, Form(ge=1, le=2**31 - 1)],
    action: Annotated[str, Form(max_length=20)] = "add",
) -> Response:
    """Add or remove a reviewer."""
    database = state.of(request).database
    if action == "remove":
        SHARED_REVIEWS.remove_member(database, review.id, account)
    elif account in {user.id, *(other.id for other in list_accounts(database))}:
        SHARED_REVIEWS.add_member(database, review.id, account)
    else:
        raise NotThereError
    return RedirectResponse(f"/reviews/{review.id}", 303)


@router.get("/reviews/{review_id}/verdicts.jsonl")
def verdict_file(request: Request, _: Owner, review: VisibleReview) -> Response:
    """Return all finished judgements, without texts and with people as numbers."""
    with state.of(request).database.reading() as connection:
        judgements = finished_judgements(connection, review)
    reviewers = list(dict.fromkeys(account_id for _, account_id, _ in judgements))
    records = [
        {
            "id": item.pair.name,
            "system": item.pair.system,
            "reviewer": reviewers.index(account_id) + 1,
            "verdict": judgement.verdict or None,
            "privacy": judgement.privacy,
            "meaning": judgement.meaning,
            "comment": judgement.comment,
            "seconds": round(judgement.seconds, 1),
        }
        for item, account_id, judgement in judgements
    ]
    return download(records, f"review-{review.id}.jsonl")


@router.post("/reviews/{review_id}/delete")
def remove_review(request: Request, _: Owner, review: VisibleReview) -> Response:
    """Delete a review and its texts."""
    SHARED_REVIEWS.delete(state.of(request).database, review.id)
    return RedirectResponse("/reviews", 303)
