"""Make the pictures of `docs`, those of a study with invented answers: `make pictures`."""

from __future__ import annotations

import io
import re
import subprocess
import tempfile
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from PIL import Image

from pii_bench.datasets.catalog import load_dataset
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status
from pii_bench.web.accounts import COOKIE, Role, add_account, begin_session
from pii_bench.web.marks import Mark, items_of_sample
from pii_bench.web.projects import SHARED_PROJECTS, Plan, Stages, create_project
from pii_bench.web.reviews import SHARED_REVIEWS, Kind, create_review, masked_pair
from pii_bench.web.settings import Settings
from tests.cli.command import COMMAND, environment
from tests.web.chromium import chromium, serving
from tests.web.server import PASSWORD, Server
from tests.web.study import choice, open_next, save, state_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.web.projects import Project
    from tests.web.server import Browser

REPOSITORY: Final = Path(__file__).resolve().parents[2]
IMAGES: Final = REPOSITORY / "docs" / "images"
ANNOTATORS: Final = ("ann", "bob", "cleo", "dan", "eva")
WIDTHS: Final = {"laptop": 1280, "phone": 390}
SAMPLES: Final = 6
_COLOURS: Final = 128
_HIGHEST: Final = 1500
_ITEM: Final = re.compile(r'href="(/reviews/items/\d+)" aria-label="Text')

# View to its picture: file name, user, device and colour scheme.
PICTURES: Final = {
    "new": ("study-new", "olga", "laptop", "light"),
    "mark": ("study-mark", "ann", "laptop", "light"),
    "choose": ("study-choose", "ann", "phone", "dark"),
    "lead": ("study-lead", "olga", "laptop", "light"),
    "adjudicate": ("study-adjudicate", "adam", "laptop", "light"),
    "review": ("study-review", "ann", "laptop", "light"),
    "blind": ("study-blind", "ann", "phone", "light"),
    "mask": ("mask", "ann", "laptop", "light"),
}


def marks(sample: Sample, draw: Random, care: float) -> list[dict[str, Any]]:
    """Return marks of an annotator who finds each entity with the probability `care`."""
    found = [item for item in items_of_sample(sample) if draw.random() < care]
    made = [
        Mark(*span, (item.person,), item.type, item.category)
        for item in found
        for span in item.spans
    ]
    kept: list[Mark] = []
    for mark in sorted(made, key=lambda mark: mark.span):
        if not kept or kept[-1].end <= mark.start:
            kept.append(mark)
    return [asdict(mark) for mark in kept]


def answered(
    browser: Browser, project: Project, by_text: dict[str, Sample], draw: Random, *, stops: bool
) -> bool:
    """Answer the next task of a user; return False if it stays open in stage 2."""
    task = open_next(browser, project)
    state = state_of(browser, task)
    sample = by_text[state["text"]]
    if state["stage"] == 1:
        answer = {"marks": marks(sample, draw, draw.choice([0.98, 0.95, 0.85]))}
        return bool(save(browser, task, answer, done=True).is_success)
    needed = {related.text for related in sample.related}
    chosen = [n for n, item in enumerate(state["items"]) if item["text"] in needed]
    if draw.random() < 0.2:
        chosen = chosen[1:]
    is_open = bool(chosen) and stops
    save(browser, task, choice(*chosen, sufficient=not is_open), done=not is_open)
    return not is_open


def prepare(where: str) -> tuple[dict[str, str], dict[str, str]]:
    """Fill a database; return the session secrets by name, and the paths of the views."""
    with ExitStack() as stack:
        server = Server(Settings(database=where, workers=0), stack)
        database = server.web.database
        names = {"olga": Role.OWNER, "adam": Role.ADJUDICATOR}
        names |= dict.fromkeys(ANNOTATORS, Role.ANNOTATOR)
        for name, role in names.items():
            add_account(database, name, role, PASSWORD)
        secrets = {name: begin_session(database, server.account(name)) for name in names}
        browsers = {name: server.browser(name) for name in names}

        whole = load_dataset("multi")
        samples = [each for each in whole.samples if 450 < len(each.description) < 700][:SAMPLES]
        paths = {"new": "/projects/new", "mask": "/mask"}
        project = create_project(
            database,
            Plan("Letters to the council", Stages.BOTH, annotators=5, threshold=0.9),
            replace(whole, samples=tuple(samples)),
        )
        for name in (*ANNOTATORS, "adam"):
            SHARED_PROJECTS.add_member(database, project.id, server.account(name).id)
        by_text = {each.description: each for each in samples}
        draw = Random(19)
        for name in ANNOTATORS:
            for _ in samples:
                answered(browsers[name], project, by_text, draw, stops=False)
        for name in ANNOTATORS[::-1]:
            while "/tasks/" in _next(browsers[name], project) and answered(
                browsers[name], project, by_text, draw, stops=name == "ann"
            ):
                pass
        paths["lead"] = f"/projects/{project.id}"
        paths["choose"] = _next(browsers["ann"], project)
        disputes = f"/projects/{project.id}/disputes"
        disputed = browsers["adam"].page(disputes)
        action = disputed.partition(f'action="{disputes}/')[2].partition('"')[0]
        opened = browsers["adam"].post(f"{disputes}/{action}", follow_redirects=False)
        paths["adjudicate"] = opened.headers["location"]

        one = replace(whole, samples=(samples[1],))
        pilot = create_project(database, Plan("Pilot", Stages.MARK, annotators=1), one)
        SHARED_PROJECTS.add_member(database, pilot.id, server.account("ann").id)
        paths["mark"] = _next(browsers["ann"], pilot)
        task = int(paths["mark"].rpartition("/")[2])
        save(browsers["ann"], task, {"marks": marks(samples[1], draw, 0.9)})

        paths |= _reviews(server, browsers, samples, draw)
    return secrets, paths


