"""The pages of reviews."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Depends, Form, Request, Response, UploadFile
from fastapi.responses import JSONResponse, RedirectResponse

from pii_bench.errors import InputFileError
from pii_bench.files import read_records
from pii_bench.ranking.stored import Run, read_runs
from pii_bench.tasks import Task
from pii_bench.web import state
from pii_bench.web.accounts import Role, list_accounts
from pii_bench.web.database import NotThereError
from pii_bench.web.pages import download, page
from pii_bench.web.reviews import (
    SCALE,
    VERDICT_WORDS,
    Judgement,
    Kind,
    Pair,
    Review,
    ReviewError,
    add_reviewer,
    agreement_of,
    create_review,
    delete_review,
    every_judgement,
    find_item,
    judge,
    judgements_of,
    masked_pair,
    order_of,
    pairs_of_records,
    remove_reviewer,
    results_of,
    reviewers_of,
    reviews_of,
    rewritten_pair,
    visible_review,
)
from pii_bench.web.security import CurrentUser, Number, Owner

if TYPE_CHECKING:
    from collections.abc import Iterator


router: Final = APIRouter(include_in_schema=False)

MOST_ITEMS: Final = 5000


def _review(request: Request, user: CurrentUser, review_id: Number) -> Review:
    with state.of(request).database.reading() as connection:
        return visible_review(connection, user, review_id)


VisibleReview = Annotated[Review, Depends(_review)]


@router.get("/reviews")
def review_list(request: Request, user: CurrentUser) -> Response:
    """The reviews of the user."""
    with state.of(request).database.reading() as connection:
        shown = []
        for review in reviews_of(connection, user):
            said = judgements_of(connection, review, user.id)
            most = len(order_of(connection, review, user.id))
            shown.append((review, sum(each.done for each in said.values()), most))
    return page(request, "reviews.html", reviews=shown)


@router.get("/reviews/new")
def new_review(request: Request, _: Owner) -> Response:
    """The form of a new review."""
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
    """Make a review of stored runs, of a file of texts before and after, or of both."""
    web = state.of(request)
    found = _runs(web.settings.results) if run else {}
    pairs: list[Pair] = []
    for key in run or ():
        if key not in found:
            raise ReviewError("there is no such run")
        pairs += islice(_pairs(found[key]), limit)
    if file is not None and file.filename:
        pairs += _sent(file)[:MOST_ITEMS]
    review = create_review(web.database, name, kind, pairs)
    add_reviewer(web.database, review, user.id)
    return RedirectResponse(f"/reviews/{review.id}", 303)


def _pairs(run: Run) -> Iterator[Pair]:
    """The samples of a run that have a masked or a rewritten text."""
    rewrites = run.task is Task.REWRITE
    predictions = run.predictions if rewrites else run.masking or {}
    make = rewritten_pair if rewrites else masked_pair
    for sample in run.dataset.samples:
        if sample.id in predictions:
            pair = make(sample, predictions[sample.id], _system(run))
            if pair is not None:
                yield pair


def _sent(file: UploadFile) -> list[Pair]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file.jsonl"
        path.write_bytes(file.file.read())
        try:
            return list(pairs_of_records(read_records(path)))
        except InputFileError as error:
            raise ReviewError(str(error).replace(f"{folder}/", "")) from None


def _runs(results: Path) -> dict[str, Run]:
    """The stored runs that have masked or rewritten texts, by their names on the page."""
    return {
        f"{_system(run)} on {run.dataset.name} ({run.source})": run
        for run in read_runs(results).runs
        if run.detection is not None or run.task is Task.REWRITE
    }


def _system(run: Run) -> str:
    return f"{run.manifest.system.model}, {run.manifest.system.prompt}"


@router.get("/reviews/{review_id}")
def review_page(request: Request, user: CurrentUser, review: VisibleReview) -> Response:
    """A review: what is next, and for an owner the results and the people."""
    database = state.of(request).database
    accounts = {each.id: each for each in list_accounts(database)} | {user.id: user}
    with database.reading() as connection:
        order = order_of(connection, review, user.id)
        said = judgements_of(connection, review, user.id)
        everything = every_judgement(connection, review) if user.role is Role.OWNER else []
        members = reviewers_of(connection, review)
    undone = [item for item in order if not (item in said and said[item].done)]
    return page(
        request,
        "review.html",
        review=review,
        done=len(order) - len(undone),
        most=len(order),
        next=undone[0] if undone else None,
        order=[(n, item, said.get(item)) for n, item in enumerate(order, start=1)],
        results=results_of(everything),
        agreement=agreement_of(everything, review.kind),
        comments=[(item, said) for item, _, said in everything if said.comment],
        people=[accounts[each] for each in sorted(members) if each in accounts],
        others=[each for each in accounts.values() if each.id not in members],
    )


@router.get("/reviews/items/{item_id}")
def item_page(request: Request, user: CurrentUser, item_id: Number) -> Response:
    """A text before and after, and the questions."""
    with state.of(request).database.reading() as connection:
        item, review = find_item(connection, user, item_id)
        order = order_of(connection, review, user.id)
        said = judgements_of(connection, review, user.id)
    place = order.index(item.id)
    kinds = {kind for _, kind in (*item.pair.before, *item.pair.after) if kind}
    return page(
        request,
        "review_item.html",
        review=review,
        item=item,
        said=said.get(item.id, Judgement()),
        number=place + 1,
        most=len(order),
        before=order[place - 1] if place else None,
        after=order[place + 1] if place + 1 < len(order) else None,
        questions=VERDICT_WORDS,
        scale=SCALE,
        kinds=kinds if review.kind is Kind.MASKED else set(),
        blind=review.kind is Kind.BLIND,
    )


@router.post("/reviews/items/{item_id}")
def judge_item(request: Request, user: CurrentUser, item_id: Number, said: Judgement) -> Response:
    """Keep what somebody says; answers with where to go next."""
    with state.of(request).database.writing() as connection:
        item, review = find_item(connection, user, item_id)
        said.check(review.kind)
        judge(connection, item, user.id, said)
        order = order_of(connection, review, user.id)
        others = judgements_of(connection, review, user.id)
    place = order.index(item.id)
    waiting = [
        each
        for each in (*order[place + 1 :], *order[:place])
        if not (each in others and others[each].done)
    ]
    target = f"/reviews/items/{waiting[0]}" if waiting else f"/reviews/{review.id}"
    return JSONResponse({"next": target})


@router.post("/reviews/{review_id}/people")
def change_reviewers(
    request: Request,
    user: Owner,
    review: VisibleReview,
    account: Annotated[int, Form(ge=1, le=2**31 - 1)],
    action: Annotated[str, Form(max_length=20)] = "add",
) -> Response:
    """Add somebody, or take somebody out."""
    database = state.of(request).database
    if action == "remove":
        remove_reviewer(database, review, account)
    elif account in {user.id, *(each.id for each in list_accounts(database))}:
        add_reviewer(database, review, account)
    else:
        raise NotThereError
    return RedirectResponse(f"/reviews/{review.id}", 303)


@router.get("/reviews/{review_id}/verdicts.jsonl")
def verdict_file(request: Request, _: Owner, review: VisibleReview) -> Response:
    """All judgements, without the texts; people as numbers."""
    with state.of(request).database.reading() as connection:
        everything = every_judgement(connection, review)
    numbers = {id_: n for n, id_ in enumerate(dict.fromkeys(a for _, a, _ in everything), start=1)}
    records = [
        {
            "id": item.pair.name,
            "system": item.pair.system,
            "reviewer": numbers[account_id],
            "verdict": said.verdict or None,
            "privacy": said.privacy,
            "meaning": said.meaning,
            "comment": said.comment,
            "seconds": round(said.seconds, 1),
        }
        for item, account_id, said in everything
    ]
    return download(records, f"review-{review.id}.jsonl")


@router.post("/reviews/{review_id}/delete")
def remove_review(request: Request, _: Owner, review: VisibleReview) -> Response:
    """Delete a review with all its texts."""
    delete_review(state.of(request).database, review)
    return RedirectResponse("/reviews", 303)