def _next(browser: Browser, project: Project) -> str:
    answer = browser.post(f"/projects/{project.id}/next", follow_redirects=False)
    return str(answer.headers["location"])


def _reviews(
    server: Server, browsers: dict[str, Browser], samples: Sequence[Sample], draw: Random
) -> dict[str, str]:
    pairs = []
    for system, care in (("encoder", 0.95), ("rules", 0.7)):
        for sample in samples:
            subjects = tuple(
                tuple((e.text, str(e.type)) for e in each.entities if draw.random() < care)
                for each in sample.subjects
            )
            needed = tuple(each.text for each in sample.related if draw.random() < care)
            answer = Prediction(Status.OK, subjects=subjects, related=needed)
            pair = masked_pair(sample, answer, system)
            assert pair is not None
            pairs.append(pair)
    paths = {}
    for kind, name in ((Kind.MASKED, "review"), (Kind.BLIND, "blind")):
        review = create_review(server.web.database, f"Second look, {kind.value}", kind, pairs)
        for who in ("ann", "bob", "olga"):
            SHARED_REVIEWS.add_member(server.web.database, review.id, server.account(who).id)
            page = browsers[who].page(f"/reviews/{review.id}")
            items = _ITEM.findall(page)
            for item in items[: 9 if who == "ann" else 12]:
                body = (
                    {"verdict": draw.choice(["good", "good", "leaks", "vain"])}
                    if kind is Kind.MASKED
                    else {"privacy": draw.choice([3, 4, 4, 5]), "meaning": draw.choice([4, 5])}
                )
                browsers[who].post(item, json={**body, "done": True})
        paths[name] = _ITEM.findall(browsers["ann"].page(f"/reviews/{review.id}"))[2]
    return paths


def shoot(browser: Any, url: str, secret: str, view: str, path: str) -> Any:
    """Return a screenshot of a view."""
    _, _, device, scheme = PICTURES[view]
    context = browser.new_context(
        viewport={"width": WIDTHS[device], "height": 800},
        color_scheme=scheme,
        base_url=url,
        has_touch=device == "phone",
    )
    context.add_cookies([{"name": COOKIE, "value": secret, "url": url}])
    page = context.new_page()
    page.goto(path)
    page.wait_for_load_state("networkidle")
    if view == "mask":
        page.get_by_role("button", name="Try an example").click()
        page.locator("#found").wait_for(timeout=60_000)
        page.get_by_label("The answer with tags").fill("Dear <Full Name>, see you on 3 June.")
        page.locator("#restored", has_text="Hannah").wait_for()
    elif view == "mark":
        page.locator("#text .m").nth(2).click()
        page.wait_for_timeout(500)
    data = page.screenshot(full_page=True)
    context.close()
    return Image.open(io.BytesIO(data)).convert("RGB")


def shoot_report(browser: Any, folder: Path) -> Image.Image:
    """Return a picture of the top of the report on the runs in `results`."""
    path, results = folder / "report.html", str(REPOSITORY / "results")
    options = ("--results", results, "--model", "encoder", "--out", str(path))
    subprocess.run([*COMMAND, "report", *options], check=True, env=environment())  # noqa: S603 -- our own command
    page = browser.new_page(viewport={"width": 1100, "height": 1000})
    page.goto(path.as_uri())
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def save_picture(picture: Image.Image, path: Path) -> None:
    """Save a picture with few colours."""
    small = picture.quantize(_COLOURS, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def main() -> None:
    """Write all pictures."""
    with tempfile.TemporaryDirectory() as path, ExitStack() as stack:
        folder = Path(path)
        secrets, paths = prepare(str(folder / "pictures.sqlite"))
        url = stack.enter_context(serving(folder, "--database", "pictures.sqlite"))
        browser = stack.enter_context(chromium())
        for view, (name, who, *_) in PICTURES.items():
            picture = shoot(browser, url, secrets[who], view, paths[view])
            top = picture.crop((0, 0, picture.width, min(picture.height, _HIGHEST)))
            save_picture(top, IMAGES / f"{name}.png")
        save_picture(shoot_report(browser, folder), REPOSITORY / "docs" / "report.png")


if __name__ == "__main__":
    main()
